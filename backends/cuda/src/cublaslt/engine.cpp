#include "cublaslt/engine.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "cublaslt/library.hpp"
#include "dovetail/backend.hpp"
#include "driver/driver.hpp"

namespace gpu::cublaslt {
namespace {
void expect(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cuBLASLt: ") + call + ": " + functions().cublasLtGetStatusString(status));
}
#define LT_CALL(name, ...) expect(functions().name(__VA_ARGS__), #name)

cudaDataType_t type_of(DLDataType t) {
  switch (t.code) {
    case DVT_INT: return t.bits == 8 ? CUDA_R_8I : CUDA_R_32I;
    case DVT_COMPLEX: return t.bits == 128 ? CUDA_C_64F : CUDA_C_32F;
    case DVT_BFLOAT: return CUDA_R_16BF;
    case DVT_F8_E4M3FN: return CUDA_R_8F_E4M3;
    case DVT_F8_E5M2: return CUDA_R_8F_E5M2;
    default: return t.bits == 64 ? CUDA_R_64F : t.bits == 32 ? CUDA_R_32F : CUDA_R_16F;
  }
}

bool is_double(const Product& p) { return p.c_type.bits == (p.c_type.code == DVT_COMPLEX ? 128 : 64); }
bool is_integer(const Product& p) { return p.c_type.code == DVT_INT; }
// In which sums are kept.
cublasComputeType_t compute_type(const Product& p) {
  if (is_integer(p)) return CUBLAS_COMPUTE_32I;
  return is_double(p) ? CUBLAS_COMPUTE_64F : p.allows_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}
// In which alpha and beta are given.
cudaDataType_t factor_type(const Product& p) {
  return p.c_type.code == DVT_COMPLEX || is_double(p) || is_integer(p) ? type_of(p.c_type) : CUDA_R_32F;
}

cublasLtEpilogue_t epilogue_of(const Product& p) {
  if (p.activation == Activation::gelu_tanh)
    return p.has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  return p.has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

class Layout {
 public:
  // cuBLASLt's matrices are column-major: `stride` is the distance between columns.
  Layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t stride, int64_t batch, int64_t step) {
    LT_CALL(cublasLtMatrixLayoutInit_internal, &opaque_, sizeof opaque_, type, uint64_t(rows), uint64_t(columns),
            stride);
    const auto count = int32_t(batch);
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count), set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step);
  }
  operator cublasLtMatrixLayout_t() { return &opaque_; }

 private:
  template <class T>
  void set(cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
    LT_CALL(cublasLtMatrixLayoutSetAttribute, &opaque_, attribute, &value, sizeof value);
  }
  cublasLtMatrixLayoutOpaque_t opaque_;
};

// Its matrices are column-major, so it computes the transposed product: c^T = b^T a^T.
class Description {
 public:
  explicit Description(const Product& p)
      : left(of(p, p.b, p.b_type, p.n, p.k)),
        right(of(p, p.a, p.a_type, p.k, p.m)),
        out(type_of(p.c_type), p.n, p.m, p.n, p.batch, p.c_step) {
    LT_CALL(cublasLtMatmulDescInit_internal, &operation_, sizeof operation_, compute_type(p), factor_type(p));
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.b.columns ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.a.columns ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
    if (p.has_bias && !dvt::same(p.bias_type, p.c_type))
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(p.bias_type));
    if (p.scales != Scales::of_rows) return;
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
  }
  void set_bias(const void* bias) { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }
  void set_scales(const void* of_a, const void* of_b) {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, of_b), set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, of_a);
  }
  cublasLtMatmulDesc_t operation() { return &operation_; }

 private:
  // Rows and columns of the transposed matrix, which lies column by column if our rows are lines.
  static Layout of(const Product& p, const Matrix& m, DLDataType type, int64_t rows, int64_t columns) {
    return m.columns ? Layout(type_of(type), columns, rows, m.line, p.batch, m.step)
                     : Layout(type_of(type), rows, columns, m.line, p.batch, m.step);
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    LT_CALL(cublasLtMatmulDescSetAttribute, &operation_, attribute, &value, sizeof value);
  }

  cublasLtMatmulDescOpaque_t operation_;

 public:
  Layout left, right, out;
};

