// attention_scores: blocks of queries go to the pool, each is multiplied by blocks of keys.
#include <atomic>

#include "simd/attend.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace attention;

template <class T>
dvt_status run(dvt_device*, const dvt_call* c) {
  constexpr int P = gemm::panel<T>;
  const DLTensor& out = *c->out[0];
  Problem p(*c->in[0], *c->in[1], *c->in[1], nullptr, &out);
  p.value_size = 0;
  const T scale = T(dvt::Attrs(c).f64(0));
  const int64_t blocks = (p.queries + query_block - 1) / query_block, matrices = out.shape[0] * out.shape[1];
  const int64_t work = query_block * p.keys * (p.size + 1) + 1;
  std::atomic<bool> complete{true};
  const auto body = [&](uint64_t begin, uint64_t end, uint32_t) {
    const Workspace<T> workspace(p, query_block, true, false);
    if (!workspace.complete) return complete.store(false, std::memory_order_relaxed);
    for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
      const int64_t matrix = at / blocks, first = at % blocks * query_block;
      const int64_t n = least(query_block, p.queries - first);
      const Problem::Place place = p.place(matrix);
      const T* const k = reinterpret_cast<const T*>(p.k.data) + place.k;
      read_queries(p, reinterpret_cast<const T*>(p.q.data) + place.q + first * p.q.row, n, scale,
                   workspace.queries);
      T* const to = dvt::data<T>(&out) + (matrix * p.queries + first) * p.keys;
      for (int64_t j = 0; j < p.keys; j += key_block) {
        const int64_t m = least(key_block, p.keys - j);
        gemm::pack(p.size, m, k + j * p.k.row, p.k.column, p.k.row, P, workspace.keys);
        gemm::multiply<T>(n, m, p.size, workspace.queries, p.size, 1, {workspace.keys, p.size * P, P}, to + j,
                          p.keys, false);
      }
    }
  };
  dvt::parallel_for(uint64_t(matrices * blocks), uint64_t(200'000 / work + 1), body);
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

template <class T>
void add(Table& table, DLDataType type) {
  table.add(
      dvt::Row("dvt.attention_scores", run<T>).in(type, DVT_O_STRIDED).in(type, DVT_O_STRIDED).out(type).kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
