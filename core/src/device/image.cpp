#include "device/image.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "error.hpp"
#include "sha256.hpp"

namespace dovetail {
namespace {
static_assert(std::endian::native == std::endian::little, "images are little-endian");

struct Header {
  char magic[8];
  uint32_t version, machine;  // as in ELF files
  uint32_t page;              // the image lies on a multiple of that
  uint32_t n_entries, features_size;
  uint32_t code;         // where code and constants begin
  uint64_t size;         // of all
  uint8_t checksum[32];  // SHA-256 of all but itself
  // Then the offset of each function, uint64_t, 0: none; then the names of the features that the processor must
  // have.
};
static_assert(sizeof(Header) == 72);
constexpr char kMagic[8] = {'D', 'V', 'T', 'C', 'O', 'D', 'E', 0};
constexpr uint32_t kVersion = 1, kMostEntries = 4096, kMostFeatures = 4096;

[[noreturn]] void refuse_image(const std::string& what, uint64_t got, const std::string& expected) {
  throw Error(ErrorKind::value, what + ": got " + std::to_string(got) + ", expected " + expected);
}

Header checked(std::string_view image) {
  Header h;
  if (image.size() < sizeof h)
    refuse_image("an image of machine code is cut off: bytes", image.size(), "at least 72");
  std::memcpy(&h, image.data(), sizeof h);
  if (std::memcmp(h.magic, kMagic, sizeof kMagic))
    throw Error(ErrorKind::value, "this is no image of machine code");
  if (h.version != kVersion) refuse_image("an image's version", h.version, std::to_string(kVersion));
  if (h.size != image.size() || h.size > kLargestImage)
    refuse_image("an image's bytes", image.size(), std::to_string(h.size));
  Sha256 sum;
  sum.update(image.data(), offsetof(Header, checksum));
  sum.update(image.data() + sizeof h, image.size() - sizeof h);
  const Sha256::Digest digest = sum.finish();
  if (std::memcmp(digest.data(), h.checksum, sizeof h.checksum))
    throw Error(ErrorKind::value, "an image of machine code does not have its checksum");
  if (!platform::elf_machine())
    throw Error(ErrorKind::value, "this system runs no machine code of images: run the program without them");
  if (h.machine != platform::elf_machine())
    refuse_image("an image's machine", h.machine, std::to_string(platform::elf_machine()));
  if (!std::has_single_bit(h.page) || platform::page_size() % h.page)
    refuse_image("an image's page", h.page, "a power of two up to " + std::to_string(platform::page_size()));
  if (h.n_entries > kMostEntries) refuse_image("an image's functions", h.n_entries, "at most 4096");
  if (h.features_size > kMostFeatures)
    refuse_image("the bytes of an image's features", h.features_size, "at most 4096");
  const uint64_t head = sizeof h + 8 * uint64_t(h.n_entries) + h.features_size;
  if (h.code < head || h.code > h.size)
    refuse_image("the begin of an image's code", h.code, "an offset after the header");
  return h;
}
}  // namespace

Code::Code(std::string_view image) : size_(image.size()) {
  const Header h = checked(image);
  entries_.resize(h.n_entries);
  if (h.n_entries) std::memcpy(entries_.data(), image.data() + sizeof h, 8 * entries_.size());
  for (const uint64_t at : entries_)
    if (at && (at < h.code || at >= h.size)) refuse_image("a function's offset in an image", at, "one in its code");
  memory_ = std::make_unique<platform::CodeMemory>(std::as_bytes(std::span(image)));
  if (!memory_->at()) throw Error(ErrorKind::runtime, memory_->error());
}

const void* Code::entry(uint32_t index) const {
  return index < entries_.size() && entries_[index] ? memory_->at() + entries_[index] : nullptr;
}

std::string Code::perf_map(const std::string& name) const {
  std::vector<uint64_t> bounds = entries_;
  bounds.push_back(size_);
  std::ranges::sort(bounds);
  std::string lines;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i]) continue;
    const uint64_t end = *std::ranges::upper_bound(bounds, entries_[i]);
    char place[40];
    std::snprintf(place, sizeof place, "%llx %llx ", (unsigned long long)(memory_->at() + entries_[i]),
                  (unsigned long long)(end - entries_[i]));
    lines += place + name + " " + std::to_string(i) + "\n";
  }
  return lines;
}
}  // namespace dovetail
