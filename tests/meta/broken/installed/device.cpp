// The good device as an already built plugin, at the path DOVETAIL_GOOD: it puts a device that is
// asynchronous in its own way behind the faults of ../device.cpp. Its kernels are unchanged; for "dvt.add"
// the launch can be broken.
#include <dlfcn.h>

#include <cstdlib>

#include "../broken.hpp"

extern "C" int32_t dvt_probe_v1(char*, size_t) { return 1; }

extern "C" dvt_status good_backend_v1(const dvt_host* host, const dvt_backend** out) {
  const char* path = std::getenv("DOVETAIL_GOOD");
  void* plugin = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  void* entry = plugin ? dlsym(plugin, "dvt_backend_v1") : nullptr;
  if (dvt_status s = dvt::accept(host)) return s;
  if (!entry) return DVT_FAIL(DVT_INVALID, "DOVETAIL_GOOD is %s, expected a plugin", path ? path : "not set");
  return reinterpret_cast<decltype(&dvt_backend_v1)>(entry)(host, out);
}

namespace {
dvt_status (*right_add)(dvt_device*, const dvt_call*);
void kernel_of_add(const dvt_call*) {}  // its name only
dvt_status run_add(dvt_device* d, const dvt_call* c) { return launch(d, c, kernel_of_add); }
}  // namespace

dvt_status good_launch(dvt_device* d, const dvt_call* c, Work) { return right_add(d, c); }

// Called once the good device's rows are known.
void complete(Device& d) {
  for (dvt_kernel& row : d.rows)
    if (!std::strcmp(row.op, "dvt.add")) {
      if (right_add && right_add != row.run) std::abort();  // the rows of this plugin would each need a name
      right_add = row.run, row.run = run_add;
    }
}

Faults elementwise_faults() { return {}; }
Faults other_kernel_faults() { return {}; }
