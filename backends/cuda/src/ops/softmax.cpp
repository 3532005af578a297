#include <array>
#include <string>

#include "elementwise.hpp"
#include "held.hpp"

namespace gpu {
namespace {
struct Kernels {
  KernelId held, lines, columns;
};
template <OpName op>
constinit std::array<Kernels, type_count> kernels{};

dvt_status run(dvt_device* d, const dvt_call* c, const Kernels& k) {
  const DLTensor *x = c->in[0], *out = c->out[0];
  const void* const from = dvt::data<void>(x);
  void* const to = dvt::data<void>(out);
  const uint32_t bytes = bytes_of(x->dtype);
  Lines how = plan_lines(x, 1u << dvt::Attrs(c).i64(0), out->strides);
  if (is_holdable(how, bytes)) {
    const uint32_t packed = is_packed(how, bytes, {from, to});
    return launch(d, c, k.held, grid_of_holders(how, bytes), from, to, how, packed);
  }
  if (prefer_columns(how)) return launch(d, c, k.columns, grid_of_columns(how), from, to, how);
  const uint64_t each = how.axis[how.kept].stride[0] == 1 ? pack_bytes / bytes : 1;
  return launch(d, c, k.lines, grid_of_lines(how, each, most_holders), from, to, how);
}

template <OpName op>
void add(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    const auto find = [&](const char* which) {
      return find_kernel(std::string(op.stem()) + which + type_name(type));
    };
    kernels<op>[type_index(type)] = {find("_held_"), find("_lines_"), find("_columns_")};
    dvt::Row row(op.text, [](dvt_device* d, const dvt_call* c) {
      return run(d, c, kernels<op>[type_index(c->in[0]->dtype)]);
    });
    table.add(row.in(type, DVT_O_STRIDED).out(type).deterministic());
  }
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  add<"dvt.softmax">(table);
  add<"dvt.log_softmax">(table);
}
}  // namespace gpu
