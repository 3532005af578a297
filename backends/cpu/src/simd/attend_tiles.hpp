// Attention of bfloat16 in tile registers: keys and values are packed once for all queries, scores and results are
// float32, weights are rounded to bfloat16 between the two products.
#pragma once
#include "simd/amx.hpp"
#include "simd/attend.hpp"
#include "temporary.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::attention {
// Scores are made for tile_queries of a block of queries and tile_keys keys at a time.
constexpr int64_t tile_query_block = 128, tile_queries = 2 * amx::side, tile_keys = 512;

// The keys and values of all matrices as tiles: those of 32 keys are next to each other.
class PackedKeys {
 public:
  // One for each `group` matrices of the batch.
  PackedKeys(const Problem& p, int64_t matrices, int64_t group)
      : p_(p),
        count_(matrices / group),
        group_(group),
        steps_(divide_up(p.keys, amx::depth<bf16>)),
        key_step_(2 * divide_up(p.size, amx::depth<bf16>) * amx::tile<bf16>),
        value_step_(divide_up(p.value_size, amx::side) * amx::tile<bf16>),
        data_(size_t(count_ * steps_ * (key_step_ + value_step_)) * sizeof(bf16)) {}

  explicit operator bool() const { return bool(data_); }

  // `keys_of(matrix)`: how many keys there are; the others are 0.
  template <class F>
  void pack(F keys_of) const {
    const int64_t numbers = key_step_ + value_step_;
    dvt::parallel_for(uint64_t(count_ * steps_), uint64_t(200'000 / numbers + 1),
                      [&](uint64_t begin, uint64_t end, uint32_t) {
                        for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
                          const int64_t matrix = at / steps_, first = at % steps_ * amx::depth<bf16>,
                                        n = keys_of(matrix * group_) - first;
                          if (n > 0) pack_step(matrix, first, least(n, amx::depth<bf16>));
                        }
                      });
  }

  amx::Tiles<bf16> keys(int64_t matrix, int64_t first) const {
    return {keys_at(matrix / group_, first), key_step_ / 2, amx::tile<bf16>};
  }
  amx::Tiles<bf16> values(int64_t matrix, int64_t first) const {
    return {values_at(matrix / group_, first), amx::tile<bf16>, value_step_};
  }

 private:
  bf16* keys_at(int64_t at, int64_t first) const {
    return reinterpret_cast<bf16*>(data_.get()) + (at * steps_ + first / amx::depth<bf16>)*key_step_;
  }
  bf16* values_at(int64_t at, int64_t first) const {
    return keys_at(count_, 0) + (at * steps_ + first / amx::depth<bf16>)*value_step_;
  }

  void pack_step(int64_t at, int64_t first, int64_t n) const {
    const Problem::Place place = p_.place(at * group_);
    const bf16* const k = reinterpret_cast<const bf16*>(p_.k.data) + place.k + first * p_.k.row;
    const bf16* const v = reinterpret_cast<const bf16*>(p_.v.data) + place.v + first * p_.v.row;
    bf16* to = keys_at(at, first);
    for (int64_t j = 0; j < 2 * amx::side; j += amx::side)
      for (int64_t x = 0; x < p_.size; x += amx::depth<bf16>, to += amx::tile<bf16>)
        amx::pack(least(p_.size - x, amx::depth<bf16>), most(0, least(n - j, amx::side)),
                  k + j * p_.k.row + x * p_.k.column, p_.k.column, p_.k.row, to);
    to = values_at(at, first);
    for (int64_t x = 0; x < p_.value_size; x += amx::side, to += amx::tile<bf16>)
      amx::pack(n, least(p_.value_size - x, amx::side), v + x * p_.v.column, p_.v.row, p_.v.column, to);
  }

  const Problem& p_;
  const int64_t count_, group_, steps_, key_step_, value_step_;  // steps in numbers
  const Temporary data_;
};

// Scratch memory of one thread, and its tile registers.
struct TileWorkspace {
  const amx::Registers registers;
  int64_t query_row, score_row, weight_row, result_row;
  bf16 *queries, *weights;
  float *scores, *results, *mask, *top, *sum;
  bool complete;

  explicit TileWorkspace(const Problem& p)
      : query_row(round_up(p.size, amx::depth<bf16>)),
        score_row(tile_keys + 16),  // rows do not map to the same lines of the cache
        weight_row(tile_keys + 32),
        result_row(round_up(p.value_size, amx::side)) {
    const int64_t floats[] = {tile_query_block * query_row / 2,
                              tile_queries * weight_row / 2,
                              tile_queries * score_row,
                              tile_query_block * result_row,
                              tile_keys,
                              tile_query_block,
                              tile_query_block};
    int64_t total = 0;
    for (int64_t n : floats) total += n;
    float* at = static_cast<float*>(scratch(Scratch::kernel, size_t(total) * sizeof(float)));
    complete = at != nullptr;
    if (!complete) return;
    float* parts[7];
    for (int i = 0; i < 7; ++i) parts[i] = at, at += floats[i];
    queries = reinterpret_cast<bf16*>(parts[0]), weights = reinterpret_cast<bf16*>(parts[1]), scores = parts[2];
    results = parts[3], mask = parts[4], top = parts[5], sum = parts[6];
  }
};

