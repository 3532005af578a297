// Whether a call, or a program, can run on its device alone.
#include "dispatch/decompose.hpp"
#include "dispatch/engines.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/replay.hpp"
#include "dispatch/values.hpp"

namespace dovetail {
namespace {
std::string missing_for(const Op& op, std::span<const Tensor* const> in, const Attrs& given, Device& device) {
  Attrs attrs = given;
  Tensor out[kMaxOutputs];
  Invocation inv(op, &device, in.data(), int(in.size()), attrs);
  for (uint32_t i = 0; i < op.spec.n_out; ++i) inv.out[i] = &out[i];
  try {
    inv.infer();
    return missing_kernel(inv);
  } catch (const Error& e) {
    if (e.kind != ErrorKind::not_implemented) throw;
    return e.what();
  }
}

std::string missing_cast(const Tensor& t, DType to, Device& device) {
  static const Op& astype = op("astype");
  if (t.dtype == to || !t.device) return {};
  Attrs attrs;
  attrs.at[0] = {DVT_A_DTYPE, 1, {.dt = info(to).dl}};
  const Tensor* in[] = {&t};
  return missing_for(astype, in, attrs, device);
}
}  // namespace

std::string missing_kernel(const Executable& e) {
  std::string missing;
  const Values values(e);
  for (size_t k = 0; k < e.nodes.size() && missing.empty(); ++k) {
    const Program::Node& node = e.binding.program->nodes[k];
    if (!e.plans->plans[k]) {
      for (const auto& part : e.programs.at(k))
        if (missing.empty()) missing = missing_kernel(*part);
      continue;
    }
    if (e.nodes[k].nested) {
      missing = missing_kernel(*e.nodes[k].nested);
      continue;
    }
    std::vector<const Tensor*> in;
    for (const int i : node.in) in.push_back(i < 0 ? nullptr : &values[i]);
    missing = missing_for(*node.op, in, *e.binding.nodes[k].attrs, e.device());
  }
  return missing;
}

std::string missing_kernel(const Invocation& inv) {
  const Plan::Mode mode = inv.plan->mode;
  uint64_t given = 0;
  for (int i = 0; i < inv.n_in; ++i) given |= uint64_t{inv.has(i)} << i;
  if (mode == Plan::host_fallback)
    return "[" + inv.op.spec.name + "] no kernel for " + dtype_list(*inv.plan, given, inv.n_in);
  if (mode == Plan::decomposition) try {
      return missing_kernel(*decomposition_of(inv));
    } catch (const Error& e) {
      if (e.kind != ErrorKind::not_implemented) throw;
      return e.what();
    }
  if (mode != Plan::via_f32) return {};
  if (inv.op.spec.flags & op_converts) return missing_cast(*inv.in[0], DType::f32, *inv.device);
  std::vector<Tensor> operands(size_t(inv.n_in));
  std::vector<const Tensor*> in(size_t(inv.n_in), nullptr);
  for (size_t i = 0; i < in.size(); ++i) {
    const Tensor* t = inv.in[i];
    if (!t) continue;
    operands[i].set_type(t->dtype, inv.device);
    operands[i].set_shape(t->shape());
    for (const DType want : casts_of(inv, int(i))) {
      const std::string missing = t->device ? missing_cast(operands[i], want, *inv.device) : "";
      if (!missing.empty()) return missing;
      operands[i].set_type(want, inv.device);
    }
    in[i] = &operands[i];
  }
  Attrs attrs = inv.attrs;
  if (inv.op.dtype_attr >= 0 && attrs.given(inv.op.dtype_attr))
    attrs.at[inv.op.dtype_attr].v.dt = info(working(attrs.dtype(inv.op.dtype_attr), inv.op)).dl;
  return missing_for(inv.op, in, attrs, *inv.device);
}

// ---- how each node runs -----------------------------------------------------------------------------------------
namespace {
NodeWay way_of(const Op& op, std::span<const Tensor* const> in, const Attrs& given, Device& device) {
  Attrs attrs = given;
  Tensor out[kMaxOutputs];
  Invocation inv(op, &device, in.data(), int(in.size()), attrs);
  for (uint32_t i = 0; i < op.spec.n_out; ++i) inv.out[i] = &out[i];
  NodeWay way;
  try {
    inv.infer();
    way.missing = missing_kernel(inv);
    if (!way.missing.empty()) return way;
    switch (inv.plan->mode) {
      case Plan::kernel:  // its rows are not asked about these sizes: that may copy operands, which have no memory
        way.engine = engine_of(inv.plan->candidates.front());
        way.how = NodeWay::kernel;
        break;
      case Plan::via_f32: way.how = NodeWay::kernel; break;
      case Plan::decomposition: way.how = NodeWay::decomposition; break;
      default: way.how = NodeWay::core; break;
    }
  } catch (const Error& e) {
    if (e.kind != ErrorKind::not_implemented) throw;
    way.missing = e.what();
  }
  return way;
}

NodeWay way_of_parts(const std::vector<std::shared_ptr<Binding>>& parts, Device& device) {
  NodeWay way{NodeWay::control, {}, {}};
  for (const auto& part : parts)
    for (const NodeWay& inner : node_ways(*part, device))
      if (inner.how == NodeWay::missing_kernel && way.missing.empty()) way = inner;
  return way;
}
}  // namespace

std::vector<NodeWay> node_ways(const Binding& b, Device& device) {
  std::vector<Tensor> values(b.values.size());
  std::vector<Tensor*> at;
  for (Tensor& t : values) at.push_back(&t);
  PackedTypes(b.values).set(at.data(), device);
  for (size_t i = 0; i < b.program->constants.size(); ++i) {  // numbers stay in host memory
    Tensor& t = values[size_t(b.program->constants[i].value)];
    t = host_scalar(b.constant(i));
  }
  std::vector<NodeWay> ways;
  for (size_t k = 0; k < b.nodes.size(); ++k) {
    const Program::Node& node = b.program->nodes[k];
    if (node.op->spec.flags & op_control) {
      ways.push_back(way_of_parts(b.programs.at(k), device));
      continue;
    }
    std::vector<const Tensor*> in;
    for (const int v : node.in) in.push_back(v < 0 ? nullptr : &values[size_t(v)]);
    ways.push_back(way_of(*node.op, in, *b.nodes[k].attrs, device));
  }
  return ways;
}
}  // namespace dovetail
