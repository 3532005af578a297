// The rows of the kernel table that all backends of this kind have. A backend adds them and those of its own, which
// the files of its src/ops define.
#pragma once
#include "gpu/creation_rows.hpp"
#include "gpu/elementwise_rows.hpp"
#include "gpu/indexing_rows.hpp"
#include "gpu/reduction_rows.hpp"
#include "gpu/window_rows.hpp"

namespace gpu {
struct FamilyRows {
  const char* family;  // the file of src/kernels
  void (*add)(dvt::KernelTable&);
};
inline constexpr FamilyRows shared_rows[] = {
    {"any", add_any},
    {"argmax", add_argmax},
    {"astype", add_astype},
    {"cumulative_sum", add_scans},
    {"elementwise_activation", add_activation},
    {"elementwise_arithmetic", add_arithmetic},
    {"elementwise_bitwise", add_bitwise},
    {"elementwise_compare", add_compare},
    {"elementwise_division", add_division},
    {"elementwise_exponential", add_exponential},
    {"elementwise_hyperbolic", add_hyperbolic},
    {"elementwise_logical", add_logical},
    {"elementwise_power", add_power},
    {"elementwise_rounding", add_rounding},
    {"elementwise_sign", add_sign},
    {"elementwise_trigonometry", add_trigonometry},
    {"full", add_full},
    {"iota", add_iota},
    {"max", add_max},
    {"max_pool2d", add_pooling},
    {"random_bits", add_random_bits},
    {"scatter", add_scatter},
    {"sum", add_sum},
    {"take", add_take},
    {"take_along_axis", add_take_along_axis},
    {"where", add_where},
};
}  // namespace gpu
