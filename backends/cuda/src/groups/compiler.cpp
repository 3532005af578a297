// Groups of a program's nodes as one kernel each: the group "dovetail.compiler" of abi.h.
#include "groups/compiler.hpp"

#include <memory>
#include <vector>

#include "device/errors.hpp"
#include "gpu/group.hpp"
#include "groups/kernels.hpp"
#include "groups/nvrtc.hpp"
#include "launch.hpp"
#include "verified.hpp"

namespace codegen = dvt::codegen;

struct dvt_exe {
  dvt_device* device;
  gpu::Group<gpu::GroupKernel> group;
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
  if (!is_verified("groups"))
    return "groups of this release have not run on a GPU: DOVETAIL_CUDA_UNVERIFIED=1 tries them";
  const char* const missing = nvrtc::missing(d->capability);
  return *missing ? missing : nullptr;
}

codegen::Launch plan(const dvt_exe* e, const dvt_exe_call& c) {
  constexpr uint32_t blocks_at_a_time = 2048 / block_size;  // of a multiprocessor
  return e->group.source.plan(c, uint32_t(e->device->multiprocessors) * blocks_at_a_time, block_size);
}

// Made where there is none yet. Throws as GroupKernel.
const GroupKernel* make_kernel(dvt_exe* e, const codegen::Form& form) {
  return e->group.kernel(form, dialect(), group_kernel_name,
                         [&](const std::string& text) { return find_group_kernel(text, e->device->capability); });
}
// nullptr, after a warning, where there is none: the text does not compile, or the driver does not load it.
const GroupKernel* kernel_of(dvt_exe* e, const codegen::Form& form) {
  const auto make = [&](const std::string& text) -> std::shared_ptr<const GroupKernel> {
    try {
      return find_group_kernel(text, e->device->capability);
    } catch (const Error& error) {
      if (status_of(error.result()) == DVT_DEVICE_LOST) throw;
      dvt::host->log(dvt::host, 2, error.what());
    } catch (const nvrtc::Refused& error) {
      dvt::host->log(dvt::host, 2, error.what());
    }
    return nullptr;
  };
  return e->group.kernel(form, dialect(), group_kernel_name, make);
}

// ---- functions of dvt_compiler ----------------------------------------------------------------------------------

dvt_status claim(dvt_device* d, const dvt_program* p, dvt_claim* out) { return claim_groups(*p, refusal(d), out); }

// The kernel for the sizes that are known: what does not compile runs node by node.
dvt_status compile(dvt_device* d, const dvt_program* p, const char*, dvt_exe** out) {
  return guarded(d, [&]() -> dvt_status {
    if (const char* reason = refusal(d)) return DVT_FAIL(DVT_UNSUPPORTED, "%s", reason);
    auto exe = std::make_unique<dvt_exe>();
    exe->device = d;
    if (const char* reason = exe->group.source.lower(*p)) return DVT_FAIL(DVT_UNSUPPORTED, "%s", reason);
    const HintedCall call(*p);
    const codegen::Launch launch = plan(exe.get(), call.get());
    if (!launch.refusal) make_kernel(exe.get(), launch.form);
    *out = exe.release();
    return DVT_OK;
  });
}

dvt_status query(dvt_exe* e, const dvt_exe_call* c, dvt_answer* answer) {
  return guarded(e->device, [&]() -> dvt_status {
    const codegen::Launch launch = plan(e, *c);
    if (launch.refusal) return refuse_group(answer, launch.refusal);
    if (!kernel_of(e, launch.form)) return refuse_group(answer, "its kernel could not be made, as a warning says");
    return accept_group(answer, launch);
  });
}

dvt_status run(dvt_exe* e, const dvt_exe_call* c) {
  return guarded(e->device, [&]() -> dvt_status {
    codegen::Launch launch = plan(e, *c);
    const GroupKernel* const kernel = kernel_of(e, launch.form);
    if (!kernel) return DVT_FAIL(DVT_INTERNAL, "a group runs with sizes that its query has refused");
    std::vector<void*> arguments;
    for (void*& pointer : launch.pointers) arguments.push_back(&pointer);
    arguments.push_back(launch.arguments.data());
    GPU_CALL(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel->handle()), launch.blocks, 1, 1, block_size, 1, 1,
                            0, stream_of(e->device, c->call->stream).handle, arguments.data(), nullptr));
    return finish(e->device, c->call);
  });
}

void destroy(dvt_exe* e) {
  dvt_device* const d = e->device;
  if (guarded(d, [&] { return delete e, DVT_OK; }) == DVT_DEVICE_LOST) delete e;
}
}  // namespace

const dvt_compiler compiler = [] {
  dvt_compiler c{};
  c.struct_size = sizeof c;
  c.flags = DVT_C_CAPTURE_SAFE;
  c.claim = claim, c.compile = compile, c.query = query, c.run = run, c.destroy = destroy;
  return c;
}();
}  // namespace gpu
