// The two functions that the runtime calls: whether the library may be used here, and which rows it has.
#include "dovetail/backend.hpp"

// Each file of kernels/ adds its rows to the table.
void add_hardswish(dvt::KernelTable&);
void add_squareplus(dvt::KernelTable&);

#ifndef PACK_VERSION
#define PACK_VERSION "development"
#endif

extern "C" int32_t dvt_probe_v1(char*, size_t) { return 1; }

extern "C" dvt_status dvt_kernels_v1(const dvt_host* host, const dvt_backend* backend,
                                     const dvt_kernel_pack** out) {
  if (const dvt_status s = dvt::accept(host)) return s;
  // These kernels compute on the host and are done when they return. For a device with streams, a kernel has to be
  // put on the call's stream: backend->streams->native(call->stream) is what the device's own library calls it.
  if (DVT_HAS(backend, dvt_backend, streams))
    return DVT_FAIL(DVT_UNSUPPORTED,
                    "%s has streams, and these kernels run on the host: they have to be put on the call's stream",
                    backend->name);
  static dvt::KernelTable table = [] {
    dvt::KernelTable made;
    add_hardswish(made);
    add_squareplus(made);
    return made;
  }();
  static const dvt_kernel_pack pack{sizeof pack,  DVT_ABI_MAJOR, DVT_ABI_MINOR, DVT_ABI_DRAFT, "acme_fast",
                                    PACK_VERSION, nullptr,       table.data(),  table.size()};
  return *out = &pack, DVT_OK;
}
