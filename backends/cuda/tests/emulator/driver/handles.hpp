// The objects of one kind that programs identify by addresses, which may be invalid.
#pragma once
#include <memory>
#include <mutex>
#include <unordered_map>

#include "driver/call.hpp"

namespace emulator {
template <class T>
class Handles {
 public:
  static Handles& instance() {
    static Handles& one = *new Handles;  // never destroyed: queues run until the end
    return one;
  }
  T* add(std::shared_ptr<T> object) {
    const std::lock_guard guard(mutex_);
    T* const handle = object.get();
    all_.emplace(handle, std::move(object));
    return handle;
  }
  std::shared_ptr<T> find(T* handle) {
    const std::lock_guard guard(mutex_);
    const auto it = all_.find(handle);
    if (it == all_.end()) refuse(CUDA_ERROR_INVALID_HANDLE, "there is no such object, or no longer");
    return it->second;
  }
  std::shared_ptr<T> remove(T* handle) {
    const std::shared_ptr<T> object = find(handle);
    const std::lock_guard guard(mutex_);
    all_.erase(handle);
    return object;
  }
  template <class Predicate>
  void remove_if(Predicate predicate) {
    const std::lock_guard guard(mutex_);
    std::erase_if(all_, [&](const auto& entry) { return predicate(*entry.second); });
  }

 private:
  std::mutex mutex_;
  std::unordered_map<T*, std::shared_ptr<T>> all_;
};
}  // namespace emulator
