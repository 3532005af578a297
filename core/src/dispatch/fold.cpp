#include "dispatch/fold.hpp"

#include <algorithm>

#include "dispatch/execute.hpp"
#include "dispatch/run_program.hpp"

namespace dovetail {
std::optional<HostArray> Folding::run(const Algebra::Call& call, const TensorType& result) const {
  if (result.bytes() > kMostBytes || !std::ranges::all_of(call.in, [&](int v) { return knows(v); }))
    return std::nullopt;
  std::vector<Tensor> held(call.in.size());
  std::vector<const Tensor*> operands;
  for (size_t i = 0; i < held.size(); ++i) {
    const int v = call.in[i];
    if (v < 0) {
      operands.push_back(nullptr);
      continue;
    }
    const auto scalar = scalars_.find(v);
    held[i] = scalar == scalars_.end() ? on_device(arrays_.at(v), device_) : host_scalar(scalar->second);
    operands.push_back(&held[i]);
  }
  try {
    Attrs attrs = call.attrs;
    Tensor out;
    dovetail::call(*call.op, &device_, operands.data(), int(operands.size()), attrs, &out);
    return elements_of(out);
  } catch (const Error&) {  // for the call of the program to raise
    return std::nullopt;
  }
}
}  // namespace dovetail
