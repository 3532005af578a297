// Programs as C sees them: each against its canonical text, which says the same in another way; and the symbols of
// programs with types.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "check.hpp"
#include "graph/c_program.hpp"
#include "graph/content_hash.hpp"
#include "graph/text.hpp"
#include "print_program.h"
#include "text.hpp"

using namespace dovetail;

namespace {
constexpr DType f32 = DType::f32;

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

template <class Print>
std::string printed(Print print) {
  char* text = nullptr;
  size_t size = 0;
  FILE* to = open_memstream(&text, &size);
  print(to);
  std::fclose(to);
  std::string made(text, size);
  std::free(text);
  return made;
}
std::string by_c(const dvt_program& p) {
  return printed([&](FILE* to) { print_program(&p, to); });
}

// What print_program prints, from the canonical text.
class Described {
 public:
  explicit Described(const Json& program) : program_(program) {
    if (const Json* found = program.find("numbers")) numbers_ = found->items;
    for (const Json& n : numbers_) {
      real_.push_back(is_real(n));
      if (n.kind == Json::integer) literals_.insert(n.i);
    }
  }

  std::string text() {
    int value = 0, symbol = 0;
    std::string symbols, inputs;
    for (const Json& input : program_.at("inputs", "").items) {
      inputs += format("input %d ", value);
      if (!input.find("dtype")) inputs += "255.0?";
      else inputs += dtype(input.at("dtype", "")) + "(";
      const Json* shape = input.find("shape");
      for (size_t axis = 0; shape && axis < shape->items.size(); ++axis) {
        if (axis) inputs += ",";
        inputs += shape->items[axis].kind == Json::null ? format("s%d", symbol) : shape->items[axis].dump();
        if (shape->items[axis].kind == Json::null)
          symbols += format("symbol %d: input %d axis %zu hint -1\n", symbol++, value, axis);
      }
      if (shape) inputs += ")";
      if (input.find("name")) inputs += " " + input.at("name", "").text;
      inputs += "\n";
      ++value;
    }
    std::string text = inputs + symbols;
    if (const Json* guards = program_.find("guards"))
      for (const Json& g : guards->items)
        text += "guard before " + g.items[3].dump() + ": " + g.items[0].text + " " + g.items[1].dump() + " " +
                g.items[2].dump() + "\n";
    for (const Json& node : program_.at("nodes", "").items) text += describe_node(node, value), ++node_;
    size_t n = 0;
    for (; n < numbers_.size(); ++n) text += format("number %zu: ", n) + number(n) + "\n";
    for (const int64_t literal : further_) text += format("number %zu: integer %lld\n", n++, (long long)literal);
    for (const Json& output : program_.at("outputs", "").items) text += "output" + operand(output) + "\n";
    for (const auto& [node, inner] : parts_)
      text += format("program of node %zu\n", node) + Described(program_.at("programs", "").items[inner]).text();
    return text;
  }

 private:
  static std::string dtype(const Json& name) {
    for (const DTypeInfo& t : dtype_table)
      if (name.text == t.name) return format("%u.%u", t.dl.code, t.dl.bits);
    return "no dtype " + name.text;
  }
  static DType dtype_named(const std::string& name) {
    for (int t = 0; t < kDTypes; ++t)
      if (name == dtype_table[t].name) return DType(t);
    return DType::none;
  }

  bool is_real(const Json& n) const {
    if (n.kind != Json::array) return n.kind != Json::integer;
    const std::string& op = n.items[0].text;
    if (op == "divide" || op == "to_real" || op == "real_attribute") return true;
    if (op == "floor" || op == "ceil" || op == "size" || op == "attribute") return false;
    return real_[size_t(n.items[1].i)] || (n.items.size() > 2 && real_[size_t(n.items[2].i)]);
  }

  std::string number(size_t i) const {
    const Json& n = numbers_[i];
    if (n.kind == Json::integer) return "integer " + n.dump();
    if (n.kind != Json::array) return format("real real %a", n.as_real(""));
    std::string op = n.items[0].text;
    if (op == "real_attribute") op = "attribute";
    std::string text = op + (real_[i] ? " real" : "");
    for (size_t k = 1; k < n.items.size(); ++k) text += " " + n.items[k].dump();
    return text;
  }

