// scaled_dot_product_attention: blocks of queries go to the pool; each iterates over blocks of keys.
#include <atomic>

#include "simd/attend_tiles.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace attention;

// How many keys take part in one matrix of the batch.
struct Lengths {
  const int64_t* lengths = nullptr;
  int64_t matrices_per_length = 1;
  int64_t keys_of(const Problem& p, int64_t matrix) const {
    if (!lengths) return p.keys;
    const int64_t n = lengths[matrix / matrices_per_length];
    return n < 0 ? 0 : least(n, p.keys);
  }
};

// The first keys of a matrix, as many as there are or, if causal, as a query's own number.
struct FirstKeys {
  static constexpr bool scaled = false;
  int64_t keys;
  bool causal;

  template <class F>
  void each(int64_t first, int64_t n, F f) const {
    const int64_t end = causal ? least(keys, first + n) : keys;
    for (int64_t j = 0; j < end; j += key_block) f(j, least(key_block, end - j));
  }
  template <class T>
  bool copy(T*, int64_t, int64_t, int64_t, int64_t, int64_t) const {
    return false;
  }
  template <class T>
  void change(T*, int64_t, int64_t, int64_t, int64_t, int64_t) const {}
  int64_t seen(int64_t i, int64_t j, int64_t m) const { return causal ? least(m, i - j + 1) : m; }
};

// The call in tile registers.
template <class In>
dvt_status run_tiles(const Problem& p, int64_t matrices, const Lengths& lengths, In* out) {
  const bool splits = lengths.lengths && lengths.matrices_per_length % p.heads_per_key;
  const PackedKeys packed(p, matrices, splits ? 1 : p.heads_per_key);
  if (!packed) return DVT_OOM;
  packed.pack([&](int64_t matrix) { return lengths.keys_of(p, matrix); });
  const int64_t blocks = divide_up(p.queries, tile_query_block);
  const int64_t step = round_up(divide_up(p.queries, blocks), tile_queries);
  const int64_t work = step * p.keys * (p.size + p.value_size) + 1;
  std::atomic<bool> complete{true};
  dvt::parallel_for(
      uint64_t(matrices * blocks), uint64_t(1'000'000 / work + 1), [&](uint64_t begin, uint64_t end, uint32_t) {
        const TileWorkspace workspace(p);
        if (!workspace.complete) return complete.store(false, std::memory_order_relaxed);
        for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
          const int64_t matrix = at / blocks, first = at % blocks * step;
          if (first >= p.queries) continue;
          attend_tiles(p, packed, matrix, FirstKeys{lengths.keys_of(p, matrix), p.causal}, workspace, first,
                       least(step, p.queries - first), out + matrix * p.queries * p.value_size, nullptr);
        }
      });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

template <class In>
dvt_status run(dvt_device*, const dvt_call* c) {
  using T = Computed<In>;
  const DLTensor& out = *c->out[0];
  const Problem p(c, &out, 3);
  const int64_t blocks = (p.queries + query_block - 1) / query_block;
  const int64_t step = (p.queries + blocks - 1) / blocks, matrices = dvt::size(&out) / (p.queries * p.value_size);
  Lengths lengths;
  if (dvt::has_in(c, 4)) lengths = {dvt::data<const int64_t>(c->in[4]), matrices / dvt::size(c->in[4])};
  if constexpr (has_tiles<In>)
    if (runs_in_tiles<In>(p, p.queries)) return run_tiles(p, matrices, lengths, dvt::data<bf16>(&out));
  const int64_t work = step * p.keys * (p.size + p.value_size) + 1;
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(matrices * blocks), uint64_t(200'000 / work + 1),
                    [&](uint64_t begin, uint64_t end, uint32_t) {
                      const Workspace<T> workspace(p, query_block, is_half<In>, packs_values<In>(p));
                      if (!workspace.complete) return complete.store(false, std::memory_order_relaxed);
                      for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
                        const int64_t matrix = at / blocks, first = at % blocks * step;
                        if (first >= p.queries) continue;
                        attend<In>(p, p.place(matrix), FirstKeys{lengths.keys_of(p, matrix), p.causal}, workspace,
                                   first, least(step, p.queries - first),
                                   dvt::data<In>(&out) + matrix * p.queries * p.value_size, nullptr);
                      }
                    });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) { return query_mask(c, 3, answer); }

template <class T>
void add(Table& table, DLDataType type) {
  dvt::Row row("dvt.scaled_dot_product_attention", run<T>);
  row.in(type, DVT_O_STRIDED)
      .in(type, DVT_O_STRIDED)
      .in(type, DVT_O_STRIDED)
      .in(dvt::any(0), DVT_O_STRIDED | DVT_O_OPTIONAL)
      .in(dvt::i64, DVT_O_HOST_SCALAR | DVT_O_OPTIONAL)
      .out(type)
      .version(2)
      .query(query);
  if (may_run_in_tiles<T>()) row.flags(DVT_K_FLUSHES_SUBNORMALS);
  table.add(row.kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
