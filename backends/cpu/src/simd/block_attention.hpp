// Attention over a table of blocks of scores: hidden ones are not computed, others may have a mask.
#pragma once
#include <atomic>

#include "score_tiles.hpp"
#include "simd/attend_tiles.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::attention {
// The operands blocks and tiles of block_attention; without them, one block that is seen.
struct BlockTable {
  static constexpr int32_t hidden = 0, whole = 1, masked = 2;  // masked and above: masks
  const int32_t* numbers = nullptr;                            // [batch or 1][heads or 1][n_rows][n_columns]
  const uint8_t* tiles = nullptr;
  int64_t n_tiles = 0, rows, columns, n_rows = 1, n_columns = 1, batch = 1, heads = 1;

  BlockTable(const BlockCall& c, const Problem& p) : rows(p.queries), columns(p.keys) {
    if (!c.blocks) return;
    numbers = dvt::data<const int32_t>(c.blocks), tiles = dvt::data<const uint8_t>(c.tiles);
    n_tiles = c.tiles->shape[0], rows = c.tiles->shape[1], columns = c.tiles->shape[2];
    batch = c.blocks->shape[0], heads = c.blocks->shape[1];
    n_rows = c.blocks->shape[2], n_columns = c.blocks->shape[3];
  }
  // The numbers of the blocks in the row of blocks of a query.
  const int32_t* row_of(int64_t b, int64_t h, int64_t query) const {
    if (!numbers) return nullptr;
    const int64_t matrix = (batch == 1 ? 0 : b) * heads + (heads == 1 ? 0 : h);
    return numbers + (matrix * n_rows + query / rows) * n_columns;
  }
  // Whether every block begins with a tile of packed keys.
  bool begins_with_tiles() const { return n_columns <= 1 || columns % amx::depth<bf16> == 0; }
  bool is_hidden(int32_t number) const { return number <= hidden || number >= masked + n_tiles; }
  const uint8_t* tile(int32_t number) const { return tiles + (number - masked) * rows * columns; }
};

// The keys that the queries of one row of blocks see.
template <class T>
class KeysInBlocks {
 public:
  static constexpr bool scaled = true;

  KeysInBlocks(const BlockCall& call, const BlockTable& table, int64_t keys, int64_t batch, int64_t head,
               int64_t query)
      : call_(call),
        table_(table),
        numbers_(table.row_of(batch, head, query)),
        keys_(keys),
        batch_(batch),
        head_(head) {}

  // Blocks next to each other are one range.
  template <class F>
  void each(int64_t, int64_t, F f) const {
    int64_t begin = 0, end = 0;
    for (int64_t j = 0; j < table_.n_columns; ++j) {
      if (numbers_ && table_.is_hidden(numbers_[j])) continue;
      const int64_t from = j * table_.columns, to = least(from + table_.columns, keys_);
      if (from != end || to - begin > key_block) in_parts(begin, end, f), begin = from;
      end = to;
    }
    in_parts(begin, end, f);
  }

  bool copy(T* scores, int64_t row, int64_t first, int64_t n, int64_t j, int64_t m) const {
    if (!call_.scores) return false;
    const DLTensor& t = *call_.scores;
    const T* from = dvt::data<const T>(&t) + batch_ * t.strides[0] + head_ * t.strides[1] + first * t.strides[2] +
                    j * t.strides[3];
    for (int64_t i = 0; i < n; ++i, from += t.strides[2])
      for (int64_t x = 0; x < m; ++x) scores[i * row + x] = from[x * t.strides[3]];
    return true;
  }

  void change(T* scores, int64_t row, int64_t first, int64_t n, int64_t j, int64_t m) const {
    if (call_.change) call_.change(call_.context, {scores, row, batch_, head_, first, n, j, m});
    each_block(j, m, [&](int32_t number, int64_t from, int64_t to) {
      if (number < BlockTable::masked) return;
      const uint8_t* mask = mask_of(number, first, from);
      for (int64_t i = 0; i < n; ++i, mask += table_.columns) hide(scores + i * row + from - j, mask, to - from);
    });
  }