template <class In>
inline constexpr bool has_tiles = amx::is_built && std::is_same_v<In, bf16>;
// Whether attention of this type may run in tiles, which flush subnormal numbers.
template <class In>
bool may_run_in_tiles() {
  if constexpr (has_tiles<In>) return may_use_tiles();
  else return false;
}
// Whether they are faster than vectors: few queries are not worth packing keys.
template <class In>
bool runs_in_tiles(const Problem& p, int64_t queries) {
  return may_run_in_tiles<In>() && queries >= 8 && p.size > 0;
}

// Some queries [first, first + n) of a block, and keys [j, j + m); w has the rows of these queries from `row` on.
template <class Keys>
void attend_part(const Problem& p, const Problem::Place& at, const PackedKeys& packed, int64_t matrix,
                 const Keys& keys, const TileWorkspace& w, int64_t row, int64_t first, int64_t n, int64_t j,
                 int64_t m) {
  int64_t seen[tile_queries], most_seen = 0;
  for (int64_t i = 0; i < n; ++i) {
    seen[i] = keys.seen(first + i, j, m);
    most_seen = most(most_seen, seen[i]);
  }
  if (most_seen <= 0) return;
  m = least(m, most_seen);
  const int64_t rows = round_up(n, amx::side), padded = round_up(m, amx::depth<bf16>);
  if (!keys.copy(w.scores, w.score_row, first, n, j, m)) {
    amx::multiply(rows, padded, w.query_row, w.queries + row * w.query_row, w.query_row, packed.keys(matrix, j),
                  w.scores, w.score_row, false);
    if constexpr (Keys::scaled)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t x = 0; x < m; ++x) w.scores[i * w.score_row + x] *= float(p.scale);
  }
  keys.change(w.scores, w.score_row, first, n, j, m);
  for (int64_t i = 0; i < n; ++i) {
    bf16* const weights = w.weights + i * w.weight_row;
    if (seen[i] <= 0) {
      std::memset(static_cast<void*>(weights), 0, size_t(padded) * sizeof(bf16));
      continue;
    }
    if (p.mask.data && !p.one_mask())
      read_mask(p, at.mask + (first + i) * p.mask.row + j * p.mask.column, seen[i], w.mask);
    const float factor =
        amx::weigh(w.scores + i * w.score_row, weights, seen[i], padded, Keys::scaled ? 1.f : float(p.scale),
                   p.mask.data ? w.mask : nullptr, p.hides(), w.top[row + i], w.sum[row + i]);
    float* const r = w.results + (row + i) * w.result_row;
    if (factor != 1)
      for (int64_t x = 0; x < w.result_row; ++x) r[x] *= factor;
  }
  amx::multiply(rows, w.result_row, padded, w.weights, w.weight_row, packed.values(matrix, j),
                w.results + row * w.result_row, w.result_row, true);
}

// As attend(); ranges of keys begin at multiples of a tile's depth.
template <class Keys>
void attend_tiles(const Problem& p, const PackedKeys& packed, int64_t matrix, const Keys& keys,
                  const TileWorkspace& w, int64_t first, int64_t n, bf16* out, float* logsumexp) {
  const Problem::Place at = p.place(matrix);
  const bf16* q = reinterpret_cast<const bf16*>(p.q.data) + at.q + first * p.q.row;
  std::memset(static_cast<void*>(w.queries), 0, size_t(round_up(n, amx::side) * w.query_row) * sizeof(bf16));
  for (int64_t i = 0; i < n; ++i, q += p.q.row)
    for (int64_t x = 0; x < p.size; ++x) w.queries[i * w.query_row + x] = q[x * p.q.column];
  for (int64_t i = 0; i < n; ++i) w.top[i] = -__builtin_inff(), w.sum[i] = 0;
  std::memset(w.results, 0, size_t(round_up(n, amx::side) * w.result_row) * sizeof(float));
  keys.each(first, n, [&](int64_t begin, int64_t count) {
    for (int64_t j = begin; j < begin + count; j += tile_keys) {
      const int64_t m = least(tile_keys, begin + count - j);
      if (p.one_mask()) read_mask(p, at.mask + j * p.mask.column, m, w.mask);
      for (int64_t i = 0; i < n; i += tile_queries)
        attend_part(p, at, packed, matrix, keys, w, i, first + i, least(tile_queries, n - i), j, m);
    }
  });
  finish<bf16>(p, first, n, w.top, w.sum, w.results, w.result_row, out, logsumexp);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::attention
