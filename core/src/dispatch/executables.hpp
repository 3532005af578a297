// The executables of the most recent calls, each under a key of all that it depends on: dtypes, sizes, device.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dispatch/replay.hpp"

namespace dovetail {
class ExecutableCache {
 public:
  ExecutableCache() { newest_.older = newest_.newer = &newest_; }
  ExecutableCache(const ExecutableCache&) = delete;

  // nullptr: none, or one whose plans are out of date, which is dropped.
  std::shared_ptr<const Executable> find(std::string_view key) {
    std::vector<Entries::node_type> dropped;  // freed without the lock
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    Entry& entry = found->second;
    if (!is_current(*entry.executable)) {
      drop(found, dropped);
      return nullptr;
    }
    entry.unlink();
    entry.link_after(newest_);
    return entry.executable;
  }

  // Drops the least recently used ones beyond kMostBytes. Replaces one of the same key.
  void keep(std::string_view key, std::shared_ptr<const Executable> executable) {
    std::vector<Entries::node_type> dropped;  // freed without the lock
    const std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) drop(found, dropped);
    const auto at = entries_.try_emplace(std::string(key)).first;
    Entry& entry = at->second;
    entry.executable = std::move(executable);
    entry.key = at->first;
    entry.link_after(newest_);
    bytes_ += entry.bytes();
    while (bytes_ > kMostBytes && entries_.size() > 1) drop(entries_.find(newest_.newer->key), dropped);
  }

 private:
  static constexpr size_t kMostBytes = 8 << 20;  // of all executables together
  struct Entry {
    std::shared_ptr<const Executable> executable;
    std::string_view key;
    Entry *newer = nullptr, *older = nullptr;  // a ring in the order of use

    size_t bytes() const { return sizeof *this + sizeof(std::string) + key.size() + executable->bytes(); }
    void unlink() { newer->older = older, older->newer = newer; }
    void link_after(Entry& other) {
      newer = &other, older = other.older;
      older->newer = other.older = this;
    }
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  using Entries = std::unordered_map<std::string, Entry, Hash, std::equal_to<>>;

  void drop(Entries::iterator at, std::vector<Entries::node_type>& dropped) {
    bytes_ -= at->second.bytes();
    at->second.unlink();
    dropped.push_back(entries_.extract(at));
  }

  std::mutex mutex_;
  Entries entries_;
  Entry newest_;  // of no executable: the ring's start, older than which is the last used one
  size_t bytes_ = 0;
};
}  // namespace dovetail
