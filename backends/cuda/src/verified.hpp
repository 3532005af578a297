// Which kernels have run on a GPU and passed the conformance suite there. The rest is left out of the kernel table
// unless DOVETAIL_CUDA_UNVERIFIED=1.
#pragma once
#include <algorithm>
#include <iterator>
#include <string_view>

#include "settings.hpp"

namespace gpu {
// Families as rows name them (gpu/rows.hpp, the files of src/ops), and "groups" for those of compiled functions: on
// an H200, by the suite at L2 and compute-sanitizer.
inline constexpr std::string_view verified_families[] = {
    "any",
    "argmax",
    "astype",
    "batch_norm",
    "conv2d",
    "copy",
    "cumulative_sum",
    "elementwise_activation",
    "elementwise_arithmetic",
    "elementwise_bitwise",
    "elementwise_compare",
    "elementwise_division",
    "elementwise_exponential",
    "elementwise_hyperbolic",
    "elementwise_logical",
    "elementwise_power",
    "elementwise_rounding",
    "elementwise_sign",
    "elementwise_trigonometry",
    "full",
    "groups",
    "iota",
    "layer_norm",
    "linear_with_activation",
    "matmul",
    "max",
    "max_pool2d",
    "quantize",
    "random_bits",
    "rotary_embedding",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_grad",
    "scaled_linear",
    "scatter",
    "softmax",
    "sort",
    "sum",
    "take",
    "take_along_axis",
    "where",
};

inline bool is_verified(std::string_view family) {
  return is_set("DOVETAIL_CUDA_UNVERIFIED") ||
         std::ranges::find(verified_families, family) != std::end(verified_families);
}
}  // namespace gpu
