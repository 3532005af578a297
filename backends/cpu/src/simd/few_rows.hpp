// Products of few rows: each element of b is used a few times, so that the time is that of reading b.
#pragma once
#include "simd/gemm.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm {
// False: not such a product, or b is neither contiguous along k nor along n.
template <class In, class Out>
bool few_rows(const Product<In, Out>&);
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm
