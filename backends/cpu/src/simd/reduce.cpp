#include "simd/reduce.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::reduction {
namespace {
// Appends an axis, or merges it into the last one if the two are contiguous.
void append(Axis* axes, int& n, Axis a) {
  if (n) {
    Axis& last = axes[n - 1];
    if (last.stride == a.size * a.stride && last.out_stride == a.size * a.out_stride) {
      last = {last.size * a.size, a.stride, a.out_stride};
      return;
    }
  }
  axes[n++] = a;
}

constexpr int64_t worthwhile = 32768;  // terms worth waking a thread
constexpr int64_t rows_of_results = 256;
// Of any type.
struct Results {
  alignas(64) char bytes[column_block * sizeof(uint64_t)];
};

// What the driver calls, with the operands of a call, or of a chunk.
struct Call {
  const Plan& plan;
  const Kernels& kernels;
  void (*store)(void*, int64_t, int64_t, void*, int64_t);
  size_t out_size;
  int64_t divisor;

  // Terms [r, r + n) of each of `columns` results.
  void columns(const char* x, int64_t columns, int64_t r, int64_t n, void* out) const {
    if (n <= row_group) {
      const void* row[row_group];
      const int64_t size = int64_t(kernels.in_size), stride = plan.n_reduced == 1 ? plan.reduced[0].stride : 0;
      for (int64_t i = 0; i < n; ++i) row[i] = x + (stride ? (r + i) * stride : plan.run_offset(r + i, 0)) * size;
      return kernels.columns(row, columns, n, out);
    }
    Results right;
    const int64_t half = (n + 1) / 2;
    this->columns(x, columns, r, half, out);
    this->columns(x, columns, r + half, n - half, right.bytes);
    kernels.combine(out, right.bytes, columns);
  }
  // Units [begin, end).
  void run(const char* x, char* out, int64_t begin, int64_t end) const {
    Results results;
    const Axis axis = plan.column >= 0 ? plan.kept[plan.column]
                      : plan.n_kept    ? plan.kept[plan.n_kept - 1]
                                       : Axis{1, 0, 0};
    const int64_t in_size = int64_t(kernels.in_size), size = int64_t(out_size),
                  blocks = divide_up(axis.size, column_block);
    for (int64_t i = begin, n; i < end; i += n) {
      int64_t at, first = 0, count;
      if (plan.column < 0) {
        const char* const from = x + plan.kept_offset(i, at) * in_size;
        n = count = least(least(end - i, axis.size - i % axis.size), rows_of_results);
        kernels.rows(plan, from, axis.stride, count, results.bytes);
      } else {
        n = 1, first = i % blocks * column_block, count = least(axis.size - first, column_block);
        const char* const from = x + (plan.kept_offset(i / blocks, at) + first) * in_size;
        columns(from, count, 0, plan.terms, results.bytes);
      }
      store(results.bytes, count, divisor, out + (at + first * axis.out_stride) * size, axis.out_stride);
    }
  }
};

// The partial results of chunks in pairs, these in pairs, and so on, in the memory of the first ones.
void join_chunks(const Call& c, char* partial, int64_t chunks, char* out) {
  constexpr int64_t block = 256;  // results whose partial ones stay in the first caches
  const int64_t size = int64_t(c.kernels.result_size), results = c.plan.results;
  for (int64_t first = 0; first < results; first += block) {
    const int64_t n = least(block, results - first);
    char* const total = partial + first * size;
    for (int64_t step = 1; step < chunks; step *= 2)
      for (int64_t at = 0; at + step < chunks; at += 2 * step)
        c.kernels.combine(total + at * results * size, total + (at + step) * results * size, n);
    c.store(total, n, c.divisor, out + first * int64_t(c.out_size), 1);
  }
}
}  // namespace