class Preference {
 public:
  Preference(uint64_t most_workspace, int64_t alignment) {
    LT_CALL(cublasLtMatmulPreferenceInit_internal, &opaque_, sizeof opaque_);
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace);
    // Partial sums stay in the compute type and are not rounded to 16 bits.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    for (const auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(which, uint32_t(alignment));
  }
  operator cublasLtMatmulPreference_t() { return &opaque_; }

 private:
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    LT_CALL(cublasLtMatmulPreferenceSetAttribute, &opaque_, attribute, &value, sizeof value);
  }
  cublasLtMatmulPreferenceOpaque_t opaque_;
};
}  // namespace

// The workspace sizes that NVIDIA recommends for cuBLAS.
Engine::Engine(int capability) : most_workspace_(uint64_t{capability >= 90 ? 32u : 8u} << 20) {}

bool is_available() {
  static const bool available = is_emulated() ? works_with_emulator() : is_usable(missing());
  return available;
}

const char* unavailable() {
  if (is_available()) return nullptr;
  return is_emulated() ? "cuBLASLt does not run on the emulated driver"
                       : "cuBLASLt is missing or cannot be used: pip install -U 'dovetail-cuda[cu13]'";
}

void* Engine::handle() {
  const std::lock_guard guard(mutex_);
  if (!handle_) {
    cublasLtHandle_t made = nullptr;
    LT_CALL(cublasLtCreate, &made);
    handle_ = made;
  }
  return handle_;
}

Engine::Algorithm Engine::algorithm(const Product& p, uint64_t most_workspace) {
  return algorithms_.get({p, most_workspace}, [&] {
    Description d(p);
    // The choice may depend on these addresses; an address with the alignment of the bias and the scales replaces
    // theirs.
    const auto somewhere = reinterpret_cast<const void*>(uintptr_t{1} << bias_align_log2);
    if (p.has_bias) d.set_bias(somewhere);
    if (p.scales != Scales::none) d.set_scales(somewhere, somewhere);
    Preference preference(most_workspace, p.alignment);
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    const cublasStatus_t status =
        functions().cublasLtMatmulAlgoGetHeuristic(static_cast<cublasLtHandle_t>(handle()), d.operation(), d.left,
                                                   d.right, d.out, d.out, preference, 1, &best, &found);
    // Scales that it has not for these types, on this GPU, are an invalid value.
    const bool lacks_scales = status == CUBLAS_STATUS_INVALID_VALUE && p.scales != Scales::none;
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && !lacks_scales) expect(status, "cublasLtMatmulAlgoGetHeuristic");
    Algorithm a = {};
    static_assert(sizeof a.opaque == sizeof best.algo);
    a.found = status == CUBLAS_STATUS_SUCCESS && found && best.state == CUBLAS_STATUS_SUCCESS;
    if (a.found) std::memcpy(a.opaque, &best.algo, sizeof a.opaque), a.workspace = best.workspaceSize;
    return a;
  });
}

std::optional<uint64_t> Engine::workspace(const Product& p) {
  const Algorithm best = algorithm(p, most_workspace_);
  return best.found ? std::optional(best.workspace) : std::nullopt;
}

bool Engine::run(const Product& p, const Addresses& at, void* workspace, uint64_t workspace_bytes, void* stream) {
  // What it finds for less workspace may be slower even where the best one wants no more: TF32's by a half.
  Algorithm best = algorithm(p, most_workspace_);
  if (!best.found || best.workspace > workspace_bytes) best = algorithm(p, workspace_bytes);
  if (!best.found) return false;
  Description d(p);
  if (p.has_bias) d.set_bias(at.bias);
  if (p.scales != Scales::none) d.set_scales(at.a_scale, at.b_scale);
  static constexpr double one[2] = {1, 0}, zero[2] = {0, 0};
  static constexpr float one_f[2] = {1, 0}, zero_f[2] = {0, 0};
  static constexpr int32_t one_i = 1, zero_i = 0;
  using Factors = std::pair<const void*, const void*>;
  const auto [alpha, beta] = is_integer(p)  ? Factors(&one_i, &zero_i)
                             : is_double(p) ? Factors(one, zero)
                                            : Factors(one_f, zero_f);
  cublasLtMatmulAlgo_t algorithm;
  std::memcpy(&algorithm, best.opaque, sizeof algorithm);
  LT_CALL(cublasLtMatmul, static_cast<cublasLtHandle_t>(handle()), d.operation(), alpha, at.b, d.left, at.a,
          d.right, beta, at.c, d.out, at.c, d.out, &algorithm, workspace, workspace_bytes,
          static_cast<cudaStream_t>(stream));
  return true;
}
}  // namespace gpu::cublaslt
