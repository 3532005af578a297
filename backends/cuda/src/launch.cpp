#include "launch.hpp"

#include <algorithm>

#include "device/capture.hpp"
#include "device/errors.hpp"
#include "gpu/indexing_rows.hpp"
#include "gpu/window_rows.hpp"

namespace gpu {
Grid grid_of(uint64_t n) {
  constexpr uint64_t most_blocks = 1 << 14;  // 132 multiprocessors hold 1056 of 256 threads
  return grid_of_blocks(std::min((n + block_size - 1) / block_size, most_blocks), block_size);
}

Grid grid_of_rows(uint64_t rows, uint64_t columns) {
  constexpr uint64_t most_across = 1 << 14, most_down = 65535;
  uint32_t width = block_size;
  while ((columns + width - 1) / width * width - columns > columns / 8) width /= 2;
  const uint32_t height = block_size / width;
  return {{uint32_t(std::min((columns + width - 1) / width, most_across)),
           uint32_t(std::min((rows + height - 1) / height, most_down))},
          {width, height}};
}

Grid grid_of_blocks(uint64_t blocks, uint32_t threads) {
  constexpr uint64_t most_blocks = (uint64_t{1} << 31) - 1;
  return {{uint32_t(std::clamp<uint64_t>(blocks, 1, most_blocks))}, {threads}};
}

// A thread for each result, contiguous ones in a row side by side; short rows share a block.
Grid grid_of_windows(const Windows& how) {
  constexpr int64_t most = 65535;
  Grid grid = grid_of_rows(uint64_t(how.h.out), uint64_t(how.w.out));
  // Small planes would leave most of a block idle.
  while (grid.threads.y > 1 && int64_t(grid.threads.y) / 2 >= how.h.out) grid.threads.y /= 2;
  grid.blocks.z = uint32_t(std::clamp<int64_t>(how.images * how.channels, 1, most));
  return grid;
}

Grid grid_of_scatter(const Slices& how) { return grid_of_rows(how.n / how.inner.value, how.inner.value); }

dvt_status detail::launch(dvt_device* d, const dvt_call* c, KernelId id, const Grid& grid,
                          std::span<void*> arguments, std::span<const size_t> bytes) {
  return guarded(d, [&]() -> dvt_status {
    const CUkernel kernel = load_kernel(id, bytes);
    if (grid.shared_bytes > static_shared_bytes)
      GPU_CALL(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(grid.shared_bytes), kernel,
                                    d->context.device()));
    dvt_stream& stream = stream_of(d, c->stream);
    const auto& [blocks, threads, shared_bytes] = grid;
    GPU_CALL(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), blocks.x, blocks.y, blocks.z, threads.x,
                            threads.y, threads.z, shared_bytes, stream.handle, arguments.data(), nullptr));
    return finish(d, c);
  });
}

dvt_status finish(dvt_device* d, const dvt_call* c) {
  if (c->stream) return DVT_OK;
  return guarded(d, [&] { return wait_for(d->own_stream); });
}

Fault* fault_slot(dvt_device* d, const dvt_call* c) {
  Fault* slot = nullptr;
  (void)guarded(d, [&] {
    dvt_stream& stream = stream_of(d, c->stream);
    const auto capture = capture_of(stream.handle);
    const auto recording = capture ? d->recordings.find(*capture) : nullptr;
    slot = recording ? recording->slot() : stream.faults->slot();
    return DVT_OK;
  });
  return slot;
}
}  // namespace gpu
