// dovetail/codegen_groups.hpp - which nodes of a program can be one loop, and how they are put into groups: the
// first half of codegen.hpp, which explains it.
#ifndef DOVETAIL_CODEGEN_GROUPS_HPP
#define DOVETAIL_CODEGEN_GROUPS_HPP

#include <algorithm>
#include <cstring>
#include <vector>

#include "dovetail/backend.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
namespace codegen {
inline constexpr uint32_t none = UINT32_MAX;

// ---- what a node is --------------------------------------------------------------------------------------------

// A shape as programs write it: a negative size is a symbol.
struct Shape {
  const int64_t* size;
  int32_t rank;

  explicit Shape(const DLTensor& t) : size(t.shape), rank(t.ndim) {}
  int64_t operator[](int32_t axis) const { return size[axis]; }
  int64_t last() const { return size[rank - 1]; }
  bool operator==(const Shape& o) const { return rank == o.rank && std::equal(size, size + rank, o.size); }
  // Is this `o` without its last axis, or with 1 there?
  bool is_squeezed(const Shape& o) const { return rank == o.rank - 1 && std::equal(size, size + rank, o.size); }
  bool is_row_of(const Shape& o) const {
    return rank == o.rank && rank > 0 && last() == 1 && std::equal(size, size + rank - 1, o.size);
  }
  // Is this the last axis of `o` alone, or with axes of size 1 before it?
  bool is_last_of(const Shape& o) const {
    return (rank == 1 || rank == o.rank) && last() == o.last() &&
           std::all_of(size, size + rank - 1, [](int64_t n) { return n == 1; });
  }
};

// Does every axis of a have size 1 or that of b, when the last axes are aligned?
inline bool broadcasts_to(const Shape& a, const Shape& b) {
  if (a.rank > b.rank) return false;
  for (int32_t i = 0; i < a.rank; ++i)
    if (a[i] != 1 && a[i] != b[b.rank - a.rank + i]) return false;
  return true;
}

inline bool is_reduction(const dvt_node& node) {
  static const char* const names[] = {"dvt.sum",  "dvt.mean", "dvt.max", "dvt.min",
                                      "dvt.prod", "dvt.any",  "dvt.all"};
  return std::any_of(std::begin(names), std::end(names), [&](const char* n) { return !std::strcmp(n, node.op); });
}

// Which axes a reduction takes; of other nodes `none`.
enum class Reduces { none, last, leading /* all but the last */, others };

inline Reduces reduced_axes(const dvt_program& p, const dvt_node& node) {
  if (!is_reduction(node)) return Reduces::none;
  const int32_t rank = p.values[node.in[0]].ndim;
  if (node.n_in != 1 || rank < 1 || !node.n_attr) return Reduces::others;
  const dvt_attr& axes = node.attr[0];
  const bool one = axes.kind == DVT_A_I64;
  uint64_t mask = 0;
  if (axes.kind == DVT_A_NONE) mask = (uint64_t{1} << rank) - 1;
  else if (!one && axes.kind != DVT_A_I64S) return Reduces::others;
  for (uint32_t i = 0; i < (one ? 1 : axes.kind == DVT_A_I64S ? axes.count : 0); ++i) {
    const int64_t axis = one ? axes.v.i : axes.v.is[i];
    if (axis < -rank || axis >= rank) return Reduces::others;
    mask |= uint64_t{1} << (axis < 0 ? axis + rank : axis);
  }
  const uint64_t last = uint64_t{1} << (rank - 1);
  return mask == last ? Reduces::last : mask == last - 1 && rank > 1 ? Reduces::leading : Reduces::others;
}

// Is the op worth a row of scratch memory? All that are not known as cheap are.
inline bool is_cheap(const char* op) {
  static const char* const names[] = {
      "abs",     "add",     "astype",     "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert",
      "clip",    "divide",  "equal",      "greater",     "less",       "isfinite",    "greater_equal",
      "isinf",   "isnan",   "less_equal", "logical_and", "logical_or", "logical_not", "logical_xor",
      "maximum", "minimum", "multiply",   "negative",    "not_equal",  "reciprocal",  "relu",
      "sign",    "signbit", "square",     "subtract",    "where",      "floor",       "ceil",
      "round",   "trunc",   "sqrt"};
  if (std::strncmp(op, "dvt.", 4)) return false;
  return std::any_of(std::begin(names), std::end(names), [&](const char* n) { return !std::strcmp(n, op + 4); });
}

// Why no group can have the node; NULL if one can. An op that is no reduction is taken as elementwise: the caller
// asks for none that is not. `leading`: may it reduce along all axes but the last?
inline const char* refusal(const dvt_program& p, const dvt_node& node, bool leading) {
  if (node.n_out != 1 || !node.n_in || node.out[0] == none) return "not one result of one or more operands";
  for (uint32_t i = 0; i < node.n_attr; ++i) {
    const uint32_t kind = node.attr[i].kind;
    if (kind == DVT_A_SIZE || kind == DVT_A_SIZES || kind == DVT_A_REAL || kind == DVT_A_PROGRAM)
      return "an attribute depends on sizes, or is a program";
  }
  const DLTensor& result = p.values[node.out[0]];
  bool known = result.ndim >= 0;
  for (uint32_t i = 0; i < node.n_in; ++i) known = known && (node.in[i] == none || p.values[node.in[i]].ndim >= 0);
  if (!known) return "shapes are unknown";
  if (!is_reduction(node)) {
    for (uint32_t i = 0; i < node.n_in; ++i)
      if (node.in[i] != none && !broadcasts_to(Shape(p.values[node.in[i]]), Shape(result)))
        return "an axis of an operand is not known to be that of the result";
    return nullptr;
  }
  const Shape x(p.values[node.in[0]]), r(result);
  const Reduces axes = reduced_axes(p, node);
  if (axes == Reduces::leading && leading) {
    if (x.last() == 1) return "a reduction with one result";
    return r.is_last_of(x) ? nullptr : "a reduction with a result of another shape";
  }
  if (axes != Reduces::last) return "a reduction along other axes than the last one";
  if (x.last() == 1) return "a reduction of one element";  // its result would vary as the operand does
  return r.is_squeezed(x) || r.is_row_of(x) ? nullptr : "a reduction with a result of another shape";
}

// The index space of a node alone.
inline Shape space_of(const dvt_program& p, const dvt_node& node) {
  return Shape(p.values[is_reduction(node) ? node.in[0] : node.out[0]]);
}

// Which values are reduced without keepdims, or follow from such: their axes are those of the rows, and they meet
// only values of that kind, and single ones. A value without axes meets all.
class Squeezed {
 public:
  explicit Squeezed(const dvt_program& p) : program_(p), squeezed_(p.n_values, false) {}

