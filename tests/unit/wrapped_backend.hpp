// For backends of tests that change another one: opens the library that DOVETAIL_WRAPPED names.
#pragma once
#include <dlfcn.h>

#include <cstdlib>

#include "dovetail/backend.hpp"

inline dvt_status open_wrapped(const dvt_host* host, const dvt_backend** out) {
  if (dvt_status s = dvt::accept(host)) return s;
  const char* const path = std::getenv("DOVETAIL_WRAPPED");
  void* const library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) return DVT_FAIL(DVT_INVALID, "DOVETAIL_WRAPPED: expected a library");
  const auto open = reinterpret_cast<decltype(&dvt_backend_v1)>(dlsym(library, "dvt_backend_v1"));
  return open(host, out);
}
