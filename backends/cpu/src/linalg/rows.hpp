// cholesky, lu_factor, qr, solve_triangular, eigh, svd by LAPACK. Without OpenBLAS they are refused, and the ops'
// decompositions run.
#pragma once
#include "table.hpp"

namespace dovetail::cpu {
void add_linalg_rows(Table& table);
}  // namespace dovetail::cpu
