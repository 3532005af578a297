#include "graph/explain.hpp"

#include <unordered_map>

#include "../text.hpp"

namespace dovetail {
namespace {
constexpr int kMostDepth = 6;  // of an expression in a message

std::string of_size(const Program& p, const Number& n) {
  const std::string axis = ".shape[" + std::to_string(n.b) + "]";
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    if (p.inputs[i].value != n.a) continue;
    if (const std::string_view name = p.inputs[i].size_name(size_t(n.b)); !name.empty()) return std::string(name);
    return name_of_input(p, i) + axis;
  }
  for (const Program::Node& node : p.nodes)
    if (node.out == n.a) return node.op->spec.name + "(...)" + axis;
  return "value " + std::to_string(n.a) + axis;
}

const char* sign_of(Number::Op op) {
  switch (op) {
    case Number::add: return "+";
    case Number::subtract: return "-";
    case Number::multiply: return "*";
    case Number::divide: return "/";
    case Number::floor_divide: return "//";
    case Number::modulo: return "%";
    case Number::shift_left: return "<<";
    case Number::shift_right: return ">>";
    case Number::power: return "**";
    case Number::bit_and: return "&";
    case Number::bit_or: return "|";
    case Number::bit_xor: return "^";
    default: return "?";
  }
}
}  // namespace

std::string text_of(const Program& p, int number, int depth) {
  const Number& n = p.numbers[size_t(number)];
  if (n.op == Number::integer) return std::to_string(n.i);
  if (n.op == Number::real) return to_string(n.f);
  if (n.op == Number::size) return of_size(p, n);
  if (n.op == Number::attribute && n.b >= 0 && size_t(n.b) < p.arguments.size()) return p.arguments[size_t(n.b)];
  if (n.op == Number::attribute) return "attribute " + std::to_string(n.a);
  if (depth == kMostDepth) return "...";
  const std::string a = text_of(p, n.a, depth + 1);
  if (is_unary(n.op)) return std::string(number_names[n.op]) + "(" + a + ")";
  const std::string b = text_of(p, n.b, depth + 1);
  if (n.op == Number::minimum || n.op == Number::maximum)
    return std::string(n.op == Number::minimum ? "min(" : "max(") + a + ", " + b + ")";
  const std::string text = a + " " + sign_of(n.op) + " " + b;
  return depth ? "(" + text + ")" : text;
}

std::string broken(const Program& p, const Guard& g, const std::vector<NumberValue>& values) {
  static constexpr const char* signs[] = {"==", "!=", "<", "<=", "is"};
  const auto shown = [&](int k) {
    const Number& n = p.numbers[size_t(k)];
    const std::string text = text_of(p, k, 0);
    if (n.op == Number::integer || n.op == Number::real) return text;
    const NumberValue v = values[size_t(k)];
    return text + " (here " + (n.is_real ? to_string(v.f) : std::to_string(v.i)) + ")";
  };
  std::string why = "it was made for " + shown(g.a) + " " + signs[g.compare] + " " + shown(g.b);
  if (!g.where.empty()) why += ", at " + g.where;
  else if (g.at < p.nodes.size() && !p.nodes[g.at].where.empty()) why += ", before " + p.nodes[g.at].where;
  return why;
}

std::string name_of_input(const Program& p, size_t i) {
  return p.inputs[i].name.empty() ? "input " + std::to_string(i) : p.inputs[i].name;
}

std::string misfit(const Program& p, const TensorType* const* inputs) {
  struct First {
    size_t input;
    int64_t size;
  };
  std::unordered_map<std::string_view, First> named;
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    const Program::Input& declared = p.inputs[i];
    const TensorType& t = *inputs[i];
    if (declared.dtype == DType::none) continue;
    if (t.dtype != declared.dtype)
      return name_of_input(p, i) + " has dtype " + info(t.dtype).name + ": expected " + info(declared.dtype).name;
    if (size_t(t.rank()) != declared.shape.size())
      return name_of_input(p, i) + " has shape " + to_string(t.shape()) + ": expected " +
             std::to_string(declared.shape.size()) + " axes";
    for (size_t axis = 0; axis < declared.shape.size(); ++axis) {
      const auto wrong = [&](const std::string& expected) {
        return name_of_input(p, i) + " has size " + std::to_string(t.size(int(axis))) + " on axis " +
               std::to_string(axis) + ": expected " + expected;
      };
      if (declared.shape[axis] >= 0 && t.size(int(axis)) != declared.shape[axis])
        return wrong(std::to_string(declared.shape[axis]));
      const std::string_view name = declared.size_name(axis);
      if (name.empty()) continue;
      const First& first = named.try_emplace(name, i, t.size(int(axis))).first->second;
      if (first.size != t.size(int(axis)))
        return wrong(std::to_string(first.size) + ", the size '" + std::string(name) + "' of " +
                     name_of_input(p, first.input));
    }
  }
  return {};
}
}  // namespace dovetail