  // Adds a node that can be in a group; false if it joins what does not belong together. `inside(value)`: is the
  // value made in the group in question?
  template <class Inside>
  bool add(const dvt_node& node, Inside inside) {
    if (reduced_axes(program_, node) == Reduces::leading) return !inside(node.in[0]) || !squeezed_[node.in[0]];
    const DLTensor& result = program_.values[node.out[0]];
    bool any = false, others = false;
    for (uint32_t i = 0; i < node.n_in; ++i) {
      const uint32_t v = node.in[i];
      if (v == none || !inside(v)) continue;
      any = any || squeezed_[v];
      others = others || (!squeezed_[v] && program_.values[v].ndim > 0);
    }
    if (any && (others || is_reduction(node))) return false;
    const bool reduces = is_reduction(node) && result.ndim < program_.values[node.in[0]].ndim;
    squeezed_[node.out[0]] = (any || reduces) && result.ndim > 0;
    return true;
  }
  bool operator[](uint32_t value) const { return squeezed_[value]; }

 private:
  const dvt_program& program_;
  std::vector<bool> squeezed_;
};

// ---- groups ----------------------------------------------------------------------------------------------------

struct Costs {
  float launch_ns = 500;     // of a node, beside its work
  float bytes_per_ns = 10;   // to and from memory
  uint32_t most_nodes = 64;  // of a group
  bool leading = false;      // may groups reduce along all axes but the last?
};

// Puts nodes into groups in their order. Every group, and every node outside of groups, has a level: above those of
// all that it depends on. A path that leaves a group climbs, and so never comes back: groups are convex.
template <class Supports>
class Grouping {
 public:
  Grouping(const dvt_program& p, Supports supports, const Costs& costs, dvt_claim* out)
      : program_(p),
        supports_(supports),
        costs_(costs),
        out_(out),
        squeezed_(p),
        maker_(p.n_values, none),
        reader_(p.n_values, none),
        group_of_(p.n_nodes, none),
        level_(p.n_nodes, 0) {}

