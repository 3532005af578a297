#include "cudnn/frontend.hpp"

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <utility>
#include <vector>

namespace fe = cudnn_frontend;
void* cudnn_frontend::cudnn_dlhandle = nullptr;

namespace gpu::cudnn {
namespace {
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using fe::graph::Tensor_attributes;

fe::DataType_t data_type(DLDataType t) {
  if (t.code == DVT_BFLOAT) return fe::DataType_t::BFLOAT16;
  return t.bits == 16 ? fe::DataType_t::HALF : t.bits == 32 ? fe::DataType_t::FLOAT : fe::DataType_t::DOUBLE;
}
static_assert(attention_d_v < Pointers::most);
constexpr int64_t uid(int operand) { return operand + 1; }  // 0 stands for none
bool is_there(const Operand& o) { return o.size[0] != 0; }
std::vector<int64_t> listed(const int64_t (&values)[4]) { return {values, values + 4}; }
}  // namespace

// A graph under construction, and what became of it.
class Plan {
 public:
  Plan(const Target& target, DLDataType type) : graph(std::make_shared<fe::graph::Graph>()) {
    const auto computed = type.bits == 64 ? fe::DataType_t::DOUBLE : fe::DataType_t::FLOAT;
    graph->set_io_data_type(data_type(type)).set_intermediate_data_type(computed).set_compute_data_type(computed);
    graph->set_sm_version(target.capability);  // nodes look at it when they are added
  }

  Tensor input(int operand, const Operand& o) {
    return graph->tensor(
        Tensor_attributes().set_uid(uid(operand)).set_dim(listed(o.size)).set_stride(listed(o.stride)));
  }
  Tensor input(int operand, const Operand& o, fe::DataType_t type) {
    Tensor t = input(operand, o);
    t->set_data_type(type);
    return t;
  }
  // A list of n integers.
  Tensor list(int operand, int64_t n, fe::DataType_t type) {
    return input(operand, {{n, 1, 1, 1}, {1, 1, 1, 1}}, type);
  }
  void output(int operand, const Tensor& t, const Operand& o) {
    t->set_uid(uid(operand)).set_output(true).set_dim(listed(o.size)).set_stride(listed(o.stride));
  }

  const std::shared_ptr<fe::graph::Graph> graph;
  std::vector<int> operands;  // whose addresses the plan wants, in this order
  std::string name;
};

namespace {
// The operands that give each sequence's place.
struct Sequences {
  Tensor q_lengths, kv_lengths, q_offsets, kv_offsets;

  Sequences(Plan& p, const AttentionGraph& g) {
    const int64_t batch = g.q.size[0];
    constexpr auto integer = fe::DataType_t::INT32;
    if (!(g.flags & (AttentionGraph::lengths | AttentionGraph::ragged))) return;
    q_lengths = p.list(attention_q_lengths, batch, integer);
    kv_lengths = p.list(attention_kv_lengths, batch, integer);
    if (!(g.flags & AttentionGraph::ragged)) return;
    q_offsets = p.list(attention_q_offsets, batch + 1, integer);
    kv_offsets = p.list(attention_kv_offsets, batch + 1, integer);
  }
  Tensor as_q(Tensor t) const { return offset(std::move(t), q_offsets); }
  Tensor as_kv(Tensor t) const { return offset(std::move(t), kv_offsets); }

