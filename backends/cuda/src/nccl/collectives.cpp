// The group "dovetail.collectives" of abi.h, by NCCL.
#include "device/capture.hpp"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "device/errors.hpp"
#include "launch.hpp"
#include "nccl/library.hpp"

struct dvt_comm {
  dvt_device& device;
  const int32_t size;
  ncclComm_t handle = nullptr;  // until it is aborted
};

namespace gpu::nccl {
namespace {
enum Kind : uint32_t { all_reduce, all_gather, reduce_scatter, broadcast, all_to_all };
constexpr ncclRedOp_t reductions[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

dvt_status report(ncclResult_t result, const char* call, ncclComm_t comm = nullptr) {
  if (result == ncclSuccess) return DVT_OK;
  const dvt_status status =
      result == ncclInvalidArgument || result == ncclInvalidUsage ? DVT_INVALID : DVT_INTERNAL;
  const char* const more = functions().ncclGetLastError(comm);
  return DVT_FAIL(status, "NCCL: %s: %s%s%s", call, functions().ncclGetErrorString(result),
                  more && *more ? ": " : "", more ? more : "");
}
#define NCCL_CALL(name, ...) report(functions().name(__VA_ARGS__), #name)

dvt_status report_missing() {
  return missing().empty() ? DVT_OK : DVT_FAIL(DVT_UNSUPPORTED, "%s", missing().c_str());
}

// ---- groups ----------------------------------------------------------------------

// The thread's open groups. No call of a group runs before the group's end: end_group() waits for the calls that
// have no stream.
thread_local int open_groups = 0;
thread_local std::vector<dvt_device*> awaited;

dvt_status finish_call(dvt_device* d, const dvt_call* c) {
  if (!open_groups) return finish(d, c);
  if (!c->stream) awaited.push_back(d);
  return DVT_OK;
}

dvt_status end_group() {
  --open_groups;
  const dvt_status ended = NCCL_CALL(ncclGroupEnd);
  if (open_groups) return ended;
  dvt_status waited = DVT_OK;
  for (dvt_device* d : std::exchange(awaited, {}))
    if (const dvt_status s = guarded(d, [&] { return wait_for(d->own_stream); })) waited = s;
  return ended ? ended : waited;
}

dvt_status group(uint32_t begin) {
  if (dvt_status s = report_missing()) return s;
  if (!begin)
    return open_groups ? end_group() : DVT_FAIL(DVT_INVALID, "a group of collectives ends that never began");
  if (dvt_status s = NCCL_CALL(ncclGroupStart)) return s;
  ++open_groups;
  return DVT_OK;
}

// ---- communicators ----------------------------------------------------------------------

dvt_status unique_id(uint8_t id[128]) {
  if (dvt_status s = report_missing()) return s;
  ncclUniqueId made;
  static_assert(sizeof made == 128);
  if (dvt_status s = NCCL_CALL(ncclGetUniqueId, &made)) return s;
  std::memcpy(id, &made, sizeof made);
  return DVT_OK;
}

dvt_status init(dvt_device* d, const uint8_t id[128], int32_t rank, int32_t n, dvt_comm** out) {
  if (dvt_status s = report_missing()) return s;
  return guarded(d, [&]() -> dvt_status {
    ncclUniqueId shared;
    std::memcpy(&shared, id, sizeof shared);
    auto comm = std::make_unique<dvt_comm>(*d, n);
    if (dvt_status s = NCCL_CALL(ncclCommInitRank, &comm->handle, n, shared, rank)) return s;
    *out = comm.release();
    return DVT_OK;
  });
}

void destroy(dvt_comm* comm) {
  (void)guarded(&comm->device,
                [&] { return comm->handle ? NCCL_CALL(ncclCommDestroy, comm->handle) : dvt_status{DVT_OK}; });
  delete comm;
}

// Which frees what is NCCL's of it.
dvt_status abort(dvt_comm* comm) {
  return guarded(&comm->device, [&]() -> dvt_status {
    const ncclComm_t handle = std::exchange(comm->handle, nullptr);
    return handle ? NCCL_CALL(ncclCommAbort, handle) : DVT_OK;
  });
}

dvt_status tell_aborted() { return DVT_FAIL(DVT_INVALID, "the communicator was aborted: make another one"); }

dvt_status async_error(dvt_comm* comm) {
  if (!comm->handle) return tell_aborted();
  return guarded(&comm->device, [&]() -> dvt_status {
    ncclResult_t found = ncclSuccess;
    if (dvt_status s = NCCL_CALL(ncclCommGetAsyncError, comm->handle, &found)) return s;
    return found == ncclInProgress ? DVT_OK : report(found, "an earlier call", comm->handle);
  });
}

// ---- data ----------------------------------------------------------------------

std::optional<ncclDataType_t> data_type(DLDataType t) {
  const auto by_bits = [&](auto b8, auto b16, auto b32, auto b64) -> std::optional<ncclDataType_t> {
    return t.bits == 8 ? b8 : t.bits == 16 ? b16 : t.bits == 32 ? b32 : t.bits == 64 ? b64 : std::nullopt;
  };
  using Type = std::optional<ncclDataType_t>;
  const Type none;
  switch (t.code) {
    case DVT_INT: return by_bits(Type(ncclInt8), none, Type(ncclInt32), Type(ncclInt64));
    case DVT_UINT: return by_bits(Type(ncclUint8), none, Type(ncclUint32), Type(ncclUint64));
    case DVT_FLOAT: return by_bits(none, Type(ncclFloat16), Type(ncclFloat32), Type(ncclFloat64));
    case DVT_BFLOAT: return by_bits(none, Type(ncclBfloat16), none, none);
    default: return none;
  }
}

dvt_status check(const dvt_comm* comm, const dvt_call* c) {
  if (!comm->handle) return tell_aborted();
  for (uint32_t i = 0; i < c->n_in; ++i)
    if (c->in[i] && !dvt::is_dense(c->in[i]))
      return DVT_FAIL(DVT_INVALID, "collectives: expected row-major operands");
  for (uint32_t i = 0; i < c->n_out; ++i)
    if (!dvt::is_dense(c->out[i])) return DVT_FAIL(DVT_INVALID, "collectives: expected row-major results");
  return DVT_OK;
}

dvt_status exchange(const dvt_comm* comm, const std::byte* from, std::byte* to, size_t bytes, cudaStream_t stream) {
  const size_t each = bytes / size_t(comm->size);
  if (dvt_status s = NCCL_CALL(ncclGroupStart)) return s;
  dvt_status status = DVT_OK;
  for (int32_t peer = 0; peer < comm->size && !status; ++peer) {
    const size_t at = size_t(peer) * each;
    status = NCCL_CALL(ncclSend, from + at, each, ncclUint8, peer, comm->handle, stream);
    if (!status) status = NCCL_CALL(ncclRecv, to + at, each, ncclUint8, peer, comm->handle, stream);
  }
  const dvt_status ended = NCCL_CALL(ncclGroupEnd);
  return status ? status : ended;
}

dvt_status reduce(const dvt_comm* comm, uint32_t kind, uint32_t redop, const dvt_call* c, cudaStream_t stream) {
  const auto type = data_type(c->in[0]->dtype);
  if (!type || redop >= std::size(reductions))
    return DVT_FAIL(DVT_UNSUPPORTED, "NCCL has no reduction %u of this data type", redop);
  const void* const from = dvt::data<const void>(c->in[0]);
  void* const to = dvt::data<void>(c->out[0]);
  const auto count = size_t(dvt::size(c->out[0]));  // of a scattered one what this rank gets
  const ncclRedOp_t op = reductions[redop];
  return kind == all_reduce ? NCCL_CALL(ncclAllReduce, from, to, count, *type, op, comm->handle, stream)
                            : NCCL_CALL(ncclReduceScatter, from, to, count, *type, op, comm->handle, stream);
}

dvt_status move(const dvt_comm* comm, uint32_t kind, int32_t root, const dvt_call* c, cudaStream_t stream) {
  const auto from = dvt::data<const std::byte>(c->in[0]);
  const auto to = dvt::data<std::byte>(c->out[0]);
  const size_t bytes = dvt::bytes(c->in[0]);  // of any type: nothing looks at them
  switch (kind) {
    case all_gather: return NCCL_CALL(ncclAllGather, from, to, bytes, ncclUint8, comm->handle, stream);
    case broadcast: return NCCL_CALL(ncclBroadcast, from, to, bytes, ncclUint8, root, comm->handle, stream);
    case all_to_all: return exchange(comm, from, to, bytes, stream);
    default: return DVT_FAIL(DVT_UNSUPPORTED, "there is no collective %u", kind);
  }
}

cudaStream_t stream_for(dvt_device* d, const dvt_call* c) {
  return reinterpret_cast<cudaStream_t>(stream_of(d, c->stream).handle);
}

dvt_status collective(dvt_comm* comm, uint32_t kind, uint32_t redop, int32_t root, const dvt_call* c) {
  if (dvt_status s = check(comm, c)) return s;
  dvt_device* const d = &comm->device;
  return guarded(d, [&]() -> dvt_status {
    const cudaStream_t stream = stream_for(d, c);
    const bool reduces = kind == all_reduce || kind == reduce_scatter;
    if (dvt_status s = reduces ? reduce(comm, kind, redop, c, stream) : move(comm, kind, root, c, stream)) return s;
    return finish_call(d, c);
  });
}

dvt_status p2p(dvt_comm* comm, uint32_t is_send, int32_t peer, const dvt_call* c) {
  if (dvt_status s = check(comm, c)) return s;
  dvt_device* const d = &comm->device;
  return guarded(d, [&]() -> dvt_status {
    const cudaStream_t stream = stream_for(d, c);
    const DLTensor* const t = is_send ? c->in[0] : c->out[0];
    const size_t bytes = dvt::bytes(t);
    void* const data = dvt::data<void>(t);
    if (dvt_status s = is_send ? NCCL_CALL(ncclSend, data, bytes, ncclUint8, peer, comm->handle, stream)
                               : NCCL_CALL(ncclRecv, data, bytes, ncclUint8, peer, comm->handle, stream))
      return s;
    return finish_call(d, c);
  });
}
}  // namespace

const dvt_collectives collectives = {.struct_size = sizeof collectives,
                                     .flags = 0,
                                     .unique_id = unique_id,
                                     .init = init,
                                     .destroy = destroy,
                                     .abort = abort,
                                     .async_error = async_error,
                                     .group = group,
                                     .collective = collective,
                                     .p2p = p2p};
}  // namespace gpu::nccl
