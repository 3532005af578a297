// Splits work into chunks for the host's pool.
#pragma once
#include <atomic>

#include "kernel.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
// Calls body(i) for each of `count` chunks, `grain` of them worth a thread; DVT_OOM if one returns false.
template <class F>
dvt_status for_each_chunk(int64_t count, uint64_t grain, F&& body) {
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(count), grain, [&](uint64_t begin, uint64_t end, uint32_t) {
    for (int64_t at = int64_t(begin); at < int64_t(end); ++at)
      if (!body(at)) complete.store(false, std::memory_order_relaxed);
  });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
