// libnccl.so.2 for the emulated driver: it copies nothing, and logs each call as a line of the file
// FAKE_NCCL_LOG. FAKE_NCCL_FAIL=ncclSend makes that function fail.
#include <nccl.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
__attribute__((format(printf, 2, 3))) ncclResult_t called(const char* name, const char* format, ...) {
  if (std::FILE* const file = std::fopen(std::getenv("FAKE_NCCL_LOG"), "a")) {
    std::fprintf(file, "%s", name);
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(file, format, arguments);
    va_end(arguments);
    std::fputc('\n', file), std::fclose(file);
  }
  const char* const failing = std::getenv("FAKE_NCCL_FAIL");
  return failing && !std::strcmp(failing, name) ? ncclRemoteError : ncclSuccess;
}
}  // namespace

extern "C" {
extern const int dovetail_cuda_emulator = 1;

const char* ncclGetErrorString(ncclResult_t) { return "remote process exited"; }
const char* ncclGetLastError(ncclComm_t) { return "rank 1 is gone"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 7, sizeof *id);
  return called("ncclGetUniqueId", "%s", "");
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int n, ncclUniqueId id, int rank) {
  *comm = reinterpret_cast<ncclComm_t>(new int);
  return called("ncclCommInitRank", " id=%d rank=%d of %d", id.internal[127], rank, n);
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete reinterpret_cast<int*>(comm);
  return called("ncclCommDestroy", "%s", "");
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  delete reinterpret_cast<int*>(comm);
  return called("ncclCommAbort", "%s", "");
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* found) {
  *found = called("an earlier call", "%s", "");
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() { return called("ncclGroupStart", "%s", ""); }
ncclResult_t ncclGroupEnd() { return called("ncclGroupEnd", "%s", ""); }
ncclResult_t ncclAllReduce(const void*, void*, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t,
                           cudaStream_t) {
  return called("ncclAllReduce", " %zu of type %d op=%d", n, type, op);
}
ncclResult_t ncclReduceScatter(const void*, void*, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t,
                               cudaStream_t) {
  return called("ncclReduceScatter", " %zu of type %d op=%d", n, type, op);
}
ncclResult_t ncclAllGather(const void*, void*, size_t n, ncclDataType_t type, ncclComm_t, cudaStream_t) {
  return called("ncclAllGather", " %zu of type %d", n, type);
}
ncclResult_t ncclBroadcast(const void*, void*, size_t n, ncclDataType_t type, int root, ncclComm_t, cudaStream_t) {
  return called("ncclBroadcast", " %zu of type %d root=%d", n, type, root);
}
ncclResult_t ncclSend(const void*, size_t n, ncclDataType_t type, int peer, ncclComm_t, cudaStream_t) {
  return called("ncclSend", " %zu of type %d to %d", n, type, peer);
}
ncclResult_t ncclRecv(void*, size_t n, ncclDataType_t type, int peer, ncclComm_t, cudaStream_t) {
  return called("ncclRecv", " %zu of type %d from %d", n, type, peer);
}
}
