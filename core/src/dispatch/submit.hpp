// Hands work to a device: what calls of kernel rows and of compiled programs share.
#pragma once
#include <functional>

#include "device/capturing.hpp"
#include "device/guard.hpp"
#include "dispatch/packed.hpp"

namespace dovetail {
// run() with the debug checks of device/guard.hpp. `workspace` may be nullptr.
dvt_status run_checked(const char* name, const char* engine, Stream&, std::span<Tensor* const> outputs,
                       const Storage* workspace, const dvt_call& call,
                       const std::function<dvt_status(const dvt_call*)>& run);

// The way of submit() with a workspace, packed operands, a queue or the debug checks.
template <class Run>
[[gnu::noinline]] dvt_status submit_in_order(Device& device, Stream& stream, const char* name, const char* engine,
                                             dvt_call& call, std::span<const Tensor* const> operands,
                                             std::span<Tensor* const> outputs, uint64_t workspace_size,
                                             const Run& run, PackedOperands* packed) {
  struct Workspace {  // given back when the call has ended, however it did
    ~Workspace() {
      if (storage) release(storage);
    }
    Storage* storage = nullptr;
  } workspace;
  const bool records = capturing && capturing->records();
  std::unique_lock<std::mutex> lock;
  if (workspace_size) {
    workspace.storage = allocate(device, device.index, stream, workspace_size);
    call.workspace = workspace.storage->data, call.workspace_size = workspace_size;
  }
  if (packed) packed->find(operands.data(), call, stream);
  if (!device.synchronous) {
    if (!records) {  // nothing runs: each replay waits for what it needs
      for (const Tensor* t : operands)
        if (t && t->storage) use(*t->storage, stream, false);
      for (const Tensor* t : outputs) use(*t->storage, stream, true);
    }
    lock = stream.lock();
    call.stream = stream.handle;
    if (stream.handle) call.correlation_id = stream.correlate(name);  // nothing is found later without one
  }
  if (packed) packed->complete(call);
  return debug_checks.load(std::memory_order_relaxed) && !records  // checks look at what has run
             ? run_checked(name, engine, stream, outputs, workspace.storage, call, run)
             : run(&call);
}

// Completes the call and runs it in the order of the stream: workspace, the order in which buffers are used, the
// stream's lock, a correlation id. `call` has operands, outputs and attributes; operands may be nullptr; `name`
// lives as long as the process. Throws the error of a run that fails. `packed`: of a row that packs operands.
template <class Run>
[[gnu::always_inline]] inline void submit(Device& device, Stream& stream, const char* name, const char* engine,
                                          dvt_call& call, std::span<const Tensor* const> operands,
                                          std::span<Tensor* const> outputs, uint64_t workspace_size, const Run& run,
                                          PackedOperands* packed = nullptr) {
  const bool plain =
      device.synchronous && !workspace_size && !packed && !debug_checks.load(std::memory_order_relaxed);
  const dvt_status status =
      plain ? run(&call)
            : submit_in_order(device, stream, name, engine, call, operands, outputs, workspace_size, run, packed);
  if (status != DVT_OK) [[unlikely]]
    device.fail(status, "[" + std::string(name) + "]");
}
}  // namespace dovetail
