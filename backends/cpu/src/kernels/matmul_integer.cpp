// matmul_integer, and matmul of bytes in int32: tiles of the product on the host's pool, as for matmul.
#include "chunks.hpp"
#include "kernel.hpp"
#include "simd/integer_gemm.hpp"
#include "tiles.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
bool is_signed(const DLTensor& t) { return t.dtype.code == DVT_INT; }

integer_gemm::Operand operand(const dvt_call* call, uint32_t i, int64_t row, int64_t column) {
  integer_gemm::Operand x{dvt::data<const uint8_t>(call->in[i]), row, column, is_signed(*call->in[i])};
  if (!dvt::has_in(call, i + 2)) return x;
  const DLTensor& zero = *call->in[i + 2];
  x.zero = dvt::data<const void>(&zero);
  if (zero.ndim) x.zeros = zero.shape[0];
  return x;
}

dvt_status run(dvt_device*, const dvt_call* call) {
  const Batched p(dvt::product_of_matmul(call));
  const auto a = operand(call, 0, p.a_row, p.a_column), b = operand(call, 1, p.b_row, p.b_column);
  int32_t* const c = dvt::data<int32_t>(call->out[0]);
  if (!p.m || !p.n || !p.matrices) return DVT_OK;
  const Cut tile = cut(p, 16, 64);
  const int64_t work = tile.rows * tile.columns * (p.k + 1);
  return for_each_chunk(
      p.matrices * tile.tiles, uint64_t(work < 150'000 ? 150'000 / work + 1 : 1), [&](int64_t at) {
        const int64_t matrix = at / tile.tiles, i = at % tile.tiles / tile.across * tile.rows,
                      j = at % tile.tiles % tile.across * tile.columns;
        int64_t a_offset, b_offset;
        p.offsets(matrix, a_offset, b_offset);
        integer_gemm::Product one{least(tile.rows, p.m - i),
                                  least(tile.columns, p.n - j),
                                  p.k,
                                  a,
                                  b,
                                  c + matrix * p.m * p.n + i * p.n + j,
                                  p.n};
        one.a.data = static_cast<const uint8_t*>(a.data) + a_offset + i * p.a_row, one.a.first = i;
        one.b.data = static_cast<const uint8_t*>(b.data) + b_offset + j * p.b_column, one.b.first = j;
        return integer_gemm::product(one);
      });
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  for (DLDataType a : {dvt::i8, dvt::u8}) {
    table.add(
        dvt::Row("dvt.matmul", run).version(2).in(a, DVT_O_STRIDED).in(a, DVT_O_STRIDED).out(dvt::i32).kernel());
    for (DLDataType b : {dvt::i8, dvt::u8})
      table.add(dvt::Row("dvt.matmul_integer", run)
                    .in(a, DVT_O_STRIDED)
                    .in(b, DVT_O_STRIDED)
                    .in(a, DVT_O_OPTIONAL)
                    .in(b, DVT_O_OPTIONAL)
                    .out(dvt::i32)
                    .kernel());
  }
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