Plan plan(const DLTensor* x, uint32_t axes, int parts) {
  Plan p;
  Axis reduced[DVT_MAX_NDIM];
  int n_reduced = 0;
  int64_t out_stride[DVT_MAX_NDIM], step = parts;
  for (int i = x->ndim; i-- > 0;) {
    out_stride[i] = step;
    if (!(axes >> i & 1)) step *= x->shape[i];
  }
  for (int i = 0; i < x->ndim; ++i) {
    const Axis a{x->shape[i], x->strides[i] * parts, axes >> i & 1 ? 0 : out_stride[i]};
    if (axes >> i & 1) {
      p.terms *= a.size;
      if (a.size != 1) {
        int at = n_reduced++;
        for (; at && reduced[at - 1].stride < a.stride; --at) reduced[at] = reduced[at - 1];
        reduced[at] = a;
      }
    } else {
      p.results *= a.size;
      if (a.size != 1) append(p.kept, p.n_kept, a);
    }
  }
  if (parts > 1) p.results *= parts, append(p.kept, p.n_kept, {parts, 1, 1});
  for (int i = 0; i < n_reduced; ++i) append(p.reduced, p.n_reduced, reduced[i]);
  // The parts of adjacent elements are two rows, which a column of two would be slower than.
  if (p.n_reduced && p.reduced[p.n_reduced - 1].stride != parts)
    for (int i = 0; i < p.n_kept; ++i)
      if (p.kept[i].stride == 1) p.column = i;
  return p;
}

int64_t Plan::kept_offset(int64_t at, int64_t& out) const {
  int64_t offset = 0;
  out = 0;
  for (int i = n_kept; i-- > 0;) {
    if (i == column) continue;
    const int64_t k = i ? at % kept[i].size : at;
    offset += k * kept[i].stride, out += k * kept[i].out_stride;
    if (i) at /= kept[i].size;
  }
  return offset;
}

int64_t Plan::run_offset(int64_t r, int inner) const {
  int64_t offset = 0;
  for (int i = n_reduced - inner; i-- > 0;) {
    offset += (i ? r % reduced[i].size : r) * reduced[i].stride;
    if (i) r /= reduced[i].size;
  }
  return offset;
}

int64_t Plan::units() const {
  return column < 0 ? results : results / kept[column].size * divide_up(kept[column].size, column_block);
}
uint64_t Plan::grain() const {
  const int64_t count = units();
  return uint64_t(worthwhile / (results * terms / (count ? count : 1) + 1) + 1);
}

int64_t chunks_of(int64_t results, int64_t units, int64_t terms, int64_t size) {
  const int64_t total = results * terms;
  if (total < 4 * worthwhile || units >= 16 || results > 65536) return 1;
  const int64_t n = total / worthwhile;
  return n < size ? (n < 64 ? n : 64) : size < 64 ? size : 64;
}

dvt_status reduce(const Plan& p, const Kernels& kernels, const void* x, void* out, int64_t divisor) {
  const Call call{p, kernels, kernels.store, kernels.out_size, divisor};
  const char* const from = static_cast<const char*>(x);
  char* const to = static_cast<char*>(out);
  const int64_t units = p.units(), n = p.n_reduced ? chunks_of(p.results, units, p.terms, p.reduced[0].size) : 1;
  if (n == 1) {
    dvt::parallel_for(uint64_t(units), p.grain(), [&](uint64_t begin, uint64_t end, uint32_t) {
      call.run(from, to, int64_t(begin), int64_t(end));
    });
    return DVT_OK;
  }
  const int64_t bytes = p.results * int64_t(kernels.result_size);  // of a chunk's
  char* const partial = static_cast<char*>(scratch(Scratch::result, size_t(n * bytes)));
  if (!partial) return DVT_OOM;
  dvt::parallel_for(uint64_t(n), 1, [&](uint64_t begin, uint64_t end, uint32_t) {
    for (int64_t chunk = int64_t(begin); chunk < int64_t(end); ++chunk) {
      Plan q = p;
      Axis& axis = q.reduced[0];
      const int64_t first = axis.size * chunk / n, last = axis.size * (chunk + 1) / n;
      q.terms = p.terms / axis.size * (last - first);
      axis.size = last - first;
      const Call part{q, kernels, kernels.keep, kernels.result_size, 0};
      part.run(from + first * axis.stride * int64_t(kernels.in_size), partial + chunk * bytes, 0, q.units());
    }
  });
  join_chunks(call, partial, n, to);
  return DVT_OK;
}

uint32_t axis_mask(const dvt_call* c, uint32_t attribute) {
  uint32_t mask = 0;
  for (int64_t axis : dvt::Attrs(c).i64s(attribute)) mask |= 1u << axis;
  return mask;
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::reduction
