#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "dtypes.hpp"
#include "kernels/common/layout.hpp"
#include "launch.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

// Rounded once, to nearest even.
uint16_t bf16_bits(double x) {
  const auto f = float(x);
  uint32_t b = std::bit_cast<uint32_t>(f);
  if (f != f) return uint16_t(b >> 16 | 0x40);
  if (std::isfinite(f) && double(f) != x) b = (b - (std::fabs(double(f)) > std::fabs(x))) | 1;  // to odd
  return uint16_t((b + 0x7FFF + (b >> 16 & 1)) >> 16);
}

template <class T>
void put(Scalar& to, T value) {
  std::memcpy(&to, &value, sizeof value);
}

Scalar fill_value(const dvt::Attrs& attrs, DLDataType type) {
  Scalar value{};
  switch (type_index(type)) {
    case type_index(dvt::boolean): put(value, uint8_t(attrs.scalar<double>(1) != 0)); break;
    case type_index(dvt::f16): put(value, _Float16(attrs.scalar<double>(1))); break;
    case type_index(dvt::bf16): put(value, bf16_bits(attrs.scalar<double>(1))); break;
    case type_index(dvt::f32): put(value, attrs.scalar<float>(1)); break;
    case type_index(dvt::f64): put(value, attrs.scalar<double>(1)); break;
    default: put(value, type.code == DVT_UINT ? attrs.scalar<uint64_t>(1) : uint64_t(attrs.scalar<int64_t>(1)));
  }
  return value;
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  const DLTensor* out = c->out[0];
  const uint64_t n = uint64_t(dvt::size(out));
  return launch(d, c, kernels[size_index(out->dtype)], grid_of(n), dvt::data<void>(out), n,
                fill_value(dvt::Attrs(c), out->dtype));
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : sizes)
    kernels[type_index(type)] = find_kernel(std::string("full_") + type_name(type));
  for (const DLDataType type : boolean + integers + floats)
    table.add(dvt::Row("dvt.full", run).out(type).deterministic());
}
}  // namespace gpu
