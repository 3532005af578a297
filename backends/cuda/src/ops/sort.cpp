#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "gpu/order.hpp"
#include "row_grids.hpp"

namespace gpu {
namespace {
struct Kernels {
  KernelId of_warp, of_block, count, move, select;
};
constinit std::array<Kernels, type_count> kernels{};
constinit KernelId starts{};

constexpr uint64_t warp_size = 32;

// Strides of rows along an axis that lie one behind the other, as in the workspace between two passes.
struct Between {
  int64_t strides[DVT_MAX_NDIM];

  Between(const DLTensor* t, uint32_t axis) {
    int64_t step = t->shape[axis];
    for (int i = t->ndim; i-- > 0;) {
      strides[i] = uint32_t(i) == axis ? 1 : step;
      if (uint32_t(i) != axis) step *= t->shape[i];
    }
  }
};

// How a call sorts.
struct Plan {
  const DLTensor *x, *out;
  uint32_t axis, bytes;
  ReductionPlan whole;
  Between between;

  explicit Plan(const dvt_call* c)
      : x(c->in[0]),
        out(c->out[0]),
        axis(uint32_t(dvt::Attrs(c).i64(0))),
        bytes(bytes_of(x->dtype)),
        whole(rows(x->strides, out->strides)),
        between(x, axis) {}
  // Whole rows, or parts for about as many blocks as a GPU holds.
  ReductionPlan rows(const int64_t* from, const int64_t* to) const {
    constexpr uint64_t enough_blocks = 1024;
    ReductionPlan how = plan_rows(x, 1u << axis, from, to);
    const uint64_t tile = uint64_t(sort_tile(int(bytes))), tiles = (how.size + tile - 1) / tile;
    const uint64_t parts =
        std::clamp<uint64_t>(enough_blocks / std::max<uint64_t>(how.count, 1), 1, std::max<uint64_t>(tiles, 1));
    cut(how, parts, tile);
    how.threads = sort_threads, how.chunks = how.count * how.parts.value;
    return how;
  }
  bool fits_block() const { return whole.size <= uint64_t(sort_tile(int(bytes))); }
  uint32_t passes() const { return bytes * 8 / digit_bits; }
};

// The workspace of rows that take passes over all parts: elements and their indices as they are between passes, of
// which one is read and one written, and the counts.
struct Workspace {
  uint64_t buffers, elements, indices, counts, totals;  // bytes of each but the first

  Workspace(const Plan& p, bool wants_indices) {
    const uint64_t n = p.whole.count * p.whole.size;
    const auto whole = [](uint64_t bytes) { return (bytes + pack_bytes - 1) / pack_bytes * pack_bytes; };
    buffers = std::min(p.passes() - 1, 2u);
    elements = whole(n * p.bytes), indices = wants_indices ? whole(n * sizeof(uint32_t)) : 0;
    totals = p.whole.count * digits * sizeof(uint32_t), counts = totals * p.whole.parts.value;
  }
  uint64_t bytes() const { return buffers * (elements + indices) + counts + totals; }
};

dvt_status sort_parts(dvt_device* d, const dvt_call* c, const Plan& p, const Kernels& k, const Order& order,
                      void* values, void* indices) {
  const Workspace w(p, indices);
  char* const base = static_cast<char*>(c->workspace);
  char* const counts = base + w.buffers * (w.elements + w.indices);
  char* const totals = counts + w.counts;
  const Grid grid = grid_of_blocks(p.whole.chunks, sort_threads);
  const void* from = dvt::data<void>(p.x);
  const void* from_indices = nullptr;
  for (uint32_t pass = 0; pass < p.passes(); ++pass) {
    const bool last = pass + 1 == p.passes();
    const ReductionPlan how =
        p.rows(pass ? p.between.strides : p.x->strides, last ? p.out->strides : p.between.strides);
    const uint32_t shift = pass * digit_bits;
    char* const buffer = base + pass % 2 * (w.elements + w.indices);
    void* const to = last ? values : buffer;
    void* const to_indices = last || !indices ? nullptr : buffer + w.elements;
    if (dvt_status s = launch(d, c, k.count, grid, from, counts, how, order, shift)) return s;
    if (dvt_status s = launch(d, c, starts, grid_of_blocks(how.count * digits, sort_threads), counts, totals,
                              how.count, how.parts.value))
      return s;
    if (dvt_status s = launch(d, c, k.move, grid, from, from_indices, to, to_indices, last ? indices : nullptr,
                              counts, totals, how, order, shift))
      return s;
    from = to, from_indices = to_indices;
  }
  return DVT_OK;
}

// Elements, where they come from if not from their places, and the results.
struct Arrays {
  const void *elements, *from;
  void *values, *indices;
};
dvt_status sort_blocks(dvt_device* d, const dvt_call* c, const Arrays& at, ReductionPlan how, const Order& order,
                       uint32_t first) {
  how.threads = sort_threads, how.chunks = how.count;
  return launch(d, c, kernels[type_index(unsigned_of(c->in[0]->dtype))].of_block,
                grid_of_blocks(how.count, sort_threads), at.elements, at.from, at.values, at.indices, how, order,
                first);
}

dvt_status sort(dvt_device* d, const dvt_call* c, void* values, void* indices) {
  const Plan p(c);
  if (dvt_status s = check_sortable(p.whole.size)) return s;
  const Kernels& k = kernels[type_index(unsigned_of(p.x->dtype))];
  const Order order = order_of(p.x->dtype, dvt::Attrs(c).boolean(1));
  if (!p.fits_block()) return sort_parts(d, c, p, k, order, values, indices);
  ReductionPlan how = p.whole;
  const void* const x = dvt::data<void>(p.x);
  if (how.size > warp_size) return sort_blocks(d, c, {x, nullptr, values, indices}, how, order, uint32_t(how.size));
  how.threads = uint32_t(std::bit_ceil(how.size));
  const uint64_t at_once = block_size / how.threads;
  return launch(d, c, k.of_warp, grid_of_blocks((how.count + at_once - 1) / at_once, block_size), x, values,
                indices, how, order);
}

// ---- top_k: attributes k, axis, mode ------------------------------------------------

// Rows that a block holds are sorted whole; of others the first are brought together before.
struct Choice {
  const DLTensor *x, *values;
  uint32_t k, axis, bytes;
  ReductionPlan rows;