  std::string entry(const Json& slot) const {
    const int64_t i = slot.at("number", "").i;
    const Json& n = numbers_[size_t(i)];
    if (n.kind == Json::integer) return n.dump();
    return n.kind == Json::array ? format("#%d", int(i)) : format("%a", n.as_real(""));
  }

  std::string operand(const Json& j) const {
    if (j.kind == Json::null) return " none";
    if (j.kind == Json::integer) return " " + j.dump();
    const DType t = dtype_named(j.at("dtype", "").text);
    const std::string type = " " + dtype(j.at("dtype", "")) + "()=";
    if (j.find("number")) return type + entry(j);
    const Json& n = j.at("n", "");
    const double parts[] = {n.items.empty() ? 0 : n.items[0].as_real(""),
                            n.items.empty() ? 0 : n.items[1].as_real("")};
    const uint8_t truth = n.truth;
    double real = 0;
    if (n.kind == Json::real || n.kind == Json::string) real = n.as_real("");
    const Scalar given = n.kind == Json::array              ? Scalar(DType::c128, parts)
                         : n.kind == Json::boolean          ? Scalar(DType::b8, &truth)
                         : n.kind == Json::integer          ? Scalar(DType::i64, &n.i)
                         : n.kind == Json::unsigned_integer ? Scalar(DType::u64, &n.u)
                                                            : Scalar(DType::f64, &real);
    const Scalar scalar = cast_scalar(given, t);
    std::string hex;
    for (size_t i = 0; i < info(t).bytes(); ++i) hex += format("%02x", unsigned(scalar.bits[i]));
    return type + hex;
  }

  std::string attribute(const ParamSpec& p, const Json& j) {
    if (j.kind == Json::null) return " none";
    const Json* slot = j.find("number");
    const bool real = slot && real_[size_t(slot->i)];
    switch (p.kind) {
      case ParamKind::boolean: return format(" b:%d", j.truth);
      case ParamKind::program: {
        const size_t inner = size_t(j.at("program", "").i);
        parts_.emplace_back(node_, inner);
        Json document = Json::map({{"dovetail", 1}});
        for (const auto& member : program_.at("programs", "").items[inner].members)
          document.members.push_back(member);
        return " program:" + to_hex(content_hash(document)).substr(0, 16);
      }
      case ParamKind::str: return " s:" + j.text;
      case ParamKind::dtype: return " dt:" + dtype(j.at("dtype", ""));
      case ParamKind::i64: return " i:" + (slot ? entry(j) : j.dump());
      case ParamKind::f64: return " f:" + (slot ? entry(j) : format("%a", j.as_real("")));
      case ParamKind::scalar:
        if (slot) return (real ? " f:" : " i:") + entry(j);
        if (j.find("complex"))
          return format(" fs:%a,%a", j.at("complex", "").items[0].as_real(""),
                        j.at("complex", "").items[1].as_real(""));
        if (j.kind == Json::boolean) return format(" b:%d", j.truth);
        if (j.kind == Json::integer) return " i:" + j.dump();
        if (j.kind == Json::unsigned_integer) return " u:" + j.dump();
        return format(" f:%a", j.as_real(""));
      default: break;
    }
    std::string text = " is:";
    const bool slots =
        std::ranges::any_of(j.items, [](const Json& element) { return element.kind == Json::object; });
    for (size_t k = 0; k < j.items.size(); ++k) {
      if (k) text += ",";
      // Then literals are entries of the table, too, behind those that the program has.
      if (slots && j.items[k].kind == Json::integer && literals_.insert(j.items[k].i).second)
        further_.push_back(j.items[k].i);
      text += j.items[k].kind == Json::object ? entry(j.items[k]) : j.items[k].dump();
    }
    return text;
  }

