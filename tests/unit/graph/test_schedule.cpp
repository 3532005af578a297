// Groups of nodes: convex, in an order that can run, with the right lifetimes; and the parts that compilers get.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <set>

#include "check.hpp"
#include "graph/part.hpp"
#include "graph/text.hpp"

using namespace dovetail;

namespace {
const Op& add() {
  static const Op& found = op("add");
  return found;
}

// A program of additions: the operands of each node by value.
struct Additions {
  explicit Additions(int n_inputs) {
    const int64_t shape[] = {4};
    for (int i = 0; i < n_inputs; ++i) values.push_back(builder.input(DType::f32, shape));
  }
  int call(int a, int b) {
    values.push_back(builder.call(add(), {a, b}, Attrs()));
    return values.back();
  }
  ProgramBuilder builder;
  std::vector<int> values;
};

std::vector<std::vector<uint32_t>> nodes_of(const Schedule& s) {
  std::vector<std::vector<uint32_t>> found;
  for (const Schedule::Step& step : s.steps) found.push_back(step.nodes);
  return found;
}

using Groups = std::vector<uint32_t>;
using Steps = std::vector<std::vector<uint32_t>>;

void check_runs(const Program& p, const Groups& group, const Schedule& s) {
  std::set<int> known, dead;
  for (const Program::Input& input : p.inputs) known.insert(input.value);
  size_t nodes = 0;
  for (const Schedule::Step& step : s.steps) {
    CHECK(std::ranges::is_sorted(step.nodes) && !step.nodes.empty());
    CHECK_EQ(step.is_group, step.nodes.size() > 1);
    nodes += step.nodes.size();
    std::set<int> inside;
    for (const uint32_t k : step.nodes) {
      if (step.is_group) CHECK_EQ(group[k], group[step.nodes[0]]);
      for (const int v : p.nodes[k].in) CHECK((known.contains(v) && !dead.contains(v)) || inside.contains(v));
      inside.insert(p.nodes[k].out);
    }
    known.insert(inside.begin(), inside.end());
    for (const int v : step.results) CHECK(inside.contains(v));
    for (const int v : step.dies) CHECK(known.contains(v) && dead.insert(v).second);
  }
  CHECK_EQ(nodes, p.nodes.size());
  for (const int v : p.outputs) CHECK(!dead.contains(v));
  for (const Program::Node& node : p.nodes)  // all others have ended
    for (const int v : node.in) CHECK(dead.contains(v) || std::ranges::count(p.outputs, v));
}
}  // namespace

TEST(a_group_is_split_where_another_node_lies_between) {
  Additions a(1);  // 1 = 0+0 | 2 = 1+1 (alone) | 3 = 2+1
  a.call(0, 0), a.call(1, 1), a.call(2, 1);
  const auto p = a.builder.finish({3});
  CHECK(nodes_of(make_schedule(*p, Groups{1, 0, 1})) == Steps({{0}, {1}, {2}}));
  CHECK(nodes_of(make_schedule(*p, Groups{1, 1, 1})) == Steps({{0, 1, 2}}));
}

TEST(what_can_run_later_joins_what_needs_it) {
  Additions a(2);  // 2 = 0+0 (group), 3 = 1+1 alone, 4 = 3+3 alone, 5 = 2+4 (group), 6 = 5+3 alone
  a.call(0, 0), a.call(1, 1), a.call(3, 3), a.call(2, 4), a.call(5, 3);
  const auto p = a.builder.finish({6});
  const Schedule s = make_schedule(*p, Groups{7, 0, 0, 7, 0});
  CHECK(nodes_of(s) == Steps({{1}, {2}, {0, 3}, {4}}));
  CHECK(s.steps[2].results == std::vector<int>{5});
  std::vector<int> dies = s.steps[2].dies;
  std::ranges::sort(dies);
  CHECK(dies == std::vector<int>({0, 2, 4}));
}

TEST(two_groups_that_need_each_other_are_split) {
  Additions a(1);  // group 1: 1 and 4; group 2: 2 and 3; 2 needs 1, and 4 needs 3
  a.call(0, 0), a.call(1, 0), a.call(0, 0), a.call(3, 3);
  const auto p = a.builder.finish({2, 4});
  const Groups group{1, 2, 2, 1};
  check_runs(*p, group, make_schedule(*p, group));
}

