// The backend "meta": the simulated device, whose library DOVETAIL_WRAPPED names, with a compiler that counts its
// calls, fails where it is told to, and with DOVETAIL_BROKEN has a fault that the conformance suite must find.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "dovetail/backend.hpp"
#include "wrapped_backend.hpp"

namespace {
dvt_backend backend;
const dvt_compiler* good;
const dvt_backend* wrapped;

// ---- counts and failures ----------------------------------------------------------------------------------------

std::mutex mutex;
std::map<std::string, uint64_t>& counts = *new std::map<std::string, uint64_t>;
std::map<std::string, dvt_status>& failures = *new std::map<std::string, dvt_status>;
uint64_t fails_behind = 0;  // a count, up to which functions work
uint64_t compact = 0;       // the operands that query wants row-major

dvt_status count(const char* function) {
  const std::lock_guard lock(mutex);
  ++counts[function];
  const auto failure = failures.find(function);
  if (failure == failures.end() || counts[function] <= fails_behind) return DVT_OK;
  return DVT_FAIL(failure->second, "%s fails, as was asked for", function);
}

// ---- faults of runs ---------------------------------------------------------------------------------------------

struct Run {
  std::vector<int64_t> symbols;
  std::vector<const DLTensor*> in;
};
using Fault = void (*)(dvt_exe*, Run&);

void tail(dvt_exe*, Run& run) {
  for (int64_t& size : run.symbols) size = size < 8 ? size : size / 8 * 8;
}
void past_the_end(dvt_exe*, Run& run) {  // one row more: the first symbol is the size of an outer axis
  if (!run.symbols.empty()) run.symbols[0] += 1;
}
void stale_sizes(dvt_exe* exe, Run& run) {
  static auto& first = *new std::map<dvt_exe*, std::vector<int64_t>>;
  const std::lock_guard lock(mutex);
  const std::vector<int64_t>& known = first.try_emplace(exe, run.symbols).first->second;
  for (size_t i = 0; i < known.size(); ++i) run.symbols[i] = std::min(run.symbols[i], known[i]);
}
void dropped_operand(dvt_exe*, Run& run) {  // where one takes the other's place without an access outside of it
  for (size_t i = 1; i < run.in.size(); ++i) {
    const DLTensor *first = run.in.front(), *other = run.in[i];
    if (first->ndim == other->ndim && dvt::same(first->dtype, other->dtype) &&
        std::equal(first->shape, first->shape + first->ndim, other->shape))
      run.in[i] = first;
  }
}
void ignored_strides(dvt_exe*, Run& run) {
  for (const DLTensor* t : run.in)
    for (int32_t axis = t->ndim, step = 1; axis-- > 0; step *= int32_t(t->shape[axis]))
      if (t->strides[axis]) t->strides[axis] = step;
}
Fault fault() {
  static const std::map<std::string, Fault> all{{"tail", tail},
                                                {"past_the_end", past_the_end},
                                                {"stale_sizes", stale_sizes},
                                                {"dropped_operand", dropped_operand},
                                                {"ignored_strides", ignored_strides}};
  const char* const name = std::getenv("DOVETAIL_BROKEN");
  const auto found = name ? all.find(name) : all.end();
  return found == all.end() ? nullptr : found->second;
}
bool is_broken(const char* fault) {
  const char* const name = std::getenv("DOVETAIL_BROKEN");
  return name && !std::strcmp(name, fault);
}

// ---- the compiler -----------------------------------------------------------------------------------------------

dvt_status claim(dvt_device* d, const dvt_program* p, dvt_claim* out) {
  const dvt_status status = count("claim");
  return status ? status : good->claim(d, p, out);
}
dvt_status compile(dvt_device* d, const dvt_program* p, const char* options, dvt_exe** out) {
  const dvt_status status = count("compile");
  return status ? status : good->compile(d, p, options, out);
}
dvt_status query(dvt_exe* e, const dvt_exe_call* c, dvt_answer* answer) {
  if (const dvt_status status = count("query")) return status;
  uint64_t strided = 0;
  for (uint32_t i = 0; i < c->call->n_in; ++i)
    if (!dvt::is_dense(c->call->in[i])) strided |= uint64_t{1} << i;
  if (!(strided & compact)) {
    const dvt_status status = good->query(e, c, answer);
    if (is_broken("in_place")) DVT_PUT(answer, dvt_answer, in_place, ~uint64_t{0});
    return status;
  }
  DVT_PUT(answer, dvt_answer, need_compact, strided & compact);
  return DVT_UNSUPPORTED;
}
dvt_status run(dvt_exe* e, const dvt_exe_call* c) {
  const Fault fault_of_runs = fault();
  if (const dvt_status status = count("run")) return status;
  if (!fault_of_runs) return good->run(e, c);
  Run changed{{c->symbols, c->symbols + c->n_symbols}, {c->call->in, c->call->in + c->call->n_in}};
  fault_of_runs(e, changed);
  dvt_call call = *c->call;
  call.in = changed.in.data();
  dvt_exe_call exe_call = *c;
  exe_call.symbols = changed.symbols.data(), exe_call.call = &call;
  return good->run(e, &exe_call);
}
void destroy(dvt_exe* e) {
  count("destroy");
  good->destroy(e);
}

// ---- capture ----------------------------------------------------------------------------------------------------

const dvt_capture& good_capture() {
  return *static_cast<const dvt_capture*>(wrapped->extension("dovetail.capture", DVT_X_CAPTURE));
}
dvt_status begin(dvt_stream* s) {
  if (const dvt_status status = count("capture_begin")) return status;
  return good_capture().begin(s);
}
dvt_status end(dvt_stream* s, dvt_graph** out) {
  if (const dvt_status status = count("capture_end")) return good_capture().end(s, nullptr), status;
  return good_capture().end(s, out);
}
dvt_status replay(dvt_graph* g, dvt_stream* s) {
  if (const dvt_status status = count("replay")) return status;
  return is_broken("replays_nothing") ? DVT_OK : good_capture().replay(g, s);
}
void destroy_graph(dvt_graph* g) {
  count("destroy_graph");
  good_capture().destroy(g);
}

// What is copied to a place comes from where the first copy to it came from.
dvt_status copy_stale_addresses(dvt_device* d, const DLTensor* dst, const DLTensor* src, dvt_stream* s) {
  static auto& first = *new std::map<void*, DLTensor>;
  DLTensor from = *src;
  if (src->device.device_type == dst->device.device_type) {
    const std::lock_guard lock(mutex);
    const DLTensor& known = first.try_emplace(dst->data, *src).first->second;
    from.data = known.data, from.byte_offset = known.byte_offset;
  }
  return wrapped->copy(d, dst, &from, s);
}

dvt_compiler compiler = {
    sizeof compiler, DVT_C_CAPTURE_SAFE, claim, compile, query, run, destroy, nullptr, nullptr, nullptr, nullptr,
    nullptr};

const void* extension(const char* name, uint32_t version) {
  static const dvt_capture capture = {sizeof capture, 0, begin, end, replay, destroy_graph};
  if (!std::strcmp(name, "dovetail.capture") && version == DVT_X_CAPTURE) return &capture;
  return std::strcmp(name, "dovetail.compiler") || version != DVT_X_COMPILER ? nullptr : &compiler;
}
}  // namespace

