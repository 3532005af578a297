// Programs from JSON: graph/text.hpp describes the form, text_writer.cpp writes it.
#include <algorithm>
#include <unordered_map>

#include "graph/control.hpp"
#include "graph/text.hpp"

namespace dovetail {
namespace {
class Reader {
 public:
  Reader(const Json& document, const ReadTensor& read, int level = 0)
      : document_(document), read_(read), level_(level), made_(std::make_shared<Program>()) {
    if (document_.kind != Json::object) throw Error(ErrorKind::value, "a program: expected an object");
  }

  std::shared_ptr<const Program> program() {
    if (const int64_t format = document_.at("dovetail", "a program").as_integer("dovetail"); format != kTextFormat)
      throw Error(ErrorKind::value,
                  "a program of format " + std::to_string(format) + ": this library reads format " +
                      std::to_string(kTextFormat),
                  format > kTextFormat ? "pip install -U dovetail-runtime" : "");
    return body();
  }

 private:
  std::shared_ptr<const Program> body() {
    if (const Json* programs = document_.find("programs")) read_programs(programs->as_list("programs"));
    for (const Json& input : document_.at("inputs", "a program").as_list("inputs")) read_input(input);
    if (const Json* tensors = document_.find("tensors")) {
      if (level_) throw Error(ErrorKind::value, "tensors: expected none in a program within another; use operands");
      read_tensors(*tensors);
    }
    if (const Json* signature = document_.find("signature")) made_->signature = signature->dump();
    const auto& nodes = document_.at("nodes", "a program").as_list("nodes");
    if (const Json* numbers = document_.find("numbers")) read_numbers(numbers->as_list("numbers"));
    if (const Json* guards = document_.find("guards")) read_guards(guards->as_list("guards"), nodes.size());
    for (const Json& node : nodes) read_node(node);
    for (const Json& output : document_.at("outputs", "a program").as_list("outputs"))
      made_->outputs.push_back(operand(output, "outputs"));
    if (const Json* decompositions = document_.find("decompositions")) read_decompositions(*decompositions);
    check_numbers();
    std::ranges::sort(made_->constants, {}, &Program::Constant::value);
    plan_lifetimes(*made_);
    return made_;
  }

  void read_programs(const std::vector<Json>& programs) {
    if (level_ == kMaxProgramDepth)
      throw Error(ErrorKind::value,
                  "programs within programs: expected at most " + std::to_string(kMaxProgramDepth) + " levels");
    for (size_t i = 0; i < programs.size(); ++i) try {
        made_->programs.push_back(Reader(programs[i], read_, level_ + 1).body());
        made_->depth = std::max(made_->depth, made_->programs.back()->depth + 1);
      } catch (const Error& e) {
        throw Error(e.kind, "program " + std::to_string(i) + ": " + e.what());
      }
  }

  [[noreturn]] void fail(const std::string& why) const {
    const std::string node =
        made_->nodes.size() < n_nodes() ? "node " + std::to_string(made_->nodes.size()) + ": " : "";
    throw Error(ErrorKind::value, node + why);
  }
  size_t n_nodes() const { return document_.at("nodes", "a program").items.size(); }

  static DType dtype(const Json& j, const char* what) {
    const std::string& name = j.as_string(what);
    for (int t = 0; t < kDTypes; ++t)
      if (name == dtype_table[t].name) return DType(t);
    throw Error(ErrorKind::value, std::string(what) + ": there is no dtype '" + name + "'");
  }

  int add_value() {
    place_.push_back(made_->n_values);
    return made_->n_values++;
  }

  void read_input(const Json& j) {
    if (!j.find("dtype")) return void(made_->inputs.push_back({add_value(), DType::none, {}}));
    Program::Input input{add_value(), dtype(*j.find("dtype"), "an input's dtype"), {}};
    for (const Json& n : j.at("shape", "an input").as_list("an input's shape")) {
      const bool any = n.kind == Json::null || n.kind == Json::string;
      const int64_t size = any ? -1 : n.as_integer("a size");
      if (!any && size < 0) throw Error(ErrorKind::value, "an input's shape: expected sizes of at least 0");
      if (n.kind == Json::string) {
        if (n.text.empty()) throw Error(ErrorKind::value, "an input's shape: the name of a size is empty");
        input.size_names.resize(input.shape.size() + 1);
        input.size_names.back() = n.text;
      }
      input.shape.push_back(size);
    }
    if (input.shape.size() > DVT_MAX_NDIM) throw Error(ErrorKind::value, "an input's shape: more than 16 axes");
    if (const Json* name = j.find("name")) input.name = name->as_string("an input's name");
    made_->inputs.push_back(std::move(input));
  }