  explicit Choice(const dvt_call* c)
      : x(c->in[0]),
        values(c->out[0]),
        k(uint32_t(dvt::Attrs(c).i64(0))),
        axis(uint32_t(dvt::Attrs(c).i64(1))),
        bytes(bytes_of(x->dtype)),
        rows(plan_rows(x, 1u << axis, x->strides, values->strides)) {
    rows.threads = sort_threads, rows.chunks = rows.count;
  }
  bool fits_block() const { return rows.size <= uint64_t(sort_tile(int(bytes))); }
  uint64_t bytes_of_elements() const { return (rows.count * k * bytes + pack_bytes - 1) / pack_bytes * pack_bytes; }
  uint64_t workspace() const { return fits_block() ? 0 : bytes_of_elements() + rows.count * k * sizeof(uint32_t); }
};

dvt_status top_k(dvt_device* d, const dvt_call* c) {
  const Choice p(c);
  const Order order = order_of(p.x->dtype, dvt::Attrs(c).is(2, "largest"));
  Arrays at = {dvt::data<void>(p.x), nullptr, dvt::data<void>(c->out[0]), dvt::data<void>(c->out[1])};
  if (p.fits_block()) return sort_blocks(d, c, at, p.rows, order, p.k);
  void* const elements = c->workspace;
  void* const from = static_cast<char*>(c->workspace) + p.bytes_of_elements();
  if (dvt_status s =
          launch(d, c, kernels[type_index(unsigned_of(p.x->dtype))].select,
                 grid_of_blocks(p.rows.count, sort_threads), at.elements, elements, from, p.rows, order, p.k))
    return s;
  at.elements = elements, at.from = from;
  const Between between(p.values, p.axis);
  return sort_blocks(d, c, at, plan_rows(p.values, 1u << p.axis, between.strides, p.values->strides), order, p.k);
}

dvt_status query_top_k(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const Choice p(c);
  const bool can_select = p.bytes > 1 && p.k <= uint32_t(sort_tile(int(p.bytes))) && !(p.rows.size >> 32);
  if (p.fits_block() || can_select) {
    DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
    DVT_PUT(answer, dvt_answer, workspace, p.workspace());
    return DVT_OK;
  }
  DVT_PUT(answer, dvt_answer, reason,
          "all are sorted: a block of threads does not hold so many, or they are bytes");
  return DVT_UNSUPPORTED;
}

// ---- rows ---------------------------------------------------------------------------

template <bool wants_indices>
dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const Plan p(c);
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  if (!p.fits_block()) DVT_PUT(answer, dvt_answer, workspace, Workspace(p, wants_indices).bytes());
  return DVT_OK;
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  starts = find_kernel("sort_starts");
  for (const DLDataType type : boolean + integers + floats) {
    const DLDataType key = unsigned_of(type);
    const auto find = [&](const char* which) { return find_kernel(std::string("sort_") + which + type_name(key)); };
    kernels[type_index(key)] = {find("short_"), find("block_"), find("count_"), find("move_"), {}};
    if (key.bits > 8) kernels[type_index(key)].select = find("select_");
    dvt::Row sort("dvt.sort", run_sort<gpu::sort>), argsort("dvt.argsort", run_argsort<gpu::sort>),
        first("dvt.top_k", top_k);
    table.add(sort.in(type, DVT_O_STRIDED).out(type).query(query<false>).deterministic());
    table.add(first.in(type, DVT_O_STRIDED).out(type).out(dvt::i64).query(query_top_k).deterministic());
    table.add(argsort.in(type, DVT_O_STRIDED).out(dvt::i64).query(query<true>).deterministic());
  }
}
}  // namespace gpu
