#include "launch.hpp"

#include <algorithm>

#include "device/errors.hpp"
#include "gpu/indexing_rows.hpp"
#include "gpu/window_rows.hpp"

namespace gpu {
namespace {
namespace syclex = sycl::ext::oneapi::experimental;

constexpr uint64_t most_groups = 1 << 16;
constexpr uint64_t enough_items = 1 << 16;  // to keep a GPU busy

dvt_status check(const Grid& r, std::span<const Argument> arguments) {
  size_t items = 1, bytes = 0;
  for (int i = 0; i < r.dims; ++i) {
    items *= r.local[i];
    if (r.local[i] == 0 || r.global[i] == 0 || r.global[i] % r.local[i])
      return DVT_FAIL(DVT_INTERNAL, "a launch of %zu work items in groups of %zu: expected a multiple", r.global[i],
                      r.local[i]);
  }
  for (const Argument& a : arguments) bytes += a.size();
  if (items > group_size || bytes > most_argument_bytes)
    return DVT_FAIL(DVT_INTERNAL,
                    "a launch of groups of %zu with %zu bytes of arguments: expected at most %zu and %zu", items,
                    bytes, group_size, most_argument_bytes);
  return DVT_OK;
}

template <int dims>
sycl::nd_range<dims> nd_range(const Grid& r) {
  sycl::range<dims> global, local;
  for (int i = 0; i < dims; ++i) global[i] = r.global[i], local[i] = r.local[i];
  return {global, local};
}

template <int dims>
void submit(const sycl::queue& queue, const sycl::kernel& kernel, const Grid& r,
            std::span<const Argument> arguments) {
  syclex::submit(queue, [&](sycl::handler& h) {
    int i = 0;
    for (const Argument& a : arguments)
      if (a.is_pointer()) h.set_arg(i++, *static_cast<void* const*>(a.data()));
      else h.set_arg(i++, syclex::raw_kernel_arg(a.data(), a.size()));
    h.parallel_for(nd_range<dims>(r), kernel);
  });
}

// find(): the kernel; it may throw.
template <class Find>
dvt_status launch_found(dvt_device* d, const dvt_call* c, Find find, const Grid& grid,
                        std::span<const Argument> arguments) {
  if (dvt_status s = check(grid, arguments)) return s;
  return enqueue(d, c->stream, [&](dvt_stream& stream) {
    sycl::queue& queue = stream.queue;
    const sycl::kernel& kernel = find();
    switch (grid.dims) {
      case 1: submit<1>(queue, kernel, grid, arguments); break;
      case 2: submit<2>(queue, kernel, grid, arguments); break;
      default: submit<3>(queue, kernel, grid, arguments); break;
    }
    return finish(d, c);
  });
}
}  // namespace

Grid grid_of(uint64_t n) {
  const uint64_t groups = std::min((n + group_size - 1) / group_size, most_groups);
  return {1, {groups * group_size}, {group_size}};
}

Grid grid_of_rows(uint64_t rows, uint64_t columns) {
  size_t width = group_size;  // that leaves no more than an eighth of the items idle
  while ((columns + width - 1) / width * width - columns > columns / 8) width /= 2;
  const size_t height = group_size / width;
  const uint64_t each = std::clamp<uint64_t>(rows * columns / enough_items, 1, 4) * width;
  const uint64_t across = std::min((columns + each - 1) / each, most_groups);
  const uint64_t down = std::min((rows + height - 1) / height, std::max<uint64_t>(most_groups / across, 1));
  return {2, {down * height, across * width}, {height, width}};
}

dvt_status launch(dvt_device* d, const dvt_call* c, KernelId id, const Grid& grid,
                  std::span<const Argument> arguments) {
  return launch_found(d, c, [&]() -> auto& { return d->kernels.get(id, d->context, d->device); }, grid, arguments);
}
dvt_status launch(dvt_device* d, const dvt_call* c, const sycl::kernel& kernel, const Grid& grid,
                  std::span<const Argument> arguments) {
  return launch_found(d, c, [&]() -> auto& { return kernel; }, grid, arguments);
}

dvt_status finish(dvt_device* d, const dvt_call* c) {
  if (!c->stream) return wait_for(d->own_stream);
  c->stream->limit_backlog();
  return DVT_OK;
}

bool is_captured(dvt_device* d, const dvt_call* c) { return stream_of(d, c->stream).capture != nullptr; }

Fault* fault_slot(dvt_device* d, const dvt_call* c) {
  try {
    dvt_stream& stream = stream_of(d, c->stream);
    return stream.capture ? stream.capture->faults->slot() : stream.faults.slot();
  } catch (...) {
    (void)report_exception(d);
    return nullptr;
  }
}

dvt_status query_type(dvt_device* d, DLDataType type, dvt_answer* answer) {
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  if (d->has_fp64 || !dvt::same(type, dvt::f64)) return DVT_OK;
  DVT_PUT(answer, dvt_answer, reason, "this GPU has no float64");
  return DVT_UNSUPPORTED;
}

void require_type(dvt::Row& row, DLDataType type) {
  if (!dvt::same(type, dvt::f64)) return;
  row.query([](dvt_device* d, const dvt_call*, dvt_answer* answer) { return query_type(d, dvt::f64, answer); });
}

// An item for each result, contiguous ones in a row side by side; short rows share a group.
Grid grid_of_windows(const Windows& how) {
  constexpr size_t items = 64;
  size_t width = 1;
  while (width < items && int64_t(width) < how.w.out) width *= 2;
  const size_t height = items / width;
  const auto round = [](int64_t n, size_t to) { return (size_t(n) + to - 1) / to * to; };
  return {3,
          {size_t(how.images * how.channels), round(how.h.out, height), round(how.w.out, width)},
          {1, height, width}};
}

Grid grid_of_scatter(const Slices& how) { return grid_of(how.n); }
}  // namespace gpu