  static Json default_of(const ParamSpec& p) {
    const AttrDefault& d = p.fallback;
    switch (d.kind) {
      case AttrDefault::i64: return p.kind == ParamKind::i64s ? Json::list({d.i}) : Json(d.i);
      case AttrDefault::f64: return d.f;
      case AttrDefault::boolean: return Json(d.i != 0);
      case AttrDefault::str: return d.s;
      case AttrDefault::i64s: {
        Json list = Json::list();
        for (const int64_t i : d.is) list.items.emplace_back(i);
        return list;
      }
      default: return {};
    }
  }

  std::string describe_node(const Json& node, int& value) {
    const Op& o = op(node.at("op", "").text);
    std::string text = "node dvt." + o.spec.name + " " + std::to_string(o.spec.version) + ":";
    for (const Json& in : node.at("in", "").items) text += operand(in);
    text += " ->";
    const int64_t results = node.find("out") ? node.at("out", "").i : o.spec.n_out;
    for (int64_t i = 0; i < results; ++i) text += format(" %d", value++);
    text += " |";
    const Json* at = node.find("at");
    for (const ParamSpec& p : o.spec.params) {
      if (is_operand(p.kind)) continue;
      const Json* given = at ? at->find(p.name) : nullptr;
      text += attribute(p, given ? *given : default_of(p));
    }
    if (node.find("where")) text += " @" + node.at("where", "").text;
    return text + "\n";
  }

  const Json& program_;
  std::vector<Json> numbers_;
  std::vector<bool> real_;
  std::set<int64_t> literals_;
  std::vector<int64_t> further_;
  size_t node_ = 0;
  std::vector<std::pair<size_t, size_t>> parts_;  // nodes and the programs that they hold
};

void compare(const Json& json) {
  const auto program = program_of(json);
  const CProgram c(program);
  CHECK_EQ(by_c(c.view()), Described(json).text());
  CHECK_EQ(format("%016llx%016llx", static_cast<unsigned long long>(c.view().hash[0]),
                  static_cast<unsigned long long>(c.view().hash[1])),
           to_hex(content_hash(json)).substr(0, 32));
}

const char* const everything = R"({"dovetail":1,
"inputs":[{"dtype":"float32","shape":[null,null],"name":"x"},{"dtype":"int64","shape":[4]},{}],
"numbers":[["size",0,0],["size",0,1],8,["floor_divide",1,2],["multiply",0,1],["divide",0,1],0.5,
["multiply",5,6],["attribute",1],["attribute",2,3],["real_attribute",0],["bit_length",0],["to_real",0],["floor",7],
["ceil",7],["shift_left",0,11],["minimum",0,1],["maximum",0,1],["modulo",1,2],["subtract",0,1],["add",6,10],
["size",3,0]],
"programs":[{"inputs":[{},{}],"numbers":[["attribute",0],["attribute",1,0]],
 "nodes":[{"op":"add","in":[0,{"number":0,"dtype":"float32"}],"where":"model.py:9"}],"outputs":[1,2]},
 {"inputs":[{}],"programs":[{"inputs":[{}],"nodes":[],"outputs":[0]}],"nodes":[{"op":"loop","in":[0],"out":1,
 "at":{"count":3,"numbers":[],"body":{"program":0}}}],"outputs":[1]},
 {"inputs":[{"dtype":"float32","shape":[null,2]}],"nodes":[],"outputs":[0]}],
"guards":[["less",2,1,0],["not_equal",0,1,0],["equal",18,0,0],["less_equal",21,4,1]],
"nodes":[{"op":"reshape","in":[0],"at":{"shape":[{"number":4}]},"where":"model.py:84"},
{"op":"reshape","in":[0],"at":{"shape":[-7,{"number":0},8,{"number":2},{"number":3}]}},
{"op":"full","in":[],"at":{"shape":[2,3],"fill_value":{"complex":[1.5,"inf"]},"dtype":{"dtype":"complex64"}}},
{"op":"full","in":[],"at":{"shape":[],"fill_value":{"number":7},"dtype":{"dtype":"float32"}}},
{"op":"full","in":[],"at":{"shape":[],"fill_value":18446744073709551615,"dtype":{"dtype":"uint64"}}},
{"op":"sum","in":[0],"at":{"axis":[-1],"keepdims":true}},
{"op":"multiply","in":[{"n":0.1,"dtype":"float16"},{"number":20,"dtype":"bfloat16"}]},
{"op":"scaled_dot_product_attention","in":[0,0,0,null],"at":{"scale":{"number":7},"is_causal":true}},
{"op":"roll","in":[0],"at":{"shift":[{"number":11}],"axis":[0]}},
{"op":"concat","in":[0,0,0],"at":{"axis":1}},
{"op":"top_k","in":[0],"at":{"k":{"number":16},"mode":"smallest"}},
{"op":"loop","in":[0,0],"out":2,"at":{"count":{"number":11},"numbers":[{"number":0},7],"body":{"program":0}}},
{"op":"cond","in":[{"n":true,"dtype":"bool"},0],"out":1,"at":{"then":{"program":1},"else":{"program":2}}}],
"outputs":[3,0,{"n":true,"dtype":"bool"},12,13]})";
}  // namespace

