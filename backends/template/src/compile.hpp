// The compiler. In compile.cpp.
#pragma once
#include "dovetail/backend.hpp"

// What dvt_backend.extension gives for "dovetail.compiler".
extern const dvt_compiler compiler;
