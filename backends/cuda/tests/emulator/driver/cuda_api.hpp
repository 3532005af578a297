// CUDA's own declarations: what this library defines is checked against them, and exported.
#pragma once
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
