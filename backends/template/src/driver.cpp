#include "driver.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

namespace driver {
// ---- memory -----------------------------------------------------------------------------------------------------

Memory::Memory(uint64_t bytes) : size_(bytes), gaps_{{0, bytes}} {
  const int file = memfd_create("device memory", MFD_CLOEXEC);
  const auto map = [&](int protection) {
    void* at = file >= 0 ? mmap(nullptr, size_, protection, MAP_SHARED | MAP_NORESERVE, file, 0) : MAP_FAILED;
    return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
  };
  if (file >= 0 && ftruncate(file, off_t(size_)) == 0) {
    device_ = map(PROT_NONE);
    worker_ = map(PROT_READ | PROT_WRITE);
  }
  if (file >= 0) close(file);
  if (!device_ || !worker_) throw std::bad_alloc();
}

void* Memory::allocate(uint64_t bytes) {
  bytes = (bytes + alignment - 1) / alignment * alignment;
  const std::lock_guard guard(mutex_);
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    const auto [offset, size] = *gap;
    if (size < bytes) continue;
    gaps_.erase(gap);
    if (size > bytes) gaps_[offset + bytes] = size - bytes;
    used_[offset] = bytes;
    std::memset(worker_ + offset, 0xFF, bytes);  // NaN, or -1: reads of unwritten memory show
    return device_ + offset;
  }
  return nullptr;
}

void Memory::release(void* address) {
  const std::lock_guard guard(mutex_);
  const auto used = used_.find(uint64_t(static_cast<char*>(address) - device_));
  if (used == used_.end()) std::abort();  // not ours, or freed twice
  auto gap = gaps_.insert(*used).first;
  used_.erase(used);
  if (const auto next = std::next(gap); next != gaps_.end() && gap->first + gap->second == next->first) {
    gap->second += next->second;
    gaps_.erase(next);
  }
  if (gap == gaps_.begin()) return;
  if (const auto before = std::prev(gap); before->first + before->second == gap->first) {
    before->second += gap->second;
    gaps_.erase(gap);
  }
}

char* Memory::at(const void* address) const {
  const auto offset = uintptr_t(address) - uintptr_t(device_);
  return offset < size_ ? worker_ + offset : nullptr;
}

void Memory::spoil() {
  const std::lock_guard guard(mutex_);
  for (const auto& [offset, bytes] : used_) std::memset(worker_ + offset, 0xFF, bytes);
}

uint64_t Memory::free() const {
  const std::lock_guard guard(mutex_);
  uint64_t bytes = 0;
  for (const auto& gap : gaps_) bytes += gap.second;
  return bytes;
}

namespace {
struct Pinned {
  std::mutex mutex;
  std::map<uintptr_t, uint64_t> ranges;  // begin to bytes
};
Pinned& pinned() {
  static Pinned& p = *new Pinned;
  return p;
}
}  // namespace

void* allocate_pinned(uint64_t bytes) {
  void* address = std::aligned_alloc(Memory::alignment, (bytes + 255) / 256 * 256);
  const std::lock_guard guard(pinned().mutex);
  if (address) pinned().ranges[uintptr_t(address)] = bytes;
  return address;
}
void release_pinned(void* address) {
  {
    const std::lock_guard guard(pinned().mutex);
    pinned().ranges.erase(uintptr_t(address));
  }
  std::free(address);
}
bool is_pinned(const void* address) {
  const std::lock_guard guard(pinned().mutex);
  const auto behind = pinned().ranges.upper_bound(uintptr_t(address));
  if (behind == pinned().ranges.begin()) return false;
  const auto range = std::prev(behind);
  return uintptr_t(address) < range->first + range->second;
}

// ---- chips ------------------------------------------------------------------------------------------------------

void* Chip::allocate(uint64_t bytes) {
  const uint64_t number = ++allocations_;
  for (const Settings::Fault& f : settings().faults)
    if (f.kind == Settings::Fault::oom && f.chip == index && number >= f.first && number - f.first < f.times)
      return nullptr;
  return memory.allocate(bytes);
}

bool Chip::loses_itself(uint64_t call) {
  const uint64_t number = ++kernels_;
  for (const Settings::Fault& f : settings().faults) {
    if (f.kind != Settings::Fault::lost || f.chip != index || f.first != number) continue;
    const std::lock_guard guard(mutex_);
    loss_ = {Error::lost, call,
             "the device was lost at its kernel " + std::to_string(number) + ", as was asked for"};
    lost_ = true;
  }
  return lost_;
}

