// Runs the blocks of a launch one after the other on the calling thread, the threads of a block as fibers.
//
// A fiber runs one thread of the block after the other to its end. Only if a thread must wait does another
// fiber continue, so a block without barriers is hardly more than a loop. The thread that another one waits
// for runs next in the order of device/order.hpp.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "device/fiber.hpp"
#include "device/order.hpp"
#include "device/vectors.hpp"

// What the code of other libraries uses (EMULATOR_CODE of device/registry.hpp).
#define EMULATOR_API __attribute__((visibility("default")))

namespace emulator {
using Index = uint3;
struct Extent {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

struct Launch {
  const char* kernel;
  Extent grid, block;
  size_t dynamic_shared;
  void (*call)(const std::byte* arguments);  // as one thread of the grid
  const std::byte* arguments;
  Order order = Order::of_environment();
};

// The error of a kernel.
struct KernelError {
  enum Kind { failed, illegal_address } kind;
  std::string message;
};

class Multiprocessor;

// A thread's block and grid.
struct Surroundings {
  Multiprocessor* on;
  Index block_index;
  Extent block, grid;
};

// A lane's operand in an operation of its warp.
class Lanes;
struct Deposit {
  const char* name;  // as in the kernel's source
  uint32_t mask;
  const void* operand;
  void* result;
  void (*complete)(const Lanes&);  // called once for all lanes
  std::source_location where;
};

struct Thread {
  Index index;
  uint32_t number;  // in its block
  uint32_t rank;    // when its turn comes
  const Surroundings* around;
  Fiber* fiber = nullptr;  // from its first step to its last
  const char* waits_in = nullptr;
  std::source_location where;

  uint32_t lane() const { return number % 32; }
};

// The thread of the grid that runs on this thread of the operating system. It does not use the faster TLS
// model initial-exec: that would need static TLS space for all thread_local variables of the library, mainly
// kernels' shared memory.
extern constinit thread_local EMULATOR_API Thread* current_thread;

struct Warp {
  uint32_t born = 0, alive = 0;  // lanes
  uint32_t waiting = 0;          // lanes in an operation of the warp
  uint32_t awaited = 0;          // lanes in the masks of those
  uint32_t at_barrier = 0;       // lanes in the barrier of the block
  std::source_location barrier;  // the index of the first of those
  std::array<Deposit, 32> deposits;
};

class EMULATOR_API Multiprocessor {
 public:
  static Multiprocessor& of_this_thread();
  static Multiprocessor& of_kernel() { return *current_thread->around->on; }  // the same, faster: in kernels

  // The error, if any. The effects of earlier blocks remain.
  std::optional<KernelError> run(const Launch&);

  // Called by kernels. fail() ends the kernel.
  void block_barrier(const std::source_location&);
  void warp_operation(const Deposit&);
  void let_others_run(const char* in, const std::source_location&);  // for waits on a value in memory
  std::byte* dynamic_shared() { return shared_.get(); }
  [[noreturn]] void fail(const Thread&, KernelError what);
  [[noreturn]] void fail(const Thread& thread, std::string what) {
    fail(thread, KernelError{KernelError::failed, std::move(what)});
  }

 private:
  friend class Lanes;
  struct Free {
    void operator()(std::byte* p) const;
  };

  void begin_launch();
  void begin_block();
  void end_block();
  void allocate_shared();
  void poison_shared();
  void check_shared();
  void take_order(uint64_t turn);

  static void fiber_main();
  Fiber& idle_fiber();
  Thread* take_ready(uint32_t after);
  void resume(Fiber& from, Thread& next);
  void wait(const char* in, const std::source_location& where);
  void exit_thread(Thread&);
  void release_barrier();
  void complete_if_whole(Warp&, uint32_t mask);
  void make_ready(const Warp&, uint32_t lanes);

  KernelError deadlock() const;
  std::string name_of_block() const;
  std::string name_of(const Thread&) const;
  [[noreturn]] void stop(KernelError);

  const Launch* launch_ = nullptr;
  Surroundings around_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<uint32_t> by_rank_;
  RankSet ready_;
  uint32_t alive_ = 0, at_barrier_ = 0;

  Fiber host_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::unique_ptr<std::byte, Free> shared_;
  size_t shared_size_ = 0;
  std::optional<KernelError> error_;
};

// The lanes of a warp in an operation that is complete.
class Lanes {
 public:
  Lanes(Multiprocessor& owner, const Warp& warp, uint32_t lanes, const Thread* threads)
      : owner_(owner), warp_(warp), lanes_(lanes), threads_(threads) {}
  uint32_t mask() const { return lanes_; }
  bool has(uint32_t lane) const { return lane < 32 && lanes_ >> lane & 1; }
  const Deposit& deposit(uint32_t lane) const { return warp_.deposits[lane]; }
  // Reports an invalid operand of a lane.
  [[noreturn]] void fail(uint32_t lane, const std::string& what) const;

 private:
  Multiprocessor& owner_;
  const Warp& warp_;
  uint32_t lanes_;
  const Thread* threads_;  // of this warp
};
}  // namespace emulator
