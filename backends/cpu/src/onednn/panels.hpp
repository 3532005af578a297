// How weights are cut into panels.
#pragma once
#include <algorithm>

#include "onednn.hpp"

namespace dovetail::cpu::onednn {
inline uint64_t aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Cuts n columns of `depth` weights each into panels of about this many weights: enough work for a call even
// with few rows or pixels, and few enough to stay in a core's cache. measure(columns, bytes, layout) sets the
// size and layout of a panel of that many columns; false if there is no such layout.
template <class Measure>
bool cut_into_panels(int64_t n, int64_t depth, Panels& out, Measure measure) {
  constexpr int64_t weights = 1 << 17, step = 64, most = 1024;
  const int64_t wanted = std::clamp(weights / std::max<int64_t>(depth, 1), step, most);
  const int64_t count = (n + wanted - 1) / wanted;
  out.columns = std::min(((n + count - 1) / count + step - 1) / step * step, n);
  out.count = (n + out.columns - 1) / out.columns;
  out.bytes = out.layout = 0;
  uint64_t last = 0;
  if (!measure(out.columns, out.bytes, out.layout)) return false;
  if (!measure(n - (out.count - 1) * out.columns, last, out.layout)) return false;
  out.size = uint64_t(out.count - 1) * out.bytes + last;
  return true;
}
}  // namespace dovetail::cpu::onednn