  void read_tensors(const Json& tensors) {
    if (tensors.kind != Json::object) throw Error(ErrorKind::value, "tensors: expected an object");
    if (tensors.members.empty()) return;
    if (!read_)
      throw Error(ErrorKind::value, "the program has arrays, whose elements are not in its text",
                  "load the .dvt file that they are in");
    for (const auto& [name, j] : tensors.members) {
      std::vector<int64_t> shape;
      for (const Json& n : j.at("shape", "a tensor").as_list("a tensor's shape"))
        shape.push_back(n.as_integer("a tensor's size"));
      if (shape.size() > DVT_MAX_NDIM || std::ranges::any_of(shape, [](int64_t n) { return n < 0; }))
        throw Error(ErrorKind::value, "tensor " + name + ": expected at most 16 axes, with sizes of at least 0");
      HostArray elements = read_(name, j, dtype(j.at("dtype", "a tensor"), "a tensor's dtype"), std::move(shape));
      array_[name] = made_->n_values;
      made_->arrays.push_back({made_->n_values++, name, std::move(elements)});
    }
  }

  // Those of ops, or over ops, that this library does not have are of no use to it.
  void read_decompositions(const Json& ops) {
    if (level_) throw Error(ErrorKind::value, "decompositions: expected none in a program within another");
    if (ops.kind != Json::object) throw Error(ErrorKind::value, "decompositions: expected an object");
    for (const auto& [name, of_op] : ops.members) try {
        const Op* op = find_op(name);
        const int64_t version = of_op.at("v", "its entry").as_integer("v");
        if (version < 1) throw Error(ErrorKind::value, "v: expected at least 1");
        const auto& texts = of_op.at("programs", "its entry").as_list("programs");
        std::vector<std::shared_ptr<const Program>> programs;
        for (const Json& text : texts)
          programs.push_back(has_ops(text) ? Reader(text, read_, level_ + 1).body() : nullptr);
        for (const auto& [pattern, places] : of_op.at("patterns", "its entry").members)
          for (const Json& place : places.as_list("patterns"))
            if (auto& program = programs[size_t(index(place, "a pattern's program", int(programs.size())))];
                program && op && version <= int64_t(op->spec.version))
              made_->decompositions[name].push_back({uint32_t(version), pattern, program});
      } catch (const Error& e) {
        throw Error(e.kind, "decompositions of " + name + ": " + e.what());
      }
  }

  // Whether the library has all ops of a program in the versions that it names.
  static bool has_ops(const Json& program) {
    const Json *nodes = program.find("nodes"), *programs = program.find("programs");
    const auto is_here = [](const Json& node) {
      const Json *name = node.find("op"), *version = node.find("v");
      const Op* op = name && name->kind == Json::string ? find_op(name->text) : nullptr;
      return op && (!version || version->kind != Json::integer || version->i <= int64_t(op->spec.version));
    };
    return (!nodes || std::ranges::all_of(nodes->items, is_here)) &&
           (!programs || std::ranges::all_of(programs->items, has_ops));
  }

  void read_numbers(const std::vector<Json>& numbers) {
    if (numbers.size() > (size_t{1} << 24)) throw Error(ErrorKind::value, "numbers: more than 2^24 entries");
    for (const Json& j : numbers) made_->numbers.push_back(number(j));
  }

  Number number(const Json& j) const {
    const int here = int(made_->numbers.size());
    if (j.kind == Json::integer) return {.op = Number::integer, .i = j.i};
    if (j.kind != Json::array) return {.op = Number::real, .is_real = true, .f = j.as_real("a number")};
    if (j.items.size() < 2 || j.items.size() > 3)
      fail("number " + std::to_string(here) + ": expected [operation, a, b]");
    const std::string& name = j.items[0].as_string("a number's operation");
    Number n{.op = Number::attribute};
    if (name == kRealAttribute) {
      n.is_real = true;
    } else {
      const auto found = std::find(std::begin(number_names) + Number::size, std::end(number_names), name);
      if (found == std::end(number_names)) fail("there is no number operation '" + name + "'");
      n.op = Number::Op(found - std::begin(number_names));
    }
    n.a = index(j.items[1], "a number's operand", is_leaf(n.op) ? 1 << 24 : here);
    const bool second = j.items.size() == 3;
    if (n.op != Number::attribute && second == is_unary(n.op))
      fail("number " + std::to_string(here) + ", " + name + ": wrong number of operands");
    if (second) n.b = index(j.items[2], "a number's operand", is_leaf(n.op) ? 1 << 24 : here);
    const auto real = [&](int k) { return k >= 0 && made_->numbers[size_t(k)].is_real; };
    if (takes_integers(n.op) && (real(n.a) || real(n.b)))
      fail("number " + std::to_string(here) + ", " + name + ": expected integers");
    if (!is_leaf(n.op))
      n.is_real = n.op == Number::divide || n.op == Number::to_real ||
                  (n.op != Number::floor && n.op != Number::ceil && (real(n.a) || real(n.b)));
    return n;
  }

