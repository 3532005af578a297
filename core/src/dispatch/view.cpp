// Ops that only make metadata, and set_slice, which is one of them plus a copy.
#include "dispatch/execute.hpp"
#include "rules/rules.hpp"

namespace dovetail {
void run_view(Invocation& inv) {
  const rules::View view = rules::view(inv.op.spec.name);
  if (view(inv)) return;
  const Tensor& x = inv.operand(0);
  const Tensor made = x.device ? compact(x) : materialise(x, *inv.device);
  const Tensor* in[] = {&made};
  Invocation again = inv;
  again.in = in;
  if (!view(again)) inv.fail(ErrorKind::runtime, "no view of a compact array");
}

// x with a strided region replaced. x's own memory is written only where nobody else can see it.
void run_set_slice(Invocation& inv) {
  const DType dtype = inv.plan->result[0];
  Tensor x = inv.operand(0).device ? inv.operand(0) : materialise(inv.operand(0), *inv.device);
  if (x.dtype != dtype) x = cast(x, dtype, *inv.device);
  else if (!(inv.in_place && inv.replaced == inv.in[0] && inv.operand(1).storage != x.storage)) x = compact(x);
  Tensor region = x;
  char* data = static_cast<char*>(x.view.data);
  const auto start = inv.attrs.i64s(0), stop = inv.attrs.i64s(1), step = inv.attrs.i64s(2);
  for (int i = 0; i < x.rank(); ++i) {
    data += start[i] * x.stride(i) * info(dtype).bytes;
    region.size(i) = stop[i] > start[i] ? (stop[i] - start[i] + step[i] - 1) / step[i] : 0;
    region.stride(i) = x.stride(i) * step[i];
  }
  region.view.data = data;
  region.update_dense();
  Tensor updates = inv.operand(1);
  if (updates.dtype != dtype) updates = cast(updates, dtype, *inv.device);
  if (!updates.device) updates = materialise(updates, *inv.device);
  if (region.numel) copy_into(region, broadcast_view(updates, region.shape()));
  *inv.out[0] = std::move(x);
}
}  // namespace dovetail
