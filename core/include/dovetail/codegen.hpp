// dovetail/codegen.hpp - elementwise groups of a program for a device's compiler (dvt_compiler of abi.h): which
// nodes make a group (claim), what loops a group is (lower), and those loops as text. C++17, header-only, no part
// of the protocol; it knows no device.
//
// A group has one index space: the shape to which all its values broadcast. Its nodes are elementwise ops, and
// reductions along the last axis. The code of a group runs over the rows of the space, and over each row in passes:
// a step that needs the result of a reduction of its row belongs to a later pass than that reduction. Where claim
// is called with Costs::leading, groups may instead reduce along all other axes: over the rows of each column. No
// other step of the group uses such a result.
//
//   dvt_status claim(dvt_device*, const dvt_program* p, dvt_claim* out) {
//     dvt::codegen::claim(*p, [](const dvt_program& p, const dvt_node& node) -> const char* {
//       return knows(p, node) ? nullptr : "no code for this op and these dtypes";
//     }, out);
//     return DVT_OK;
//   }
//   dvt_status compile(dvt_device* d, const dvt_program* p, const char*, dvt_exe** out) {
//     dvt::codegen::Loops loops;
//     if (const char* reason = dvt::codegen::lower(*p, loops)) return DVT_FAIL(DVT_UNSUPPORTED, "%s", reason);
//     for (const dvt::codegen::Pass& pass : loops.passes) ...
//   }
#ifndef DOVETAIL_CODEGEN_HPP
#define DOVETAIL_CODEGEN_HPP

#include <string>
#include <utility>

#include "dovetail/codegen_groups.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
namespace codegen {
// ---- loops -----------------------------------------------------------------------------------------------------

struct Value {
  enum Source { input, constant, number, step };
  uint32_t value;  // of the program
  Source source;
  uint32_t index;  // which input of the program, which entry of its numbers, which step
  DLDataType dtype;
  int32_t first_axis;    // of the space: that of the value's axis 0
  bool varies;           // along a row; else a row has one value of it
  uint32_t pass = 0;     // the first pass that can use it
  uint32_t kept = none;  // the row of scratch memory that keeps it for later passes
};
struct Step {
  const dvt_node* node;            // of the program, which must live as long
  std::vector<uint32_t> operands;  // indices into values, none for an absent one
  uint32_t result;
  bool reduces;  // along the last axis
  bool leading;  // reduces along all others
};
struct Pass {
  std::vector<uint32_t> before;  // steps that are done once per row, before its elements
  std::vector<uint32_t> body;  // steps for each element, or that reduce over them. A step may be in several passes
};
struct Loops {
  std::vector<int64_t> space;  // sizes as programs write them
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<Pass> passes;
  std::vector<uint32_t> outputs;  // values, in the order of the program's outputs
  uint32_t n_kept = 0;
};

class Lowering {
 public:
  Lowering(const dvt_program& p, uint32_t recompute, Loops& out)
      : program_(p),
        recompute_(recompute),
        loops_(out),
        squeezed_(p),
        made_(p.n_values, none),
        outside_(2 * size_t(p.n_values), none) {}

  const char* run() {
    if (const char* reason = find_space()) return reason;
    for (uint32_t n = 0; n < program_.n_nodes; ++n)
      if (const char* reason = add_step(*program_.nodes[n])) return reason;
    const auto any = [&](bool Step::* what) {
      return std::any_of(loops_.steps.begin(), loops_.steps.end(), [&](const Step& s) { return s.*what; });
    };
    if (any(&Step::reduces) && any(&Step::leading)) return "reductions along the last axis and along others";
    for (uint32_t i = 0; i < program_.n_outputs; ++i) {
      const uint32_t v = made_[program_.outputs[i]];
      if (v == none) return "an output that no node makes";
      loops_.outputs.push_back(v);
    }
    make_passes();
    return nullptr;
  }

