// Calls that are watched for those who write devices.
#include <deque>
#include <memory>
#include <mutex>

#include "device/guard.hpp"
#include "dispatch/execute.hpp"
#include "dovetail/backend.hpp"

namespace dovetail {
namespace {
// The row gets a copy of its call, which is overwritten as soon as it returns: a kernel that kept a pointer to it
// crashes then, and does not work by luck.
dvt_status run_and_poison(const dvt_kernel& row, dvt_device* device, const dvt_call& call) {
  auto copy = std::make_unique<dvt::CallCopy>(&call);
  const dvt_status status = row.run(device, copy->get());
  copy->poison();
  // They stay for a while, so that a late look finds the poison and not what the memory is used for next.
  static std::mutex mutex;
  static auto& ended = *new std::deque<std::unique_ptr<dvt::CallCopy>>;
  const std::lock_guard guard(mutex);
  ended.push_back(std::move(copy));
  if (ended.size() > 1024) ended.pop_front();
  return status;
}
}  // namespace

dvt_status run_watched(const Invocation& inv, const Storage* workspace, const dvt_kernel& row,
                       const dvt_call& call) {
  for (uint32_t i = 0; i < inv.op.spec.n_out; ++i) note_writer(*inv.out[i]->storage, inv.op, int(i));
  if (workspace) note_writer(*workspace, inv.op, kWorkspace);
  dvt_device* device = inv.device->handle;
  return watches(watch_calls) ? run_and_poison(row, device, call) : row.run(device, &call);
}
}  // namespace dovetail
