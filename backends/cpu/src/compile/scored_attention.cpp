#include "compile/scored_attention.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "compile/worker.hpp"

namespace dovetail::cpu {
namespace codegen = dvt::codegen;
namespace {
constexpr uint32_t none = codegen::none;
constexpr uint32_t scores_at = 5;  // among the operands of block_attention
enum Axis { batch, head, query, key };

bool is_op(const dvt_node& node, const char* op) { return !std::strcmp(node.op, op); }
bool is_scores(const dvt_node& node) { return is_op(node, "dvt.attention_scores"); }
bool is_attention(const dvt_node& node) {
  return is_op(node, "dvt.block_attention") && node.n_in > scores_at && node.in[scores_at] != none;
}
bool has_loop(const LoopTable& table, const dvt_program& p, const dvt_node& node) {
  const LoopRow* const row = codegen::refusal(p, node, false) ? nullptr : table.find(p, node);
  return row && row->loop;
}

bool same_attributes(const dvt_node& a, const dvt_node& b) {
  if (a.n_attr != b.n_attr) return false;
  for (uint32_t i = 0; i < a.n_attr; ++i)
    if (a.attr[i].kind != b.attr[i].kind || a.attr[i].v.raw != b.attr[i].v.raw) return false;
  return true;
}

// The nodes of one group.
struct Parts {
  const dvt_node* scores = nullptr;
  const dvt_node* attention = nullptr;
  std::vector<const dvt_node*> changes;
};

const char* check(const Table& table, const dvt_program& p, const Parts& parts) {
  if (!parts.scores || !parts.attention) return "no scores that lead to attention";
  const dvt_node &s = *parts.scores, &a = *parts.attention;
  if (p.flags & DVT_P_ROUND_EACH) return "node by node, scores are rounded otherwise";
  if (s.in[0] != a.in[0] || s.in[1] != a.in[1] || !same_attributes(s, a)) return "scores of other operands";
  const DLDataType type = p.values[s.out[0]].dtype;
  for (const uint32_t v : {a.in[0], a.in[1], a.in[2], a.in[scores_at]})
    if (!dvt::same(p.values[v].dtype, type)) return "operands of several dtypes";
  if (!table.block_attention(type)) return "no kernel for this dtype";
  if (a.attr[0].kind != DVT_A_NONE && a.attr[0].kind != DVT_A_F64) return "a scale that depends on sizes";
  return nullptr;
}

// The group that ends with node `end`: what only leads to its scores.
class Search {
 public:
  Search(const LoopTable& table, const dvt_program& p) : table_(table), program_(p), users_(p.n_values) {
    for (uint32_t n = 0; n < p.n_nodes; ++n)
      for (uint32_t i = 0; i < p.nodes[n]->n_in; ++i)
        if (p.nodes[n]->in[i] != none) users_[p.nodes[n]->in[i]].push_back({n, i});
    for (uint32_t i = 0; i < p.n_outputs; ++i) users_[p.outputs[i]].push_back({none, 0});
  }

  std::vector<uint32_t> run(uint32_t end, Parts& parts) {
    std::vector<bool> inside(program_.n_nodes, false);
    std::vector<uint32_t> found{end};
    parts.attention = program_.nodes[end];
    for (uint32_t n = end; n-- > 0 && !parts.scores;) {
      const dvt_node& node = *program_.nodes[n];
      if (!is_scores(node) && !has_loop(table_, program_, node)) continue;
      const auto leads_to_scores = [&](Use u) {
        return u.node == end ? u.operand == scores_at : u.node != none && inside[u.node];
      };
      const std::vector<Use>& users = users_[node.out[0]];
      if (users.empty() || !std::all_of(users.begin(), users.end(), leads_to_scores)) continue;
      inside[n] = true;
      found.push_back(n);
      if (is_scores(node)) parts.scores = &node;
      else parts.changes.push_back(&node);
    }
    std::reverse(found.begin(), found.end());
    std::reverse(parts.changes.begin(), parts.changes.end());
    return found;
  }