 private:
  const char* find_space() {
    std::vector<bool> inside(program_.n_values, false);
    for (uint32_t n = 0; n < program_.n_nodes; ++n) {
      const dvt_node& node = *program_.nodes[n];
      if (const char* reason = refusal(program_, node, true)) return reason;
      if (!squeezed_.add(node, [&](uint32_t v) { return bool(inside[v]); }))
        return "a result without the reduced axis meets values that have it";
      inside[node.out[0]] = true;
      if (squeezed_[node.out[0]] && !is_reduction(node)) continue;
      const Shape s = space_of(program_, node);
      std::vector<int64_t>& space = loops_.space;
      if (s.rank > int32_t(space.size())) space.insert(space.begin(), size_t(s.rank) - space.size(), 1);
      for (int32_t i = 0; i < s.rank; ++i) {
        int64_t& size = space[space.size() - size_t(s.rank - i)];
        if (size == 1) size = s[i];
        if (size != s[i] && s[i] != 1) return "nodes of several index spaces";
      }
    }
    if (loops_.space.empty()) loops_.space.push_back(1);
    return nullptr;
  }
  int32_t rank() const { return int32_t(loops_.space.size()); }
  DLTensor tensor_of_space(int32_t rank) { return {nullptr, {}, rank, {}, loops_.space.data(), nullptr, 0}; }

  // An operand that is not made here. Values without axes can stand for both kinds.
  uint32_t add_outside(uint32_t v, bool squeezed) {
    const DLTensor& t = program_.values[v];
    squeezed = squeezed && t.ndim > 0;
    uint32_t& place = outside_[2 * size_t(v) + squeezed];
    if (place != none) return place;
    place = uint32_t(loops_.values.size());
    if (inputs_.empty()) {
      inputs_.assign(program_.n_values, none);
      for (uint32_t i = program_.n_inputs; i-- > 0;) inputs_[program_.inputs[i]] = i;
    }
    Value value{v, Value::constant, 0, t.dtype, rank() - squeezed - t.ndim, false};
    value.varies = !squeezed && t.ndim > 0 && Shape(t).last() == loops_.space.back();
    if (inputs_[v] != none) value.source = Value::input, value.index = inputs_[v];
    else if (program_.info[v].flags & DVT_V_NUMBER)
      value.source = Value::number, value.index = uint32_t(program_.info[v].number);
    loops_.values.push_back(value), cost_.push_back(0);
    return place;
  }

  const char* add_step(const dvt_node& node) {
    const uint32_t out = node.out[0];
    const DLTensor& t = program_.values[out];
    const bool leading = reduced_axes(program_, node) == Reduces::leading, reduces = is_reduction(node) && !leading;
    const bool squeezed = squeezed_[out] && !reduces;
    Step step{&node, {}, 0, reduces, leading};
    Value result{out, Value::step, uint32_t(loops_.steps.size()), t.dtype, rank() - squeezed_[out] - t.ndim, false};
    uint32_t cost = reduces || leading ? 0 : is_cheap(node.op) ? 1 : expensive;
    if ((reduces || leading) && !(space_of(program_, node) == Shape(tensor_of_space(rank()))))
      return "a reduction of a value that has not the group's index space";
    for (uint32_t i = 0; i < node.n_in; ++i) {
      const uint32_t v = node.in[i];
      if (v == none) {
        step.operands.push_back(none);
        continue;
      }
      const uint32_t operand = made_[v] != none ? made_[v] : add_outside(v, squeezed);
      step.operands.push_back(operand);
      const Value& x = loops_.values[operand];
      if (x.source == Value::step && loops_.steps[x.index].leading)
        return "a use of a reduction along leading axes";
      result.varies = result.varies || x.varies;
      result.pass = std::max(result.pass, x.pass);
      if (x.varies) cost = std::min(cost + cost_[operand], expensive);
    }
    if ((reduces || leading) && !result.varies) return "a reduction of a value that is one per row";
    if (reduces || leading) result.varies = false;
    if (reduces) ++result.pass;
    if (squeezed && !broadcasts_to(Shape(t), Shape(tensor_of_space(rank() - 1))))
      return "a result without the reduced axis has other axes than the rows";
    step.result = made_[out] = uint32_t(loops_.values.size());
    loops_.values.push_back(result), cost_.push_back(cost);
    loops_.steps.push_back(std::move(step));
    return nullptr;
  }