  static int index(const Json& j, const char* what, int end) {
    const int64_t i = j.as_integer(what);
    if (i < 0 || i >= end)
      throw Error(ErrorKind::value,
                  std::string(what) + " " + std::to_string(i) + ": expected 0 to " + std::to_string(end - 1));
    return int(i);
  }
  int entry(const Json& j) const { return index(j, "a number", int(made_->numbers.size())); }

  void read_guards(const std::vector<Json>& guards, size_t n_nodes) {
    for (const Json& j : guards) {
      const size_t n = j.as_list("a guard").size();
      if (n != 4 && n != 5)
        throw Error(ErrorKind::value, "a guard: expected [comparison, a, b, node], and perhaps where it is from");
      const std::string& name = j.items[0].as_string("a guard's comparison");
      const auto found = std::find(std::begin(compare_names), std::end(compare_names), name);
      if (found == std::end(compare_names)) throw Error(ErrorKind::value, "there is no comparison '" + name + "'");
      Guard g{Guard::Compare(found - std::begin(compare_names)), entry(j.items[1]), entry(j.items[2]),
              uint32_t(index(j.items[3], "a guard's node", int(n_nodes) + 1))};
      if (!made_->guards.empty() && g.at < made_->guards.back().at)
        throw Error(ErrorKind::value, "guards: expected them in the order of their nodes");
      if (n == 5) g.where = j.items[4].as_string("a guard's where");
      made_->guards.push_back(g);
    }
  }

  // A value, or a number that becomes a constant.
  int operand(const Json& j, const char* what) {
    if (j.kind != Json::object) return place_[size_t(index(j, what, int(place_.size())))];
    if (const Json* tensor = j.find("tensor")) {
      const auto found = array_.find(tensor->as_string(what));
      if (found == array_.end()) fail("there is no tensor '" + tensor->text + "'");
      return found->second;
    }
    Program::Constant c{made_->n_values++, scalar(j, dtype(j.at("dtype", what), "a number's dtype"))};
    if (const Json* number = j.find("number")) c.number = needed(entry(*number));
    made_->constants.push_back(std::move(c));
    return made_->constants.back().value;
  }

  Scalar scalar(const Json& j, DType dtype) const {
    const Json* n = j.find("n");
    const int64_t nought = 0;
    if (!n) return cast_scalar(Scalar(DType::i64, &nought), dtype);
    if (n->kind == Json::boolean) {
      const uint8_t truth = n->truth;
      return cast_scalar(Scalar(DType::b8, &truth), dtype);
    }
    if (n->kind == Json::unsigned_integer) return cast_scalar(Scalar(DType::u64, &n->u), dtype);
    if (n->kind == Json::integer) return cast_scalar(Scalar(DType::i64, &n->i), dtype);
    if (n->kind == Json::array) {
      if (n->items.size() != 2) fail("a complex number: expected [real, imaginary]");
      const double parts[] = {n->items[0].as_real("a real part"), n->items[1].as_real("an imaginary part")};
      return cast_scalar(Scalar(DType::c128, parts), dtype);
    }
    const double f = n->as_real("a number");
    return cast_scalar(Scalar(DType::f64, &f), dtype);
  }

