// Groups and loops for compilers: dovetail/codegen.hpp.
#include "dovetail/codegen.hpp"

#include <chrono>
#include <string>
#include <vector>

#include "check.hpp"
#include "program_builder.hpp"

namespace {
using dvt::f32;
using dvt::codegen::Loops;
constexpr int64_t rows = -1, columns = -2;  // symbols

std::string lowered(ProgramBuilder& b) {
  const dvt_program& p = b.view();
  Loops loops;
  const char* reason = dvt::codegen::lower(p, loops);
  return reason ? reason : dvt::codegen::text_of(p, loops);
}

uint64_t in_place(ProgramBuilder& b) {
  Loops loops;
  CHECK(!dvt::codegen::lower(b.view(), loops));
  return dvt::codegen::in_place(b.view(), loops);
}

const char* heavy(const dvt_program&, const dvt_node& node) {
  return std::strcmp(node.op, "dvt.matmul") && std::strcmp(node.op, "dvt.sort") ? nullptr : "no loop";
}
std::vector<dvt_claim> claims(ProgramBuilder& b, const dvt::codegen::Costs& costs = {}) {
  const dvt_program& p = b.view();
  std::vector<dvt_claim> out(p.n_nodes);
  dvt::codegen::claim(p, heavy, out.data(), costs);
  return out;
}
// "1 1 - 2": the groups of the nodes.
std::string groups(ProgramBuilder& b, const dvt::codegen::Costs& costs = {}) {
  std::string text;
  for (const dvt_claim& c : claims(b, costs))
    text += (text.empty() ? "" : " ") + (c.group ? std::to_string(c.group) : "-");
  return text;
}

struct Space : ProgramBuilder {
  Space() { symbol(64), symbol(1024); }
  uint32_t x(Sizes shape = {rows, columns}) { return input(f32, std::move(shape)); }
  uint32_t map(const char* op, std::initializer_list<uint32_t> in, Sizes shape = {rows, columns}) {
    return node(op, in, f32, std::move(shape));
  }
};
struct Softmax : Space {
  Softmax() {
    const uint32_t a = x(), m = reduce("dvt.max", a);
    const uint32_t e = map("dvt.exp", {map("dvt.subtract", {a, m})}), s = reduce("dvt.sum", e);
    output(map("dvt.divide", {e, s}));
  }
};
struct LayerNorm : Space {
  LayerNorm() {
    const uint32_t a = x(), w = x({columns}), b = x({columns});
    const uint32_t d = map("dvt.subtract", {a, reduce("dvt.mean", a)});
    const uint32_t v = reduce("dvt.mean", map("dvt.multiply", {d, d}));
    const uint32_t r = map("dvt.rsqrt", {map("dvt.add", {v, constant(1e-5f)}, {rows, 1})}, {rows, 1});
    output(map("dvt.add", {map("dvt.multiply", {map("dvt.multiply", {d, r}), w}), b}));
  }
};
}  // namespace

TEST(softmax_is_three_passes_and_keeps_exp) {
  Softmax p;
  CHECK_EQ(groups(p), "1 1 1 1 1");
  CHECK_EQ(lowered(p), R"(space (s0, s1)
v0 = input 0: float32 (s0, s1)
pass 0
  v1 = max v0: float32  per row
pass 1
  v2 = subtract v0 v1: float32
  v3 = exp v2: float32  kept 0
  v4 = sum v3: float32  per row
pass 2
  v5 = divide v3 v4: float32
return v5
)");
}

