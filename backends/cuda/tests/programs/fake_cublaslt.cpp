// libcublasLt.so.13 for the emulated driver: products as its manual defines them, one number after the other in
// float64. It refuses what contradicts itself, and addresses that are not multiples of four bytes. Each product is
// a line of the file that FAKE_CUBLASLT_LOG names.
#include <cublasLt.h>
#include <cuda.h>
#include <dlfcn.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <numbers>

namespace {
struct Layout {
  cudaDataType type;
  int32_t batch;
  int64_t rows, columns, ld, step;
};
struct Operation {
  cublasComputeType_t compute;
  cublasOperation_t left, right;
  cublasLtEpilogue_t epilogue;
  const void* bias;
};
struct Preference {
  uint64_t workspace;
  uint32_t alignment;
};
constexpr uint64_t wanted_workspace = 4096;

template <class T, class Opaque>
T& as(Opaque* opaque) {
  static_assert(sizeof(T) <= sizeof *opaque);
  return *reinterpret_cast<T*>(opaque);
}

struct bfloat {
  uint16_t bits;
  explicit operator double() const {
    const uint32_t wide = uint32_t(bits) << 16;
    float x;
    std::memcpy(&x, &wide, sizeof x);
    return x;
  }
  explicit bfloat(double value) {
    const auto x = float(value);
    uint32_t wide;
    std::memcpy(&wide, &x, sizeof x);
    bits = uint16_t((wide + 0x7FFF + (wide >> 16 & 1)) >> 16);
  }
};

// Of a number, as the manual names them: GELU is the form with a tanh.
bool has(cublasLtEpilogue_t epilogue, cublasLtEpilogue_t part) { return (epilogue & part) == part; }
double activated(double x, cublasLtEpilogue_t epilogue) {
  if (has(epilogue, CUBLASLT_EPILOGUE_RELU)) return x < 0 ? 0 : x;
  if (has(epilogue, CUBLASLT_EPILOGUE_GELU))
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  return x;
}
template <class T>
std::complex<T> activated(std::complex<T> x, cublasLtEpilogue_t) {
  return x;
}

struct Product {
  Operation operation;
  Layout left, right, out;
  const void *a, *b;
  void* c;

  int64_t k() const { return operation.left == CUBLAS_OP_N ? left.columns : left.rows; }
  bool has_epilogue() const {
    const bool is_narrow = out.type == CUDA_R_16F || out.type == CUDA_R_16BF || out.type == CUDA_R_32F;
    return operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT || is_narrow;
  }
  bool fits() const {
    const auto rows = [](const Layout& l, cublasOperation_t op) { return op == CUBLAS_OP_N ? l.rows : l.columns; };
    const auto columns = [](const Layout& l, cublasOperation_t op) {
      return op == CUBLAS_OP_N ? l.columns : l.rows;
    };
    for (const Layout* l : {&left, &right, &out})
      if (l->ld < l->rows || l->batch != out.batch || l->type != out.type) return false;
    return rows(left, operation.left) == out.rows && columns(right, operation.right) == out.columns &&
           columns(left, operation.left) == rows(right, operation.right);
  }

