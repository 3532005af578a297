// The process's one thread pool.
#pragma once
#include <cstdint>

namespace dovetail {
// Runs fn(ctx, begin, end, worker) over [0, n) in chunks of at least `grain`, on the pool's threads and the caller;
// returns when all is done. worker < num_threads(). Nested and concurrent calls run inline. Survives fork: the
// child's pool starts anew at its first use. The first exception of a chunk comes out of this call.
void parallel_for(uint64_t n, uint64_t grain, void (*fn)(void*, uint64_t, uint64_t, uint32_t), void* ctx);
uint32_t num_threads();            // DOVETAIL_NUM_THREADS, else the CPUs this process may use
void set_num_threads(uint32_t n);  // throws Error(value) unless 1 <= n <= kMaxThreads
constexpr uint32_t kMaxThreads = 1024;
}  // namespace dovetail
