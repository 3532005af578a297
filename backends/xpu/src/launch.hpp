// How a kernel's `run` reaches the device: it enqueues kernels on the call's stream and returns. Free of SYCL's
// headers, which take seconds to compile.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "dovetail/backend.hpp"
#include "kernels/common/fault.hpp"
#include "modules.hpp"

namespace gpu {
// The work items of a launch, and how many of them form a group.
struct Grid {
  int dims;
  size_t global[3], local[3];
};
// Limits that every GPU of Intel's keeps; no device is asked for more, so that tests on a CPU mean something. Local
// memory, 64 KB, is checked when kernels are compiled. No kernel may count on the size of sub-groups.
inline constexpr size_t group_size = 256;
inline constexpr size_t most_argument_bytes = 1024;

// One item for each of n elements, up to 16 million: kernels go on in steps of the whole range.
Grid grid_of(uint64_t n);
// The same for rows of columns. An item takes one to four columns, because its work for each row costs CPUs as much
// as some columns. Contiguous elements of a row belong to contiguous items of a group.
Grid grid_of_rows(uint64_t rows, uint64_t columns);

// An argument of a kernel, by its bytes: a pointer to device memory or a plain struct.
class Argument {
 public:
  template <class T>
  explicit Argument(const T& value) : data_(&value), size_(sizeof value), is_pointer_(std::is_pointer_v<T>) {
    static_assert(std::is_trivially_copyable_v<T>);
  }
  Argument(const void* struct_data, size_t size) : data_(struct_data), size_(size), is_pointer_(false) {}
  const void* data() const { return data_; }
  size_t size() const { return size_; }
  bool is_pointer() const { return is_pointer_; }

 private:
  const void* data_;
  size_t size_;
  bool is_pointer_;
};

dvt_status launch(dvt_device*, const dvt_call*, KernelId, const Grid&, std::span<const Argument>);
dvt_status launch(dvt_device*, const dvt_call*, const sycl::kernel&, const Grid&, std::span<const Argument>);

template <class... T>
dvt_status launch(dvt_device* d, const dvt_call* c, KernelId kernel, const Grid& grid, const T&... arguments) {
  const Argument list[] = {Argument(arguments)...};
  return launch(d, c, kernel, grid, std::span<const Argument>(list));
}

// The end of a call: without a stream it waits until the work is done, and reports what went wrong. With one it may
// wait, on the CPU device, for older calls.
dvt_status finish(dvt_device*, const dvt_call*);

// Does the call become part of a graph?
bool is_captured(dvt_device*, const dvt_call*);

// The address at which a kernel of this call reports invalid data; the kernel gets it and c->correlation_id as
// arguments. nullptr if there is no memory for it.
Fault* fault_slot(dvt_device*, const dvt_call*);

// The answer to a query: not every GPU has float64.
dvt_status query_type(dvt_device*, DLDataType, dvt_answer*);
// Gives the row a query if not every device has this type.
void require_type(dvt::Row&, DLDataType);

inline constexpr bool short_rows_share_blocks = false;  // each row of a kernel by rows takes a group
}  // namespace gpu
