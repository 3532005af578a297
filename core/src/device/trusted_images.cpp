#include "device/trusted_images.hpp"

#include <atomic>
#include <mutex>

#include "device/log.hpp"
#include "error.hpp"
#include "sha256.hpp"

namespace dovetail {
namespace {
struct Images {
  std::mutex mutex;  // guards the maps
  struct File {
    std::string path, sha256;
  };
  std::map<std::string, File> trusted;                      // by key
  std::map<std::string, std::shared_ptr<const Code>> kept;  // by key
  std::atomic<bool> any{false}, records{false};
};
Images& images() {
  static Images& all = *new Images;  // the toolchains' thread may live until the process ends
  return all;
}

// The same whichever version of the tool makes the image.
std::string key_of(const std::string& tool, const std::string& request) {
  Sha256 sum;
  for (const std::string_view part :
       {std::string_view("request 1"), std::string_view(tool), std::string_view(request)}) {
    const uint64_t size = part.size();
    sum.update(&size, sizeof size);
    sum.update(part.data(), part.size());
  }
  return to_hex(sum.finish());
}
}  // namespace

void trust_image(const std::string& key, const std::string& path, const std::string& sha256) {
  const std::lock_guard guard(images().mutex);
  images().trusted[key] = {path, sha256};
  images().any = true;
}

std::shared_ptr<const Code> trusted_image(const std::string& tool, const std::string& request) {
  if (!images().any) return nullptr;
  Images::File trusted;
  {
    const std::lock_guard guard(images().mutex);
    const auto found = images().trusted.find(key_of(tool, request));
    if (found == images().trusted.end()) return nullptr;
    trusted = found->second;
  }
  try {
    const platform::MappedFile file(trusted.path);
    if (!file.error().empty()) throw Error(ErrorKind::value, file.error());
    const std::string image(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    if (to_hex(sha256(image)) != trusted.sha256)
      throw Error(ErrorKind::value, "it is not the file that was built", "copy the folder again");
    return std::make_shared<const Code>(image);
  } catch (const Error& e) {
    log(Log::loader, 1, trusted.path + " is not run: " + e.what());
    return nullptr;
  }
}

void record_images() { images().records = true; }

std::map<std::string, std::string> recorded_images() {
  const std::lock_guard guard(images().mutex);
  std::map<std::string, std::string> made;
  for (const auto& [key, code] : images().kept) made.emplace(key, code->image());
  return made;
}

void note_image(const std::string& tool, const std::string& request, std::shared_ptr<const Code> code) {
  if (!images().records) return;
  const std::string key = key_of(tool, request);
  const std::lock_guard guard(images().mutex);
  images().kept[key] = std::move(code);
}
}  // namespace dovetail