  template <class T, class Wide>
  void compute() const {
    const auto at = [](const void* data, const Layout& l, cublasOperation_t op, int64_t batch, int64_t i,
                       int64_t j) {
      if (op == CUBLAS_OP_T) std::swap(i, j);
      return Wide(static_cast<const T*>(data)[batch * l.step + j * l.ld + i]);
    };
    for (int64_t batch = 0; batch < out.batch; ++batch)
      for (int64_t j = 0; j < out.columns; ++j)
        for (int64_t i = 0; i < out.rows; ++i) {
          Wide sum = operation.bias ? Wide(static_cast<const T*>(operation.bias)[i]) : Wide(0);
          for (int64_t q = 0; q < k(); ++q)
            sum += at(a, left, operation.left, batch, i, q) * at(b, right, operation.right, batch, q, j);
          static_cast<T*>(c)[batch * out.step + j * out.ld + i] = T(activated(sum, operation.epilogue));
        }
  }
  void run() const {
    switch (out.type) {
      case CUDA_R_16F: return compute<_Float16, double>();
      case CUDA_R_16BF: return compute<bfloat, double>();
      case CUDA_R_32F: return compute<float, double>();
      case CUDA_R_64F: return compute<double, double>();
      case CUDA_C_32F: return compute<std::complex<float>, std::complex<double>>();
      default: return compute<std::complex<double>, std::complex<double>>();
    }
  }
  void log() const {
    const char* const path = std::getenv("FAKE_CUBLASLT_LOG");
    std::FILE* const file = path ? std::fopen(path, "a") : nullptr;
    if (!file) return;
    const auto letter = [](cublasOperation_t op) { return op == CUBLAS_OP_N ? 'n' : 't'; };
    std::fprintf(file, "%lld %lld %lld batch=%d %c%c%s%s%s%s\n", (long long)out.columns, (long long)out.rows,
                 (long long)k(), out.batch, letter(operation.right), letter(operation.left),
                 operation.bias ? " bias" : "", has(operation.epilogue, CUBLASLT_EPILOGUE_RELU) ? " relu" : "",
                 has(operation.epilogue, CUBLASLT_EPILOGUE_GELU) ? " gelu" : "",
                 operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? " tf32" : "");
    std::fclose(file);
  }
};

// In the order of the stream's work.
bool enqueue(cudaStream_t stream, const Product& product) {
  void* const driver = dlopen(std::getenv("DOVETAIL_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  const auto launch = reinterpret_cast<decltype(&cuLaunchHostFunc)>(dlsym(driver, "cuLaunchHostFunc"));
  const auto run = [](void* data) { std::unique_ptr<Product>(static_cast<Product*>(data))->run(); };
  auto copy = std::make_unique<Product>(product);
  if (launch(reinterpret_cast<CUstream>(stream), run, copy.get()) != CUDA_SUCCESS) return false;
  copy.release();
  return true;
}
}  // namespace

extern "C" {
extern const int dovetail_cuda_emulator = 1;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* made) {
  *made = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t) { return "a status of the fake library"; }

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t to, size_t, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t ld) {
  new (to) Layout{type, 1, int64_t(rows), int64_t(columns), ld, 0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t to, cublasLtMatrixLayoutAttribute_t which,
                                                const void* value, size_t size) {
  auto& l = as<Layout>(to);
  if (which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == sizeof l.batch) std::memcpy(&l.batch, value, size);
  else if (which == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == sizeof l.step)
    std::memcpy(&l.step, value, size);
  else return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t to, size_t, cublasComputeType_t compute,
                                               cudaDataType_t) {
  new (to) Operation{compute, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t which,
                                              const void* value, size_t size) {
  auto& o = as<Operation>(to);
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA: std::memcpy(&o.left, value, size); break;
    case CUBLASLT_MATMUL_DESC_TRANSB: std::memcpy(&o.right, value, size); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: std::memcpy(&o.epilogue, value, size); break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: std::memcpy(&o.bias, value, size); break;
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t to, size_t) {
  new (to) Preference{0, 256};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void* value,
                                                    size_t size) {
  auto& p = as<Preference>(to);
  if (which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) std::memcpy(&p.workspace, value, size);
  if (which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) std::memcpy(&p.alignment, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t left, cublasLtMatrixLayout_t right,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t out,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t* result, int* found) {
  const Product p{as<Operation>(operation), as<Layout>(left), as<Layout>(right), as<Layout>(out), {}, {}, {}};
  const auto& wants = as<Preference>(preference);
  if (!p.fits()) return CUBLAS_STATUS_INVALID_VALUE;
  *found = p.has_epilogue() && wants.alignment >= 4 && wants.workspace >= wanted_workspace;
  if (!*found) return CUBLAS_STATUS_NOT_SUPPORTED;
  result->algo.data[0] = wants.alignment;
  result->workspaceSize = wanted_workspace, result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void*, const void* a,
                              cublasLtMatrixLayout_t left, const void* b, cublasLtMatrixLayout_t right, const void*,
                              const void*, cublasLtMatrixLayout_t, void* c, cublasLtMatrixLayout_t out,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  const Product p{as<Operation>(operation), as<Layout>(left), as<Layout>(right), as<Layout>(out), a, b, c};
  const auto addresses = uintptr_t(a) | uintptr_t(b) | uintptr_t(c);
  if (!p.fits() || !workspace || workspace_bytes < wanted_workspace || addresses % algorithm->data[0] ||
      uintptr_t(p.operation.bias) % 16 ||
      has(p.operation.epilogue, CUBLASLT_EPILOGUE_BIAS) != bool(p.operation.bias))
    return CUBLAS_STATUS_INVALID_VALUE;
  p.log();
  return enqueue(stream, p) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
}
