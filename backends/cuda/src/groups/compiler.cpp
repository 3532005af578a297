// Groups of a program's nodes as one kernel each: the group "dovetail.compiler" of abi.h.
#include "groups/compiler.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/errors.hpp"
#include "dovetail/codegen_source.hpp"
#include "groups/kernels.hpp"
#include "groups/nvrtc.hpp"
#include "launch.hpp"
#include "verified.hpp"

namespace codegen = dvt::codegen;

struct dvt_exe {
  dvt_device* device;
  codegen::Source source;
  std::mutex mutex;
  std::vector<std::pair<codegen::Form, std::shared_ptr<const gpu::GroupKernel>>> kernels;  // of the forms so far
};

namespace gpu {
namespace {
codegen::Dialect dialect() {
  codegen::Dialect d;
  d.head = "#include \"groups/device/functions.cuh\"\n";
  d.kernel = "extern \"C\" __global__ void __launch_bounds__(256)";
  static_assert(block_size == 256);
  d.shared = "__shared__", d.function = "static __device__", d.int64 = "long";
  d.thread = "threadIdx.x", d.block = "blockIdx.x", d.blocks = "gridDim.x", d.barrier = "__syncthreads();";
  d.threads = block_size;
  return d;
}

// Why no group can run; nullptr if groups can.
const char* refusal(const dvt_device* d) {
  if (!is_verified("groups")) return "no group of this release has run on a GPU: DOVETAIL_CUDA_UNVERIFIED=1 tries them";
  const char* const missing = nvrtc::missing(d->capability);
  return *missing ? missing : nullptr;
}

codegen::Launch plan(const dvt_exe* e, const dvt_exe_call& c) {
  constexpr uint32_t blocks_at_a_time = 2048 / block_size;  // of a multiprocessor
  return e->source.plan(c, uint32_t(e->device->multiprocessors) * blocks_at_a_time, block_size);
}

// Made where there is none yet. Throws as GroupKernel.
CUkernel kernel_of(dvt_exe* e, const codegen::Form& form) {
  const std::lock_guard guard(e->mutex);
  for (const auto& [known, kernel] : e->kernels)
    if (known == form) return kernel->handle();
  auto made = find_group_kernel(*e->device, e->source.text(dialect(), form, group_kernel_name));
  return e->kernels.emplace_back(form, std::move(made)).second->handle();
}

dvt_status refuse(dvt_answer* answer, const char* reason) {
  DVT_PUT(answer, dvt_answer, reason, reason);
  return DVT_UNSUPPORTED;
}

// A call of the sizes that the program's hints give, of row-major operands.
class HintedCall {
 public:
  explicit HintedCall(const dvt_program& p) {
    for (uint32_t s = 0; s < p.n_symbols; ++s) symbols_.push_back(std::max<int64_t>(p.symbols[s].hint, 1));
    const uint32_t n = p.n_inputs + p.n_outputs;
    shapes_.resize(n), strides_.resize(n), tensors_.resize(n);
    for (uint32_t i = 0; i < n; ++i) add(i, p.values[i < p.n_inputs ? p.inputs[i] : p.outputs[i - p.n_inputs]]);
    for (const DLTensor& t : tensors_) operands_.push_back(&t);
    call_.struct_size = sizeof call_;
    call_.n_in = p.n_inputs, call_.n_out = p.n_outputs;
    call_.in = operands_.data(), call_.out = operands_.data() + p.n_inputs;
  }
  HintedCall(const HintedCall&) = delete;

  dvt_exe_call get() const { return {sizeof(dvt_exe_call), uint32_t(symbols_.size()), 0, 0, symbols_.data(), nullptr, &call_}; }

 private:
  void add(uint32_t i, const DLTensor& t) {
    auto& shape = shapes_[i];
    auto& strides = strides_[i];
    shape.assign(t.shape, t.shape + t.ndim);
    for (int64_t& size : shape)
      if (size < 0) size = symbols_[size_t(-1 - size)];
    strides.assign(shape.size(), 1);
    for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
    tensors_[i] = t;
    tensors_[i].data = nullptr, tensors_[i].shape = shape.data(), tensors_[i].strides = strides.data();
  }

  std::vector<int64_t> symbols_;
  std::vector<std::vector<int64_t>> shapes_, strides_;
  std::vector<DLTensor> tensors_;
  std::vector<const DLTensor*> operands_;
  dvt_call call_{};
};

// ---- functions of dvt_compiler ----------------------------------------------------------------------------------

dvt_status claim(dvt_device* d, const dvt_program* p, dvt_claim* out) {
  const char* const reason = refusal(d);
  codegen::claim(
      *p, [&](const dvt_program& p, const dvt_node& node) { return reason ? reason : codegen::unknown(p, node); }, out);
  return DVT_OK;
}

// The kernel for the sizes that are known: what does not compile runs node by node.
dvt_status compile(dvt_device* d, const dvt_program* p, const char*, dvt_exe** out) {
  return guarded(d, [&]() -> dvt_status {
    if (const char* reason = refusal(d)) return DVT_FAIL(DVT_UNSUPPORTED, "%s", reason);
    auto exe = std::make_unique<dvt_exe>();
    exe->device = d;
    if (const char* reason = exe->source.lower(*p)) return DVT_FAIL(DVT_UNSUPPORTED, "%s", reason);
    const HintedCall call(*p);
    const codegen::Launch launch = plan(exe.get(), call.get());
    if (!launch.refusal) kernel_of(exe.get(), launch.form);
    *out = exe.release();
    return DVT_OK;
  });
}

dvt_status query(dvt_exe* e, const dvt_exe_call* c, dvt_answer* answer) {
  return guarded(e->device, [&]() -> dvt_status {
    const codegen::Launch launch = plan(e, *c);
    if (launch.refusal) return refuse(answer, launch.refusal);
    try {
      kernel_of(e, launch.form);
    } catch (const nvrtc::Refused& error) {
      dvt::host->log(dvt::host, 2, error.what());
      return refuse(answer, "NVRTC refuses the group's text: a warning has its words");
    }
    DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
    DVT_PUT(answer, dvt_answer, workspace, launch.workspace);
    return DVT_OK;
  });
}

dvt_status run(dvt_exe* e, const dvt_exe_call* c) {
  return guarded(e->device, [&] {
    codegen::Launch launch = plan(e, *c);
    const CUkernel kernel = kernel_of(e, launch.form);
    std::vector<void*> arguments;
    for (void*& pointer : launch.pointers) arguments.push_back(&pointer);
    arguments.push_back(launch.arguments.data());
    GPU_CALL(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), launch.blocks, 1, 1, block_size, 1, 1, 0,
                            stream_of(e->device, c->call->stream).handle, arguments.data(), nullptr));
    return finish(e->device, c->call);
  });
}

void destroy(dvt_exe* e) {
  dvt_device* const d = e->device;
  if (guarded(d, [&] { return delete e, DVT_OK; }) == DVT_DEVICE_LOST) delete e;
}
}  // namespace

const dvt_compiler compiler = {sizeof compiler, DVT_C_CAPTURE_SAFE, claim,   compile, query,  run,
                               destroy,         nullptr,            nullptr, nullptr, nullptr};
}  // namespace gpu
