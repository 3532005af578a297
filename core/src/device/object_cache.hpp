// What toolchains made, on disk: ~/.cache/dovetail/objects. Every function may wait for the disk.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "platform/private_folder.hpp"

namespace dovetail {
class ObjectCache {
 public:
  // Where the folder cannot be used, nothing is found and nothing kept, and problem() says why.
  explicit ObjectCache(const std::string& folder, uint64_t most = uint64_t{256} << 20);
  const std::string& problem() const { return folder_.error(); }
  std::optional<std::string> read(const std::string& key) const;
  std::string write(const std::string& key, std::string_view object);  // why it is not kept; empty: it is
  void remove(const std::string& key) const { folder_.remove(key + kSuffix); }
  // Of the two that let a process of this user have a worker; nullopt: other processes have both.
  std::optional<platform::FileLock> lock_worker() const;
  // Asks for one of them: a process with an idle worker ends it. Held until it was given; nullopt: another one
  // asks.
  std::optional<platform::FileLock> want_worker() const { return folder_.lock(kWanted); }
  bool is_worker_wanted() const { return !folder_.lock(kWanted); }
  // Against other processes that make the same object; nullopt: one does. Some other keys share the lock.
  std::optional<platform::FileLock> lock_key(const std::string& key) const;

 private:
  static constexpr const char *kSuffix = ".code", *kWanted = "lock-wanted";
  void make_room();
  const std::string path_;
  platform::PrivateFolder folder_;
  const uint64_t most_;
  uint64_t bytes_ = 0;  // in the folder, as far as this process knows
  bool counted_ = false;
};
}  // namespace dovetail