  void run() {
    for (uint32_t n = 0; n < program_.n_nodes; ++n) {
      const dvt_node& node = *program_.nodes[n];
      out_[n] = {0, 0, refusal(program_, node, costs_.leading), {0, 0}};
      if (!out_[n].reason) out_[n].reason = supports_(program_, node);
      if (!out_[n].reason) place(n);
      else level_[n] = level_after(node, {});
      for_each_maker(node, [&](uint32_t group, uint32_t) {
        if (group != none && group != find(group_of_[n]))
          groups_[group].limit = std::min(groups_[group].limit, level_of(n));
      });
      for (uint32_t i = 0; i < node.n_out; ++i)
        if (node.out[i] != none) maker_[node.out[i]] = n;
    }
    number_groups();
  }

 private:
  struct Group {
    uint32_t parent, level, limit, nodes;  // limit: the lowest level of what uses its results
    const dvt_node* widest;                // its index space is the group's
    bool reduces;                          // along the last axis
    bool leading;                          // along the others
  };
  using Set = std::vector<uint32_t>;  // of few groups

  uint32_t find(uint32_t g) {
    if (g == none) return none;
    while (groups_[g].parent != g) g = groups_[g].parent = groups_[groups_[g].parent].parent;
    return g;
  }
  uint32_t level_of(uint32_t n) { return group_of_[n] == none ? level_[n] : groups_[find(group_of_[n])].level; }
  static bool has(const Set& set, uint32_t g) { return std::find(set.begin(), set.end(), g) != set.end(); }

  // body(group or none, node) for the nodes that make a node's operands.
  template <class Body>
  void for_each_maker(const dvt_node& node, Body body) {
    for (uint32_t i = 0; i < node.n_in; ++i)
      if (node.in[i] != none && maker_[node.in[i]] != none)
        body(find(group_of_[maker_[node.in[i]]]), maker_[node.in[i]]);
  }
  // The lowest level for a node that joins `set`.
  uint32_t level_after(const dvt_node& node, const Set& set) {
    uint32_t level = 0;
    for (uint32_t g : set) level = std::max(level, groups_[g].level);
    for_each_maker(node, [&](uint32_t group, uint32_t maker) {
      if (group == none || !has(set, group)) level = std::max(level, level_of(maker) + 1);
    });
    return level;
  }
  Shape space(uint32_t g) const { return space_of(program_, *groups_[g].widest); }

  // The groups of `wanted` that the node can join together; `joined` becomes the resulting group without the node.
  Set compatible(const dvt_node& node, const Set& wanted, Group& joined) {
    const bool leading = reduced_axes(program_, node) == Reduces::leading, reduces = is_reduction(node) && !leading;
    joined = {0, 0, UINT32_MAX, 1, &node, reduces, leading};
    bool rows_only = false;  // the node's result has no last axis
    Set set;
    for (uint32_t g : wanted) {
      const Group& group = groups_[g];
      const Shape wide = space_of(program_, *joined.widest), other = space(g);
      const bool smaller = other.is_row_of(wide) && !group.reduces;
      const bool wider = !joined.reduces && !joined.leading &&
                         (wide.is_row_of(other) || (wide.is_squeezed(other) && group.reduces));
      if (!(wide == other || smaller || wider) || joined.nodes + group.nodes > costs_.most_nodes) continue;
      if ((joined.reduces || group.reduces) && (joined.leading || group.leading)) continue;
      rows_only = rows_only || (wider && wide.is_squeezed(other));
      if (wider) joined.widest = group.widest;
      joined.reduces = joined.reduces || group.reduces, joined.leading = joined.leading || group.leading;
      joined.nodes += group.nodes, joined.limit = std::min(joined.limit, group.limit);
      set.push_back(g);
    }
    const auto inside = [&](uint32_t v) { return maker_[v] != none && has(set, find(group_of_[maker_[v]])); };
    const bool meets = squeezed_.add(node, inside);
    const uint32_t result = node.out[0];
    const bool of_rows = squeezed_[result] && !reduces;
    if (meets && (of_rows == rows_only || program_.values[result].ndim == 0)) return set;
    return {};
  }

