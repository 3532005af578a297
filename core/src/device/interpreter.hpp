// Hooks by which waits release the lock of the embedding language, Python's GIL. A program without Python leaves
// them unset. Every function that may wait may release it - on a device with streams also allocate, use,
// Stream::lock and copy_bytes - so a caller holds its own references to the objects it works on.
#pragma once
#include <chrono>
#include <mutex>

namespace dovetail {
struct Interrupt {};  // a base of the exception that check_interrupt throws for Ctrl-C
struct Interpreter {
  void* (*unlock)() = [] { return static_cast<void*>(nullptr); };  // nullptr if this thread does not hold it
  void (*relock)(void*) = [](void*) {};
  // Throws where the user has interrupted the program. Called in waits of the main thread, with or without the
  // interpreter's lock; nullptr: nothing interrupts a wait.
  void (*check_interrupt)() = nullptr;
};
extern Interpreter interpreter;

// For long waits and loops, which call it all the time: throws, ten times a second, where the user has interrupted
// the program.
class InterruptCheck {
 public:
  void operator()() {
    if (interpreter.check_interrupt && Clock::now() >= next_) [[unlikely]]
      look();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kBetween{100};
  void look();
  Clock::time_point next_ = Clock::now() + kBetween;
};

class GilRelease {  // for a scope that may wait
 public:
  GilRelease() : relock_(interpreter.relock), token_(interpreter.unlock()) {}
  ~GilRelease() {
    if (token_) relock_(token_);
  }
  GilRelease(const GilRelease&) = delete;
  explicit operator bool() const { return token_; }  // the lock was held

 private:
  void (*const relock_)(void*);  // the one of then: at the process's end `interpreter` loses its functions
  void* const token_;
};

// The interpreted backend's function that runs on this thread, as "kernel Acme.add", or nullptr. It must not call
// the runtime, which waits for it.
extern thread_local constinit const char* inside __attribute__((tls_model("initial-exec")));
[[noreturn]] void throw_reentry();
inline void refuse_reentry() {
  if (inside) [[unlikely]]
    throw_reentry();
}

// Takes a lock that other threads hold while a plugin works. The runtime's short locks do not need this: a thread
// that holds one of those waits for nothing. No thread may wait for the interpreter while it holds such a lock: if
// the interpreter is ending, that wait never ends.
inline std::unique_lock<std::mutex> lock_unlocked(std::mutex& mutex) {
  for (;;) {
    std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
    if (lock) return lock;
    const GilRelease waiting;
    lock.lock();
    if (!waiting) return lock;
    lock.unlock();
  }
}
}  // namespace dovetail