TEST(layer_norm_subtracts_again) {
  LayerNorm p;
  CHECK_EQ(groups(p), "1 1 1 1 1 1 1 1 1");
  CHECK_EQ(lowered(p), R"(space (s0, s1)
v0 = input 0: float32 (s0, s1)
v5 = constant: float32 ()
v9 = input 1: float32 (s1)
v11 = input 2: float32 (s1)
pass 0
  v1 = mean v0: float32  per row
pass 1
  v2 = subtract v0 v1: float32
  v3 = multiply v2 v2: float32
  v4 = mean v3: float32  per row
pass 2
  v6 = add v4 v5: float32  per row
  v7 = rsqrt v6: float32  per row
  v2 = subtract v0 v1: float32
  v8 = multiply v2 v7: float32
  v10 = multiply v8 v9: float32
  v12 = add v10 v11: float32
return v12
)");
  Loops loops;
  CHECK(!dvt::codegen::lower(p.view(), loops, 0));
  CHECK_EQ(loops.n_kept, 1u);  // where nothing is made again
}

TEST(maps_are_one_pass_with_several_outputs) {
  Space p;
  const uint32_t x = p.x(), w = p.x({columns}), b = p.x({columns}), r = p.x(), n = p.number(f32, 7);
  const uint32_t y = p.map("dvt.add", {p.map("dvt.multiply", {x, w}), b});
  const uint32_t g = p.map("dvt.gelu", {y});
  p.output(y), p.output(p.map("dvt.add", {p.map("dvt.multiply", {g, n}), r})), p.output(g);
  CHECK_EQ(groups(p), "1 1 1 1 1");
  CHECK_EQ(lowered(p), R"(space (s0, s1)
v0 = input 0: float32 (s0, s1)
v1 = input 1: float32 (s1)
v3 = input 2: float32 (s1)
v6 = number 7: float32 ()
v8 = input 3: float32 (s0, s1)
pass 0
  v2 = multiply v0 v1: float32
  v4 = add v2 v3: float32
  v5 = gelu v4: float32
  v7 = multiply v5 v6: float32
  v9 = add v7 v8: float32
return v4 v9 v5
)");
}

TEST(results_may_lie_on_inputs_that_no_later_pass_loads) {
  Softmax softmax;
  LayerNorm layer_norm;
  CHECK_EQ(in_place(softmax), 1u);
  CHECK_EQ(in_place(layer_norm), 1u);
  Space p;
  const uint32_t x = p.x(), w = p.x({columns}), m = p.reduce("dvt.max", x);
  p.output(p.map("dvt.multiply", {x, w}));                                 // x is loaded again
  p.output(p.node("dvt.greater", {x, w}, dvt::boolean, {rows, columns}));  // not of x's dtype
  p.output(p.map("dvt.multiply", {p.map("dvt.subtract", {x, m}), w}));
  p.output(m);
  CHECK_EQ(in_place(p), 6u);
}

TEST(results_of_rows_leave_with_and_without_their_axis) {
  Space p;
  const uint32_t x = p.x({5, rows, columns}), bias = p.x({rows}), m = p.reduce("dvt.max", x);
  const uint32_t e = p.map("dvt.exp", {p.map("dvt.subtract", {x, m}, {5, rows, columns})}, {5, rows, columns});
  const uint32_t s = p.reduce("dvt.sum", e, false, 2);
  const uint32_t l = p.map("dvt.add", {p.map("dvt.log", {s}, {5, rows}), bias}, {5, rows});
  p.output(l), p.output(m);
  CHECK_EQ(groups(p), "1 1 1 1 1 1");
  CHECK_EQ(lowered(p), R"(space (5, s0, s1)
v0 = input 0: float32 (5, s0, s1)
v6 = input 1: float32 (s0)  per row
pass 0
  v1 = max v0: float32  per row
pass 1
  v2 = subtract v0 v1: float32
  v3 = exp v2: float32
  v4 = sum v3: float32  per row
pass 2
  v5 = log v4: float32  per row
  v7 = add v5 v6: float32  per row
return v7 v1
)");
  Loops loops;
  CHECK(!dvt::codegen::lower(p.view(), loops));
  CHECK_EQ(loops.values[6].first_axis, 1);  // bias: its axis is the second one of the space
  CHECK_EQ(loops.values[7].first_axis, 0);
  CHECK_EQ(loops.values[1].first_axis, 0);
}

