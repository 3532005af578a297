// Makes cuDNN's plans for a device that is described in JSON: cudnn_plans CAPABILITY JSON. On standard input each
// line is a graph, "attention heads=16 rows=4096 causal" or "convolution ..."; on standard output its plan is one.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>

#include "cudnn/frontend.hpp"
#include "cudnn/library.hpp"
#include "dovetail/backend.hpp"

namespace {
using namespace gpu::cudnn;

class Words {
 public:
  explicit Words(std::istringstream& line) {
    for (std::string word; line >> word;) {
      const size_t equal = word.find('=');
      given_[word.substr(0, equal)] = equal == std::string::npos ? "1" : word.substr(equal + 1);
    }
  }
  bool has(const char* name) const { return given_.contains(name); }
  std::string text(const char* name, const char* fallback) const {
    const auto it = given_.find(name);
    return it == given_.end() ? fallback : it->second;
  }
  int64_t number(const char* name, int64_t fallback) const {
    return has(name) ? std::atoll(text(name, "").c_str()) : fallback;
  }

 private:
  std::map<std::string, std::string> given_;
};

DLDataType type_of(const std::string& name) {
  return name == "f16" ? dvt::f16 : name == "bf16" ? dvt::bf16 : name == "f32" ? dvt::f32 : dvt::f64;
}

// (batch, heads, rows, columns) row-major, or with the heads of a row contiguous, as projections leave them.
Operand heads(int64_t batch, int64_t n, int64_t rows, int64_t columns, bool row_major) {
  const int64_t line = n * columns;
  if (row_major) return {{batch, n, rows, columns}, {rows * line, rows * columns, columns, 1}};
  return {{batch, n, rows, columns}, {rows * line, columns, line, 1}};
}

Planned plan_attention(const Target& target, const Words& w) {
  AttentionGraph g = {};
  g.type = type_of(w.text("type", "bf16"));
  g.bias_type = type_of(w.text("bias_type", "bf16"));
  const int64_t batch = w.number("batch", 2), n = w.number("heads", 16), kv = w.number("kv_heads", n),
                rows = w.number("rows", 4096), columns = w.number("columns", rows), size = w.number("size", 128);
  const bool row_major = w.has("row_major");
  g.q = g.o = heads(batch, n, rows, size, row_major);
  g.k = g.v = heads(batch, kv, columns, size, row_major);
  if (w.has("bias")) {
    const int64_t each = w.number("bias_heads", n), lines = w.number("bias_rows", rows);
    g.bias = {{1, each, lines, columns}, {each * lines * columns, lines * columns, columns, 1}};
  }
  const std::pair<const char*, uint64_t> flags[] = {
      {"causal", AttentionGraph::causal},     {"log_sum_exp", AttentionGraph::log_sum_exp},
      {"lengths", AttentionGraph::lengths},   {"ragged", AttentionGraph::ragged},
      {"backward", AttentionGraph::backward}, {"deterministic", AttentionGraph::deterministic}};
  for (const auto& [name, flag] : flags) g.flags |= w.has(name) ? flag : 0;
  g.scale = 0.125, g.dropout = w.has("dropout") ? 0.1 : 0;
  return make_plan(target, g);
}

Operand images(int64_t n, int64_t c, int64_t h, int64_t w) { return {{n, c, h, w}, {c * h * w, h * w, w, 1}}; }

Planned plan_convolution(const Target& target, const Words& w) {
  ConvolutionGraph g = {};
  g.type = type_of(w.text("type", "f32"));
  g.has_bias = w.has("bias"), g.allows_tf32 = w.has("tf32");
  const int64_t n = w.number("batch", 32), channels = w.number("channels", 64), outputs = w.number("outputs", 128),
                side = w.number("side", 56), kernel = w.number("kernel", 3), groups = w.number("groups", 1),
                step = w.number("step", 1), dilation = w.number("dilation", 1),
                padding = w.number("padding", kernel / 2);
  const int64_t out = (side + 2 * padding - dilation * (kernel - 1) - 1) / step + 1;
  g.x = images(n, channels, side, side), g.weight = images(outputs, channels / groups, kernel, kernel);
  g.y = images(n, outputs, out, out);
  for (int i = 0; i < 2; ++i) g.padding[i] = padding, g.step[i] = step, g.dilation[i] = dilation;
  return make_plan(target, g);
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (!missing().empty()) {
    std::fprintf(stderr, "%s\n", missing().c_str());
    return 1;
  }
  const Target target{nullptr, argv[2], std::atoi(argv[1])};
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    std::string kind;
    line >> kind;
    const Words words(line);
    const Planned made = kind == "attention" ? plan_attention(target, words) : plan_convolution(target, words);
    if (made.plan) std::cout << "plan " << workspace(*made.plan) << " " << engine(*made.plan) << std::endl;
    else std::cout << "none " << made.refusal.substr(0, made.refusal.find('\n')) << std::endl;
  }
}
