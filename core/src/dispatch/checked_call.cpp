// Kernel calls with the debug checks for authors of devices, and kernel calls that are recorded.
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "device/timeline.hpp"
#include "dispatch/submit.hpp"
#include "dovetail/backend.hpp"

namespace dovetail {
namespace {
// f() gets a copy of the call, which is overwritten as soon as it returns: a kernel that kept a pointer to it
// crashes then, and does not work by luck.
template <class F>
dvt_status poisoned(const dvt_call& call, F f) {
  auto copy = std::make_unique<dvt::CallCopy>(&call);
  const dvt_status status = f(copy->get());
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

dvt_status run_checked(const char* name, const char* engine, Stream& stream, std::span<Tensor* const> outputs,
                       const Storage* workspace, const dvt_call& call,
                       const std::function<dvt_status(const dvt_call*)>& run) {
  for (size_t i = 0; i < outputs.size(); ++i) note_writer(*outputs[i]->storage, name, int(i));
  if (workspace) note_writer(*workspace, name, kWorkspace);
  std::optional<DeviceSpan> span;
  if (recording()) span.emplace(Activity::kernel, name, engine, stream, call.correlation_id, 0);
  return enabled(poisoned_calls) ? poisoned(call, run) : run(&call);
}

dvt_status pack_checked(const dvt_kernel& row, dvt_device* device, const dvt_call& call, uint32_t operand,
                        const dvt_packed& to) {
  dvt_packed copy = to;
  const dvt_status status = poisoned(call, [&](const dvt_call* c) { return row.pack(device, c, operand, &copy); });
  std::memset(static_cast<void*>(&copy), 0xDB, sizeof copy);
  return status;
}
}  // namespace dovetail
