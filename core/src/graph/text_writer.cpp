// Programs as JSON: graph/text.hpp describes the form, text_reader.cpp reads it.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "graph/control.hpp"
#include "graph/text.hpp"

namespace dovetail {
namespace {
const ParamSpec& attribute_of(const Op& op, int i) {
  for (const ParamSpec& p : op.spec.params)
    if (!is_operand(p.kind) && i-- == 0) return p;
  throw Error(ErrorKind::runtime, "[" + op.spec.name + "] has no such attribute");
}

Json json_of(const Number& n) {
  switch (n.op) {
    case Number::integer: return Json(n.i);
    case Number::real: return Json(n.f);
    case Number::attribute: {
      Json j = Json::list({n.is_real ? kRealAttribute : number_names[n.op], n.a});
      if (n.b >= 0) j.items.push_back(n.b);
      return j;
    }
    default: {
      Json j = Json::list({number_names[n.op], n.a});
      if (!is_unary(n.op)) j.items.push_back(n.b);
      return j;
    }
  }
}

Json number_entry(int entry) { return Json::map({{"number", entry}}); }

Json scalar_json(const Scalar& s) {
  if (is_complex(s.dtype)) {
    const Scalar wide = cast_scalar(s, DType::c128);
    double parts[2];
    std::memcpy(parts, wide.bits, sizeof parts);
    return Json::list({parts[0], parts[1]});
  }
  if (s.dtype == DType::b8) return Json(s.read<uint8_t>() != 0);
  if (s.dtype == DType::u64) return Json(s.read<uint64_t>());
  if (is_integer(s.dtype)) return Json(cast_scalar(s, DType::i64).read<int64_t>());
  return Json(cast_scalar(s, DType::f64).read<double>());
}

Json attribute_json(const dvt_attr& a) {
  switch (a.kind) {
    case DVT_A_I64: return Json(a.v.i);
    case DVT_A_U64: return Json(a.v.raw);
    case DVT_A_F64: return Json(a.v.f);
    case DVT_A_BOOL: return Json(a.v.i != 0);
    case DVT_A_STR: return Json(std::string(a.v.s, a.count));
    case DVT_A_DTYPE: return Json::map({{"dtype", info(*dtype_of(a.v.dt)).name}});
    case DVT_A_F64S: return Json::map({{"complex", Json::list({a.v.fs[0], a.v.fs[1]})}});
    case DVT_A_I64S: {
      Json j = Json::list();
      for (uint32_t k = 0; k < a.count; ++k) j.items.emplace_back(a.v.is[k]);
      return j;
    }
    default: return {};
  }
}

const Program::Decompositions none;  // of programs within others

class Writer {
 public:
  Writer(const Program& p, const Program::Decompositions& decompositions)
      : program_(p),
        decompositions_(decompositions),
        place_(size_t(p.n_values), -1),
        constant_(place_),
        array_(place_) {
    int next = 0;
    for (const Program::Input& input : p.inputs) place_[size_t(input.value)] = next++;
    for (const Program::Node& node : p.nodes)
      for (uint32_t i = 0; i < node.n_out; ++i) place_[size_t(node.out) + i] = next++;
    for (size_t i = 0; i < p.constants.size(); ++i) constant_[size_t(p.constants[i].value)] = int(i);
    for (size_t i = 0; i < p.arrays.size(); ++i) array_[size_t(p.arrays[i].value)] = int(i);
    for (size_t i = 0; i < p.programs.size(); ++i) part_[p.programs[i].get()] = int64_t(i);
  }

  Json document() const {
    Json j = Json::map({{"dovetail", kTextFormat}});
    for (auto& member : body().members) j.members.push_back(std::move(member));
    return j;
  }

 private:
  Json body() const {
    Json j = Json::map({{"inputs", Json::list()}});
    for (const Program::Input& input : program_.inputs) j.members.back().second.items.push_back(input_json(input));
    if (!program_.numbers.empty()) {
      Json numbers = Json::list();
      for (Number n : program_.numbers) {
        if (n.op == Number::size) n.a = place_[size_t(n.a)];
        numbers.items.push_back(json_of(n));
      }
      j.members.emplace_back("numbers", std::move(numbers));
    }
    if (!program_.guards.empty()) {
      Json guards = Json::list();
      for (const Guard& g : program_.guards) {
        guards.items.push_back(Json::list({compare_names[g.compare], g.a, g.b, int64_t(g.at)}));
        if (!g.where.empty()) guards.items.back().items.emplace_back(g.where);
      }
      j.members.emplace_back("guards", std::move(guards));
    }
    if (!program_.programs.empty()) {
      Json programs = Json::list();
      for (const auto& part : program_.programs) programs.items.push_back(Writer(*part, none).body());
      j.members.emplace_back("programs", std::move(programs));
    }
    Json nodes = Json::list(), outputs = Json::list();
    for (const Program::Node& node : program_.nodes) nodes.items.push_back(node_json(node));
    for (const int v : program_.outputs) outputs.items.push_back(operand_json(v));
    j.members.emplace_back("nodes", std::move(nodes));
    j.members.emplace_back("outputs", std::move(outputs));
    if (!program_.arrays.empty()) j.members.emplace_back("tensors", tensors());
    if (!decompositions_.empty()) j.members.emplace_back("decompositions", decompositions());
    if (!program_.signature.empty()) j.members.emplace_back("signature", parse_json(program_.signature));
    return j;
  }

