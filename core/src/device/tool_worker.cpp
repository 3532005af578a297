#include "device/tool_worker.hpp"

#include <chrono>
#include <cstring>

#include "device/environment.hpp"
#include "device/image.hpp"
#include "error.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
constexpr std::string_view kGreeting = "dovetail-tool 1\n";
constexpr uint64_t kLongestReason = 64 << 10;
struct AnswerHead {
  uint32_t made, microseconds;
  uint64_t size;
};
}  // namespace

platform::Worker::Time ToolWorker::until() const {
  static const std::chrono::seconds timeout(environment_number("DOVETAIL_TOOLCHAIN_TIMEOUT", 1, 24 * 3600, 60));
  return std::chrono::steady_clock::now() + timeout;
}

ToolWorker::ToolWorker(const Tool& tool, const platform::FileLock& place) {
  std::string error;
  process_ = platform::Worker::start(tool.command, place.file(), error);
  if (!process_) throw Error(ErrorKind::runtime, tool.command[0] + " cannot be run: " + error);
  char greeting[kGreeting.size()];
  if (!process_->receive(greeting, sizeof greeting, until()))
    throw Error(ErrorKind::runtime, "the worker " + cleaned(process_->post_mortem()));
  if (kGreeting != std::string_view(greeting, sizeof greeting))
    throw Error(ErrorKind::runtime, "the worker greets with '" + cleaned({greeting, sizeof greeting}) +
                                        "', expected 'dovetail-tool 1'; update both packages");
}

ToolWorker::Answer ToolWorker::ask(std::string_view request) {
  const auto end = until();
  const uint64_t size = request.size();
  AnswerHead head;
  if (!process_->send({reinterpret_cast<const char*>(&size), sizeof size}, end) || !process_->send(request, end) ||
      !process_->receive(&head, sizeof head, end))
    throw Error(ErrorKind::runtime, "the worker " + cleaned(process_->post_mortem()));
  if (head.made > 1 || head.size > (head.made ? kLargestImage : kLongestReason))
    throw Error(ErrorKind::runtime, "the worker's answer is of no kind that is known");
  Answer answer{head.made == 1, std::string(size_t(head.size), '\0'), head.microseconds};
  if (!process_->receive(answer.bytes.data(), answer.bytes.size(), end))
    throw Error(ErrorKind::runtime, "the worker " + cleaned(process_->post_mortem()));
  return answer;
}
}  // namespace dovetail