TEST(every_part_of_a_program) { compare(to_json(*program_of(parse_json(everything)))); }

namespace {
// The decompositions that the library brings, those for several dtypes with one of these.
Json shipped(std::string text, const std::string& dtype) {
  const std::string any = R"("dtype":"*")", one = R"("dtype":")" + dtype + '"';
  for (size_t at = 0; (at = text.find(any, at)) != std::string::npos; at += one.size())
    text.replace(at, any.size(), one);
  return parse_json(text);
}
}  // namespace

TEST(shipped_decompositions) {
  std::ifstream file(DECOMPOSITIONS);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json floats = shipped(text, "float32"), ints = shipped(text, "int32");
  int programs = 0;
  for (size_t i = 0; i < floats.members.size(); ++i) {
    if (floats.members[i].first == "forms") continue;  // the line that is no op's
    const std::vector<Json>& of_floats = floats.members[i].second.at("programs", "").items;
    const std::vector<Json>& of_ints = ints.members[i].second.at("programs", "").items;
    for (size_t k = 0; k < of_floats.size(); ++k, ++programs) {  // numbers of a program are of one kind of dtype
      const bool is_of_floats = to_json(*program_of(of_floats[k])).dump() == of_floats[k].dump();
      compare(is_of_floats ? of_floats[k] : of_ints[k]);
    }
  }
  CHECK(programs > 1000);
}

// ---- with types -------------------------------------------------------------------------------------------------

namespace {
using Shapes = std::vector<std::vector<int64_t>>;

std::optional<Binding> bind(const std::shared_ptr<const Program>& p, const Shapes& shapes, DType dtype = f32) {
  std::vector<TensorType> types(shapes.size());
  std::vector<const TensorType*> in;
  for (size_t i = 0; i < shapes.size(); ++i) {
    types[i].dtype = dtype;
    types[i].set_shape(shapes[i]);
    in.push_back(&types[i]);
  }
  return bind_program(p, in.data(), nullptr);
}

std::shared_ptr<const Program> program(const std::string& rest) {
  return program_of(parse_json(R"({"dovetail":1,)" + rest + "}"));
}

std::string types(const dvt_program& p) {
  return printed([&](FILE* to) {
    for (uint32_t v = 0; v < p.n_values; ++v) std::fprintf(to, v ? " " : ""), print_type(&p.values[v], to);
  });
}
std::string symbols(const CProgram& c, const Binding& b) {
  const auto found = symbols_in(c.types(), b);
  return found ? to_string(*found) : "none";
}
}  // namespace

