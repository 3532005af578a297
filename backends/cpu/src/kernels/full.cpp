// full: one value everywhere. By byte size; the value is converted once.
#include "kernel.hpp"
#include "simd/float8.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
struct Pattern {
  alignas(16) unsigned char bytes[16];
  template <class T>
  void set(T value) {
    std::memcpy(bytes, &value, sizeof value);
  }
};

// Integers wrap: a negative number in an unsigned type, a large one in a small type.
uint64_t as_integer(const dvt_call* c) {
  const dvt::Attrs a(c);
  if (c->attr[1].kind != DVT_A_F64 && c->attr[1].kind != DVT_A_F64S) return a.scalar<uint64_t>(1);
  const double x = a.scalar<double>(1);
  if (!(x > -9223372036854775808.0)) return uint64_t{1} << 63;
  return x < 9223372036854775808.0 ? uint64_t(int64_t(x)) : x < 18446744073709551616.0 ? uint64_t(x) : ~uint64_t{0};
}

dvt_status pattern(const dvt_call* c, Pattern& p) {
  const dvt::Attrs a(c);
  const DLDataType t = c->out[0]->dtype;
  switch (t.code) {
    case DVT_BOOL: p.set(uint8_t(a.scalar<double>(1) != 0)); return DVT_OK;
    case DVT_INT:
    case DVT_UINT: p.set(as_integer(c)); return DVT_OK;  // little endian: the low bytes come first
    case DVT_F8_E4M3FN: p.set(narrow_float8<3>(to_odd(a.scalar<double>(1)))); return DVT_OK;
    case DVT_F8_E5M2: p.set(narrow_float8<2>(to_odd(a.scalar<double>(1)))); return DVT_OK;
    case DVT_BFLOAT: p.set(narrow<bf16>(to_odd(a.scalar<double>(1)))); return DVT_OK;
    case DVT_FLOAT:
      if (t.bits == 16) p.set(narrow<f16>(to_odd(a.scalar<double>(1))));
      else if (t.bits == 32) p.set(a.scalar<float>(1));
      else p.set(a.scalar<double>(1));
      return DVT_OK;
    case DVT_COMPLEX: {
      const double z[2] = {a.scalar<double>(1), a.imag(1)};
      const float narrow_z[2] = {float(z[0]), float(z[1])};
      if (t.bits == 64) std::memcpy(p.bytes, narrow_z, 8);
      else std::memcpy(p.bytes, z, 16);
      return DVT_OK;
    }
    default:
      return DVT_FAIL(DVT_INVALID,
                      "[full] unknown data type: expected bool, integer, float or complex, got code %d", t.code);
  }
}

template <class T>
dvt_status full(dvt_device*, const dvt_call* c) {
  Pattern p;
  if (dvt_status s = pattern(c, p)) return s;
  T value;
  std::memcpy(&value, p.bytes, sizeof value);
  T* out = dvt::data<T>(c->out[0]);
  dvt::parallel_for(uint64_t(dvt::size(c->out[0])), 65536 / sizeof(T), [=](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i) out[i] = value;
  });
  return DVT_OK;
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  const auto row = [&](unsigned bits, dvt::Row::Run run) {
    table.add(dvt::Row("dvt.full", run).out(dvt::any(bits)).deterministic().kernel());
  };
  row(8, full<uint8_t>);
  row(16, full<uint16_t>);
  row(32, full<uint32_t>);
  row(64, full<uint64_t>);
  row(128, full<unsigned __int128>);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
