// What the embedding language lends the runtime: Python's lock is let go in waits. A program without Python leaves
// these as they are. Whatever may wait may let it go - on a device with streams that is allocate, use, Stream::lock
// and copy_bytes, too - so that a caller holds references of its own to what it works on.
#pragma once
#include <mutex>

namespace dovetail {
struct Interpreter {
  void* (*unlock)() = [] { return static_cast<void*>(nullptr); };  // nullptr if this thread does not hold it
  void (*relock)(void*) = [](void*) {};
  // Throws where the user has interrupted the program. Called in waits of the main thread, with or without the
  // interpreter's lock; nullptr: nothing interrupts a wait.
  void (*check_interrupt)() = nullptr;
};
extern Interpreter interpreter;

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

// What an interpreted backend is doing on this thread, as "kernel Acme.add"; nullptr: nothing. It must not come
// back into the runtime, which waits for it.
extern thread_local constinit const char* inside __attribute__((tls_model("initial-exec")));
[[noreturn]] void throw_reentry();
inline void refuse_reentry() {
  if (inside) [[unlikely]]
    throw_reentry();
}

// For locks that are held while a plugin works. The short ones inside the runtime are simply taken: whoever holds
// one of those waits for nothing.
// Nobody waits for the interpreter with one held: where it is ending, that is for good.
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
