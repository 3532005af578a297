#include <array>
#include <string>

#include "elementwise.hpp"
#include "lines.hpp"

namespace xpu {
namespace {
struct Kernels {
  KernelId lines, columns;
};
template <OpName op>
constinit std::array<Kernels, type_count> kernels{};

dvt_status run(dvt_device* d, const dvt_call* c, const Kernels& k) {
  const DLTensor *x = c->in[0], *out = c->out[0];
  Lines how = plan_lines(x, 1u << dvt::Attrs(c).i64(0), out->strides);
  const bool columns = prefer_columns(how);
  return launch(d, c, columns ? k.columns : k.lines,
                columns ? range_of_columns(how) : range_of_groups(how.count, how.size), dvt::data<void>(x),
                dvt::data<void>(out), how);
}

template <OpName op>
void add(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    const std::string stem(op.stem());
    kernels<op>[type_index(type)] = {find_kernel(stem + "_lines_" + type_name(type)),
                                     find_kernel(stem + "_columns_" + type_name(type))};
    dvt::Row row(op.text, [](dvt_device* d, const dvt_call* c) {
      return run(d, c, kernels<op>[type_index(c->in[0]->dtype)]);
    });
    row.in(type, DVT_O_STRIDED).out(type).deterministic();
    if (dvt::same(type, dvt::f64)) row.query(query_fp64);
    table.add(row);
  }
}
}  // namespace

void XPU_ROWS(dvt::KernelTable& table) {
  add<"dvt.softmax">(table);
  add<"dvt.log_softmax">(table);
}
}  // namespace xpu