 private:
  struct Use {
    uint32_t node, operand;
  };
  const LoopTable& table_;
  const dvt_program& program_;
  std::vector<std::vector<Use>> users_;
};

// Constant arrays are inputs of the group.
bool is_constant(const dvt_program& p, uint32_t v) {
  const DLTensor& t = p.values[v];
  return p.info[v].flags & DVT_V_CONSTANT &&
         std::all_of(t.shape, t.shape + t.ndim, [](int64_t n) { return n == 1; });
}

// The changes alone, as a group of an index space of symbols. `inputs`: the values that it does not make.
const char* translate_changes(const LoopTable& table, const dvt_program& p, const Parts& parts, Group& out,
                              std::vector<uint32_t>& inputs) {
  const uint32_t result = parts.attention->in[scores_at];
  std::vector<bool> made(p.n_values, false);
  for (const dvt_node* node : parts.changes) made[node->out[0]] = true;
  for (const dvt_node* node : parts.changes)
    for (uint32_t i = 0; i < node->n_in; ++i) {
      const uint32_t v = node->in[i];
      if (v == none || made[v] || is_constant(p, v)) continue;
      if (std::find(inputs.begin(), inputs.end(), v) == inputs.end()) inputs.push_back(v);
    }
  dvt_program alone = p;
  alone.n_nodes = uint32_t(parts.changes.size()), alone.nodes = parts.changes.data();
  alone.n_inputs = uint32_t(inputs.size()), alone.inputs = inputs.data();
  alone.n_outputs = 1, alone.outputs = &result;
  if (const char* reason = translate(table, alone, out)) return reason;
  if (out.has_reductions() || out.space.size() != 4) return "changes of other shapes than the scores";
  if (out.values[out.outputs[0]].extent != Extent::all || out.values[out.outputs[0]].first_axis)
    return "a result that has not the shape of the scores";
  if (!(out.in_place_of_rows & out.in_place_of_passes & 1)) return "a result that cannot replace the scores";
  for (size_t axis = 0; axis < 4; ++axis) out.space[axis] = -1 - int64_t(axis);
  return nullptr;
}

uint32_t place(const uint32_t* values, uint32_t n, uint32_t value) {
  const uint32_t* const found = std::find(values, values + n, value);
  return value == none || found == values + n ? nowhere : uint32_t(found - values);
}
}  // namespace

bool has_attention(const dvt_program& p) {
  return std::any_of(p.nodes, p.nodes + p.n_nodes, [](const dvt_node* node) { return is_attention(*node); });
}

std::vector<std::vector<uint32_t>> find_scored_attention(const Table& table, const LoopTable& loops,
                                                         const dvt_program& p) {
  std::vector<std::vector<uint32_t>> found;
  if (!has_attention(p)) return found;
  Search search(loops, p);
  for (uint32_t n = 0; n < p.n_nodes; ++n) {
    if (!is_attention(*p.nodes[n])) continue;
    Parts parts;
    std::vector<uint32_t> nodes = search.run(n, parts);
    Group changes;
    std::vector<uint32_t> inputs;
    if (check(table, p, parts)) continue;
    if (parts.changes.empty() || !translate_changes(loops, p, parts, changes, inputs))
      found.push_back(std::move(nodes));
  }
  return found;
}

const char* translate(const Table& table, const LoopTable& loops, const dvt_program& p, ScoredAttention& out) {
  Parts parts;
  for (uint32_t n = 0; n < p.n_nodes; ++n) {
    const dvt_node* const node = p.nodes[n];
    if (is_scores(*node)) parts.scores = node;
    else if (is_attention(*node)) parts.attention = node;
    else parts.changes.push_back(node);
  }
  if (const char* reason = check(table, p, parts)) return reason;
  const dvt_node& a = *parts.attention;
  if (parts.changes.empty() && a.in[scores_at] != parts.scores->out[0]) return "scores that no node makes";
  out.any = !parts.changes.empty();
  std::vector<uint32_t> values;
  if (const char* reason = out.any ? translate_changes(loops, p, parts, out.changes, values) : nullptr)
    return reason;
  for (const uint32_t v : values) {
    out.inputs.push_back(place(p.inputs, p.n_inputs, v));
    if (out.inputs.back() == nowhere && v != parts.scores->out[0]) return "a value that no input has";
  }
  uint32_t* const operands[] = {&out.query, &out.key, &out.value, &out.blocks, &out.tiles};
  for (uint32_t i = 0; i < 5; ++i) *operands[i] = place(p.inputs, p.n_inputs, a.in[i]);
  out.out = place(p.outputs, p.n_outputs, a.out[0]), out.logsumexp = place(p.outputs, p.n_outputs, a.out[1]);
  if (std::max({out.query, out.key, out.value, out.out}) == nowhere) return "operands that are no inputs";
  out.scale = a.attr[0];
  out.kernel = table.block_attention(p.values[a.in[0]].dtype);
  return nullptr;
}

uint64_t need_compact(const ScoredAttention& a, const dvt_exe_call& exe) {
  uint64_t bits = 0;
  for (const uint32_t i : {a.blocks, a.tiles})
    if (i != nowhere && !dvt::is_dense(exe.call->in[i])) bits |= uint64_t{1} << std::min<uint32_t>(i, 63);
  return bits;
}

namespace {
// The changes of one call; of each block of scores a call of their own.
struct Changes {
  const ScoredAttention& attention;
  const Conversions& conversions;
  const GeneratedFunction* functions;
  const dvt_exe_call& exe;
  std::atomic<bool> complete{true};

