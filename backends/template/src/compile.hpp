// The compiler. In compile.cpp.
#pragma once
#include "dovetail/backend.hpp"

// A dvt_backend.extension that knows "dovetail.compiler" alone.
const void* compiler_extension(const char* name, uint32_t version);
