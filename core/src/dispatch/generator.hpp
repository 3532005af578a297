// The state of a generator of random numbers. docs of dovetail.random have the rules.
#pragma once
#include <cstdint>
#include <mutex>
#include <utility>

namespace dovetail {
class Generator {
 public:
  explicit Generator(uint64_t seed) : seed_(seed) {}
  std::pair<uint64_t, uint64_t> state() {
    const std::lock_guard guard(mutex_);
    return {seed_, offset_};
  }
  void set(uint64_t seed, uint64_t offset) {
    const std::lock_guard guard(mutex_);
    seed_ = seed, offset_ = offset;
  }
  // (seed, offset) of a draw of so many 32-bit words; the next draw begins behind it.
  std::pair<uint64_t, uint64_t> draw(uint64_t words) {
    const std::lock_guard guard(mutex_);
    const uint64_t begin = offset_;
    offset_ += words / 4 + (words % 4 != 0);
    return {seed_, begin};
  }

 private:
  std::mutex mutex_;
  uint64_t seed_, offset_ = 0;
};

uint64_t random_seed();          // from the operating system
Generator& default_generator();  // the process's own
}  // namespace dovetail
