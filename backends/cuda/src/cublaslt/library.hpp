// cuBLASLt's functions.
#pragma once
#include <cublasLt.h>

#include <string>

#include "driver/libraries.hpp"

namespace gpu::cublaslt {
// Those that end in _internal are behind inline functions of its header, without the suffix.
// clang-format off
#define GPU_CUBLASLT_FUNCTIONS(X) \
  X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtGetStatusString) X(cublasLtMatmul) \
  X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulDescInit_internal) X(cublasLtMatmulDescSetAttribute) \
  X(cublasLtMatmulPreferenceInit_internal) X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatrixLayoutInit_internal) X(cublasLtMatrixLayoutSetAttribute)
// clang-format on

struct Functions {
  GPU_CUBLASLT_FUNCTIONS(GPU_LIBRARY_MEMBER)
};

// Why it cannot be used, and what helps; empty where it can. Opens it when first asked.
const std::string& missing();
const Functions& functions();  // where nothing is missing
bool works_with_emulator();
}  // namespace gpu::cublaslt
