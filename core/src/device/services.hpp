// The host's services for plugins, and the failures that plugins report through them.
#pragma once
#include <string>

#include "device/backend.hpp"

namespace dovetail {
struct Failure {  // the latest host->fail of this thread
  dvt_status status = DVT_OK;
  uint64_t correlation_id = 0;
  std::string message;
};
// Empty where the plugin reported nothing with `status`. Each failure is returned once.
Failure take_failure(dvt_status status);
// "[take] index 7 is out of range"; `what` is left out where the message begins with a bracket itself.
Error make_error(dvt_status status, const std::string& what, const Failure& failure);
}  // namespace dovetail
