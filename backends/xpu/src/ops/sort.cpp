#include <array>
#include <string>
#include <utility>

#include "dtypes.hpp"
#include "kernels/common/order.hpp"
#include "lines.hpp"

namespace xpu {
namespace {
struct Kernels {
  KernelId tiles, merge, put;
};
constinit std::array<Kernels, type_count> kernels{};

Order order_of(DLDataType type, bool descending) {
  Order order{Numbers::unsigned_integers, descending, 0};
  if (type.code == DVT_INT) order.numbers = Numbers::signed_integers;
  if (type.code != DVT_FLOAT && type.code != DVT_BFLOAT) return order;
  order.numbers = Numbers::floats;
  order.infinity = type.code == DVT_BFLOAT ? 0x7f80
                   : type.bits == 16       ? 0x7c00
                   : type.bits == 32       ? 0x7f800000
                                           : uint64_t{0x7ff} << 52;
  return order;
}

Lines plan(const dvt_call* c) {
  Lines how = plan_lines(c->in[0], 1u << dvt::Attrs(c).i64(0), c->out[0]->strides);
  how.parts = (how.size + sort_tile - 1) / sort_tile;
  return how;
}

// Keys and indices of all lines, in the workspace twice: a merge reads the one and writes the other.
struct Items {
  char* keys;
  uint32_t* index;
};
Items items_at(void* workspace, const Lines& how, uint32_t key_bytes, int which) {
  const uint64_t n = how.count * how.size;
  char* const base = static_cast<char*>(workspace);
  return {base + 2 * n * sizeof(uint32_t) + which * n * key_bytes, reinterpret_cast<uint32_t*>(base) + which * n};
}

dvt_status sort(dvt_device* d, const dvt_call* c, void* values, void* indices) {
  const DLTensor* x = c->in[0];
  const Lines how = plan(c);
  if (how.size >> 32)
    return DVT_FAIL(DVT_INVALID, "[sort] the axis is too long: expected less than 2^32 elements, got %llu",
                    (unsigned long long)how.size);
  const Kernels& k = kernels[type_index(unsigned_of(x->dtype))];
  const Order order = order_of(x->dtype, dvt::Attrs(c).boolean(1));
  const uint64_t run = (how.size + how.parts - 1) / how.parts;
  Items now{}, next{};
  if (how.parts > 1)
    now = items_at(c->workspace, how, bytes_of(x->dtype), 0),
    next = items_at(c->workspace, how, bytes_of(x->dtype), 1);
  const void* const from = dvt::data<void>(x);
  if (dvt_status s = launch(d, c, k.tiles, range_of_groups(how.count * how.parts, run), from, values, indices,
                            now.keys, now.index, how, order))
    return s;
  if (how.parts == 1) return DVT_OK;
  const Range all = range_of(how.count * how.size);
  for (uint64_t merged = run; merged < how.size; merged *= 2, std::swap(now, next))
    if (dvt_status s =
            launch(d, c, k.merge, all, now.keys, now.index, next.keys, next.index, how.count, how.size, merged))
      return s;
  return launch(d, c, k.put, all, from, values, indices, now.index, how);
}
dvt_status sort_values(dvt_device* d, const dvt_call* c) { return sort(d, c, dvt::data<void>(c->out[0]), nullptr); }
dvt_status sort_indices(dvt_device* d, const dvt_call* c) {
  return sort(d, c, nullptr, dvt::data<void>(c->out[0]));
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const Lines how = plan(c);
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  if (how.parts > 1)
    DVT_PUT(answer, dvt_answer, workspace,
            2 * how.count * how.size * (sizeof(uint32_t) + bytes_of(c->in[0]->dtype)));
  return DVT_OK;
}
}  // namespace

void XPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : boolean + integers + floats) {
    const std::string suffix = std::string("_") + type_name(unsigned_of(type));
    kernels[type_index(unsigned_of(type))] = {find_kernel("sort_tiles" + suffix),
                                              find_kernel("sort_merge" + suffix), find_kernel("sort_put" + suffix)};
    table.add(dvt::Row("dvt.sort", sort_values).in(type, DVT_O_STRIDED).out(type).query(query).deterministic());
    table.add(
        dvt::Row("dvt.argsort", sort_indices).in(type, DVT_O_STRIDED).out(dvt::i64).query(query).deterministic());
  }
}
}  // namespace xpu
