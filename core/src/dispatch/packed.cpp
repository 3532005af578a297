#include "dispatch/packed.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

#include "device/environment.hpp"
#include "device/guard.hpp"
#include "device/log.hpp"
#include "device/services.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/run_program.hpp"

namespace dovetail {
const bool packing = environment_switch("DOVETAIL_PACKING", true);

namespace {
// What a row can look at, in words: two calls of the same words are the same to it.
class Words {
 public:
  // Operand `i` first, with where it lies in its buffer.
  Words(const dvt_kernel& row, uint32_t i, const Storage& buffer, const dvt_call& call) {
    add(reinterpret_cast<uintptr_t>(&row));
    add(i);
    add(uint64_t(static_cast<const char*>(call.in[i]->data) - static_cast<const char*>(buffer.data)));
    add(*call.in[i]);
    const size_t own = n_;
    for (uint32_t k = 0; k < call.n_in; ++k)
      if (k != i) add(call.in[k]);
    for (uint32_t k = 0; k < call.n_out; ++k) add(call.out[k]);
    for (uint32_t k = 0; k < call.n_attr; ++k) add(call.attr[k]);
    key_ = {{at_, std::min(n_, kMost)}, own};
  }
  const PackKey* key() const { return n_ <= kMost ? &key_ : nullptr; }  // nullptr: too many to be worth it

 private:
  static constexpr size_t kMost = 256;
  void add(uint64_t word) {
    if (n_ < kMost) at_[n_] = word;
    ++n_;
  }
  void add(const int64_t* list, uint32_t n) {
    for (uint32_t k = 0; k < n; ++k) add(uint64_t(list[k]));
  }
  void add(const DLTensor& t) {
    const bool host = t.device.device_type == 1 /* kDLCPU */ && t.ndim == 0;
    add(uint64_t(t.ndim) << 32 | uint64_t(host) << 31 | uint64_t(t.dtype.code) << 8 | t.dtype.bits);
    add(t.shape, uint32_t(t.ndim));
    add(t.strides, uint32_t(t.ndim));
  }
  void add(const DLTensor* t) {
    if (t) add(*t);
    else add(~uint64_t{0});
  }
  void add(const dvt_attr& a) {
    add(uint64_t(a.kind) << 32 | a.count);
    if (a.kind == DVT_A_I64S) add(a.v.is, a.count);
    else if (a.kind == DVT_A_F64S)
      for (uint32_t k = 0; k < a.count; ++k) add(std::bit_cast<uint64_t>(a.v.fs[k]));
    else if (a.kind == DVT_A_STR)
      for (uint32_t k = 0; k < a.count; ++k) add(uint8_t(a.v.s[k]));
    else if (a.kind != DVT_A_NONE) add(a.v.raw);
  }

  uint64_t at_[kMost];
  size_t n_ = 0;
  PackKey key_;
};
}  // namespace

std::string packed_call(std::span<const uint64_t> own) {
  const dvt_kernel& row = *reinterpret_cast<const dvt_kernel*>(own[0]);
  const bool named = row.engine && *row.engine;
  std::string text = std::string(row.op) + "/" + (named ? row.engine : std::string(kOwnEngine)) + "/" +
                     std::to_string(own[1]) + "/";
  for (size_t i = 2; i < own.size(); ++i) {
    char word[20];
    std::snprintf(word, sizeof word, "%s%llx", i > 2 ? "." : "", static_cast<unsigned long long>(own[i]));
    text += word;
  }
  return text;
}

namespace {
std::atomic<uint64_t> packs_taken{0}, packs_stale{0}, packs_damaged{0};

void report_once(std::atomic<uint64_t>& count, const std::string& why) {
  if (!count.fetch_add(1)) log(Log::dispatch, 1, why);
}
}  // namespace
SavedPackCounts saved_pack_counts() { return {packs_taken, packs_stale, packs_damaged}; }

uint64_t checksum(std::span<const std::byte> bytes) {
  constexpr size_t kLanes = 4;  // so that multiplications overlap
  const auto mixed = [](uint64_t sum, uint64_t word) {
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    return sum ^ sum >> 32;
  };
  uint64_t sums[kLanes] = {1, 2, 3, 4}, words[kLanes];
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof words; left -= sizeof words, at += sizeof words) {
    std::memcpy(words, at, sizeof words);
    for (size_t i = 0; i < kLanes; ++i) sums[i] = mixed(sums[i], words[i]);
  }
  std::fill_n(words, kLanes, 0);
  if (left) std::memcpy(words, at, left);
  uint64_t all = bytes.size();
  for (size_t i = 0; i < kLanes; ++i) all = mixed(all, mixed(sums[i], words[i]));
  return all;
}