TEST(sum_of_a_vector_serves_the_vector) {
  Space p;
  const uint32_t x = p.x({columns}), s = p.reduce("dvt.sum", x, false, 0);
  p.output(p.map("dvt.divide", {x, p.map("dvt.sqrt", {s}, {})}, {columns}));
  CHECK_EQ(groups(p), "1 1 1");
  CHECK_EQ(lowered(p), R"(space (s1)
v0 = input 0: float32 (s1)
pass 0
  v1 = sum v0: float32  per row
pass 1
  v2 = sqrt v1: float32  per row
  v3 = divide v0 v2: float32
return v3
)");
}

TEST(an_operand_may_be_of_rows_and_of_columns) {
  Space p;  // x[r, r], w[r]: sum(x * w) + w
  const uint32_t x = p.x({rows, rows}), w = p.x({rows});
  const uint32_t s = p.reduce("dvt.sum", p.map("dvt.multiply", {x, w}, {rows, rows}), false);
  p.output(p.map("dvt.add", {s, w}, {rows}));
  CHECK_EQ(lowered(p), R"(space (s0, s0)
v0 = input 0: float32 (s0, s0)
v1 = input 1: float32 (s0)
v4 = input 1: float32 (s0)  per row
pass 0
  v2 = multiply v0 v1: float32
  v3 = sum v2: float32  per row
pass 1
  v5 = add v3 v4: float32  per row
return v5
)");
}

TEST(totals_of_columns_where_a_compiler_has_them) {
  Space p;  // the gradients of a scale and of a bias, and what follows from one
  const uint32_t x = p.x(), d = p.x(), scaled = p.map("dvt.multiply", {d, p.x({columns})});
  const uint32_t gradient = p.reduce("dvt.sum", p.map("dvt.multiply", {scaled, x}), false, 0);
  const uint32_t bias = p.reduce("dvt.sum", d, true, 0);
  p.output(scaled), p.output(gradient), p.output(bias);
  CHECK_EQ(groups(p), "1 1 - -");
  CHECK_EQ(lowered(p), R"(space (s0, s1)
v0 = input 1: float32 (s0, s1)
v1 = input 2: float32 (s1)
v3 = input 0: float32 (s0, s1)
pass 0
  v2 = multiply v0 v1: float32
  v4 = multiply v2 v3: float32
  v5 = sum v4: float32  per column
  v6 = sum v0: float32  per column
return v2 v5 v6
)");
  dvt::codegen::Costs costs;
  costs.leading = true;
  const uint32_t next = p.map("dvt.square", {p.map("dvt.exp", {gradient}, {columns})}, {columns});
  p.output(p.map("dvt.add", {scaled, next}));  // the nodes need the whole total
  CHECK_EQ(groups(p, costs), "1 1 1 1 2 2 -");

  Space both;  // along rows and along columns
  const uint32_t y = both.map("dvt.exp", {both.x()});
  both.output(both.reduce("dvt.sum", y)), both.output(both.reduce("dvt.sum", y, true, 0));
  CHECK_EQ(groups(both, costs), "1 1 -");
  CHECK_EQ(lowered(both), "reductions along the last axis and along others");
}

