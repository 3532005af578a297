// The table of services that a plugin is given, and what it says through it.
#pragma once
#include <string>

#include "device/backend.hpp"

namespace dovetail {
struct Failure {  // the latest host->fail of this thread
  dvt_status status = DVT_OK;
  uint64_t correlation_id = 0;
  std::string message;
};
// Empty where the plugin kept silent about `status`. A failure is told once.
Failure take_failure(dvt_status status);
// "[take] index 7 is out of range"; `what` is left out where the plugin's message has such a start itself.
Error make_error(dvt_status status, const std::string& what, const Failure& failure);
}  // namespace dovetail
