#include "device/packs.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/pool.hpp"

namespace dovetail {
namespace {
constexpr size_t kMostLayouts = 4;  // of one view of a value, as for a prompt and for single tokens
constexpr size_t kMostCalls = 256;  // remembered of one buffer
}  // namespace

// The packed forms of one buffer. Guarded by Pool::mutex_; deleted by the buffer's only holder.
struct Packs {
  struct Kind {  // of calls
    std::vector<uint64_t> words;
    uint32_t times = 0;
    bool refused = false;
    uint64_t made = 0;  // the id of what it takes
  };
  struct Made {
    std::vector<uint64_t> own;
    Packed packed;  // without bytes: being made, or it could not be
  };
  std::unordered_map<uint64_t, Kind> kinds;  // by hash
  std::vector<Made> made;
  std::vector<SavedPack> saved;  // of a file
  bool closed = false;

  static std::mutex& mutex(Device& device) { return device.pool->mutex_; }
  // The rest with the mutex held.
  static Packs& of(Storage& s);
  static auto& all(Device& device) { return device.pool->packs_; }
  static uint64_t& bytes(Device& device) { return device.pool->packed_; }

  Kind* kind(const PackKey&);
  bool knows(const PackKey&) const;
  PackStep take(uint64_t id, Packed& found);
  std::vector<Storage*> clear(Device&);
};

Packs& Packs::of(Storage& s) {
  Packs* p = s.packs.load(std::memory_order_relaxed);
  if (!p) {
    s.packs.store(p = new Packs, std::memory_order_relaxed);
    all(*s.device).insert(p);
  }
  return *p;
}

// nullptr where another call has the same hash, or the call is no longer known.
Packs::Kind* Packs::kind(const PackKey& key) {
  const auto found = kinds.find(key.hash);
  return found != kinds.end() && std::ranges::equal(found->second.words, key.words) ? &found->second : nullptr;
}

bool Packs::knows(const PackKey& key) const {
  return std::ranges::any_of(made,
                             [&](const Made& m) { return std::ranges::equal(m.own, key.words.first(key.own)); });
}

PackStep Packs::take(uint64_t id, Packed& found) {
  const auto at = std::ranges::find(made, id, [](const Made& m) { return m.packed.id; });
  if (at == made.end() || !at->packed.bytes) return PackStep::plain;
  found = at->packed;
  retain(found.bytes);
  return PackStep::take;
}

std::vector<Storage*> Packs::clear(Device& device) {
  std::vector<Storage*> held;
  for (const Made& m : made)
    if (m.packed.bytes) held.push_back(m.packed.bytes), bytes(device) -= m.packed.bytes->capacity;
  made.clear(), kinds.clear();
  return held;
}

PackStep find_packed(Storage& s, const PackKey& key, Packed& found) {
  uint64_t before = 0;
  if (!s.packs.load(std::memory_order_relaxed)) {
    before = s.given_to.exchange(key.hash, std::memory_order_relaxed);
    if (!before) return PackStep::plain;
  }
  const std::lock_guard guard(Packs::mutex(*s.device));
  Packs& packs = Packs::of(s);
  if (packs.closed) return PackStep::plain;
  if (packs.kinds.size() == kMostCalls && !packs.kinds.contains(key.hash)) packs.kinds.clear();
  if (const auto [at, added] = packs.kinds.try_emplace(key.hash); added)
    at->second.words.assign(key.words.begin(), key.words.end()), at->second.times = before == key.hash;
  Packs::Kind* kind = packs.kind(key);
  if (!kind || kind->refused) return PackStep::plain;
  if (kind->made) return packs.take(kind->made, found);
  return ++kind->times > 1 || packs.knows(key) || !packs.saved.empty() ? PackStep::ask : PackStep::plain;
}

PackStep choose_packed(Storage& s, const PackKey& key, uint64_t size, uint64_t layout, Packed& found) {
  static std::atomic<uint64_t> ids{0};
  const std::lock_guard guard(Packs::mutex(*s.device));
  Packs& packs = Packs::of(s);
  Packs::Kind* kind = packs.kind(key);
  if (packs.closed || !kind) return PackStep::plain;
  const auto own = key.words.first(key.own);
  size_t layouts = 0;
  for (const Packs::Made& m : packs.made) {
    if (!std::ranges::equal(m.own, own)) continue;
    ++layouts;
    if (m.packed.size == size && m.packed.layout == layout) return packs.take(kind->made = m.packed.id, found);
  }
  if (kind->times == 1 && packs.saved.empty())
    return PackStep::plain;  // another layout pays from the second call on, too
  kind->refused = layouts == kMostLayouts;
  if (kind->refused) return PackStep::plain;
  found = {.size = size, .layout = layout, .id = ++ids};
  kind->made = found.id;
  packs.made.push_back({.own = {own.begin(), own.end()}, .packed = found});
  return PackStep::make;
}

void give_packs(Storage& s, std::vector<SavedPack> saved) {
  const std::lock_guard guard(Packs::mutex(*s.device));
  Packs::of(s).saved = std::move(saved);
}

bool has_saved_packs(Storage& s) {
  if (!s.packs.load(std::memory_order_relaxed)) return false;
  const std::lock_guard guard(Packs::mutex(*s.device));
  return !Packs::of(s).saved.empty();
}

std::optional<SavedPack> saved_pack(Storage& s, const std::string& call, uint64_t size, uint64_t layout,
                                    bool& stale) {
  const std::lock_guard guard(Packs::mutex(*s.device));
  stale = false;
  for (const SavedPack& saved : Packs::of(s).saved) {
    if (saved.call != call) continue;
    if (saved.size == size && saved.layout == layout) return stale = false, saved;
    stale = true;
  }
  return std::nullopt;
}

std::vector<std::pair<std::vector<uint64_t>, Packed>> packs_of(Storage& s) {
  std::vector<std::pair<std::vector<uint64_t>, Packed>> found;
  if (!s.packs.load(std::memory_order_relaxed)) return found;
  const std::lock_guard guard(Packs::mutex(*s.device));
  for (const Packs::Made& m : Packs::of(s).made) {
    if (!m.packed.bytes) continue;
    retain(m.packed.bytes);
    found.emplace_back(m.own, m.packed);
  }
  return found;
}

void refuse_packed(Storage& s, const PackKey& key) {
  const std::lock_guard guard(Packs::mutex(*s.device));
  if (Packs::Kind* kind = Packs::of(s).kind(key)) kind->refused = true;
}

void keep_packed(Storage& s, const Packed& packed) {
  const std::lock_guard guard(Packs::mutex(*s.device));
  std::vector<Packs::Made>& made = Packs::of(s).made;
  const auto at = std::ranges::find(made, packed.id, [](const Packs::Made& m) { return m.packed.id; });
  if (at == made.end()) return;  // given up meanwhile, for want of memory
  retain(packed.bytes);
  at->packed.bytes = packed.bytes;
  Packs::bytes(*s.device) += packed.bytes->capacity;
}

void drop_packs(Storage& s) noexcept {
  std::vector<Storage*> held;
  {
    const std::lock_guard guard(Packs::mutex(*s.device));
    const std::unique_ptr<Packs> packs(s.packs.exchange(nullptr, std::memory_order_relaxed));
    held = packs->clear(*s.device);
    Packs::all(*s.device).erase(packs.get());
  }
  for (Storage* bytes : held) release(bytes);
}

void never_pack(Storage& s) {
  std::vector<Storage*> held;
  {
    const std::lock_guard guard(Packs::mutex(*s.device));
    Packs& packs = Packs::of(s);
    packs.closed = true;
    held = packs.clear(*s.device);
  }
  for (Storage* bytes : held) release(bytes);
}

bool release_packs(Device& device) {
  std::vector<Storage*> held;
  {
    const std::lock_guard guard(Packs::mutex(device));
    for (Packs* packs : Packs::all(device)) {
      packs->closed |= !packs->made.empty();
      const std::vector<Storage*> its = packs->clear(device);
      held.insert(held.end(), its.begin(), its.end());
    }
  }
  for (Storage* bytes : held) release(bytes);
  return !held.empty();
}
}  // namespace dovetail