  // The part of an input in memory that belongs to the block.
  static void move_to(Memory& m, const ScoreTile& t) {
    const int64_t first[] = {t.batch, t.head, t.first};
    int64_t offset = t.key * m.step;
    for (int axis = batch; axis < key; ++axis) offset += first[axis] * m.stride[axis];
    m.data += offset * m.bytes;
  }
  static Memory memory_of(const ScoreTile& t, uint8_t bytes) {
    Memory m{};
    m.data = static_cast<char*>(t.scores), m.step = 1, m.bytes = bytes, m.stride[query] = t.row;
    return m;
  }

  void set_memory(Call& c, const dvt_exe_call& block, const ScoreTile& t) const {
    const Group& g = c.group;
    size_t n = 0;
    for (size_t v = 0; v < g.values.size(); ++v) {
      const Operand& x = g.values[v];
      if (x.source != codegen::Value::input || x.extent == Extent::one) continue;
      c.input_of[v] = uint32_t(n);
      Memory& m = c.memory[n++];
      const uint32_t input = attention.inputs[x.index];
      if (input == nowhere) {
        m = memory_of(t, x.bytes);
        continue;
      }
      cpu::set_memory(m, *exe.call->in[input], x, 4);
      move_to(m, t);
    }
    c.n_inputs = n;
    c.memory[n++] = memory_of(t, g.values[g.outputs[0]].bytes);
    Layout(g, block, c.memory, n).run(c.space);
  }

  void run(const ScoreTile& t) {
    const int64_t sizes[] = {1, 1, t.n, t.m};
    dvt_exe_call block = exe;
    block.n_symbols = 4, block.symbols = sizes;
    Call c(attention.changes, conversions, functions);
    set_ones(c, exe, attention.inputs.data());
    set_memory(c, block, t);
    Worker worker(c);
    if (!worker.start()) return complete.store(false, std::memory_order_relaxed);
    const Space& s = c.space;
    const int64_t rows = s.columns <= tile_elements ? rows_of_tile(c.group, s.columns) : 1;
    for (int64_t i = 0; i < s.rows; i += rows)
      if (s.columns <= tile_elements) worker.run_block(i, std::min(rows, s.rows - i));
      else worker.run_row(i, 0, s.columns);
  }
  static void call(void* context, const ScoreTile& t) { static_cast<Changes*>(context)->run(t); }
};
}  // namespace

dvt_status run(const ScoredAttention& a, const Conversions& conversions, const GeneratedFunction* functions,
               const dvt_exe_call& exe) {
  const dvt_call& call = *exe.call;
  const auto input = [&](uint32_t i) { return i == nowhere ? nullptr : call.in[i]; };
  const int64_t size = input(a.query)->shape[3];
  const double scale = a.scale.kind == DVT_A_F64 ? a.scale.v.f : size ? 1 / std::sqrt(double(size)) : 1.0;
  BlockCall of{
      input(a.query), input(a.key), input(a.value),  input(a.blocks),
      input(a.tiles), nullptr,      call.out[a.out], a.logsumexp == nowhere ? nullptr : call.out[a.logsumexp],
      scale};
  Changes changes{a, conversions, functions, exe};
  if (a.any) of.change = Changes::call, of.context = &changes;
  const dvt_status status = a.kernel(of);
  if (status == DVT_OK && changes.complete) return DVT_OK;
  return DVT_FAIL(DVT_OOM, "[compile] no memory for blocks of scores");
}
}  // namespace dovetail::cpu
