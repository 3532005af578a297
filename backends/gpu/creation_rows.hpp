// The rows of ops that read no tensor: full, iota, random_bits.
#pragma once
#include "gpu/by_type.hpp"
#include "kernels/common/layout.hpp"

namespace gpu {
inline dvt_status run_full(dvt_device* d, const dvt_call* c) {
  const DLTensor* out = c->out[0];
  const auto n = uint64_t(dvt::size(out));
  return launch(d, c, kernels_by_type<"dvt.full", KernelId>[size_index(out->dtype)], grid_of(n),
                dvt::data<void>(out), n, scalar_of(dvt::Attrs(c), 1, out->dtype));
}
inline void add_full(dvt::KernelTable& table) {
  for (const DLDataType type : sizes) kernels_for<"dvt.full", KernelId>(type) = find_kernel("full", type);
  for (const DLDataType type : boolean + integers + floats8 + floats)
    table.add(dvt::Row("dvt.full", run_full).out(type).deterministic());
}

inline dvt_status run_iota(dvt_device* d, const dvt_call* c) {
  const DLTensor* out = c->out[0];
  const auto n = uint64_t(dvt::size(out));
  return launch(d, c, kernels_for<"dvt.iota", KernelId>(out->dtype), grid_of(n), dvt::data<void>(out), n);
}
inline void add_iota(dvt::KernelTable& table) {
  for (const DLDataType type : integers + floats) {
    kernels_for<"dvt.iota", KernelId>(type) = find_kernel("iota", type);
    dvt::Row row("dvt.iota", run_iota);
    row.out(type).deterministic();
    require_type(row, type);
    table.add(row);
  }
}

inline constinit KernelId random_bits_kernel{};
inline dvt_status run_random_bits(dvt_device* d, const dvt_call* c) {
  const auto n = uint64_t(dvt::size(c->out[0]));
  return launch(d, c, random_bits_kernel, grid_of((n + 3) / 4), dvt::data<void>(c->in[0]),
                dvt::data<void>(c->out[0]), n);
}
inline void add_random_bits(dvt::KernelTable& table) {
  random_bits_kernel = find_kernel("random_bits");
  table.add(dvt::Row("dvt.random_bits", run_random_bits).in(dvt::u32).out(dvt::u32).deterministic());
}
}  // namespace gpu
