// Ops that only make metadata, and set_slice, which is one of them plus a copy.
#include "dispatch/execute.hpp"

namespace dovetail {
namespace {
// Makes output 0 a view of x. Returns false where x has to be made compact first: a host scalar has no buffer to
// share, as its value lies in the Tensor itself.
bool share(Invocation& inv, const Tensor& x) {
  if (!x.device && x.view.data) return false;
  int64_t offset = 0;
  Inference call = inference_of(inv);
  const Inference::Operand in[] = {&x};
  call.in = in;
  if (!inv.op.view(call, offset)) return false;
  char* data = static_cast<char*>(x.view.data);
  Tensor& out = *inv.out[0];
  if (offset && out.numel) data += int64_t(info(x.dtype).bytes()) * offset;
  // Larger elements than x's, of which the first begins within one.
  if (out.dtype != x.dtype && reinterpret_cast<uintptr_t>(data) % info(out.dtype).bytes()) return false;
  out.update_dense();
  if (x.storage) retain(x.storage), out.own(x.storage);
  out.view.data = data;
  return true;
}
}  // namespace

void run_view(Invocation& inv) {
  const Tensor& x = inv.operand(0);
  if (share(inv, x)) return;
  // Their copy is made through views, of compact arrays.
  if (x.device && is_packed(x.dtype)) inv.fail(ErrorKind::type, storage_refusal(x.dtype));
  if (!share(inv, x.device ? compact(x) : materialise(x, *inv.device)))
    inv.fail(ErrorKind::runtime, "no view of a compact array");
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
    data += start[i] * x.stride(i) * int64_t(info(dtype).bytes());
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