  // What the mask of the last block hides at its end needs no exponentials.
  int64_t seen(int64_t i, int64_t j, int64_t m) const {
    if (!numbers_) return m;
    const int64_t last = j + m - 1, number = numbers_[last / table_.columns];
    if (number < BlockTable::masked) return m;
    const int64_t from = std::max(j, last / table_.columns * table_.columns);
    const uint8_t* const mask = mask_of(int32_t(number), i, from);
    int64_t n = last + 1 - from;
    uint64_t eight;
    while (n >= 8 && (std::memcpy(&eight, mask + n - 8, 8), !eight)) n -= 8;
    while (n > 0 && !mask[n - 1]) --n;
    return from - j + n;
  }

 private:
  template <class F>
  static void in_parts(int64_t begin, int64_t end, F f) {
    for (; begin < end; begin += key_block) f(begin, least(key_block, end - begin));
  }
  // f(number, from, to) for the blocks of the keys [j, j + m).
  template <class F>
  void each_block(int64_t j, int64_t m, F f) const {
    for (int64_t from = j; numbers_ && from < j + m;) {
      const int64_t block = from / table_.columns, to = least((block + 1) * table_.columns, j + m);
      f(numbers_[block], from, to);
      from = to;
    }
  }
  const uint8_t* mask_of(int32_t number, int64_t query, int64_t key) const {
    return table_.tile(number) + query % table_.rows * table_.columns + key % table_.columns;
  }
  static void hide(T* __restrict s, const uint8_t* __restrict mask, int64_t n) {
    for (int64_t x = 0; x < n; ++x) s[x] = mask[x] ? s[x] : -T(__builtin_inf());
  }

  const BlockCall& call_;
  const BlockTable& table_;
  const int32_t* const numbers_;
  const int64_t keys_, batch_, head_;
};

template <class In>
dvt_status block_attention(const BlockCall& c) {
  using T = Computed<In>;
  const DLTensor& out = *c.out;
  Problem p(*c.query, *c.key, *c.value, nullptr, &out);
  p.scale = c.scale;
  const BlockTable table(c, p);
  // A block of queries lies in one row of the table.
  constexpr int64_t most = 128;
  static_assert(most <= tile_query_block);
  const int64_t parts = table.rows <= most ? 1 : divide_up(table.rows, query_block);
  const int64_t step = divide_up(table.rows, parts), heads = out.shape[1], matrices = out.shape[0] * heads;
  const int64_t work = step * p.keys * (p.size + p.value_size) + 1, each = table.n_rows * parts;
  if (!dvt::size(&out) && !(c.logsumexp && dvt::size(c.logsumexp))) return DVT_OK;
  std::atomic<bool> complete{true};
  // Calls attend_block(workspace, keys, matrix, first, n, out, logsumexp) for all blocks of queries.
  const auto run = [&](int64_t grain, auto make_workspace, auto attend_block) {
    dvt::parallel_for(
        uint64_t(matrices * each), uint64_t(grain / work + 1), [&](uint64_t begin, uint64_t end, uint32_t) {
          const auto workspace = make_workspace();
          if (!workspace.complete) return complete.store(false, std::memory_order_relaxed);
          for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
            const int64_t matrix = at / each, row = at % each / parts * table.rows, first = row + at % parts * step;
            const int64_t n = least(step, least(row + table.rows, p.queries) - first);
            if (n <= 0) continue;
            const KeysInBlocks<T> keys(c, table, p.keys, matrix / heads, matrix % heads, first);
            attend_block(workspace, keys, matrix, first, n, dvt::data<In>(&out) + matrix * p.queries * p.value_size,
                         c.logsumexp ? dvt::data<T>(c.logsumexp) + matrix * p.queries : nullptr);
          }
        });
    return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
  };
  if constexpr (has_tiles<In>)
    if (runs_in_tiles<In>(p, step) && table.begins_with_tiles()) {
      const PackedKeys packed(p, matrices, p.heads_per_key);
      if (!packed) return DVT_OOM;
      packed.pack([&](int64_t) { return p.keys; });
      return run(
          1'000'000, [&] { return TileWorkspace(p); },
          [&](const TileWorkspace& w, const KeysInBlocks<T>& keys, int64_t matrix, auto... rest) {
            attend_tiles(p, packed, matrix, keys, w, rest...);
          });
    }
  return run(
      200'000, [&] { return Workspace<T>(p, step, true, packs_values<In>(p)); },
      [&](const Workspace<T>& w, const KeysInBlocks<T>& keys, int64_t matrix, auto... rest) {
        attend<In>(p, p.place(matrix), keys, w, rest...);
      });
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::attention
