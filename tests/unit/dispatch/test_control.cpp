// Nodes that hold programs.
#include "dispatch/control.hpp"
#include "dispatch/recorder.hpp"
#include "dispatch/run_program.hpp"
#include "graph/control.hpp"

using namespace recorder;

TEST(while_loops_have_a_limit_of_rounds) {
  const auto endless = [] {  // while x == x: x
    ProgramBuilder cond, body, b;
    const auto program = [](ProgramBuilder& of, int result) { return of.finish({result}); };
    const int x = cond.input(DType::b8, {}), y = body.input(DType::b8, {});
    const auto same = program(cond, x), next = program(body, y);
    Attrs attrs;
    attrs.at[WhileAttrs::cond] = program_attr(*same), attrs.at[WhileAttrs::body] = program_attr(*next);
    const int in = b.input(DType::b8, {});
    return b.finish({b.control(op("while_loop"), {in}, attrs)});
  }();
  Device& device = plugin("control", basic_rows()).device();
  RunnableProgram runnable(endless);
  const uint8_t yes = 1;
  const Tensor truth = materialise(host_scalar(DType::b8, &yes), device);
  const auto run = [&] { runnable.run(nullptr, {truth}); };
  const RoundLimit outer(5);
  {
    const RoundLimit limit(3);
    CHECK_THROWS(Error, "[while_loop] more rounds than the run's limit", run());
    CHECK_THROWS(Error, "[while_loop] more rounds", run());
  }
  CHECK_THROWS(Error, "[while_loop] more rounds", run());
}

CHECK_MAIN