TEST(random_programs) {
  const auto seed = unsigned(std::chrono::steady_clock::now().time_since_epoch().count());
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return int(random() % n); };
  for (int round = 0; round < 500; ++round) {
    Additions a(1 + below(3));
    const int n = 1 + below(40), recent = 2 + below(30);
    Groups group;
    for (int k = 0; k < n; ++k) {
      const auto operand = [&] {
        const int last = int(a.values.size());
        return a.values[size_t(std::max(0, last - 1 - below(size_t(recent))))];
      };
      a.call(operand(), operand());
      group.push_back(uint32_t(below(4)));
    }
    std::vector<int> outputs{a.values.back()};
    for (const int v : a.values)
      if (below(8) == 0 && v != outputs[0]) outputs.push_back(v);
    const auto p = a.builder.finish(outputs);
    check_runs(*p, group, make_schedule(*p, group));
  }
}

TEST(many_nodes_in_linear_time) {
  constexpr int n = 40'000;
  Additions a(1);
  Groups group;
  for (int k = 0; k < n; ++k) {
    a.call(a.values.back(), a.values[a.values.size() / 2]);
    group.push_back(k % 100 == 0 ? 0 : 1);
  }
  const auto p = a.builder.finish({a.values.back()});
  const Schedule s = make_schedule(*p, group);
  CHECK_EQ(s.steps.size(), 2u * n / 100);
}

TEST(a_part_is_a_program_of_its_own) {
  const int64_t shape[] = {3, 4};
  ProgramBuilder builder;
  const int x = builder.input({.value = -1, .dtype = DType::f32, .shape = {-1, -1}}, shape);
  const int row = builder.input({.value = -1, .dtype = DType::f32, .shape = {-1}}, std::span(shape).subspan(1));
  const float two = 2;
  const int literal = builder.constant(Scalar(DType::f32, &two));
  const int argument = builder.argument(true, "s");
  const int number = builder.constant(Scalar(DType::f32, &two), argument);
  const int before = builder.call(op("negative"), {x}, Attrs());
  const int product = builder.call(op("multiply"), {before, literal}, Attrs());
  const int sum = builder.call(op("add"), {product, row}, Attrs());
  const int scaled = builder.call(op("multiply"), {sum, number}, Attrs());
  const int after = builder.call(op("negative"), {sum}, Attrs());
  const auto p = builder.finish({scaled, after});
  const std::vector<double> reals{1.5};
  const Attrs arguments = arguments_of_program({}, reals);
  TensorType types[2];
  for (int i = 0; i < 2; ++i) types[i].dtype = DType::f32;
  types[0].set_shape(shape), types[1].set_shape(std::span(shape).subspan(1));
  const TensorType* const in[] = {&types[0], &types[1]};
  const auto bound = bind_program(p, in, &arguments);
  const SymbolicTypes symbolic = symbolic_types(*bound, &arguments);
  const Schedule s = make_schedule(*p, Groups{0, 1, 1, 1, 0});
  const auto step = std::ranges::find_if(s.steps, &Schedule::Step::is_group);
  const Part part = part_of(*bound, symbolic, *step);
  CHECK(part.inputs == std::vector<int>({before, row, number}));
  CHECK(part.outputs == std::vector<int>({sum, scaled}));
  CHECK_EQ(part.program->nodes.size(), 3u);
  CHECK_EQ(part.program->constants.size(), 1u);
  CHECK(!part.program->inputs[1].is_scalar && part.program->inputs[2].is_scalar);
  CHECK(part.program->numbers.empty() && part.program->arguments.empty());
  CHECK(part.types.values[size_t(part.program->outputs[0])].shape == std::vector<int64_t>({-1, -2}));
  CHECK_EQ(part.symbols.size(), 2u);
  CHECK(symbols_in(part.types, *bind_program(
                                   part.program,
                                   [&] {
                                     static const TensorType* operands[3];
                                     operands[0] = &bound->values[size_t(before)],
                                     operands[1] = &bound->values[size_t(row)],
                                     operands[2] = &bound->values[size_t(number)];
                                     return operands;
                                   }(),
                                   nullptr)) == std::vector<int64_t>({3, 4}));
}

CHECK_MAIN
