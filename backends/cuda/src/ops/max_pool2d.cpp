// max_pool2d, avg_pool2d and their forms with one spatial axis. Not by cuDNN, which pools no integers and no
// strides of all kinds.
#include <algorithm>
#include <array>
#include <string>

#include "dtypes.hpp"
#include "launch.hpp"
#include "windows.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> max_pools{}, avg_pools{};

Windows windows(const dvt_call* c, bool dilates) {
  const dvt::Attrs attrs(c);
  return plan_windows(c, attrs.i64s(0).data, attrs.i64s(1), attrs.i64s(2), dilates ? attrs.i64s(3) : dvt::Ints{});
}

// A thread for each result, neighbours in a row side by side; short rows share a block.
Grid grid_of(const Windows& how) {
  constexpr int64_t most = 65535;
  Grid grid = grid_of_rows(uint64_t(how.h.out), uint64_t(how.w.out));
  // Small planes would leave most of a block idle.
  while (grid.threads.y > 1 && int64_t(grid.threads.y) / 2 >= how.h.out) grid.threads.y /= 2;
  grid.blocks.z = uint32_t(std::clamp<int64_t>(how.images * how.channels, 1, most));
  return grid;
}

dvt_status run_max(dvt_device* d, const dvt_call* c) {
  const Windows how = windows(c, true);
  return launch(d, c, max_pools[type_index(c->in[0]->dtype)], grid_of(how), dvt::data<void>(c->in[0]),
                dvt::data<void>(c->out[0]), how);
}
dvt_status run_avg(dvt_device* d, const dvt_call* c) {
  const Windows how = windows(c, false);
  const uint32_t with_padding = dvt::Attrs(c).boolean(3, true);
  return launch(d, c, avg_pools[type_index(c->in[0]->dtype)], grid_of(how), dvt::data<void>(c->in[0]),
                dvt::data<void>(c->out[0]), how, with_padding);
}

void add_row(dvt::KernelTable& table, const char* op, dvt::Row::Run run, DLDataType type) {
  table.add(dvt::Row(op, run).in(type, DVT_O_STRIDED).out(type).deterministic());
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : integers + floats) {
    max_pools[type_index(type)] = find_kernel(std::string("max_pool_") + type_name(type));
    for (const char* op : {"dvt.max_pool2d", "dvt.max_pool1d"}) add_row(table, op, run_max, type);
  }
  for (const DLDataType type : floats) {
    avg_pools[type_index(type)] = find_kernel(std::string("avg_pool_") + type_name(type));
    for (const char* op : {"dvt.avg_pool2d", "dvt.avg_pool1d"}) add_row(table, op, run_avg, type);
  }
}
}  // namespace gpu
