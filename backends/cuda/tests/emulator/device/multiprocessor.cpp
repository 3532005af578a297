#include "device/multiprocessor.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "device/places.hpp"
#include "device/signals.hpp"

namespace emulator {
constinit thread_local Thread* current_thread = nullptr;

namespace {
constexpr size_t shared_alignment = 1024;  // the largest operand of any instruction
constexpr size_t guard = 64;
// The content of shared memory before a block begins: NaN in every format. And the guard value after it.
constexpr int poison = 0xff, untouched = 0xa5;

constexpr uint32_t first_lanes(uint32_t n) { return n >= 32 ? ~0u : (1u << n) - 1; }

}  // namespace

void Multiprocessor::Free::operator()(std::byte* p) const {
  ::operator delete[](p, std::align_val_t{shared_alignment});
}

Multiprocessor& Multiprocessor::of_this_thread() {
  static thread_local Multiprocessor one;
  return one;
}

// ---- a launch ---------------------------------------------------------------------------------------------------

std::optional<KernelError> Multiprocessor::run(const Launch& launch) {
  catch_signals_of_kernels();
  launch_ = &launch;
  begin_launch();
  const Extent grid = launch.grid;
  uint64_t turn = 0;
  for (uint32_t z = 0; z < grid.z && !error_; ++z)
    for (uint32_t y = 0; y < grid.y && !error_; ++y)
      for (uint32_t x = 0; x < grid.x && !error_; ++x) {
        around_.block_index = {x, y, z};
        if (turn++ && launch.order.kind == Order::shuffled) take_order(turn);
        begin_block();
        Thread& first = *take_ready(RankSet::limit - 1);
        current_thread = nullptr;
        resume(host_, first);
        end_block();
      }
  current_thread = nullptr;
  return std::exchange(error_, {});
}

void Multiprocessor::begin_launch() {
  const Extent block = launch_->block;
  const auto n = uint32_t(block.count());
  around_ = {this, {}, block, launch_->grid};
  threads_.resize(n);
  for (uint32_t i = 0; i < n; ++i) {
    threads_[i] = Thread{.index = {i % block.x, i / block.x % block.y, i / block.x / block.y},
                         .number = i,
                         .rank = i,
                         .around = &around_,
                         .where = {}};
  }
  warps_.resize((n + 31) / 32);
  for (uint32_t i = 0; i < warps_.size(); ++i) warps_[i].born = first_lanes(n - 32 * i);
  take_order(0);
  allocate_shared();
}

void Multiprocessor::take_order(uint64_t turn) {
  by_rank_ = launch_->order.permutation(uint32_t(threads_.size()), turn);
  for (uint32_t rank = 0; rank < by_rank_.size(); ++rank) threads_[by_rank_[rank]].rank = rank;
}

void Multiprocessor::begin_block() {
  alive_ = uint32_t(threads_.size()), at_barrier_ = 0;
  ready_.insert_first(alive_);
  for (Warp& w : warps_) w.alive = w.born, w.waiting = w.awaited = w.at_barrier = 0;
  poison_shared();
}

void Multiprocessor::end_block() {
  if (!error_ && alive_) error_ = deadlock();
  if (!error_) return check_shared();
  // A kernel that stopped midway is never resumed.
  idle_.clear();
  fibers_.clear();
}

// ---- dynamic shared memory --------------------------------------------------------------------------------------

void Multiprocessor::allocate_shared() {
  if (shared_ && shared_size_ == launch_->dynamic_shared) return;
  shared_size_ = launch_->dynamic_shared;
  shared_.reset(new (std::align_val_t{shared_alignment}) std::byte[shared_size_ + guard]);
  std::memset(shared_.get() + shared_size_, untouched, guard);
}

void Multiprocessor::poison_shared() { std::memset(shared_.get(), poison, shared_size_); }

void Multiprocessor::check_shared() {
  std::byte* const end = shared_.get() + shared_size_;
  if (std::all_of(end, end + guard, [](std::byte b) { return b == std::byte{untouched}; })) return;
  std::memset(end, untouched, guard);
  error_ = {KernelError::illegal_address, name_of_block() + ": a write behind its " + std::to_string(shared_size_) +
                                              " bytes of dynamic shared memory"};
}

// ---- fibers -----------------------------------------------------------------------------------------------------

void Multiprocessor::fiber_main() {
  Multiprocessor& on = of_this_thread();
  for (;;) {
    on.launch_->call(on.launch_->arguments);
    Thread& ended = *current_thread;
    on.exit_thread(ended);
    Fiber& mine = *std::exchange(ended.fiber, nullptr);
    Thread* const next = on.take_ready(ended.rank);
    if (next && !next->fiber) {
      next->fiber = &mine;
      current_thread = next;
      continue;
    }
    on.idle_.push_back(&mine);
    if (next) on.resume(mine, *next);
    else Fiber::switch_to(mine, on.host_);
  }
}

Fiber& Multiprocessor::idle_fiber() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(fiber_main, fibers_.size()));
    return *fibers_.back();
  }
  Fiber* const one = idle_.back();
  idle_.pop_back();
  return *one;
}

