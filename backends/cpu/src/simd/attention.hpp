// Shared by attention and its gradient: operands with any strides, and masks, for blocks of queries and keys.
#pragma once
#include "simd/gemm.hpp"
#include "simd/rows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::attention {
using namespace rows;
constexpr int64_t query_block = 112, key_block = 512;  // queries: whole register tiles of 14 rows
// Rows of scores: whole panels and some padding, so that they do not map to the same cache lines.
template <class T>
constexpr int64_t score_row(int64_t keys) {
  return round_up(keys, gemm::panel<T>) + 16;
}

// An operand (..., rows, columns): the strides of its last two axes, and its strides for the result's batch
// axes, 0 if broadcast.
struct Operand {
  const char* data = nullptr;
  int64_t row = 0, column = 0, batch[DVT_MAX_NDIM] = {};

  Operand(const DLTensor* t, const DLTensor* out) {
    if (!t) return;
    data = dvt::data<const char>(t);
    const int n = t->ndim, shift = out->ndim - n;
    if (n >= 2) row = t->shape[n - 2] == 1 ? 0 : t->strides[n - 2];
    if (n >= 1) column = t->shape[n - 1] == 1 ? 0 : t->strides[n - 1];
    for (int i = 0; i + 2 < n; ++i) batch[i + shift] = t->shape[i] == 1 ? 0 : t->strides[i];
  }
};

struct Problem {
  Operand q, k, v, mask;
  DLDataType mask_type{};
  const DLTensor* out = nullptr;
  int64_t queries = 0, keys = 0, size = 0, value_size = 0, heads_per_key = 1;
  double scale = 1;
  bool causal = false;

  // The operands of a call, whose mask is operand `at`, and its first two attributes.
  Problem(const dvt_call* c, const DLTensor* result, uint32_t at)
      : Problem(*c->in[0], *c->in[1], *c->in[2], mask_of(c, at), result) {
    const dvt::Attrs a(c);
    causal = a.boolean(0), scale = a.f64(1);
  }
  Problem(const DLTensor& query, const DLTensor& key, const DLTensor& value, const DLTensor* attn_mask,
          const DLTensor* result)
      : q(&query, result), k(&key, result), v(&value, result), mask(attn_mask, result), out(result) {
    if (attn_mask) mask_type = attn_mask->dtype;
    queries = query.shape[query.ndim - 2], size = query.shape[query.ndim - 1], keys = key.shape[key.ndim - 2];
    value_size = value.shape[value.ndim - 1];
    if (queries == 1) q.row = size;
    if (query.ndim >= 3 && key.shape[key.ndim - 3] > 0)
      heads_per_key = query.shape[query.ndim - 3] / key.shape[key.ndim - 3];
    if (heads_per_key < 1) heads_per_key = 1;
  }
  static const DLTensor* mask_of(const dvt_call* c, uint32_t at) {
    return dvt::has_in(c, at) ? c->in[at] : nullptr;
  }
  bool one_mask() const { return mask.data && !mask.row; }  // the same for every query
  bool hides() const { return mask_type.code == DVT_BOOL; }

  // Offsets of one matrix of the batch, in elements.
  struct Place {
    int64_t q = 0, k = 0, v = 0, mask = 0;
  };
  Place place(int64_t at) const {
    Place p;
    for (int i = out->ndim - 2; i-- > 0; at /= out->shape[i]) {
      const int64_t n = at % out->shape[i], shared = i == out->ndim - 3 ? n / heads_per_key : n;
      p.q += n * q.batch[i], p.k += shared * k.batch[i], p.v += shared * v.batch[i], p.mask += n * mask.batch[i];
    }
    return p;
  }
};

// The values that the mask adds to scores [0, n) of a row.
template <class T>
void read_mask(const Problem& p, int64_t offset, int64_t n, T* out) {
  const int64_t step = p.mask.column;
  const auto each = [&](auto* data, auto value) {
    for (int64_t j = 0; j < n; ++j) out[j] = T(value(data[offset + j * step]));
  };
  const char* data = p.mask.data;
  if (p.mask_type.code == DVT_BOOL)
    each(reinterpret_cast<const uint8_t*>(data), [](uint8_t x) { return x ? T(0) : -T(__builtin_inf()); });
  else if (p.mask_type.code == DVT_BFLOAT)
    each(reinterpret_cast<const bf16*>(data), [](bf16 x) { return widen(x); });
  else if (p.mask_type.bits == 16) each(reinterpret_cast<const f16*>(data), [](f16 x) { return widen(x); });
  else if (p.mask_type.bits == 32) each(reinterpret_cast<const float*>(data), [](float x) { return x; });
  else each(reinterpret_cast<const double*>(data), [](double x) { return x; });
}

// Refuses a mask, operand `at`, that is neither bool nor floating.
inline dvt_status query_mask(const dvt_call* c, uint32_t at, dvt_answer* answer) {
  const DLTensor* mask = Problem::mask_of(c, at);
  if (mask && mask->dtype.code != DVT_BOOL && mask->dtype.code != DVT_FLOAT && mask->dtype.code != DVT_BFLOAT) {
    DVT_PUT(answer, dvt_answer, reason, "the mask is neither bool nor floating");
    return DVT_UNSUPPORTED;
  }
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  return DVT_OK;
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::attention
