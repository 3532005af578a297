#include <algorithm>
#include <array>
#include <string>

#include "dtypes.hpp"
#include "elementwise.hpp"
#include "kernels/common/reduction.hpp"
#include "lines.hpp"

namespace gpu {
namespace {
struct Kernels {
  KernelId lines, columns, totals, parts;
  uint32_t value_bytes;  // of what one part comes to
};
template <OpName op>
constinit std::array<Kernels, type_count> kernels{};

struct Plan {
  Lines how;
  bool columns;
};
Plan plan(const dvt_call* c) {
  constexpr uint64_t enough_columns = 1 << 13, shortest = 8192, enough_blocks = 1024, most_parts = 256;
  const DLTensor *x = c->in[0], *out = c->out[0];
  Plan p{plan_lines(x, 1u << dvt::Attrs(c).i64(0), out->strides), false};
  // A thread alone for each line: only where there are many, or they are short.
  if (p.how.count >= enough_columns || p.how.size < shortest) p.columns = prefer_columns(p.how);
  if (p.columns) return p;
  const uint64_t parts =
      std::min({p.how.size / shortest, enough_blocks / std::max<uint64_t>(p.how.count, 1), most_parts});
  if (parts > 1) cut(p.how, parts);
  return p;
}

// As reductions see it, whose results lie one behind the other.
Lines numbered(Lines how) {
  int64_t step = 1;
  for (uint32_t a = how.kept; a-- > 0; step *= int64_t(how.axis[a].size.value)) how.axis[a].stride[1] = step;
  return how;
}

dvt_status run(dvt_device* d, const dvt_call* c, const Kernels& k) {
  auto [how, columns] = plan(c);
  const void* const x = dvt::data<void>(c->in[0]);
  void* const out = dvt::data<void>(c->out[0]);
  const uint32_t initial = dvt::Attrs(c).boolean(2);
  if (columns) return launch(d, c, k.columns, grid_of_columns(how, 1), x, out, how, initial);
  const Grid grid = grid_of_lines(how, pack_bytes / bytes_of(c->in[0]->dtype));
  void* const partial = how.parts.value > 1 ? c->workspace : nullptr;
  if (partial) {
    void* const nowhere = nullptr;
    if (dvt_status s = launch(d, c, k.totals, grid, x, partial, nowhere, numbered(how), Variant{})) return s;
    if (dvt_status s = launch(d, c, k.parts, grid_of(how.count * 32), partial, how)) return s;
  }
  return launch(d, c, k.lines, grid, x, partial, out, how, initial);
}
dvt_status query(const dvt_call* c, dvt_answer* answer, const Kernels& k) {
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  const Lines how = plan(c).how;
  if (how.parts.value > 1) DVT_PUT(answer, dvt_answer, workspace, how.count * how.parts.value * k.value_bytes);
  return DVT_OK;
}

template <OpName op>
void add(dvt::KernelTable& table, DLDataType type, DLDataType kernel_type, uint32_t value_bytes) {
  const auto find = [&](const char* which) {
    return find_kernel(std::string(op.stem()) + which + type_name(kernel_type));
  };
  const std::string reduction(op.stem().substr(op.stem().find('_') + 1));
  kernels<op>[type_index(type)] = {find("_lines_"), find("_columns_"),
                                   find_kernel(reduction + "_lines_" + type_name(kernel_type)), find("_parts_"),
                                   value_bytes};
  dvt::Row row(op.text, [](dvt_device* d, const dvt_call* c) {
    return run(d, c, kernels<op>[type_index(c->in[0]->dtype)]);
  });
  row.query([](dvt_device*, const dvt_call* c, dvt_answer* answer) {
    return query(c, answer, kernels<op>[type_index(c->in[0]->dtype)]);
  });
  table.add(row.in(type, DVT_O_STRIDED).out(type).deterministic());
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    add<"dvt.cumulative_sum">(table, type, type, bytes_of_sum(type));
    add<"dvt.cumulative_prod">(table, type, type, computed_bytes(type));
  }
  for (const DLDataType type : integers) {
    add<"dvt.cumulative_sum">(table, type, unsigned_of(type), bytes_of(type));
    add<"dvt.cumulative_prod">(table, type, unsigned_of(type), bytes_of(type));
  }
}
}  // namespace gpu
