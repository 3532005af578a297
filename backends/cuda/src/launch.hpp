// How a kernel's `run` reaches the device: it enqueues kernels on the call's stream and returns.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "dovetail/backend.hpp"
#include "kernels/common/fault.hpp"
#include "modules.hpp"

namespace gpu {
struct Extent {
  uint32_t x = 1, y = 1, z = 1;
};
// How a kernel is launched: so many blocks of so many threads, with so much dynamic shared memory each.
struct Grid {
  Extent blocks, threads;
  uint32_t shared_bytes = 0;
};
inline constexpr uint32_t block_size = 256;                // of kernels that declare no other
inline constexpr uint32_t static_shared_bytes = 48 << 10;  // more a kernel must be allowed to have

// A thread for each of n items in blocks of block_size, up to some blocks for each multiprocessor: kernels go on in
// steps of the whole grid.
Grid grid_of(uint64_t n);
// Threads side by side along the columns, as many as leave no more than an eighth of them idle, others along the
// rows. Kernels go on in steps of the whole grid.
Grid grid_of_rows(uint64_t rows, uint64_t columns);
// Blocks of so many threads for each of so many chunks of work, up to as many as a grid may have.
Grid grid_of_blocks(uint64_t blocks, uint32_t threads);

namespace detail {
dvt_status launch(dvt_device*, const dvt_call*, KernelId, const Grid&, std::span<void*>, std::span<const size_t>);
}
// Arguments have the types of the kernel's parameters; the first launch of each checks their sizes.
template <class... T>
dvt_status launch(dvt_device* d, const dvt_call* c, KernelId kernel, const Grid& grid, const T&... arguments) {
  static_assert((std::is_trivially_copyable_v<T> && ...));
  void* addresses[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  static constexpr size_t bytes[] = {sizeof(T)...};
  return detail::launch(d, c, kernel, grid, addresses, bytes);
}

// The answer to a query: every device has kernels for all data types.
inline dvt_status query_type(dvt_device*, DLDataType, dvt_answer* answer) {
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  return DVT_OK;
}
inline void require_type(dvt::Row&, DLDataType) {}  // for this type a row needs no query of its own

inline constexpr bool short_rows_share_blocks = true;  // a row of few elements takes few threads (grid_of_rows)

// The end of a call: without a stream it waits until the work is done, and reports what went wrong.
dvt_status finish(dvt_device*, const dvt_call*);

// The address at which a kernel of this call reports invalid data; the kernel gets it and c->correlation_id as
// arguments. nullptr if there is no memory for it.
Fault* fault_slot(dvt_device*, const dvt_call*);
}  // namespace gpu
