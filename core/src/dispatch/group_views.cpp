#include "dispatch/group_views.hpp"

#include <algorithm>

#include "dispatch/values.hpp"

namespace dovetail {
bool is_view(const Program::Node& node) { return node.op->spec.flags & op_view; }

namespace {
class Views {
 public:
  Views(const Binding& binding, std::vector<uint32_t>& group)
      : binding_(binding),
        program_(*binding.program),
        group_(group),
        reader_(size_t(program_.n_values), kNone),
        maker_(size_t(program_.n_values), kNone) {
    for (const int v : program_.outputs) reader_[size_t(v)] = kMany;
    for (uint32_t k = 0; k < program_.nodes.size(); ++k)
      for (uint32_t i = 0; i < program_.nodes[k].n_out; ++i) maker_[size_t(program_.nodes[k].out) + i] = k;
  }

  Schedule run() {
    for (uint32_t k = uint32_t(program_.nodes.size()); k-- > 0;) {
      const Program::Node& node = program_.nodes[k];
      if (may_join(node)) group_[k] = reader_[size_t(node.out)];
      for (const int v : node.in)
        if (v >= 0) note_reader(reader_[size_t(v)], group_[k]);
    }
    Schedule made = make_schedule(program_, group_);
    while (leave(made)) made = make_schedule(program_, group_);
    return made;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX, kMany = 0;  // of readers: in no group, or in several

  static void note_reader(uint32_t& reader, uint32_t group) {
    reader = reader == kNone || reader == group ? group : kMany;
  }
  // What a group makes is not in memory while it runs.
  bool may_join(const Program::Node& node) const {
    if (!is_view(node) || node.in.size() != 1 || node.n_out != 1) return false;
    const uint32_t group = reader_[size_t(node.out)];
    if (group == kNone || group == kMany) return false;
    const auto type = [&](int v) { return binding_.values[size_t(v)].dtype; };
    if (type(node.in[0]) != type(node.out) || is_packed(type(node.out))) return false;
    const uint32_t maker = maker_[size_t(node.in[0])];
    return maker == kNone || group_[maker] != group;
  }

  // Takes views out of steps that others need them from, and of those with no two other nodes. False: none were.
  bool leave(const Schedule& s) {
    bool any = false;
    for (const Schedule::Step& step : s.steps) {
      if (!step.is_group) continue;
      const auto others =
          std::ranges::count_if(step.nodes, [&](uint32_t k) { return !is_view(program_.nodes[k]); });
      for (const uint32_t k : step.nodes)
        if (is_view(program_.nodes[k]) && (others < 2 || std::ranges::count(step.results, program_.nodes[k].out)))
          group_[k] = 0, any = true;
    }
    return any;
  }

  const Binding& binding_;
  const Program& program_;
  std::vector<uint32_t>& group_;
  std::vector<uint32_t> reader_;  // of each value the group of all nodes that read it
  std::vector<uint32_t> maker_;   // of each value
};
}  // namespace

Schedule schedule_with_views(const Binding& binding, std::vector<uint32_t>& group) {
  return Views(binding, group).run();
}

std::vector<GroupView> bind_views(const Binding& binding, std::span<const uint32_t> views,
                                  std::span<const int> inputs, Device& device) {
  std::vector<GroupView> made, found(views.size());
  const auto result_of = [&](uint32_t k) { return binding.program->nodes[k].out; };
  for (size_t i = 0; i < views.size(); ++i) {
    const Program::Node& node = binding.program->nodes[views[i]];
    GroupView& view = found[i];
    TensorType x = binding.values[size_t(node.in[0])];
    view.base = node.in[0], view.of_elements = x.numel;
    if (const auto inner = std::ranges::find(views.first(i), node.in[0], result_of); inner != views.begin() + i) {
      const GroupView& of = found[size_t(inner - views.begin())];
      view.base = of.base, view.of_elements = of.of_elements, view.offset = of.offset, x = of.type;
    }
    view.type.dtype = x.dtype;
    view.type.set_shape(binding.values[size_t(node.out)].shape());
    view.type.set_device(&device);
    const Inference::Operand in[] = {&x};
    const Inference::Output out[] = {&view.type};
    int64_t offset = 0;
    const Attrs& attrs = *binding.nodes[views[i]].attrs;  // normalised: no rule changes them again
    Inference call{*node.op, in, 1, const_cast<Attrs&>(attrs), &x.dtype, &x.dtype, out};
    if (!node.op->view(call, offset)) return {};
    view.type.update_dense();
    view.offset += uint64_t(offset) * info(x.dtype).bytes();
  }
  if (views.empty()) return made;
  for (const int v : inputs) {
    const auto at = std::ranges::find(views, v, result_of);
    made.push_back(at == views.end() ? GroupView() : found[size_t(at - views.begin())]);
  }
  return made;
}

bool views_hold(std::span<const GroupView> views, const Values& values) {
  return std::ranges::all_of(views, [&](const GroupView& view) {
    return view.base < 0 || (values[view.base].device && values[view.base].dense);
  });
}

DLTensor view_of(const GroupView& view, const Tensor& base) {
  DLTensor t = view.type.view;
  t.data = static_cast<char*>(base.view.data) + (view.type.numel ? view.offset : 0);
  return t;
}
}  // namespace dovetail
