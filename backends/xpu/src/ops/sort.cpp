#include <array>
#include <string>
#include <utility>

#include "gpu/order.hpp"
#include "row_grids.hpp"

namespace gpu {
namespace {
struct Kernels {
  KernelId tiles, merge, put;
};
constinit std::array<Kernels, type_count> kernels{};

ReductionPlan plan(const dvt_call* c) {
  ReductionPlan how = plan_rows(c->in[0], 1u << dvt::Attrs(c).i64(0), c->out[0]->strides);
  how.parts = (how.size + sort_tile - 1) / sort_tile;
  return how;
}

// Keys and indices of all rows, in the workspace twice: a merge reads the one and writes the other.
struct Items {
  char* keys;
  uint32_t* index;
};
Items items_at(void* workspace, const ReductionPlan& how, uint32_t key_bytes, int which) {
  const uint64_t n = how.count * how.size;
  char* const base = static_cast<char*>(workspace);
  return {base + 2 * n * sizeof(uint32_t) + which * n * key_bytes, reinterpret_cast<uint32_t*>(base) + which * n};
}

dvt_status sort(dvt_device* d, const dvt_call* c, void* values, void* indices) {
  const DLTensor* x = c->in[0];
  const ReductionPlan how = plan(c);
  if (dvt_status s = check_sortable(how.size)) return s;
  const Kernels& k = kernels[type_index(unsigned_of(x->dtype))];
  const Order order = order_of(x->dtype, dvt::Attrs(c).boolean(1));
  const uint64_t run = (how.size + how.parts - 1) / how.parts;
  Items now{}, next{};
  if (how.parts > 1)
    now = items_at(c->workspace, how, bytes_of(x->dtype), 0),
    next = items_at(c->workspace, how, bytes_of(x->dtype), 1);
  const void* const from = dvt::data<void>(x);
  if (dvt_status s = launch(d, c, k.tiles, grid_of_groups(how.count * how.parts, run), from, values, indices,
                            now.keys, now.index, how, order))
    return s;
  if (how.parts == 1) return DVT_OK;
  const Grid all = grid_of(how.count * how.size);
  for (uint64_t merged = run; merged < how.size; merged *= 2, std::swap(now, next))
    if (dvt_status s =
            launch(d, c, k.merge, all, now.keys, now.index, next.keys, next.index, how.count, how.size, merged))
      return s;
  return launch(d, c, k.put, all, from, values, indices, now.index, how);
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const ReductionPlan how = plan(c);
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  if (how.parts > 1)
    DVT_PUT(answer, dvt_answer, workspace,
            2 * how.count * how.size * (sizeof(uint32_t) + bytes_of(c->in[0]->dtype)));
  return DVT_OK;
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : boolean + integers + floats) {
    const std::string suffix = std::string("_") + type_name(unsigned_of(type));
    kernels[type_index(unsigned_of(type))] = {find_kernel("sort_tiles" + suffix),
                                              find_kernel("sort_merge" + suffix), find_kernel("sort_put" + suffix)};
    table.add(dvt::Row("dvt.sort", run_sort<sort>).in(type, DVT_O_STRIDED).out(type).query(query).deterministic());
    table.add(dvt::Row("dvt.argsort", run_argsort<sort>)
                  .in(type, DVT_O_STRIDED)
                  .out(dvt::i64)
                  .query(query)
                  .deterministic());
  }
}
}  // namespace gpu
