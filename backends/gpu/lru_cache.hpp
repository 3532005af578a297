// A cache of what takes long to make: algorithms, execution plans, primitives. It keeps the values whose keys were
// used last.
#pragma once
#include <cstdint>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace gpu {
// Keys that are plain data without padding, of a multiple of 8 bytes, by their bytes.
template <class Key>
struct HashBytes {
  static_assert(std::is_trivially_copyable_v<Key> && sizeof(Key) % 8 == 0);
  size_t operator()(const Key& key) const {
    uint64_t words[sizeof key / 8], h = 0;
    std::memcpy(words, &key, sizeof key);
    for (const uint64_t w : words) h = (h ^ w) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return h;
  }
};
template <class Key>
struct EqualBytes {
  bool operator()(const Key& a, const Key& b) const { return !std::memcmp(&a, &b, sizeof a); }
};

// Thread-safe. At most `limit` values.
template <class Key, class Value, size_t limit = 1024, class Hash = HashBytes<Key>, class Equal = EqualBytes<Key>>
class LruCache {
 public:
  // make() if there is none yet. It runs without the lock, so two threads may both run it.
  template <class Make>
  Value get(const Key& key, Make make) {
    if (std::optional<Value> found = find(key)) return *std::move(found);
    return keep(key, make());
  }
  void clear() {
    const std::lock_guard guard(mutex_);
    places_.clear(), newest_first_.clear();
  }

 private:
  using List = std::list<std::pair<Key, Value>>;

  std::optional<Value> find(const Key& key) {
    const std::lock_guard guard(mutex_);
    const auto it = places_.find(key);
    if (it == places_.end()) return std::nullopt;
    newest_first_.splice(newest_first_.begin(), newest_first_, it->second);
    return it->second->second;
  }
  Value keep(const Key& key, Value made) {
    const std::lock_guard guard(mutex_);
    const auto [it, is_new] = places_.try_emplace(key);
    if (!is_new) return it->second->second;
    newest_first_.emplace_front(key, std::move(made));
    it->second = newest_first_.begin();
    if (newest_first_.size() > limit) {
      places_.erase(newest_first_.back().first);
      newest_first_.pop_back();
    }
    return newest_first_.front().second;
  }

  std::mutex mutex_;
  List newest_first_;
  std::unordered_map<Key, typename List::iterator, Hash, Equal> places_;
};
}  // namespace gpu
