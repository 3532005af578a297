// The compiler. In compile.cpp.
#pragma once
#include "dovetail/backend.hpp"

// dvt_backend.extension: the dvt_compiler.
const void* extension(const char* name, uint32_t version);