Fault Chip::loss() {
  const std::lock_guard guard(mutex_);
  return loss_;
}

void Chip::reset() {
  memory.spoil();
  lost_ = false;
}

// ---- queues -----------------------------------------------------------------------------------------------------

namespace {
thread_local Queue* current_queue = nullptr;
thread_local uint64_t current_call = 0;
}  // namespace

Queue::Queue(Chip& chip, uint32_t number) : chip_(chip), number_(number), worker_([this] { loop(); }) {}

Queue::~Queue() {
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void Queue::push(Job job) {
  if (job.kind == Job::kernel || job.kind == Job::copy)
    if (const auto into = recording(); into && into->add(job)) return;
  {
    std::unique_lock lock(mutex_);
    if (job.kind != Job::other) changed_.wait(lock, [&] { return jobs_.size() < most_queued; });
    jobs_.push_back(std::move(job));
    ++tail_;
  }
  changed_.notify_all();
}

bool Recording::add(Queue::Job& job) {
  const std::lock_guard guard(mutex);
  if (!ended) jobs.push_back(std::move(job));
  return !ended;
}

bool Recording::has_ended() {
  const std::lock_guard guard(mutex);
  return ended;
}

void Recording::end() {
  const std::lock_guard guard(mutex);
  ended = true;
}

void Queue::record(std::shared_ptr<Recording> recording) {
  const std::lock_guard guard(mutex_);
  recording_ = std::move(recording);
}

std::shared_ptr<Recording> Queue::recording() {
  const std::lock_guard guard(mutex_);
  if (recording_ && recording_->has_ended()) recording_.reset();
  return recording_;
}

// One job: replays by several threads do not mix.
void Queue::replay(std::shared_ptr<const Recording> recording) {
  push({Job::replay, 0, 0, [this, recording = std::move(recording)] {
          for (const Job& job : recording->jobs) run(job);
        }});
}

void Queue::kernel(uint64_t call, Work work) { push({Job::kernel, call, 0, std::move(work)}); }
void Queue::copy(char* to, const char* from, uint64_t bytes) {
  push({Job::copy, 0, bytes, [=] { std::memmove(to, from, bytes); }});
}
void Queue::then(Work work) { push({Job::other, 0, 0, std::move(work)}); }
void Queue::after(Queue& other, uint64_t place) {
  if (&other != this) then([&other, place] { other.wait(place); });
}

uint64_t Queue::tail() {
  const std::lock_guard guard(mutex_);
  return tail_;
}
bool Queue::passed(uint64_t place) {
  const std::lock_guard guard(mutex_);
  return done_ >= place;
}
void Queue::wait(uint64_t place) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= place; });
}

Fault Queue::take_fault() {
  if (chip_.is_lost()) return chip_.loss();
  const std::lock_guard guard(mutex_);
  if (faults_.empty()) return {};
  Fault fault = std::move(faults_.front());
  faults_.pop_front();
  return fault;
}

void raise(Error error, std::string text) {
  const std::lock_guard guard(current_queue->mutex_);
  current_queue->faults_.push_back({error, current_call, std::move(text)});
}

void Queue::loop() {
  current_queue = this;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    {
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      run(job);
    }
    lock.lock();
    ++done_;
    changed_.notify_all();
  }
}

void Queue::run(const Job& job) {
  if (job.kind == Job::other || job.kind == Job::replay) return job.work();
  obstruct();
  if (chip_.is_lost() || (job.kind == Job::kernel && chip_.loses_itself(job.call))) return;
  const Clock::time_point begin = Clock::now() + settings().latency;
  std::this_thread::sleep_until(begin);
  current_call = job.call;
  job.work();
  if (settings().bandwidth > 0 && job.bytes)
    std::this_thread::sleep_until(begin + Duration(int64_t(double(job.bytes) / settings().bandwidth)));
}

// Applies the faults `delay` and `hold` of the environment.
void Queue::obstruct() {
  for (const Settings::Fault& f : settings().faults) {
    if (f.chip != chip_.index || (f.queue && *f.queue != number_)) continue;
    if (f.kind == Settings::Fault::delay) std::this_thread::sleep_for(f.time);
    while (f.kind == Settings::Fault::hold && access(f.file.c_str(), F_OK) == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
}  // namespace driver