TEST(refused_with_a_reason) {
  const auto one = [](auto make) {
    Space p;
    p.output(make(p));
    const std::vector<dvt_claim> c = claims(p);
    CHECK_EQ(c.back().group, 0u);
    CHECK_EQ(std::string(c.back().reason), lowered(p));
    return lowered(p);
  };
  CHECK_EQ(one([](Space& p) { return p.map("dvt.add", {p.x({rows, columns}), p.x({rows, rows})}); }),
           "an axis of an operand is not known to be that of the result");
  CHECK_EQ(one([](Space& p) { return p.reduce("dvt.sum", p.x({rows, columns, 3}), true, 0); }),
           "a reduction along other axes than the last one");
  CHECK_EQ(one([](Space& p) { return p.reduce("dvt.sum", p.x({rows, 1})); }), "a reduction of one element");
  CHECK_EQ(one([](Space& p) {
             dvt_attr size{DVT_A_SIZE, 1, {}};
             return p.node("dvt.roll", {p.x()}, f32, {rows, columns}, {size});
           }),
           "an attribute depends on sizes, or is a program");
  CHECK_EQ(one([](Space& p) { return p.node("dvt.iota", {}, f32, {rows, columns}); }),
           "not one result of one or more operands");

  for (const bool inside : {false, true}) {  // the sums of the rows, used for the columns
    Space p;
    const uint32_t x = p.x({rows, rows}), e = inside ? p.map("dvt.exp", {x}, {rows, rows}) : x;
    p.output(p.map("dvt.divide", {e, p.reduce("dvt.sum", e, false)}, {rows, rows}));
    CHECK_EQ(groups(p), inside ? "1 1 -" : "- -");
    CHECK_EQ(lowered(p), inside ? "a result without the reduced axis meets values that have it"
                                : "a result without the reduced axis has other axes than the rows");
  }

  Space two;
  const uint32_t y = two.reduce("dvt.sum", two.x());
  two.output(two.map("dvt.exp", {two.map("dvt.multiply", {y, two.x({rows, 7})}, {rows, 7})}, {rows, 7}));
  CHECK_EQ(groups(two), "- 1 1");
  CHECK_EQ(lowered(two), "nodes of several index spaces");

  Space unmade;
  unmade.map("dvt.exp", {unmade.x()});
  unmade.output(0);
  CHECK_EQ(lowered(unmade), "an output that no node makes");
}

TEST(groups_are_convex) {
  Space p;  // a residual connection around a product
  const uint32_t x = p.x(), a = p.map("dvt.exp", {x}), b = p.map("dvt.relu", {a});
  const uint32_t product = p.map("dvt.matmul", {b, p.x({columns, columns})});
  const uint32_t c = p.map("dvt.tanh", {product}), d = p.map("dvt.add", {c, a});
  p.output(p.map("dvt.square", {d}));
  CHECK_EQ(groups(p), "1 1 - 2 2 2");
}

TEST(a_group_waits_for_what_only_its_later_nodes_need) {
  Space p;  // exp(x) + x @ w: the product is beside the path, not on it
  const uint32_t x = p.x(), e = p.map("dvt.exp", {x}), f = p.map("dvt.square", {e});
  p.output(p.map("dvt.add", {f, p.map("dvt.matmul", {x, p.x({columns, columns})})}));
  CHECK_EQ(groups(p), "1 1 - 1");
}

TEST(one_input_in_two_chains_is_read_once) {
  Space p;
  const uint32_t x = p.x();
  p.output(p.map("dvt.exp", {p.map("dvt.negative", {x})}));
  p.output(p.map("dvt.sqrt", {p.map("dvt.square", {x})}));
  const uint32_t alone = p.x();
  p.output(p.map("dvt.exp", {alone}));
  CHECK_EQ(groups(p), "1 1 1 1 -");
  const std::vector<dvt_claim> c = claims(p);
  CHECK(c[1].gain_ns > 64 * 1024 * 4 / 10.f && c[4].gain_ns == 0);
  CHECK(c[0].reason == nullptr && c[4].reason != nullptr);
}

TEST(a_group_has_a_limited_number_of_nodes_and_time_is_linear) {
  Space p;
  uint32_t v = p.x();
  constexpr uint32_t n = 40000;
  for (uint32_t i = 0; i < n; ++i) v = p.map(i % 100 == 99 ? "dvt.matmul" : "dvt.add", {v, v});
  p.output(v);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<dvt_claim> c = claims(p);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("40,000 nodes claimed in %.1f ms\n", took.count() * 1e3);
  std::vector<uint32_t> sizes(n + 1);
  for (const dvt_claim& claim : c) ++sizes[claim.group];
  CHECK_EQ(*std::max_element(sizes.begin() + 1, sizes.end()), 64u);
  CHECK_EQ(sizes[0], n / 100);
}
CHECK_MAIN