 private:
  static Tensor offset(Tensor t, const Tensor& offsets) {
    if (offsets) t->set_ragged_offset(offsets);
    return t;
  }
};

// Sets the options that forward and backward share; `how` is SDPA_attributes or SDPA_backward_attributes.
template <class How>
void describe(Plan& p, const AttentionGraph& g, const Sequences& sequences, How& how) {
  how.set_attn_scale(float(g.scale));
  if (g.flags & AttentionGraph::causal)
    how.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  if (is_there(g.bias)) how.set_bias(p.input(attention_bias, g.bias, data_type(g.bias_type)));
  if (sequences.q_lengths)
    how.set_padding_mask(true).set_seq_len_q(sequences.q_lengths).set_seq_len_kv(sequences.kv_lengths);
  if (g.dropout > 0) {
    const Tensor seed = p.list(attention_seed, 1, fe::DataType_t::INT64);
    how.set_dropout(float(g.dropout), seed, p.list(attention_offset, 1, fe::DataType_t::INT64));
  }
}

Operand log_sum_exp_of(const Operand& q) {
  const int64_t heads = q.size[1], rows = q.size[2];
  return {{q.size[0], heads, rows, 1}, {heads * rows, rows, 1, 1}};
}

void add_forward(Plan& p, const AttentionGraph& g) {
  const Sequences at(p, g);
  auto how = fe::graph::SDPA_attributes().set_generate_stats(g.flags & AttentionGraph::log_sum_exp);
  describe(p, g, at, how);
  const Tensor q = at.as_q(p.input(attention_q, g.q)), k = at.as_kv(p.input(attention_k, g.k)),
               v = at.as_kv(p.input(attention_v, g.v));
  const auto [o, log_sum_exp] = p.graph->sdpa(q, k, v, how);
  p.output(attention_o, at.as_q(o), g.o);
  if (!(g.flags & AttentionGraph::log_sum_exp)) return;
  p.output(attention_log_sum_exp, log_sum_exp, log_sum_exp_of(g.q));
  log_sum_exp->set_data_type(fe::DataType_t::FLOAT);
}

void add_backward(Plan& p, const AttentionGraph& g) {
  const Sequences at(p, g);
  auto how =
      fe::graph::SDPA_backward_attributes().set_deterministic_algorithm(g.flags & AttentionGraph::deterministic);
  describe(p, g, at, how);
  const Tensor q = at.as_q(p.input(attention_q, g.q)), k = at.as_kv(p.input(attention_k, g.k)),
               v = at.as_kv(p.input(attention_v, g.v)), o = at.as_q(p.input(attention_o, g.o)),
               d_o = at.as_q(p.input(attention_d_o, g.o)),
               log_sum_exp = p.input(attention_log_sum_exp, log_sum_exp_of(g.q), fe::DataType_t::FLOAT);
  const auto [d_q, d_k, d_v] = p.graph->sdpa_backward(q, k, v, o, d_o, log_sum_exp, how);
  p.output(attention_d_q, at.as_q(d_q), g.q);
  p.output(attention_d_k, at.as_kv(d_k), g.k);
  p.output(attention_d_v, at.as_kv(d_v), g.v);
}

void add_convolution(Plan& p, const ConvolutionGraph& g) {
  const auto pair = [](const int64_t (&of)[2]) { return std::vector<int64_t>{of[0], of[1]}; };
  const auto how = fe::graph::Conv_fprop_attributes().set_padding(pair(g.padding)).set_stride(pair(g.step));
  Tensor y = p.graph->conv_fprop(p.input(convolution_x, g.x), p.input(convolution_weight, g.weight),
                                 fe::graph::Conv_fprop_attributes(how).set_dilation(pair(g.dilation)));
  if (g.has_bias) {
    y->set_dim(listed(g.y.size)).set_stride(listed(g.y.stride));
    const int64_t outputs = g.y.size[1];
    const Tensor bias = p.input(convolution_bias, {{1, outputs, 1, 1}, {outputs, 1, 1, 1}});
    y = p.graph->pointwise(y, bias, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
  }
  p.output(convolution_y, y, g.y);
}

// Sums of products as they are written: no algorithm that shifts errors, infinities or NaN from one place to
// another, and none that computes with fewer bits than float32 has.
void keep_exact_engines(fe::graph::Graph& graph, const ConvolutionGraph& g) {
  using enum fe::NumericalNote_t;
  graph.deselect_numeric_notes({DOWN_CONVERT_INPUTS, REDUCED_PRECISION_REDUCTION, FFT, WINOGRAD, WINOGRAD_TILE_4x4,
                                WINOGRAD_TILE_6x6, WINOGRAD_TILE_13x13});
  if (g.type.bits == 32 && !g.allows_tf32) graph.deselect_numeric_notes({TENSOR_CORE});
}

void expect(const fe::error_t& result) {
  if (result.is_bad()) throw std::runtime_error(result.err_msg);
}

void describe_device(fe::graph::Graph& graph, const std::string& description) {
  const auto device = std::make_shared<fe::DeviceProperties>();
  expect(device->deserialize({description.begin(), description.end()}));
  graph.set_device_properties(device);
}

std::vector<int> wanted_operands(const fe::graph::Graph& graph) {
  std::vector<int> operands;
  for (const int64_t id : graph.get_variant_pack_uids_sorted()) {
    if (id < uid(0) || id > uid(Pointers::most - 1)) throw std::runtime_error("the plan wants an unknown operand");
    operands.push_back(int(id - uid(0)));
  }
  return operands;
}

// The first engine that the heuristics name and that can be built. `restrict` leaves some of them out.
template <class Restrict>
void choose(Plan& p, const Target& target, Restrict restrict) {
  fe::graph::Graph& graph = *p.graph;
  if (!target.handle) describe_device(graph, target.description);
  expect(graph.validate());
  expect(target.handle ? graph.build_operation_graph(static_cast<cudnnHandle_t>(target.handle))
                       : graph.build_operation_graph());
  expect(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
  restrict(graph);
  expect(graph.check_support());
  expect(graph.build_plans());
  expect(graph.get_plan_name(p.name));
  p.operands = wanted_operands(graph);
}

template <class Add, class Restrict>
Planned made(const Target& target, DLDataType type, Add add, Restrict restrict) try {
  const auto plan = std::make_shared<Plan>(target, type);
  add(*plan);
  choose(*plan, target, restrict);
  return {plan, ""};
} catch (const std::exception& error) {
  return {nullptr, error.what()};
}
}  // namespace

void use_library(void* handle) { cudnn_frontend::cudnn_dlhandle = handle; }

Planned make_plan(const Target& target, const AttentionGraph& g) {
  const auto add = g.flags & AttentionGraph::backward ? add_backward : add_forward;
  return made(target, g.type, [&](Plan& p) { add(p, g); }, [](fe::graph::Graph&) {});
}

Planned make_plan(const Target& target, const ConvolutionGraph& g) {
  return made(
      target, g.type, [&](Plan& p) { add_convolution(p, g); },
      [&](fe::graph::Graph& graph) { keep_exact_engines(graph, g); });
}

size_t workspace(const Plan& p) {
  int64_t bytes = 0;
  (void)p.graph->get_workspace_size(bytes);  // of a plan that is built it is known
  return size_t(bytes);
}
std::string engine(const Plan& p) { return p.name; }

std::string execute(const Plan& p, void* handle, const Pointers& pointers, void* workspace) try {
  void* sorted[Pointers::most];
  int n = 0;
  for (const int operand : p.operands) sorted[n++] = pointers.at[operand];
  const fe::error_t result = p.graph->execute(static_cast<cudnnHandle_t>(handle), sorted, n, workspace);
  return result.is_bad() ? result.err_msg : "";
} catch (const std::exception& error) {
  return error.what();
}
}  // namespace gpu::cudnn
