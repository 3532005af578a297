// Packed operands: what a row makes of an operand in a layout of its own (dvt_kernel::pack). The bytes are kept
// with the buffer that holds the operand's value, and go when the value does.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/storage.hpp"

namespace dovetail {
// The properties that distinguish calls of a row. The first `own` words are the row and its view of the operand:
// all that packed bytes depend on, but for their layout.
struct PackKey {
  std::span<const uint64_t> words;
  size_t own = 0;
  uint64_t hash = 0;  // of all words, not 0

  PackKey() = default;
  PackKey(std::span<const uint64_t> all, size_t n_own) : words(all), own(n_own), hash(all.size()) {
    for (uint64_t word : all) {
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    hash |= 1;
  }
};

struct Packed {
  Storage* bytes = nullptr;  // a reference of the caller's
  uint64_t size = 0, layout = 0;
  uint64_t id = 0;  // of `make`
};
enum class PackStep {
  plain,  // runs without
  ask,    // the row's pack_size, then choose_packed() or refuse_packed()
  make,   // has the row pack it, then keep_packed(), which others need not wait for
  take,   // runs with it
};

// A value is packed for the second call of the same kind that gets it: most operands are used once, and pay a hash
// for it. Where a value has packed bytes already, a call of another kind takes them if its layout is theirs.
PackStep find_packed(Storage&, const PackKey&, Packed& found);
PackStep choose_packed(Storage&, const PackKey&, uint64_t size, uint64_t layout, Packed& found);
void refuse_packed(Storage&, const PackKey&);  // the row does not pack it: not asked again
void keep_packed(Storage&, const Packed&);     // work on Packed::bytes->stream that comes later finds it there

// Packed bytes that a file has for a value, in host memory, 64-byte aligned. They stand for what row.pack() makes
// where pack_size() has this size and layout.
struct SavedPack {
  std::string call;  // packed_call(): the op, the engine, the operand, its view
  uint64_t size = 0, layout = 0;
  const std::byte* data = nullptr;
  std::shared_ptr<const void> owner;  // of the memory
  uint64_t checksum = 0;              // of the bytes, as the file has it
};
constexpr size_t kPartsOfPackedCall = 4;
// By the name of an array of a program.
using SavedPacks = std::map<std::string, std::vector<SavedPack>>;
void give_packs(Storage&, std::vector<SavedPack>);  // the value's calls look for them, from the first call on
// The one for such a call; nothing where there is none. `stale`: there are others for it.
std::optional<SavedPack> saved_pack(Storage&, const std::string& call, uint64_t size, uint64_t layout, bool& stale);
bool has_saved_packs(Storage&);
// What there is of a value: the words of its view (PackKey::own), the bytes with a reference of the caller's.
std::vector<std::pair<std::vector<uint64_t>, Packed>> packs_of(Storage&);

// Like allocate(), but returns nullptr if neither the pool nor the device has free memory.
Storage* allocate_spare(Device&, Stream&, uint64_t bytes);

// Code outside the runtime may write the buffer from now on.
void never_pack(Storage&);
// All of a device, for good: memory that is short now would be short again. False where there were none.
bool release_packs(Device&);
}  // namespace dovetail