TEST(equal_sizes_share_a_symbol) {
  const auto p = program(R"("inputs":[{},{},{"dtype":"float32","shape":[8]}],
    "nodes":[{"op":"add","in":[0,1]},{"op":"multiply","in":[3,2]},{"op":"concat","in":[0,4],"at":{"axis":0}}],
    "outputs":[4,5])");
  const CProgram c(*bind(p, {{4, 8}, {4, 8}, {8}}), nullptr);
  CHECK_EQ(types(c.view()), "2.32(s0,8) 2.32(s0,8) 2.32(8) 2.32(s0,8) 2.32(s0,8) 2.32(s1,8)");
  CHECK_EQ(c.view().flags, unsigned(DVT_P_TYPED));
  CHECK_EQ(by_c(c.view()).find("symbol 0: input 0 axis 0 hint 4\nsymbol 1: input -1 axis -1 hint 8\n") !=
               std::string::npos,
           true);
  CHECK_EQ(symbols(c, *bind(p, {{5, 8}, {5, 8}, {8}})), "(5, 10)");
  CHECK_EQ(symbols(c, *bind(p, {{1, 8}, {1, 8}, {8}})), "(1, 2)");
  CHECK_EQ(symbols(c, *bind(p, {{5, 8}, {1, 8}, {8}})), "none");
  CHECK_EQ(symbols(c, *bind(p, {{5, 8}, {8}, {8}})), "none");

  const CProgram one(*bind(p, {{4, 8}, {1, 8}, {8}}), nullptr);
  CHECK_EQ(types(one.view()), "2.32(s0,8) 2.32(1,8) 2.32(8) 2.32(s0,8) 2.32(s0,8) 2.32(s1,8)");
  CHECK(one.view().hash[0] != c.view().hash[0]);

  const CProgram same(*bind(p, {{7, 8}, {7, 8}, {8}}), nullptr);
  CHECK(same.view().hash[0] == c.view().hash[0] && same.view().hash[1] == c.view().hash[1]);
}

TEST(independent_sizes_that_are_equal_in_the_hints) {
  const auto p =
      program(R"("inputs":[{"dtype":"float32","shape":[null,null]},{"dtype":"float32","shape":[null,null]}],
    "nodes":[{"op":"matmul","in":[0,1]},{"op":"sum","in":[2],"at":{"axis":[0]}}],"outputs":[3])");
  const CProgram c(*bind(p, {{6, 6}, {6, 6}}), nullptr);
  CHECK_EQ(types(c.view()), "2.32(s0,s1) 2.32(s1,s2) 2.32(s0,s2) 2.32(s2)");
  CHECK_EQ(symbols(c, *bind(p, {{2, 3}, {3, 5}})), "(2, 3, 5)");
}

TEST(guards_fix_sizes_and_attributes_give_some) {
  const auto p = program(R"("inputs":[{"dtype":"float32","shape":[null,null]}],
    "numbers":[["size",0,1],64,["size",0,0],["attribute",0]],"guards":[["equal",0,1,0]],
    "nodes":[{"op":"full","in":[],"at":{"shape":[{"number":2},{"number":3}],"fill_value":0.0,"dtype":{"dtype":"float32"}}},
             {"op":"add","in":[0,0]}],"outputs":[1,2])");
  TensorType x;
  x.dtype = f32;
  x.set_shape(std::vector<int64_t>{3, 64});
  const TensorType* in[] = {&x};
  Attrs attrs;
  attrs.at[0] = {DVT_A_I64, 1, {.i = 9}};
  const auto bound = bind_program(p, in, &attrs);
  const CProgram c(*bound, &attrs);
  CHECK_EQ(types(c.view()), "2.32(s0,64) 2.32(s0,9) 2.32(s0,64)");
  attrs.at[0].v.i = 10;
  CHECK_EQ(symbols(c, *bind_program(p, in, &attrs)), "none");
}

TEST(a_view_that_several_threads_ask_for) {
  const auto p = program_of(parse_json(everything));
  const LazyCProgram lazy;
  const dvt_program* seen[8];
  std::vector<std::thread> threads;
  for (auto& place : seen) threads.emplace_back([&] { place = lazy.of(p); });
  for (std::thread& t : threads) t.join();
  for (const dvt_program* view : seen) CHECK(view == seen[0]);
  CHECK_EQ(by_c(*seen[0]), by_c(CProgram(p).view()));
}

CHECK_MAIN