  void place(uint32_t n) {
    const dvt_node& node = *program_.nodes[n];
    Set wanted, before;  // before: groups whose results along the leading axes it needs
    for_each_maker(node, [&](uint32_t group, uint32_t maker) {
      if (group == none) return;
      const bool is_total = reduced_axes(program_, *program_.nodes[maker]) == Reduces::leading;
      Set& set = is_total ? before : wanted;
      if (!has(set, group)) set.push_back(group);
    });
    for (uint32_t i = 0; i < node.n_in; ++i) {  // groups that read the same operand
      const uint32_t g = node.in[i] == none ? none : find(reader_[node.in[i]]);
      if (g != none && !has(wanted, g) && space(g) == space_of(program_, node)) wanted.push_back(g);
    }
    wanted.erase(std::remove_if(wanted.begin(), wanted.end(), [&](uint32_t g) { return has(before, g); }),
                 wanted.end());
    // Those of the lowest level are the first that cannot be put off.
    std::stable_sort(wanted.begin(), wanted.end(),
                     [&](uint32_t a, uint32_t b) { return groups_[a].level > groups_[b].level; });
    Group joined;
    Set set = compatible(node, wanted, joined);
    while (!set.empty()) {
      const uint32_t level = level_after(node, set);
      if (std::all_of(set.begin(), set.end(),
                      [&](uint32_t g) { return level == groups_[g].level || level < groups_[g].limit; }))
        break;
      set.pop_back();
      set = compatible(node, Set(set), joined);
    }
    if (set.empty()) compatible(node, {}, joined);
    joined.level = level_after(node, set);
    const uint32_t g = set.empty() ? uint32_t(groups_.size()) : set[0];
    joined.parent = g;
    if (set.empty()) groups_.push_back(joined);
    else groups_[g] = joined;
    for (uint32_t other : set) groups_[other].parent = g;
    group_of_[n] = g;
    for (uint32_t i = 0; i < node.n_in; ++i)
      if (node.in[i] != none && Shape(program_.values[node.in[i]]) == space_of(program_, node))
        reader_[node.in[i]] = g;
  }

  float bytes(uint32_t v) const {
    const DLTensor& t = program_.values[v];
    double n = t.dtype.bits / 8.0;
    for (int32_t i = 0; i < t.ndim; ++i) {
      const int64_t hint = t.shape[i] < 0 ? program_.symbols[-1 - t.shape[i]].hint : t.shape[i];
      n *= double(hint < 0 ? 1024 : hint);
    }
    return float(n);
  }
  // Groups of several nodes get numbers. A node saves its launch, what it reads from its group, and its result's
  // way to memory if nobody else reads it.
  void number_groups() {
    std::vector<uint32_t> number(groups_.size(), 0);
    std::vector<bool> leaves(program_.n_values, false);
    for (uint32_t i = 0; i < program_.n_outputs; ++i) leaves[program_.outputs[i]] = true;
    for (uint32_t n = 0; n < program_.n_nodes; ++n)
      for (uint32_t i = 0; i < program_.nodes[n]->n_in; ++i) {
        const uint32_t v = program_.nodes[n]->in[i];
        if (v != none && maker_[v] != none && find(group_of_[maker_[v]]) != find(group_of_[n])) leaves[v] = true;
      }
    uint32_t groups = 0;
    for (uint32_t n = 0; n < program_.n_nodes; ++n) {
      const uint32_t g = find(group_of_[n]);
      if (g == none) continue;
      if (groups_[g].nodes == 1) {
        out_[n].reason = "no other node has the same index space and is connected";
        continue;
      }
      const bool first = !number[g];
      if (first) number[g] = ++groups;
      const dvt_node& node = *program_.nodes[n];
      float saved = leaves[node.out[0]] ? 0 : bytes(node.out[0]);
      for_each_maker(node, [&](uint32_t group, uint32_t maker) {
        if (group == g) saved += bytes(program_.nodes[maker]->out[0]);
      });
      out_[n] = {number[g], (first ? 0 : costs_.launch_ns) + saved / costs_.bytes_per_ns, nullptr, {0, 0}};
    }
  }

  const dvt_program& program_;
  Supports supports_;
  const Costs costs_;
  dvt_claim* const out_;
  Squeezed squeezed_;
  std::vector<uint32_t> maker_, reader_;  // by value: the node that makes it, a group that reads all of it
  std::vector<uint32_t> group_of_, level_;
  std::vector<Group> groups_;
};

// Fills in one dvt_claim per node. supports(program, node) returns NULL for a node that the device has code for,
// else a static string, why not; it is asked about elementwise ops and reductions along the last axis (and with
// costs.leading along all others), and must refuse ops of any other kind. A group has at least two nodes, all of
// one index space or of one value per row of it.
template <class Supports>
void claim(const dvt_program& p, Supports supports, dvt_claim* out, const Costs& costs = {}) {
  Grouping<Supports>(p, supports, costs, out).run();
}
}  // namespace codegen
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_CODEGEN_GROUPS_HPP
