// cuBLASLt's functions.
#pragma once
#include <cublasLt.h>

#include <string>

#include "driver/libraries.hpp"

namespace gpu::cublaslt {
// The functions that end in _internal are called by inline functions of cuBLASLt's header, which lack the suffix.
// clang-format off
#define GPU_CUBLASLT_FUNCTIONS(X) \
  X(cublasLtCreate) X(cublasLtGetStatusString) X(cublasLtMatmul) \
  X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulDescInit_internal) X(cublasLtMatmulDescSetAttribute) \
  X(cublasLtMatmulPreferenceInit_internal) X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatrixLayoutInit_internal) X(cublasLtMatrixLayoutSetAttribute)
// clang-format on

struct Functions {
  GPU_LIBRARY_TABLE(GPU_CUBLASLT_FUNCTIONS)
  static Library open() { return Library(cublaslt_library); }
};

// Why it cannot be used, and the cure; empty if it can. The first call opens it.
inline const std::string& missing() { return OpenedLibrary<Functions>::get().missing; }
inline const Functions& functions() { return OpenedLibrary<Functions>::get().functions; }  // if nothing is missing
inline bool works_with_emulator() { return OpenedLibrary<Functions>::get().works_with_emulator; }
}  // namespace gpu::cublaslt
