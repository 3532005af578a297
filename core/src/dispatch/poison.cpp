// Calls that do not outlive run().
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>

#include "dispatch/execute.hpp"
#include "dovetail/backend.hpp"

namespace dovetail {
bool poisons_calls = [] {
  const char* text = std::getenv("DOVETAIL_POISON_CALLS");
  return text && *text && std::string_view(text) != "0";
}();

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
}  // namespace dovetail
