#include "bindings/compiled_groups.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>

namespace dovetail::bindings {
namespace {
// A result, with its elements where the group's differ from those of its nodes.
struct Compared {
  size_t step;
  TensorType type;
  std::string where;
  std::optional<std::pair<HostArray, HostArray>> elements;
};

std::string maker_of(const Program& p, int value) {
  for (const Program::Node& node : p.nodes)
    if (value >= node.out && value < node.out + int(node.n_out)) return node.where;
  return {};
}

Compared compared(const Executable& e, const GroupResult& r) {
  Compared c{r.step, r.of_nodes, maker_of(*e.binding.program, r.value), {}};
  HostArray of_group = elements_of(r.of_group), of_nodes = elements_of(r.of_nodes);
  if (const size_t n = c.type.bytes(); n && std::memcmp(of_group.data, of_nodes.data, n))
    c.elements.emplace(std::move(of_group), std::move(of_nodes));
  return c;
}

py::tuple tuple_of(const Compared& c) {
  py::tuple shape(size_t(c.type.rank()));
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = c.type.dims[i];
  const auto bytes = [&](const HostArray& a) {
    return py::bytes(reinterpret_cast<const char*>(a.data), c.type.bytes());
  };
  py::object group = py::none(), nodes = py::none();
  if (c.elements) group = bytes(c.elements->first), nodes = bytes(c.elements->second);
  return py::make_tuple(info(c.type.dtype).name, shape, str_of(c.where), group, nodes);
}
}  // namespace

py::tuple launches_of(const Executable& e) {
  py::list groups, reasons;
  for (size_t i = 0; i < e.groups.size(); ++i)
    if (const auto& group = e.fusion->steps[i].group; group && e.groups[i].answer.level)
      groups.append(py::make_tuple(e.fusion->steps[i].nodes, group->name, str_of(group->code->describe())));
  if (e.fusion)
    for (const char* reason : e.fusion->reasons) reasons.append(reason ? py::object(py::str(reason)) : py::none());
  return py::make_tuple(count_launches(e, true), count_launches(e, false), groups, reasons);
}

py::list groups_of(RunnableProgram& program) {
  py::list all;
  for (const auto& [device, fusion] : program.fusions()) {
    size_t alone = 0;
    py::list groups;
    for (const Fusion::Step& step : fusion->steps)
      if (step.group) groups.append(py::make_tuple(step.group->name, str_of(step.group->where)));
      else alone += step.nodes.size();
    all.append(py::make_tuple(device->name, fusion->seconds, alone, groups));
  }
  return all;
}

py::list compare_groups(CompiledProgram& program, Match& match, Miss& miss) {
  std::vector<Compared> all;
  std::shared_ptr<const Fusion> fusion;
  const bool is_right = program.compare_groups(match, miss, [&](const Executable& e, const GroupResult& r) {
    fusion = e.fusion;
    all.push_back(compared(e, r));
  });
  if (!is_right) throw Error(ErrorKind::value, "[compile] the program does not hold for this call: " + miss.why);
  py::list groups;
  for (size_t i = 0; i < all.size();) {
    const size_t step = all[i].step;
    py::list results;
    for (; i < all.size() && all[i].step == step; ++i) results.append(tuple_of(all[i]));
    groups.append(py::make_tuple(fusion->steps[step].nodes, fusion->steps[step].group->name, results));
  }
  return groups;
}
}  // namespace dovetail::bindings
