// libcublasLt.so.13 for the emulated driver: products as its manual defines them, computed one number at a
// time in float64. It refuses inconsistent arguments, and addresses that are not multiples of four bytes. It
// logs each product as a line of the file FAKE_CUBLASLT_LOG. An algorithm that was asked for with no more workspace
// than it wants is slow, as some of NVIDIA's are.
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
#include <type_traits>

#include "dovetail/floats.hpp"

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
  cudaDataType_t given_bias_type;
  cublasLtMatmulMatrixScale_t left_mode, right_mode;
  const float *left_scale, *right_scale;
};
struct Preference {
  uint64_t workspace;
  uint32_t alignment;
};
constexpr uint64_t wanted_workspace = 4096;
constexpr auto unset = cudaDataType_t(-1);

template <class T, class Opaque>
T& as(Opaque* opaque) {
  static_assert(sizeof(T) <= sizeof *opaque);
  return *reinterpret_cast<T*>(opaque);
}

struct bfloat : dvt::bfloat16 {
  explicit operator double() const { return float(*this); }
  explicit bfloat(double value) : dvt::bfloat16(float(value)) {}
};

bool is_float8(cudaDataType_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

template <int stored>
double of_float8(const void* data, int64_t i) {
  return float(static_cast<const dvt::float8<stored>*>(data)[i]);
}

// A real number of a type; complex ones are read by their own.
double number(cudaDataType_t type, const void* data, int64_t i) {
  switch (type) {
    case CUDA_R_8F_E4M3: return of_float8<3>(data, i);
    case CUDA_R_8F_E5M2: return of_float8<2>(data, i);
    case CUDA_R_8I: return static_cast<const int8_t*>(data)[i];
    case CUDA_R_16F: return double(static_cast<const _Float16*>(data)[i]);
    case CUDA_R_16BF: return double(static_cast<const bfloat*>(data)[i]);
    case CUDA_R_32F: return static_cast<const float*>(data)[i];
    default: return static_cast<const double*>(data)[i];
  }
}

// The activations, by the manual's names: GELU is the form with a tanh.
bool has(cublasLtEpilogue_t epilogue, cublasLtEpilogue_t part) { return (epilogue & part) == part; }
double activated(double x, cublasLtEpilogue_t epilogue) {
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
  cudaDataType_t bias_type() const {
    return operation.given_bias_type == unset ? out.type : operation.given_bias_type;
  }
  bool is_scaled() const { return is_float8(left.type) && is_float8(right.type); }
  bool is_integer() const {
    return left.type == CUDA_R_8I && right.type == CUDA_R_8I && out.type == CUDA_R_32I &&
           operation.compute == CUBLAS_COMPUTE_32I;
  }
  // Integers need "TN" and multiples of 4. fp8 needs "TN", multiples of 16, at most one operand of e5m2, and
  // certain types of a bias.
  bool is_served() const {
    const bool is_tn = operation.left == CUBLAS_OP_T && operation.right == CUBLAS_OP_N;
    if (is_integer()) return is_tn && left.rows % 4 == 0 && out.rows % 4 == 0;
    if (!is_scaled()) return true;
    const auto of_bias = out.type == CUDA_R_16F ? CUDA_R_16F : CUDA_R_16BF;
    const bool two_ranges = left.type == CUDA_R_8F_E5M2 && right.type == CUDA_R_8F_E5M2;
    return is_tn && left.rows % 16 == 0 && out.rows % 16 == 0 && !two_ranges &&
           operation.left_mode == operation.right_mode && (!operation.bias || bias_type() == of_bias);
  }
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
      if (l->ld < l->rows || l->batch != out.batch || !(l->type == out.type || is_scaled() || is_integer()))
        return false;
    if (is_scaled() != (operation.left_scale && operation.right_scale)) return false;
    return rows(left, operation.left) == out.rows && columns(right, operation.right) == out.columns &&
           columns(left, operation.left) == rows(right, operation.right);
  }

  template <class T, class Wide>
  void compute() const {
    const auto read = [](cudaDataType_t type, const void* data, int64_t i) {
      if constexpr (std::is_same_v<Wide, double>) return number(type, data, i);
      else return (void)type, Wide(static_cast<const T*>(data)[i]);
    };
    const auto at = [&](const void* data, const Layout& l, cublasOperation_t op, int64_t batch, int64_t i,
                        int64_t j) {
      if (op == CUBLAS_OP_T) std::swap(i, j);
      return read(l.type, data, batch * l.step + j * l.ld + i);
    };
    const auto factor = [](const float* scale, cublasLtMatmulMatrixScale_t mode, int64_t i) {
      return scale ? double(scale[mode == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F ? i : 0]) : 1.0;
    };
    for (int64_t batch = 0; batch < out.batch; ++batch)
      for (int64_t j = 0; j < out.columns; ++j)
        for (int64_t i = 0; i < out.rows; ++i) {
          Wide sum = 0;
          for (int64_t q = 0; q < k(); ++q)
            sum += at(a, left, operation.left, batch, i, q) * at(b, right, operation.right, batch, q, j);
          sum *= factor(operation.left_scale, operation.left_mode, i);
          sum *= factor(operation.right_scale, operation.right_mode, j);
          if (operation.bias) sum += read(bias_type(), operation.bias, i);
          static_cast<T*>(c)[batch * out.step + j * out.ld + i] = T(activated(sum, operation.epilogue));
        }
  }
  void run() const {
    switch (out.type) {
      case CUDA_R_32I: return compute<int32_t, double>();
      case CUDA_R_16F: return compute<_Float16, double>();
      case CUDA_R_16BF: return compute<bfloat, double>();
      case CUDA_R_32F: return compute<float, double>();
      case CUDA_R_64F: return compute<double, double>();
      case CUDA_C_32F: return compute<std::complex<float>, std::complex<double>>();
      default: return compute<std::complex<double>, std::complex<double>>();
    }
  }
  const char* scales() const {
    if (is_integer()) return " integers";
    if (!is_scaled()) return "";
    return operation.left_mode == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F ? " scaled rows" : " scaled";
  }
  void log(bool slow) const {
    const char* const path = std::getenv("FAKE_CUBLASLT_LOG");
    std::FILE* const file = path ? std::fopen(path, "a") : nullptr;
    if (!file) return;
    const auto letter = [](cublasOperation_t op) { return op == CUBLAS_OP_N ? 'n' : 't'; };
    std::fprintf(file, "%lld %lld %lld batch=%d %c%c%s%s%s%s%s\n", (long long)out.columns, (long long)out.rows,
                 (long long)k(), out.batch, letter(operation.right), letter(operation.left),
                 operation.bias ? " bias" : "", has(operation.epilogue, CUBLASLT_EPILOGUE_GELU) ? " gelu" : "",
                 operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? " tf32" : "", scales(), slow ? " slow" : "");
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
  new (to) Operation{compute, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, {}, unset, {}, {}, {}, {}};
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
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: std::memcpy(&o.given_bias_type, value, size); break;
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER: std::memcpy(&o.left_scale, value, size); break;
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER: std::memcpy(&o.right_scale, value, size); break;
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE: std::memcpy(&o.left_mode, value, size); break;
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE: std::memcpy(&o.right_mode, value, size); break;
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
  if (!p.fits() || (p.is_scaled() && std::getenv("FAKE_CUBLASLT_WITHOUT_FLOAT8")))
    return CUBLAS_STATUS_INVALID_VALUE;
  *found = p.has_epilogue() && p.is_served() && wants.alignment >= 4 && wants.workspace >= wanted_workspace;
  if (!*found) return CUBLAS_STATUS_NOT_SUPPORTED;
  result->algo.data[0] = wants.alignment, result->algo.data[1] = wants.workspace <= wanted_workspace;
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
  p.log(algorithm->data[1]);
  return enqueue(stream, p) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
}
