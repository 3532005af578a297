#include "device/capture.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/errors.hpp"
#include "gpu/functions.hpp"
#include "groups/compiler.hpp"
#include "launch.hpp"

namespace gpu {
Capture::Capture(dvt_stream& origin)
    : faults(std::make_shared<Faults>(origin.device.context, origin.device.device)),
      graph_(origin.device.context, origin.device.device),
      streams_{&origin} {
  graph_.begin_recording(origin.queue);
}

void Capture::end() {
  graph_.end_recording();
  for (dvt_stream* s : std::exchange(streams_, {})) s->capture.reset();
}

dvt_status refuse_in_capture(const dvt_stream& s, const char* what) {
  if (!s.capture) return DVT_OK;
  return report_uncapturable(what);
}

namespace {
bool can_capture(const sycl::device& d) {
  return d.has(sycl::aspect::ext_oneapi_graph) || d.has(sycl::aspect::ext_oneapi_limited_graph);
}

dvt_status begin(dvt_stream* s) {
  return guarded(&s->device, [&]() -> dvt_status {
    if (!can_capture(s->device.device)) return DVT_UNSUPPORTED;
    if (dvt_status status = refuse_in_capture(*s, "the begin of another capture")) return status;
    s->capture = std::make_shared<Capture>(*s);
    return DVT_OK;
  });
}

dvt_status end(dvt_stream* s, dvt_graph** out) {
  return guarded(&s->device, [&]() -> dvt_status {
    const std::shared_ptr<Capture> capture = s->capture;
    if (!capture || !capture->began_on(*s)) return report_no_capture();
    capture->end();
    if (out) *out = new dvt_graph{s->device, capture->finalize(), capture->faults};
    return DVT_OK;
  });
}

// Reports the faults of the graph's kernels as faults of the stream, as if it had launched them.
dvt_status take_faults(dvt_graph* g, const dvt_call* c, Fault* found) {
  static const KernelId move_fault = find_kernel("move_fault");
  Fault* const own = fault_slot(&g->device, c);
  if (!own) return DVT_OOM;
  return launch(&g->device, c, move_fault, {1, {1}, {1}}, found, own);
}

dvt_status replay(dvt_graph* g, dvt_stream* s) {
  return enqueue(&g->device, s, [&](dvt_stream& stream) -> dvt_status {
    if (dvt_status status = refuse_in_capture(stream, "a replay")) return status;
    dvt_call call{};
    call.struct_size = sizeof call, call.stream = s;
    const std::lock_guard guard(g->mutex);
    g->newest = stream.queue.ext_oneapi_graph(g->graph);
    if (Fault* const found = g->faults->used()) {
      if (dvt_status status = take_faults(g, &call, found)) return status;
      g->newest = stream.queue.ext_oneapi_submit_barrier();
    }
    return finish(&g->device, &call);
  });
}

// Queued replays still complete.
void destroy(dvt_graph* g) {
  try {
    if (!g->newest) return delete g;
    g->device.deferred.after({*g->newest}, [g] { delete g; });
    g->device.deferred.sweep();
  } catch (...) {
    (void)report_exception(&g->device);
  }
}

constexpr dvt_capture functions = {
    .struct_size = sizeof functions, .flags = 0, .begin = begin, .end = end, .replay = replay, .destroy = destroy};
}  // namespace

const void* extension(const char* name, uint32_t version) {
  if (!std::strcmp(name, "dovetail.compiler") && version == DVT_X_COMPILER) return &compiler;
  if (std::strcmp(name, "dovetail.capture") || version != DVT_X_CAPTURE) return nullptr;
  return std::ranges::any_of(devices(), can_capture) ? &functions : nullptr;
}
}  // namespace gpu
