// DOVETAIL_CPU_AUTOTUNE=1: a product of a kind that was not seen before is computed by every engine that can, and
// the fastest one serves that kind from then on. A file remembers it, for this processor and these versions.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace dovetail::cpu {
enum class Engine : uint32_t { usual, own, openblas, onednn };

// wish: the variable's value, or nullptr; false if it is neither 0 nor 1. identity: a line that names the processor
// and all that times depend on.
bool start_autotune(const char* wish, const std::string& identity);
bool autotunes();
// Runs the product by the fastest engine and returns whether that worked. kind: a word that names dtype, sizes,
// strides and threads. run(engine): false if that engine cannot. May be called by several threads; one measures at
// a time.
bool run_fastest(const std::string& kind, std::span<const Engine> engines, const std::function<bool(Engine)>& run);
}  // namespace dovetail::cpu