  void read_node(const Json& j) {
    const std::string& name = j.at("op", "a node").as_string("a node's op");
    const Op* op = find_op(name);
    if (!op) fail("needs the op '" + name + "', which is not here: install the package that brings it");
    const int64_t version = j.find("v") ? j.find("v")->as_integer("a node's v") : 1;
    if (version < 1 || version > int64_t(op->spec.version))
      throw Error(ErrorKind::value,
                  "needs " + name + " version " + std::to_string(version) + ", this dovetail has version " +
                      std::to_string(op->spec.version),
                  "pip install -U dovetail-runtime");
    Program::Node node{.op = op,
                       .in = {},
                       .out = 0,
                       .n_out = op->spec.n_out,
                       .attrs = (*op).defaults,
                       .slots = {},
                       .numbers = 0,
                       .dies = {}};
    for (const Json& in : j.at("in", "a node").as_list("a node's in"))
      node.in.push_back(in.kind == Json::null ? -1 : operand(in, "an operand"));
    // Operands that a later version of the op added may be missing.
    while (!op->variadic && node.in.size() < size_t(op->n_in)) node.in.push_back(-1);
    check_operands(*op, node.in);
    uint64_t given = 0;
    if (const Json* at = j.find("at"))
      for (const auto& [attribute, value] : at->members)
        given |= uint64_t{1} << read_attribute(node, attribute, value);
    try {
      expect_attrs(*op, given);
    } catch (const Error& e) {
      fail(e.what());
    }
    if (const Json* where = j.find("where")) node.where = where->as_string("a node's where");
    if (op->spec.flags & op_control) node.n_out = count_results(*op, node.attrs, node.in.size());
    const Json* out = j.find("out");
    const bool control = op->spec.flags & op_control;
    if (control ? !out || out->as_integer("a node's out") != int64_t(node.n_out) : out != nullptr)
      fail("[" + name + "] out: expected " + (control ? std::to_string(node.n_out) : "none but of a control op"));
    node.out = made_->n_values;
    for (uint32_t i = 0; i < node.n_out; ++i) add_value();
    node.numbers = uint32_t(needed_);
    made_->nodes.push_back(std::move(node));
  }

  void check_operands(const Op& op, const std::vector<int>& in) const {
    const size_t least = size_t(op.n_in) - op.variadic;
    if (op.variadic ? in.size() < least : in.size() != size_t(op.n_in))
      fail("[" + op.spec.name + "] has " + std::to_string(in.size()) + " operands: expected " +
           std::to_string(op.n_in));
    size_t i = 0;
    for (const ParamSpec& p : op.spec.params) {
      if (!is_operand(p.kind)) continue;
      for (; i < in.size(); ++i) {
        if (in[i] < 0 && !p.optional) fail("[" + op.spec.name + "] " + p.name + " is null: expected a value");
        if (!p.variadic) {
          ++i;
          break;
        }
      }
    }
  }

  // Returns its position among the op's attributes.
  int read_attribute(Program::Node& node, const std::string& name, const Json& value) {
    int i = 0;
    for (const ParamSpec& p : node.op->spec.params) {
      if (is_operand(p.kind)) continue;
      if (p.name == name) return set(node, i, p, value), i;
      ++i;
    }
    fail("[" + node.op->spec.name + "] has no attribute '" + name + "'");
  }

  // A number that the node being read needs.
  int needed(int number) {
    needs_.emplace_back(number, made_->nodes.size());
    needed_ = std::max(needed_, size_t(number) + 1);
    return number;
  }

  void slot(Program::Node& node, int attr, int element, const Json& j) {
    const int number = needed(entry(j.at("number", "an attribute")));
    if (element >= 0 && made_->numbers[size_t(number)].is_real) fail("an element of a list is a real number");
    node.slots.push_back({uint8_t(attr), int16_t(element), number});
  }

  void set(Program::Node& node, int i, const ParamSpec& p, const Json& value) {
    dvt_attr& a = node.attrs.at[i];
    const std::string what = "[" + node.op->spec.name + "] " + p.name;
    const bool is_slot = value.find("number") != nullptr;
    const bool real = is_slot && made_->numbers[size_t(entry(*value.find("number")))].is_real;
    if (value.kind == Json::null) {
      if (p.kind == ParamKind::program) fail(what + ": expected a program");
      return void(a = {DVT_A_NONE, 0, {.raw = 0}});
    }
    switch (p.kind) {
      case ParamKind::i64:
        a = {DVT_A_I64, 1, {.i = is_slot ? 0 : value.as_integer(what.c_str())}};
        if (real) fail(what + ": expected an integer");
        break;
      case ParamKind::f64: a = {DVT_A_F64, 1, {.f = is_slot ? 0 : value.as_real(what.c_str())}}; break;
      case ParamKind::boolean:
        if (value.kind != Json::boolean) fail(what + ": expected true or false");
        a = {DVT_A_BOOL, 1, {.i = value.truth}};
        return;
      case ParamKind::str: {
        const std::string& s = made_->strings.emplace_back(value.as_string(what.c_str()));
        a = {DVT_A_STR, uint32_t(s.size()), {.s = s.c_str()}};
        return;
      }
      case ParamKind::dtype:
        a = {DVT_A_DTYPE, 1, {.dt = info(dtype(value.at("dtype", what.c_str()), what.c_str())).dl}};
        return;
      case ParamKind::program:
        a = program_attr(*made_->programs[size_t(
            index(value.at("program", what.c_str()), what.c_str(), int(made_->programs.size())))]);
        return;
      case ParamKind::scalar: set_scalar(a, value, what, is_slot, real); break;
      default: return set_list(node, i, value, what);
    }
    if (is_slot) slot(node, i, -1, value);
  }

