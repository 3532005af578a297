// Pinned host memory.
#pragma once
#include "runtime.hpp"

namespace dovetail_torch {
c10::Allocator* pinned_allocator();
bool is_pinned(const void* p);
}  // namespace dovetail_torch
