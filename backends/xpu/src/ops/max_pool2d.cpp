// max_pool2d, avg_pool2d and their forms with one spatial axis. Not by oneDNN, which pools neither integers nor
// float64, promises nothing about NaN and knows no strides.
#include <algorithm>
#include <array>
#include <string>

#include "dtypes.hpp"
#include "launch.hpp"
#include "windows.hpp"

namespace xpu {
namespace {
constinit std::array<KernelId, type_count> max_pools{}, avg_pools{};

Windows windows(const dvt_call* c, bool dilates) {
  const dvt::Attrs attrs(c);
  return plan_windows(c, attrs.i64s(0).data, attrs.i64s(1), attrs.i64s(2), dilates ? attrs.i64s(3) : dvt::Ints{});
}

// An item for each result, neighbours in a row side by side; short rows share a group.
Range range_of(const Windows& how) {
  constexpr size_t items = 64;
  size_t width = 1;
  while (width < items && int64_t(width) < how.w.out) width *= 2;
  const size_t height = items / width;
  const auto round = [](int64_t n, size_t to) { return (size_t(n) + to - 1) / to * to; };
  return {3,
          {size_t(how.images * how.channels), round(how.h.out, height), round(how.w.out, width)},
          {1, height, width}};
}

dvt_status run_max(dvt_device* d, const dvt_call* c) {
  const Windows how = windows(c, true);
  return launch(d, c, max_pools[type_index(c->in[0]->dtype)], range_of(how), dvt::data<void>(c->in[0]),
                dvt::data<void>(c->out[0]), how);
}
dvt_status run_avg(dvt_device* d, const dvt_call* c) {
  const Windows how = windows(c, false);
  return launch(d, c, avg_pools[type_index(c->in[0]->dtype)], range_of(how), dvt::data<void>(c->in[0]),
                dvt::data<void>(c->out[0]), how, dvt::Attrs(c).boolean(3, true));
}

void add_row(dvt::KernelTable& table, const char* op, dvt::Row::Run run, DLDataType type) {
  dvt::Row row(op, run);
  row.in(type, DVT_O_STRIDED).out(type).deterministic();
  if (dvt::same(type, dvt::f64)) row.query(query_fp64);
  table.add(row);
}
}  // namespace

void XPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : integers + floats) {
    max_pools[type_index(type)] = find_kernel(std::string("max_pool_") + type_name(type));
    for (const char* op : {"dvt.max_pool2d", "dvt.max_pool1d"}) add_row(table, op, run_max, type);
  }
  for (const DLDataType type : floats) {
    avg_pools[type_index(type)] = find_kernel(std::string("avg_pool_") + type_name(type));
    for (const char* op : {"dvt.avg_pool2d", "dvt.avg_pool1d"}) add_row(table, op, run_avg, type);
  }
}
}  // namespace xpu
