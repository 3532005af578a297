// Error messages about kernels.
#include <cstdio>
#include <map>
#include <tuple>
#include <utility>

#include "device/multiprocessor.hpp"
#include "device/places.hpp"

namespace emulator {
namespace {
std::string triple(const Index& i) {
  char text[40];
  std::snprintf(text, sizeof text, "(%u, %u, %u)", i.x, i.y, i.z);
  return text;
}
}  // namespace

std::string Multiprocessor::name_of_block() const {
  return "kernel " + std::string(launch_->kernel) + ", block " + triple(around_.block_index);
}

std::string Multiprocessor::name_of(const Thread& thread) const {
  return name_of_block() + ", thread " + triple(thread.index);
}

// All remaining threads wait: which ones, and where.
KernelError Multiprocessor::deadlock() const {
  struct Group {
    const Thread* first = nullptr;
    size_t threads = 0;
  };
  std::map<std::string, Group> groups;
  for (const Thread& thread : threads_) {
    if (!thread.fiber) continue;
    Group& group = groups[std::string(thread.waits_in) + " at " + place(thread.where)];
    if (!group.threads++) group.first = &thread;
  }
  std::string text = name_of_block() + ": its threads wait for each other:";
  const char* between = " ";
  for (const auto& [where, group] : groups) {
    text += std::exchange(between, "; ") + std::to_string(group.threads) + " in " + where +
            ", the first is thread " + triple(group.first->index);
  }
  return {KernelError::failed, text + "; " + std::to_string(threads_.size() - alive_) + " have returned"};
}

void Multiprocessor::fail(const Thread& thread, KernelError what) {
  what.message = name_of(thread) + ": " + what.message;
  stop(std::move(what));
}

// Leaves the stack for good, with its content.
void Multiprocessor::stop(KernelError error) {
  error_ = std::move(error);
  error.message = {};
  Fiber::switch_to(*current_thread->fiber, host_);
  std::abort();
}

void Lanes::fail(uint32_t lane, const std::string& what) const {
  const Deposit& asks = deposit(lane);
  owner_.fail(threads_[lane], std::string(asks.name) + " at " + place(asks.where) + " " + what);
}
}  // namespace emulator
