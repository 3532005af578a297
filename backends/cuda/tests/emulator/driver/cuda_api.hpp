// CUDA's own declarations: this library's definitions are checked against them, and exported.
#pragma once
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
