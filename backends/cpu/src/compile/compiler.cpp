#include "compile/compiler.hpp"

#include <memory>
#include <new>

#include "compile/group.hpp"
#include "compile/machine_code.hpp"

struct dvt_exe {
  dovetail::cpu::Group group;
  std::unique_ptr<dovetail::cpu::MachineCode> code;
};

namespace dovetail::cpu {
namespace {
const Table* table;
const LoopTable& loop_table() {
  static const LoopTable& made = *new LoopTable(*table);
  return made;
}

dvt_status claim(dvt_device*, const dvt_program* p, dvt_claim* out) try {
  const LoopTable& loops = loop_table();
  dvt::codegen::Costs costs;
  costs.leading = true;
  dvt::codegen::claim(
      *p,
      [&](const dvt_program& program, const dvt_node& node) -> const char* {
        return loops.find(program, node) ? nullptr : "no loop for this op and these dtypes";
      },
      out, costs);
  return DVT_OK;
} catch (const std::bad_alloc&) {
  return DVT_FAIL(DVT_OOM, "[compile] no memory to look at %u nodes", p->n_nodes);
}

dvt_status compile(dvt_device*, const dvt_program* p, const char*, dvt_exe** out) try {
  auto made = std::make_unique<dvt_exe>();
  if (const char* reason = translate(loop_table(), *p, made->group))
    return DVT_FAIL(DVT_UNSUPPORTED, "[compile] %s", reason);
  made->code = std::make_unique<MachineCode>(made->group);
  *out = made.release();
  return DVT_OK;
} catch (const std::bad_alloc&) {
  return DVT_FAIL(DVT_OOM, "[compile] no memory for a group of %u nodes", p->n_nodes);
}

dvt_status query(dvt_exe* exe, const dvt_exe_call* c, dvt_answer* answer) {
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
  if (functions || !exe->code->counts_time()) return run(exe->group, table->conversions(), functions, *c);
  const auto begin = std::chrono::steady_clock::now();
  const dvt_status status = run(exe->group, table->conversions(), nullptr, *c);
  exe->code->spent(std::chrono::steady_clock::now() - begin);
  return status;
}
void destroy(dvt_exe* exe) { delete exe; }

dvt_status describe(dvt_exe* exe, void (*sink)(void*, const void*, size_t), void* context) try {
  std::string text = "tiles";
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