  Json program_json(const dvt_attr& a) const { return Json::map({{"program", part_.at(&program_in(a))}}); }

  static Json input_json(const Program::Input& input) {
    if (input.dtype == DType::none) return Json::map();
    Json shape = Json::list();
    for (size_t axis = 0; axis < input.shape.size(); ++axis)
      if (const std::string_view name = input.size_name(axis); !name.empty())
        shape.items.emplace_back(std::string(name));
      else shape.items.push_back(input.shape[axis] < 0 ? Json() : Json(input.shape[axis]));
    Json j = Json::map({{"dtype", info(input.dtype).name}, {"shape", std::move(shape)}});
    if (!input.name.empty()) j.members.emplace_back("name", input.name);
    return j;
  }

  Json tensors() const {
    Json j = Json::map();
    for (const Program::Array& a : program_.arrays) {
      Json shape = Json::list();
      for (const int64_t n : a.elements.shape) shape.items.emplace_back(n);
      j.members.emplace_back(a.name,
                             Json::map({{"dtype", info(a.elements.dtype).name}, {"shape", std::move(shape)}}));
    }
    return j;
  }

  // Of each op its patterns, and each program once.
  Json decompositions() const {
    Json ops = Json::map();
    for (const auto& [op, known] : decompositions_) {
      Json programs = Json::list(), patterns = Json::map();
      std::unordered_map<const Program*, int64_t> places;
      for (const auto& [version, pattern, program] : known) {
        const auto [place, fresh] = places.try_emplace(program.get(), int64_t(places.size()));
        if (fresh) programs.items.push_back(Writer(*program, none).body());
        auto at = std::ranges::find(patterns.members, pattern, [](const auto& m) { return m.first; });
        if (at == patterns.members.end())
          at = patterns.members.emplace(patterns.members.end(), pattern, Json::list());
        at->second.items.emplace_back(place->second);
      }
      ops.members.emplace_back(op, Json::map({{"v", int64_t(known.front().version)},
                                              {"patterns", std::move(patterns)},
                                              {"programs", std::move(programs)}}));
    }
    return ops;
  }

  Json operand_json(int v) const {
    if (v < 0) return {};
    if (const int array = array_[size_t(v)]; array >= 0)
      return Json::map({{"tensor", program_.arrays[size_t(array)].name}});
    if (constant_[size_t(v)] < 0) return Json(place_[size_t(v)]);
    const Program::Constant& c = program_.constants[size_t(constant_[size_t(v)])];
    Json j = c.number < 0 ? Json::map({{"n", scalar_json(c.scalar)}}) : number_entry(c.number);
    j.members.emplace_back("dtype", info(c.scalar.dtype).name);
    return j;
  }

  Json node_json(const Program::Node& node) const {
    const Op& op = *node.op;
    Json j = Json::map({{"op", op.spec.name}});
    if (op.spec.version != 1) j.members.emplace_back("v", int64_t(op.spec.version));
    Json in = Json::list(), at = Json::map();
    for (const int v : node.in) in.items.push_back(operand_json(v));
    const Attrs defaults = op.defaults;
    for (int i = 0; i < op.n_attr; ++i) {
      const dvt_attr& a = node.attrs.at[i];
      Json value = a.kind == DVT_A_PROGRAM ? program_json(a) : attribute_json(a);
      bool slots = false;
      for (const Program::Slot& slot : node.slots) {
        if (slot.attr != i) continue;
        (slot.element < 0 ? value : value.items[size_t(slot.element)]) = number_entry(slot.number);
        slots = true;
      }
      if (slots || !same_value(a, defaults.at[i]))
        at.members.emplace_back(attribute_of(op, i).name, std::move(value));
    }
    j.members.emplace_back("in", std::move(in));
    if (op.spec.flags & op_control) j.members.emplace_back("out", int64_t(node.n_out));
    if (!at.members.empty()) j.members.emplace_back("at", std::move(at));
    if (!node.where.empty()) j.members.emplace_back("where", node.where);
    return j;
  }

  const Program& program_;
  const Program::Decompositions& decompositions_;
  // Of each value: its number in the text; its place among the constants, among the arrays.
  std::vector<int> place_, constant_, array_;
  std::unordered_map<const Program*, int64_t> part_;  // the places of programs within this one
};
}  // namespace

Json to_json(const Program& p, const Program::Decompositions* decompositions) {
  return Writer(p, decompositions ? *decompositions : p.decompositions).document();
}
}  // namespace dovetail
