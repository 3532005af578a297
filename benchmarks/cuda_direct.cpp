// cuBLASLt and cuDNN called directly, with a plan made for one problem: the peers of dovetail-cuda.
// cuda_direct.py builds it and calls it; both work on the same memory.
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn_frontend.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace fe = cudnn_frontend;

namespace {
constexpr size_t gemm_workspace = size_t{64} << 20;

void expect(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}
void expect(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(cublasLtGetStatusString(status));
}
void expect(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(cudnnGetErrorString(status));
}
void expect(const fe::error_t& result) {
  if (result.is_bad()) throw std::runtime_error(result.err_msg);
}

// An object of CUDA's that `destroy` frees.
template <class T, auto destroy>
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    if (value) destroy(value);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  T value = nullptr;
};
using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Memory = Owned<void*, cudaFree>;

// A problem with its plan, on a stream of its own.
class Work {
 public:
  Work() { expect(cudaStreamCreateWithFlags(&stream.value, cudaStreamNonBlocking)); }
  virtual ~Work() = default;
  virtual void enqueue() = 0;

  // Microseconds of one of these calls in a row, after other work if the device is to be busy when they
  // begin.
  double time(int calls, bool busy) {
    Event first, last;
    expect(cudaEventCreate(&first.value));
    expect(cudaEventCreate(&last.value));
    if (busy) enqueue();
    expect(cudaEventRecord(first.value, stream.value));
    for (int i = 0; i < calls; ++i) enqueue();
    expect(cudaEventRecord(last.value, stream.value));
    expect(cudaEventSynchronize(last.value));
    float milliseconds = 0;
    expect(cudaEventElapsedTime(&milliseconds, first.value, last.value));
    return 1e3 * double(milliseconds) / calls;
  }

 protected:
  Stream stream;
};

// c = a b for square row-major matrices: cuBLASLt, which is column-major, computes the transposed c = b a.
class Gemm : public Work {
 public:
  Gemm(const std::string& type, int64_t n, const void* a, const void* b, void* c) : a_(a), b_(b), c_(c) {
    const cudaDataType_t stored = type == "bf16" ? CUDA_R_16BF : type == "f16" ? CUDA_R_16F : CUDA_R_32F;
    const cublasComputeType_t computed = type == "tf32" ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    expect(cublasLtCreate(&library_.value));
    expect(cublasLtMatmulDescCreate(&product_.value, computed, CUDA_R_32F));
    expect(cublasLtMatrixLayoutCreate(&matrix_.value, stored, uint64_t(n), uint64_t(n), n));
    expect(cudaMalloc(&workspace_.value, gemm_workspace));
    Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
    expect(cublasLtMatmulPreferenceCreate(&preference.value));
    expect(cublasLtMatmulPreferenceSetAttribute(preference.value, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                &gemm_workspace, sizeof gemm_workspace));
    int found = 0;
    expect(cublasLtMatmulAlgoGetHeuristic(library_.value, product_.value, matrix_.value, matrix_.value,
                                          matrix_.value, matrix_.value, preference.value, 1, &chosen_, &found));
    if (!found) throw std::runtime_error("cuBLASLt has no algorithm for it");
  }
  void enqueue() override {
    const float one = 1, zero = 0;
    expect(cublasLtMatmul(library_.value, product_.value, &one, b_, matrix_.value, a_, matrix_.value, &zero, c_,
                          matrix_.value, c_, matrix_.value, &chosen_.algo, workspace_.value, gemm_workspace,
                          stream.value));
  }

 private:
  const void *a_, *b_;
  void* c_;
  Owned<cublasLtHandle_t, cublasLtDestroy> library_;
  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> product_;
  Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> matrix_;
  Memory workspace_;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

// softmax(q k^T / sqrt(size)) v in bfloat16: (batch, heads, tokens, size), row-major.
class Attention : public Work {
 public:
  Attention(int64_t batch, int64_t heads, int64_t tokens, int64_t size, bool causal, void* q, void* k, void* v,
            void* o)
      : pointers_{q, k, v, o} {
    expect(cudnnCreate(&library_.value));
    expect(cudnnSetStream(library_.value, stream.value));
    graph_.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    const std::vector<int64_t> shape{batch, heads, tokens, size},
        strides{heads * tokens * size, tokens * size, size, 1};
    const auto operand = [&](int64_t uid) {
      return graph_.tensor(fe::graph::Tensor_attributes().set_uid(uid).set_dim(shape).set_stride(strides));
    };
    auto how = fe::graph::SDPA_attributes().set_generate_stats(false).set_attn_scale(1 / std::sqrt(float(size)));
    if (causal) how.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
    const auto out = graph_.sdpa(operand(1), operand(2), operand(3), how)[0];
    out->set_output(true).set_uid(4).set_dim(shape).set_stride(strides);
    expect(graph_.validate());
    expect(graph_.build_operation_graph(library_.value));
    expect(graph_.create_execution_plans({fe::HeurMode_t::A}));
    expect(graph_.check_support());
    expect(graph_.build_plans());
    int64_t bytes = 0;
    expect(graph_.get_workspace_size(bytes));
    if (bytes) expect(cudaMalloc(&workspace_.value, size_t(bytes)));
  }
  void enqueue() override { expect(graph_.execute(library_.value, pointers_, 4, workspace_.value)); }

 private:
  void* pointers_[4];  // in the order of their numbers
  Owned<cudnnHandle_t, cudnnDestroy> library_;
  fe::graph::Graph graph_;
  Memory workspace_;
};

std::string failure;
template <class Make>
Work* made(Make make) {
  try {
    return make();
  } catch (const std::exception& error) {
    failure = error.what();
    return nullptr;
  }
}
}  // namespace

extern "C" {
const char* direct_failure() { return failure.c_str(); }

// nullptr on failure
Work* direct_gemm(const char* type, int64_t n, const void* a, const void* b, void* c) {
  return made([&] { return new Gemm(type, n, a, b, c); });
}
Work* direct_attention(int64_t batch, int64_t heads, int64_t tokens, int64_t size, int causal, void* q, void* k,
                       void* v, void* o) {
  return made([&] { return new Attention(batch, heads, tokens, size, causal != 0, q, k, v, o); });
}

// Negative on failure
double direct_time(Work* work, int calls, int busy) try {
  return work->time(calls, busy != 0);
} catch (const std::exception& error) {
  failure = error.what();
  return -1;
}
void direct_close(Work* work) { delete work; }
}
