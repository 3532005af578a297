// Programs as text: what is refused and how, numbers as Python has them, and a program of 40,000 nodes.
#include <algorithm>

#include "dispatch/recorder.hpp"
#include "dispatch/replay.hpp"
#include "graph/text.hpp"

using namespace recorder;

namespace {
std::shared_ptr<const Program> read(const std::string& text) { return program_of(parse_json(text)); }

std::string with_nodes(const std::string& nodes, const std::string& more = "") {
  return R"({"dovetail":1,"inputs":[{}],)" + more + R"("nodes":[)" + nodes + R"(],"outputs":[1]})";
}

std::optional<Binding> bind(const std::shared_ptr<const Program>& program, const Ints& shape) {
  TensorType x;
  x.dtype = DType::f32;
  x.set_shape(shape);
  const TensorType* operands[] = {&x};
  return bind_program(program, operands, nullptr);
}

// The numbers of a program with this table for an operand of shape (3,); a table without values gives none.
std::vector<NumberValue> numbers(const std::string& table) {
  const auto last = std::to_string(std::ranges::count(table, ';'));
  std::string text = table;
  std::ranges::replace(text, ';', ',');
  const auto binding = bind(read(with_nodes(R"({"op":"add","in":[0,{"number":)" + last + R"(,"dtype":"float32"}]})",
                                            R"("numbers":[)" + text + "],")),
                            {3});
  return binding ? binding->numbers : std::vector<NumberValue>();
}
}  // namespace

TEST(newer_files_are_refused_with_the_cure) {
  CHECK_THROWS(Error, "a program of format 2: this library reads format 1; pip install -U dovetail-runtime",
               read(R"({"dovetail":2})"));
  CHECK_THROWS(Error, "needs add version 7, this dovetail has version 1; pip install -U dovetail-runtime",
               read(with_nodes(R"({"op":"add","v":7,"in":[0,0]})")));
  CHECK_THROWS(Error, "node 1: needs the op 'acme.fuse', which is not here: install the package that brings it",
               read(with_nodes(R"({"op":"add","in":[0,0]},{"op":"acme.fuse","in":[0]})")));
}

TEST(numbers_are_those_of_python) {
  const std::pair<const char*, double> reals[] = {{"1.0;0.1;[\"floor_divide\",0,1]", 9},
                                                  {"-1.0;0.1;[\"floor_divide\",0,1]", -10},
                                                  {"7.0;-2.0;[\"floor_divide\",0,1]", -4},
                                                  {"6.0;2.0;[\"floor_divide\",0,1]", 3},
                                                  {"[\"size\",0,0];2;[\"divide\",0,1]", 1.5}};
  for (const auto& [table, value] : reals) CHECK_EQ(numbers(table).back().f, value);
  const std::pair<const char*, int64_t> integers[] = {{"-9223372036854775808;[\"bit_length\",0]", 64},
                                                      {"-7;2;[\"floor_divide\",0,1]", -4},
                                                      {"-7;2;[\"modulo\",0,1]", 1},
                                                      {"0.0;[\"floor\",0]", 0}};
  for (const auto& [table, value] : integers) CHECK_EQ(numbers(table).back().i, value);
  for (const char* none : {"9223372036854775807;1;[\"add\",0,1]", "1;0;[\"modulo\",0,1]",
                           "1.0;0.0;[\"divide\",0,1]", "[\"size\",0,1]", "1e300;[\"floor\",0]"})
    CHECK(numbers(none).empty());
  CHECK_THROWS(Error, "number 1, bit_length: expected integers", numbers("1.5;[\"bit_length\",0]"));
}

TEST(an_object_of_many_members) {
  std::string text = "{";
  for (int i = 0; i < 50000; ++i) text += (i ? ",\"" : "\"") + std::to_string(i) + "\":0";
  CHECK_EQ(parse_json(text + "}").members.size(), 50000u);
  CHECK_THROWS(Error, "the name '17' for the second time", parse_json(text + ",\"17\":0}"));
  CHECK_THROWS(Error, "the name 'a' for the second time", parse_json(R"({"a":0,"b":1,"a":2})"));
}

TEST(escapes_in_strings) {
  const auto text = [](const char* quoted) { return parse_json(quoted).text; };
  CHECK_EQ(text(R"("\u0041\u00e9\u20ac\ud83d\ude00\n")"), "A\u00e9\u20ac\U0001F600\n");
  for (const char* alone :
       {R"("\ud83d")", R"("\ud83dx")", R"("\ud83d\n")", R"("\ud83d\u0041")", R"("\ud83d\ud83d")", R"("\ude00")"})
    CHECK_THROWS(Error, "half of a surrogate pair alone", parse_json(alone));
  for (const char* cut : {R"("\u00)", R"("\u00g0")", R"("\ud83d\u)", R"("\ud83d\u12)"})
    CHECK_THROWS(Error, "expected four hexadecimal digits", parse_json(cut));
}

// x + size(x) * k - guarded, one number and one guard a node.
TEST(a_program_of_40000_nodes) {
  constexpr int kNodes = 40000;
  ProgramBuilder b;
  const int64_t shape[] = {3};
  const int x = b.input(DType::f32, shape), n = b.number({.op = Number::size, .a = x, .b = 0});
  int y = x;
  for (int k = 0; k < kNodes; ++k) {
    const int literal = b.number({.op = Number::integer, .i = k % 2 ? -k : k + 1});
    const int number = b.number({.op = Number::multiply, .a = n, .b = literal});
    b.guard(Guard::not_equal, number, b.number({.op = Number::integer, .i = kNodes + k}));
    const float three_k = 3 * float(k % 2 ? -k : k + 1);
    y = b.call(op("add"), {y, b.constant(Scalar(DType::f32, &three_k), number)}, {});
  }
  const auto program = read(to_json(*b.finish({y})).dump());
  CHECK_EQ(program->nodes.size(), size_t(kNodes));
  CHECK_EQ(program->guards.size(), size_t(kNodes));
  Device& device = plugin("large", basic_rows()).device();
  for (const int64_t size : {3, 5}) {  // k + 1 of even k less k of odd ones: nothing is left
    auto binding = bind(program, {size});
    CHECK(binding.has_value());
    if (!binding) return;
    const Tensor in = array(device, {size});
    const Tensor* operands[] = {&in};
    Tensor out, *results[] = {&out};
    seen.clear();
    replay(*make_executable(std::move(*binding), device), operands, results);
    CHECK_EQ(values(out), size == 3 ? "0 1 2" : "0 1 2 3 4");
    CHECK_EQ(seen.size(), size_t(kNodes));
  }
}

CHECK_MAIN