extern "C" {
int32_t dvt_probe_v1(char*, size_t) { return 1; }

dvt_status dvt_backend_v1(const dvt_host* host, const dvt_backend** out) {
  if (dvt_status s = open_wrapped(host, &wrapped)) return s;
  backend = *wrapped;
  good = static_cast<const dvt_compiler*>(wrapped->extension("dovetail.compiler", DVT_X_COMPILER));
  if (!good) return DVT_FAIL(DVT_INVALID, "the device has no compiler");
  backend.name = "meta", backend.extension = extension;
  if (is_broken("stale_addresses")) backend.copy = copy_stale_addresses;
  *out = &backend;
  return DVT_OK;
}

// For the tests. The function returns `status` from now on; 0: it works.
DVT_EXPORT void fail_in(const char* function, int32_t status) {
  const std::lock_guard lock(mutex);
  failures.erase(function), fails_behind = 0;
  if (status) failures[function] = status;
}
DVT_EXPORT void fail_after(const char* function, uint64_t calls, int32_t status) {
  fail_in(function, status);
  const std::lock_guard lock(mutex);
  fails_behind = counts[function] + calls;
}
DVT_EXPORT uint64_t calls_of(const char* function) {
  const std::lock_guard lock(mutex);
  return counts[function];
}
DVT_EXPORT void set_capture_safe(uint32_t safe) { compiler.flags = safe ? DVT_C_CAPTURE_SAFE : 0; }
DVT_EXPORT void want_compact(uint64_t operands) { compact = operands; }
}