std::vector<SavedPack> packs_to_save(Storage& value) {
  std::vector<SavedPack> saved;
  for (auto& [own, packed] : packs_of(value)) {
    const auto owner = std::shared_ptr<Storage>(packed.bytes, [](Storage* s) { release(s); });
    Tensor bytes;
    const auto size = int64_t(packed.size);
    bytes.set_type(DType::u8, value.device);
    bytes.set_shape({&size, 1});
    retain(packed.bytes);
    bytes.own(packed.bytes);
    const HostArray elements = elements_of(bytes);
    saved.push_back({packed_call(own), packed.size, packed.layout, elements.data, elements.owner,
                     checksum({elements.data, packed.size})});
  }
  return saved;
}

PackedOperands::~PackedOperands() {
  for (const Packed& p : found_)
    if (p.bytes) release(p.bytes);
}

// A value that stays as it is for as long as it is held, and is the caller's: what the host makes for one call (a
// cast, a row-major copy) is not seen again.
bool PackedOperands::may_be_packed(const Tensor* const* operands, int i) const {
  const Tensor* t = operands[i];
  const dvt_operand& wants = row_.operands[std::min(uint32_t(i), row_.n_in - 1)];
  if (!t || !(wants.flags & DVT_O_PACKABLE) || t != inv_.in[i] || !t->storage || !t->numel) return false;
  const bool written = std::any_of(inv_.out, inv_.out + inv_.op.spec.n_out,
                                   [&](const Tensor* out) { return out->storage == t->storage; });
  return !written && (is_pooled(*t->storage) || t->storage->immutable);
}

void PackedOperands::find(const Tensor* const* operands, const dvt_call& call, Stream& stream) {
  for (int i = 0; i < inv_.n_in; ++i) {
    packed_[i] = {};
    if (may_be_packed(operands, i)) find(*operands[i]->storage, uint32_t(i), call, stream);
  }
}

void PackedOperands::find(Storage& value, uint32_t i, const dvt_call& call, Stream& stream) {
  const Words words(row_, i, value, call);
  if (!words.key()) return;
  Packed& found = found_[i];
  PackStep step = find_packed(value, *words.key(), found);
  if (step == PackStep::ask) {
    uint64_t size = 0, layout = 0;
    const dvt_status status = row_.pack_size(inv_.device->handle, &call, i, &size, &layout);
    if (status == DVT_UNSUPPORTED) return refuse_packed(value, *words.key());
    if (status != DVT_OK) inv_.device->fail(status, "[" + inv_.op.spec.name + "]");
    step = choose_packed(value, *words.key(), size, layout, found);
  }
  if (step == PackStep::make && take_saved(value, *words.key(), found, stream)) step = PackStep::take;
  if (step == PackStep::make) found.bytes = allocate_spare(*inv_.device, stream, found.size);
  if (!found.bytes) return;
  if (step == PackStep::make) to_pack_ |= uint64_t{1} << i;
  else use(*found.bytes, stream, false);
  values_[i] = &value;
  packed_[i] = {found.bytes->data, found.size, found.layout};
}

// Bytes of a file in place of what the row would make: the file itself where the device works in the host's memory.
bool PackedOperands::take_saved(Storage& value, const PackKey& key, Packed& found, Stream&) {
  if (!has_saved_packs(value)) return false;
  const std::string call = packed_call(key.words.first(key.own));
  bool stale = false;
  const auto saved = saved_pack(value, call, found.size, found.layout, stale);
  if (!saved) {
    if (stale)
      report_once(packs_stale, "saved packs are of other kernels than this machine runs, as that of " + call +
                                   ": they are packed anew; `dovetail build` on this machine saves them");
    return false;
  }
  if (checksum({saved->data, saved->size}) != saved->checksum) {
    report_once(packs_damaged,
                "saved packs are damaged, as that of " + call +
                    ": they are packed anew; copy the folder again, `dovetail show --verify` checks its files");
    return false;
  }
  HostArray bytes{DType::u8, {int64_t(saved->size)}, saved->data, saved->owner};
  Tensor t = on_device(bytes, *inv_.device);
  found.bytes = std::exchange(t.storage, nullptr);
  keep_packed(value, found);
  ++packs_taken;
  return true;
}

void PackedOperands::complete(dvt_call& call) {
  for (uint32_t i = 0; to_pack_ >> i; ++i) {
    if (!(to_pack_ >> i & 1)) continue;
    if (enabled(guarded_memory)) note_writer(*found_[i].bytes, inv_.op.spec.name.c_str(), kPack);
    const dvt_status status = enabled(poisoned_calls) ? pack_checked(row_, inv_.device->handle, call, i, packed_[i])
                                                      : row_.pack(inv_.device->handle, &call, i, &packed_[i]);
    if (status == DVT_OK) {
      keep_packed(*values_[i], found_[i]);
      continue;
    }
    if (status != DVT_OOM) inv_.device->fail(status, "[" + inv_.op.spec.name + "]");
    take_failure(status);
    packed_[i] = {};
  }
  if (std::any_of(packed_, packed_ + inv_.n_in, [](const dvt_packed& p) { return p.data; })) call.packed = packed_;
}
}  // namespace dovetail