  void set_scalar(dvt_attr& a, const Json& value, const std::string& what, bool is_slot, bool real) {
    if (is_slot) return void(a = real ? dvt_attr{DVT_A_F64, 1, {.f = 0}} : dvt_attr{DVT_A_I64, 1, {.i = 0}});
    if (const Json* complex = value.find("complex")) {
      if (complex->as_list(what.c_str()).size() != 2) fail(what + ": expected [real, imaginary]");
      auto& parts = made_->float_lists.emplace_back();
      for (const Json& part : complex->items) parts.push_back(part.as_real(what.c_str()));
      a = {DVT_A_F64S, 2, {.fs = parts.data()}};
    } else if (value.kind == Json::boolean) {
      a = {DVT_A_BOOL, 1, {.i = value.truth}};
    } else if (value.kind == Json::unsigned_integer) {
      a = {DVT_A_U64, 1, {.raw = value.u}};
    } else if (value.kind == Json::integer) {
      a = {DVT_A_I64, 1, {.i = value.i}};
    } else {
      a = {DVT_A_F64, 1, {.f = value.as_real(what.c_str())}};
    }
  }

  void set_list(Program::Node& node, int i, const Json& value, const std::string& what) {
    const auto& items = value.as_list(what.c_str());
    if (items.size() > 2 * DVT_MAX_NDIM) fail(what + ": expected at most 32 integers");
    int64_t values[2 * DVT_MAX_NDIM] = {};
    for (size_t k = 0; k < items.size(); ++k)
      if (items[k].kind == Json::object) slot(node, i, int(k), items[k]);
      else values[k] = items[k].as_integer(what.c_str());
    node.attrs.set_ints(i, {values, items.size()});
  }

  // A size is one of a value that is there before the number is needed; only then its axes are known.
  void check_numbers() {
    std::vector<size_t> made_by(size_t(made_->n_values), 0);  // as many nodes are needed for each value
    for (size_t k = 0; k < made_->nodes.size(); ++k)
      for (uint32_t i = 0; i < made_->nodes[k].n_out; ++i) made_by[size_t(made_->nodes[k].out) + i] = k + 1;
    std::vector<size_t> after(made_->numbers.size(), 0);
    for (size_t i = 0; i < after.size(); ++i) {
      Number& n = made_->numbers[i];
      if (n.op == Number::size) {
        if (size_t(n.a) >= place_.size())
          throw Error(ErrorKind::value,
                      "number " + std::to_string(i) + ": there is no value " + std::to_string(n.a));
        n.a = place_[size_t(n.a)];
        after[i] = made_by[size_t(n.a)];
      }
      if (i) after[i] = std::max(after[i], after[i - 1]);  // they are computed in their order
    }
    for (const auto& [number, node] : needs_)
      if (after[size_t(number)] > node)
        throw Error(ErrorKind::value,
                    "node " + std::to_string(node) + " needs a number that follows from a later one");
    for (const Guard& g : made_->guards)
      if (std::max(after[size_t(g.a)], after[size_t(g.b)]) > g.at)
        throw Error(ErrorKind::value, "a guard needs a number that follows from a later node");
  }

  const Json& document_;
  const ReadTensor& read_;
  const int level_;  // of programs around it
  std::shared_ptr<Program> made_;
  std::unordered_map<std::string, int> array_;  // the values of tensors, by their names
  std::vector<int> place_;                      // the value that a number of the text stands for
  std::vector<std::pair<int, size_t>> needs_;   // numbers, and the nodes that need them
  size_t needed_ = 0;
};
}  // namespace

std::shared_ptr<const Program> program_of(const Json& j, const ReadTensor& read) {
  return Reader(j, read).program();
}
}  // namespace dovetail
