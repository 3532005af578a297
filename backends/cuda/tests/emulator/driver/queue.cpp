#include "driver/queue.hpp"

#include <thread>
#include <utility>

namespace emulator {
Queue::~Queue() {
  const std::lock_guard guard(shared_->mutex);
  shared_->closed = true;
  shared_->pushed.notify_one();
}

void Queue::push(std::function<void()> work) {
  const std::lock_guard guard(shared_->mutex);
  shared_->waiting.push_back(std::move(work));
  ++shared_->n_pushed;
  // Not joined: this thread may itself release the queue, and programs end while streams still run.
  if (!std::exchange(shared_->started, true)) std::thread(run, shared_).detach();
  shared_->pushed.notify_one();
}

void Queue::wait() {
  std::unique_lock lock(shared_->mutex);
  shared_->done.wait(lock, [&, all = shared_->n_pushed] { return shared_->n_done >= all; });
}

bool Queue::is_idle() {
  const std::lock_guard guard(shared_->mutex);
  return shared_->n_done == shared_->n_pushed;
}

void Queue::run(std::shared_ptr<Shared> shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->pushed.wait(lock, [&] { return shared->closed || !shared->waiting.empty(); });
    if (shared->waiting.empty()) return;
    std::function<void()> work = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    ++shared->n_done;
    shared->done.notify_all();
  }
}
}  // namespace emulator
