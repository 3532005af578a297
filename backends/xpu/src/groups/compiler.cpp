// Groups of a program's nodes as one kernel each: the group "dovetail.compiler" of abi.h.
#include "groups/compiler.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "device/errors.hpp"
#include "gpu/group.hpp"
#include "groups/opencl.hpp"
#include "launch.hpp"

namespace codegen = dvt::codegen;

struct dvt_exe {
  dvt_device* device;
  uint32_t items = 0;        // of a work group
  uint32_t work_groups = 0;  // at most
  gpu::Group<sycl::kernel> group;
};

namespace gpu {
namespace {
constexpr char kernel_name[] = "group";

// A CPU's driver makes vectors of a group's items, and at each barrier a loop over them: rows, which have barriers,
// are for as many items as a vector has.
uint32_t items_for(const codegen::Source& source) {
  const auto& steps = source.loops().steps;
  const bool has_rows = std::ranges::any_of(steps, [](const codegen::Step& s) { return s.reduces; });
  return has_rows ? 16 : group_size;
}

codegen::Dialect dialect(const dvt_exe* e) {
  codegen::Dialect d;
  d.kernel = "__kernel void";
  d.global = "__global", d.shared = "__local", d.function = "static";
  d.thread = "(unsigned int)get_local_id(0)", d.block = "(unsigned int)get_group_id(0)";
  d.blocks = "(unsigned int)get_num_groups(0)", d.barrier = "barrier(CLK_LOCAL_MEM_FENCE);";
  d.threads = e->items;
  return d;
}

// What a launch takes, with a refusal also where that is more than the limits of src/launch.hpp.
codegen::Launch plan(const dvt_exe* e, const dvt_exe_call& c) {
  codegen::Launch launch = e->group.source.plan(c, e->work_groups, e->items);
  const size_t bytes = launch.pointers.size() * sizeof(void*) + launch.arguments.size() * sizeof(uint64_t);
  if (bytes > most_argument_bytes) launch.refusal = "more operands and axes than a kernel has arguments for";
  return launch;
}

std::shared_ptr<const sycl::kernel> find(const dvt_exe* e, const std::string& text) {
  return opencl::find_kernel(text, kernel_name, e->device->context, e->device->device);
}
// Made where there is none yet; nullptr, after a warning, where the text does not compile.
const sycl::kernel* kernel_of(dvt_exe* e, const codegen::Form& form) {
  const auto make = [&](const std::string& text) -> std::shared_ptr<const sycl::kernel> {
    try {
      return find(e, text);
    } catch (const opencl::Refused& error) {
      dvt::host->log(dvt::host, 2, error.what());
      return nullptr;
    }
  };
  return e->group.kernel(form, dialect(e), kernel_name, make);
}

// ---- functions of dvt_compiler ----------------------------------------------------------------------------------

dvt_status claim(dvt_device* d, const dvt_program* p, dvt_claim* out) {
  return guarded(d, [&] { return claim_groups(*p, opencl::missing(d->device), out); });
}

// The kernel for the sizes that are known: what does not compile runs node by node.
dvt_status compile(dvt_device* d, const dvt_program* p, const char*, dvt_exe** out) {
  return guarded(d, [&]() -> dvt_status {
    if (const char* reason = opencl::missing(d->device)) return DVT_FAIL(DVT_UNSUPPORTED, "%s", reason);
    auto exe = std::make_unique<dvt_exe>();
    exe->device = d;
    if (const char* reason = exe->group.source.lower(*p)) return DVT_FAIL(DVT_UNSUPPORTED, "%s", reason);
    constexpr uint32_t items_at_a_time = 2048;  // of a compute unit
    exe->items = items_for(exe->group.source);
    exe->work_groups = d->device.get_info<sycl::info::device::max_compute_units>() * items_at_a_time / exe->items;
    const HintedCall call(*p);
    const codegen::Launch launch = plan(exe.get(), call.get());
    if (!launch.refusal)
      exe->group.kernel(launch.form, dialect(exe.get()), kernel_name,
                        [&](const std::string& text) { return find(exe.get(), text); });
    *out = exe.release();
    return DVT_OK;
  });
}

dvt_status query(dvt_exe* e, const dvt_exe_call* c, dvt_answer* answer) {
  return guarded(e->device, [&]() -> dvt_status {
    const codegen::Launch launch = plan(e, *c);
    if (launch.refusal) return refuse_group(answer, launch.refusal);
    if (!kernel_of(e, launch.form))
      return refuse_group(answer, "OpenCL's compiler refuses the group's text, as a warning says");
    return accept_group(answer, launch);
  });
}

dvt_status run(dvt_exe* e, const dvt_exe_call* c) {
  return guarded(e->device, [&]() -> dvt_status {
    const codegen::Launch how = plan(e, *c);
    const sycl::kernel* const kernel = kernel_of(e, how.form);
    if (!kernel) return DVT_FAIL(DVT_INTERNAL, "a group runs with sizes that its query has refused");
    std::vector<Argument> arguments;
    for (void* const& pointer : how.pointers) arguments.emplace_back(pointer);
    arguments.emplace_back(how.arguments.data(), how.arguments.size() * sizeof(uint64_t));
    return launch(e->device, c->call, *kernel, {1, {how.blocks * size_t(e->items)}, {e->items}}, arguments);
  });
}

void destroy(dvt_exe* e) { delete e; }
}  // namespace

const dvt_compiler compiler = [] {
  dvt_compiler c{};
  c.struct_size = sizeof c;
  c.flags = DVT_C_CAPTURE_SAFE;
  c.claim = claim, c.compile = compile, c.query = query, c.run = run, c.destroy = destroy;
  return c;
}();
}  // namespace gpu