  uint32_t pass_of(const Step& s) const { return loops_.values[s.result].pass - s.reduces; }

  // Each pass has the reductions and outputs that are possible from it on, and what those need. What an earlier
  // pass has made is made again, or kept if that takes more than a few cheap steps.
  void make_passes() {
    uint32_t n = 1;
    for (const Step& s : loops_.steps) n = std::max(n, pass_of(s) + 1);
    loops_.passes.resize(n);
    std::vector<uint32_t> made(loops_.values.size(), none);
    for (uint32_t p = 0; p < n; ++p) {
      std::vector<bool> needed(loops_.values.size(), false);
      for (const Step& s : loops_.steps)
        if ((s.reduces && pass_of(s) == p) || s.leading) needed[s.result] = true;
      for (uint32_t v : loops_.outputs)
        if (loops_.values[v].varies && loops_.values[v].pass == p) needed[v] = true;
      for (size_t i = loops_.steps.size(); i-- > 0;) {
        const Step& s = loops_.steps[i];
        if (!loops_.values[s.result].varies && !s.reduces && !s.leading) {
          if (pass_of(s) == p) loops_.passes[p].before.push_back(uint32_t(i));
          continue;
        }
        if (!needed[s.result]) continue;
        loops_.passes[p].body.push_back(uint32_t(i));
        if (made[s.result] == none) made[s.result] = p;
        for (uint32_t v : s.operands) need(v, p, made, needed);
      }
      std::reverse(loops_.passes[p].before.begin(), loops_.passes[p].before.end());
      std::reverse(loops_.passes[p].body.begin(), loops_.passes[p].body.end());
    }
  }
  void need(uint32_t v, uint32_t pass, const std::vector<uint32_t>& made, std::vector<bool>& needed) {
    if (v == none || loops_.values[v].source != Value::step || !loops_.values[v].varies) return;
    Value& value = loops_.values[v];
    const bool earlier = made[v] < pass;
    if (earlier && value.kept == none && cost_[v] > recompute_) value.kept = loops_.n_kept++;
    if (!earlier || value.kept == none) needed[v] = true;
  }

