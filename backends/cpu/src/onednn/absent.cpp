// Built instead of the rest of this folder if there is no oneDNN.
#include "onednn.hpp"

namespace dovetail::cpu::onednn {
bool fast_bfloat16() { return false; }
bool fast_float16() { return false; }
bool fast_int8() { return false; }
bool multiply(const Product&, const void*, const void*, const float*, void*) { return false; }
bool panels(const Weights&, Panels&) { return false; }
bool pack_panel(const Weights&, const void*, void*) { return false; }
bool multiply_panel(const Product&, const void*, const void*, const float*, void*) { return false; }
bool panels(const Convolution&, Panels&) { return false; }
bool pack_panel(const Convolution&, const void*, void*) { return false; }
bool convolve(const Convolution&, const Panels&, const void*, const void*, const void*, void*) { return false; }
}  // namespace dovetail::cpu::onednn
