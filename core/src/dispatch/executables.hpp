// The executables of the most recent calls, each under a key of all that it depends on: dtypes, sizes, device.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "dispatch/replay.hpp"

namespace dovetail {
class ExecutableCache {
 public:
  // nullptr: none, or one whose plans are out of date, which is dropped.
  std::shared_ptr<const Executable> find(std::string_view key) {
    std::list<Entry> dropped;  // freed without the lock
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, found->second);
    if (is_current(*found->second->executable)) return found->second->executable;
    drop(found->second, dropped);
    return nullptr;
  }

  // Drops the least recently used ones beyond kMostValues. Replaces one of the same key.
  void keep(std::string key, std::shared_ptr<const Executable> executable) {
    std::list<Entry> entry, dropped;  // made and freed without the lock
    entry.push_front({std::move(key), std::move(executable)});
    const std::lock_guard lock(mutex_);
    if (const auto found = index_.find(entry.front().key); found != index_.end()) drop(found->second, dropped);
    values_ += entry.front().executable->values.size();
    index_.emplace(entry.front().key, entry.begin());
    recent_.splice(recent_.begin(), entry);
    while (values_ > kMostValues && recent_.size() > 1) drop(std::prev(recent_.end()), dropped);
  }

 private:
  static constexpr size_t kMostValues = 1 << 14;  // of all executables together
  struct Entry {
    std::string key;
    std::shared_ptr<const Executable> executable;
  };

  void drop(std::list<Entry>::iterator entry, std::list<Entry>& dropped) {
    values_ -= entry->executable->values.size();
    index_.erase(entry->key);
    dropped.splice(dropped.end(), recent_, entry);
  }

  std::mutex mutex_;
  std::list<Entry> recent_;  // the last used one first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;
  size_t values_ = 0;
};
}  // namespace dovetail