  static constexpr uint32_t expensive = 1u << 20;
  const dvt_program& program_;
  const uint32_t recompute_;
  Loops& loops_;
  Squeezed squeezed_;
  std::vector<uint32_t> made_,
      cost_;                       // by value of the program: its value here; by value here: steps to make it again
  std::vector<uint32_t> outside_;  // by value of the program, not squeezed and squeezed: its value here
  std::vector<uint32_t> inputs_;   // by value of the program: which input it is
};

// The group that a program is, as loops; NULL, or a static string, why it is none. A value that a later pass needs
// and that `recompute` cheap steps make is made again there; others are kept.
inline const char* lower(const dvt_program& p, Loops& out, uint32_t recompute = 1) {
  out = {};
  return Lowering(p, recompute, out).run();
}

// Has the value the whole index space, no axis of it repeated?
inline bool is_whole(const dvt_program& p, const Loops& loops, uint32_t value) {
  const DLTensor space{nullptr, {}, int32_t(loops.space.size()), {}, const_cast<int64_t*>(loops.space.data()),
                       nullptr, 0};
  return Shape(p.values[loops.values[value].value]) == Shape(space);
}

// The outputs that may be the memory of an input, as dvt_answer.in_place says it, for code that in each pass loads
// all operands of an element before it stores a result there: whole ones, if later passes load no whole input of
// their dtype.
inline uint64_t in_place(const dvt_program& p, const Loops& loops) {
  uint64_t outputs = 0;
  for (size_t k = 0; k < loops.outputs.size() && k < 64; ++k) {
    const Value& output = loops.values[loops.outputs[k]];
    const auto is_loaded = [&](uint32_t v) {
      return v != none && loops.values[v].source == Value::input && same(loops.values[v].dtype, output.dtype) &&
             is_whole(p, loops, v);
    };
    bool fits = output.varies && is_whole(p, loops, loops.outputs[k]);
    for (size_t pass = output.pass + 1; pass < loops.passes.size(); ++pass)
      for (uint32_t s : loops.passes[pass].body) {
        const std::vector<uint32_t>& in = loops.steps[s].operands;
        fits = fits && std::none_of(in.begin(), in.end(), is_loaded);
      }
    if (fits) outputs |= uint64_t{1} << k;
  }
  return outputs;
}

// ---- text ------------------------------------------------------------------------------------------------------

inline std::string text_of_dtype(DLDataType t) {
  static const std::pair<DLDataType, const char*> names[] = {
#define DVT_NAME(id, name, brief, code, bits, kind) {{code, bits, 1}, name},
      DVT_FOR_EACH_DTYPE(DVT_NAME)
#undef DVT_NAME
  };
  for (const auto& [type, name] : names)
    if (same(type, t)) return name;
  return "?";
}
inline std::string text_of_shape(const int64_t* size, int32_t rank) {
  std::string text = "(";
  for (int32_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + (size[i] < 0 ? "s" + std::to_string(-1 - size[i]) : std::to_string(size[i]));
  return text + ")";
}

// The loops to read:
//   space (s0, s1)
//   v0 = input 0: float32 (s0, s1)
//   pass 0
//     v1 = max v0                  per row
//   pass 1
//     v2 = subtract v0 v1
//     v3 = exp v2                  kept 0
//     ...
//   return v5
inline std::string text_of(const dvt_program& p, const Loops& loops) {
  const auto name = [](uint32_t v) { return v == none ? std::string("none") : "v" + std::to_string(v); };
  std::string text = "space " + text_of_shape(loops.space.data(), int32_t(loops.space.size())) + "\n";
  for (uint32_t i = 0; i < loops.values.size(); ++i) {
    const Value& v = loops.values[i];
    if (v.source == Value::step) continue;
    const DLTensor& t = p.values[v.value];
    static const char* const sources[] = {"input", "constant", "number"};
    text += name(i) + " = " + sources[v.source];
    if (v.source != Value::constant) text += " " + std::to_string(v.index);
    text += ": " + text_of_dtype(t.dtype) + " " + text_of_shape(t.shape, t.ndim);
    text += v.varies || t.ndim == 0 ? "\n" : "  per row\n";
  }
  for (uint32_t pass = 0; pass < loops.passes.size(); ++pass) {
    text += "pass " + std::to_string(pass) + "\n";
    const auto add = [&](uint32_t i) {
      const Step& s = loops.steps[i];
      const Value& v = loops.values[s.result];
      std::string line =
          "  " + name(s.result) + " = " + (std::strncmp(s.node->op, "dvt.", 4) ? s.node->op : s.node->op + 4);
      for (uint32_t operand : s.operands) line += " " + name(operand);
      line += ": " + text_of_dtype(v.dtype);
      if (!v.varies) line += s.leading ? "  per column" : "  per row";
      else if (v.kept != none) line += "  kept " + std::to_string(v.kept);
      text += line + "\n";
    };
    for (uint32_t i : loops.passes[pass].before) add(i);
    for (uint32_t i : loops.passes[pass].body) add(i);
  }
  text += "return";
  for (uint32_t v : loops.outputs) text += " " + name(v);
  return text + "\n";
}
}  // namespace codegen
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt

#endif  // DOVETAIL_CODEGEN_HPP
