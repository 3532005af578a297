#include "device/object_cache.hpp"

#include <algorithm>

#include "device/image.hpp"
#include "device/log.hpp"

namespace dovetail {
ObjectCache::ObjectCache(const std::string& folder, uint64_t most) : path_(folder), folder_(folder), most_(most) {
  if (!problem().empty()) log(Log::loader, 2, "objects of toolchains are not kept: " + problem());
}

std::optional<std::string> ObjectCache::read(const std::string& key) const {
  return folder_.read(key + kSuffix, kLargestImage);
}

std::string ObjectCache::write(const std::string& key, std::string_view object) {
  if (!problem().empty()) return problem();
  const std::string error = folder_.write(key + kSuffix, object);
  if (!error.empty()) {
    log(Log::loader, 2, "an object of a toolchain is not kept: " + error);
    return path_ + ": " + error;
  }
  bytes_ += (object.size() + 4095) / 4096 * 4096;
  if (!counted_ || bytes_ > most_) make_room();
  return {};
}

// Removes what was used longest ago, down to three quarters, and what crashed processes left behind.
void ObjectCache::make_room() {
  std::vector<platform::PrivateFolder::File> files = folder_.files();
  std::erase_if(files, [](const auto& file) { return file.name.starts_with("lock-"); });
  std::ranges::sort(files, {}, &platform::PrivateFolder::File::used);
  counted_ = true, bytes_ = 0;
  for (const auto& file : files) bytes_ += file.bytes;
  if (bytes_ <= most_) return;
  for (const auto& file : files) {
    if (bytes_ <= most_ / 4 * 3) break;
    folder_.remove(file.name);
    bytes_ -= file.bytes;
  }
}

std::optional<platform::FileLock> ObjectCache::lock_worker() const {
  for (const char* name : {"lock-worker-0", "lock-worker-1"})
    if (std::optional<platform::FileLock> lock = folder_.lock(name)) return lock;
  return std::nullopt;
}

std::optional<platform::FileLock> ObjectCache::lock_key(const std::string& key) const {
  return folder_.lock("lock-" + key.substr(0, 2));
}
}  // namespace dovetail