Thread* Multiprocessor::take_ready(uint32_t after) {
  const uint32_t rank = ready_.take_next(after);
  return rank == RankSet::limit ? nullptr : &threads_[by_rank_[rank]];
}

void Multiprocessor::resume(Fiber& from, Thread& next) {
  if (!next.fiber) next.fiber = &idle_fiber();
  current_thread = &next;
  Fiber::switch_to(from, *next.fiber);
}

void Multiprocessor::wait(const char* in, const std::source_location& where) {
  Thread& waiting = *current_thread;
  waiting.waits_in = in, waiting.where = where;
  Thread* const next = take_ready(waiting.rank);
  if (!next) stop(deadlock());
  if (next != &waiting) resume(*waiting.fiber, *next);
}

void Multiprocessor::let_others_run(const char* in, const std::source_location& where) {
  ready_.insert(current_thread->rank);
  wait(in, where);
}

// Threads that wait for this one are released.
void Multiprocessor::exit_thread(Thread& ended) {
  Warp& warp = warps_[ended.number / 32];
  warp.alive &= ~(1u << ended.lane());
  --alive_;
  for (uint32_t lanes = warp.waiting; lanes;) {
    const uint32_t mask = warp.deposits[std::countr_zero(lanes)].mask;
    lanes &= ~mask;
    complete_if_whole(warp, mask);
  }
  if (at_barrier_ && at_barrier_ == alive_) release_barrier();
}

// ---- barriers of the block --------------------------------------------------------------------------------------

void Multiprocessor::block_barrier(const std::source_location& where) {
  Thread& arrived = *current_thread;
  Warp& warp = warps_[arrived.number / 32];
  if (!warp.at_barrier) warp.barrier = where;
  else if (!same_place(warp.barrier, where))
    fail(arrived, "divergent barrier: __syncthreads at " + place(where) +
                      " while other lanes of its warp are in the one at " + place(warp.barrier));
  warp.at_barrier |= 1u << arrived.lane();
  if (++at_barrier_ == alive_) release_barrier();
  wait("__syncthreads", where);
}

// The last one that arrives continues in its turn, like the others.
void Multiprocessor::release_barrier() {
  for (uint32_t i = 0; i < warps_.size(); ++i) {
    Warp& warp = warps_[i];
    if (warp.at_barrier && warp.at_barrier != warp.born)
      fail(threads_[32 * i + std::countr_zero(warp.born & ~warp.at_barrier)],
           "divergent barrier: it has returned while other lanes of its warp are in __syncthreads at " +
               place(warp.barrier));
    if (alive_ < threads_.size()) make_ready(warp, warp.at_barrier);
    warp.at_barrier = 0;
  }
  if (alive_ == threads_.size()) ready_.insert_first(alive_);
  at_barrier_ = 0;
}

void Multiprocessor::make_ready(const Warp& warp, uint32_t lanes) {
  const auto first = uint32_t(&warp - warps_.data()) * 32;
  for (; lanes; lanes &= lanes - 1) ready_.insert(threads_[first + std::countr_zero(lanes)].rank);
}
}  // namespace emulator
