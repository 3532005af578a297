#include "compile/compiler.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "compile/group.hpp"
#include "compile/machine_code.hpp"
#include "compile/scored_attention.hpp"

struct dvt_exe {
  dovetail::cpu::Group group;
  std::unique_ptr<const dovetail::cpu::ScoredAttention> attention;  // or this
  std::unique_ptr<dovetail::cpu::MachineCode> code;
};

namespace dovetail::cpu {
namespace {
const Table* table;
const LoopTable& loop_table() {
  static const LoopTable& made = *new LoopTable(*table);
  return made;
}

constexpr float gain_of_attention = 1e6;  // scores never go to memory

dvt_status claim(dvt_device*, const dvt_program* p, dvt_claim* out) try {
  const LoopTable& loops = loop_table();
  const std::vector<std::vector<uint32_t>> attention = find_scored_attention(*table, loops, *p);
  std::vector<const dvt_node*> taken;
  for (const std::vector<uint32_t>& nodes : attention)
    for (const uint32_t n : nodes) taken.push_back(p->nodes[n]);
  std::sort(taken.begin(), taken.end());
  dvt::codegen::Costs costs;
  costs.leading = true;
  dvt::codegen::claim(
      *p,
      [&](const dvt_program& program, const dvt_node& node) -> const char* {
        if (std::binary_search(taken.begin(), taken.end(), &node)) return "a part of attention";
        return loops.find(program, node) ? nullptr : "no loop for this op and these dtypes";
      },
      out, costs);
  uint32_t group = 0;
  for (uint32_t n = 0; n < p->n_nodes; ++n) group = std::max(group, out[n].group);
  for (const std::vector<uint32_t>& nodes : attention) {
    ++group;
    for (const uint32_t n : nodes) out[n] = {group, gain_of_attention, nullptr, {0, 0}};
  }
  return DVT_OK;
} catch (const std::bad_alloc&) {
  return DVT_FAIL(DVT_OOM, "[compile] no memory to look at %u nodes", p->n_nodes);
}

dvt_status compile(dvt_device*, const dvt_program* p, const char*, dvt_exe** out) try {
  auto made = std::make_unique<dvt_exe>();
  if (has_attention(*p)) {
    auto attention = std::make_unique<ScoredAttention>();
    if (const char* reason = translate(*table, loop_table(), *p, *attention))
      return DVT_FAIL(DVT_UNSUPPORTED, "[compile] %s", reason);
    made->code = std::make_unique<MachineCode>(attention->changes);
    made->attention = std::move(attention);
    *out = made.release();
    return DVT_OK;
  }
  if (const char* reason = translate(loop_table(), *p, made->group))
    return DVT_FAIL(DVT_UNSUPPORTED, "[compile] %s", reason);
  made->code = std::make_unique<MachineCode>(made->group);
  *out = made.release();
  return DVT_OK;
} catch (const std::bad_alloc&) {
  return DVT_FAIL(DVT_OOM, "[compile] no memory for a group of %u nodes", p->n_nodes);
}

dvt_status query(dvt_exe* exe, const dvt_exe_call* c, dvt_answer* answer) {
  if (exe->attention) {
    const uint64_t operands = need_compact(*exe->attention, *c);
    DVT_PUT(answer, dvt_answer, need_compact, operands);
    if (!operands) DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
    return operands ? DVT_UNSUPPORTED : DVT_OK;
  }
  if (const char* reason = refuses(exe->group, *c)) {
    DVT_PUT(answer, dvt_answer, reason, reason);
    return DVT_UNSUPPORTED;
  }
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  DVT_PUT(answer, dvt_answer, in_place, in_place(exe->group, *c));
  return DVT_OK;
}

dvt_status run_exe(dvt_exe* exe, const dvt_exe_call* c) {
  const GeneratedFunction* const functions = exe->code->functions();
  const auto run_it = [&] {
    if (exe->attention) return run(*exe->attention, table->conversions(), functions, *c);
    return run(exe->group, table->conversions(), functions, *c);
  };
  if (functions || !exe->code->counts_time()) return run_it();
  const auto begin = std::chrono::steady_clock::now();
  const dvt_status status = run_it();
  exe->code->spent(std::chrono::steady_clock::now() - begin);
  return status;
}
void destroy(dvt_exe* exe) { delete exe; }

dvt_status describe(dvt_exe* exe, void (*sink)(void*, const void*, size_t), void* context) try {
  std::string text = exe->attention ? "blocks of scores" : "tiles";
  if (const std::string code = exe->code->state(); !code.empty()) text += "; " + code;
  sink(context, text.data(), text.size());
  return DVT_OK;
} catch (const std::bad_alloc&) {
  return DVT_FAIL(DVT_OOM, "[compile] no memory for text");
}
}  // namespace

const dvt_compiler* compiler(const Table& t) {
  table = &t;
  static const dvt_compiler made = [] {
    dvt_compiler c{};
    c.struct_size = sizeof c;
    c.claim = claim, c.compile = compile, c.query = query, c.run = run_exe, c.destroy = destroy;
    c.describe = describe;
    return c;
  }();
  return &made;
}
}  // namespace dovetail::cpu
