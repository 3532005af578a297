// The registers of a pass, and the passes with generated loops.
#include <algorithm>

#include "compile/llvm_text.hpp"

namespace dovetail::cpu {
namespace {
// f(value) for each that the instruction reads or makes.
template <class F>
void for_operands(const Group& g, const Instruction& step, F f) {
  if (step.kind == Instruction::generated) {
    for (uint32_t v : g.loops[step.result].in) f(v);
  } else {
    for (uint32_t k = 0; k < step.n_in; ++k) f(step.in[k]);
  }
}
template <class F>
void for_results(const Group& g, const Instruction& step, F f) {
  if (step.kind != Instruction::generated) return f(step.result);
  for (uint32_t v : g.loops[step.result].out) f(v);
}
template <class T>
bool contains(const std::vector<T>& list, T v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

// One pass with generated loops in place of runs of instructions.
class Joiner {
 public:
  Joiner(Group& group, const Pass& from, bool keeps, Level level)
      : group_(group), from_(from), keeps_(keeps), level_(level) {}

  Pass run() {
    made_.before = from_.before;
    made_.place.assign(from_.place.size(), nowhere);
    made_.is_half.assign(from_.place.size(), false);
    for (size_t i = 0; i < from_.body.size(); ++i) {
      const Instruction& step = from_.body[i];
      if (step.kind == Instruction::load) add(step);
      else if (group_.values[step.result].extent == Extent::all && has_text(group_, step, level_))
        run_.push_back(step);
      else finish(i), add(step);
    }
    finish(from_.body.size());
    choose_halves();
    allocate(group_, made_);
    return std::move(made_);
  }

 private:
  void add(const Instruction& step) {
    made_.body.push_back(step);
    for_results(group_, step, [&](uint32_t v) {
      const Operand& x = group_.values[v];
      if (x.extent == Extent::all && !(keeps_ && x.kept != nowhere)) made_.place[v] = 0;  // its register follows
    });
  }
  // Ends the run before instruction `next`.
  void finish(size_t next) {
    if (run_.size() == 1 && !converts(run_[0])) add(run_[0]);  // nothing is saved
    else if (!run_.empty()) {
      Instruction made;
      made.kind = Instruction::generated, made.result = uint32_t(group_.loops.size());
      group_.loops.push_back(loop(next));
      add(made);
    }
    run_.clear();
  }
  GeneratedLoop loop(size_t next) const {
    GeneratedLoop made{run_, {}, {}, {}, {}};
    std::vector<uint32_t> results;
    for (const Instruction& step : run_) {
      for (uint32_t k = 0; k < step.n_in; ++k)
        if (!contains(results, step.in[k]) && !contains(made.in, step.in[k])) made.in.push_back(step.in[k]);
      results.push_back(step.result);
      if (!is_called(group_, step)) continue;
      const void* const function = step.elementwise->vector_function();
      if (!contains(made.calls, function)) made.calls.push_back(function);
    }
    for (uint32_t v : results)
      if (contains(group_.outputs, v) || (keeps_ && group_.values[v].kept != nowhere) || is_read(v, next))
        made.out.push_back(v);
    return made;
  }
  bool is_read(uint32_t v, size_t next) const {
    for (; next < from_.body.size(); ++next)
      for (uint32_t k = 0; k < from_.body[next].n_in; ++k)
        if (from_.body[next].in[k] == v) return true;
    return false;
  }

  bool converts(const Instruction& step) const {
    const auto is_half = [&](uint32_t v) { return has_half(group_.values[v].half, level_); };
    return step.rounds || is_half(step.result) || std::any_of(step.in, step.in + step.n_in, is_half);
  }
  // Generated loops widen and narrow values that no others see.
  void choose_halves() {
    for (uint32_t v = 0; v < made_.place.size(); ++v)
      made_.is_half[v] = made_.place[v] != nowhere && has_half(group_.values[v].half, level_) && can_be_half(v);
    for (const Instruction& step : made_.body)
      if (step.kind == Instruction::generated) group_.loops[step.result].is_half = made_.is_half;
  }
  bool can_be_half(uint32_t v) const {
    bool is_exact = true, is_read = false;
    for (const Instruction& step : made_.body) {
      bool reads = false, makes = false;
      for_operands(group_, step, [&](uint32_t x) { reads |= x == v; });
      for_results(group_, step, [&](uint32_t x) { makes |= x == v; });
      if ((reads && step.kind != Instruction::generated) ||
          (makes && step.kind != Instruction::generated && step.kind != Instruction::load))
        return false;
      is_read |= reads;
      if (makes && step.kind == Instruction::generated)
        for (const Instruction& s : group_.loops[step.result].steps) is_exact &= s.result != v || s.rounds;
    }
    return is_exact || !is_read;
  }

  Group& group_;
  const Pass& from_;
  const bool keeps_;
  const Level level_;
  std::vector<Instruction> run_;
  Pass made_;
};
}  // namespace

void allocate(Group& group, Pass& pass) {
  for (uint32_t v = 0; v < group.values.size(); ++v)
    if (group.values[v].extent == Extent::all && (pass.place[v] != nowhere || group.values[v].kept != nowhere))
      pass.made.push_back(v);
  pass.n_long =
      std::count_if(pass.body.begin(), pass.body.end(), [&](const Instruction& i) { return is_long(group, i); });
  std::vector<size_t> last(group.values.size(), 0);
  for (size_t i = 0; i < pass.body.size(); ++i) {
    const auto note = [&](uint32_t v) { last[v] = i; };
    for_results(group, pass.body[i], note);
    for_operands(group, pass.body[i], note);
  }
  for (uint32_t v : group.outputs) last[v] = pass.body.size();
  std::vector<uint32_t> free;
  uint32_t n = 0;
  for (size_t i = 0; i < pass.body.size(); ++i) {
    for_results(group, pass.body[i], [&](uint32_t v) {
      if (pass.place[v] == nowhere) return;
      if (free.empty()) free.push_back(n++);
      pass.place[v] = free.back();
      free.pop_back();
    });
    const auto release = [&](uint32_t v) {
      if (pass.place[v] == nowhere || last[v] != i) return;
      free.push_back(pass.place[v]);
      last[v] = pass.body.size();  // once
    };
    for_operands(group, pass.body[i], release);
    for_results(group, pass.body[i], release);
  }
  group.n_registers = std::max(group.n_registers, n);
}

void join(Group& group, Level level) {
  group.joined.whole = Joiner(group, group.plain.whole, false, level).run();
  for (const Pass& pass : group.plain.passes) group.joined.passes.push_back(Joiner(group, pass, true, level).run());
}
}  // namespace dovetail::cpu
