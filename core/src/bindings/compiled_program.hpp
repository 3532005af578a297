// One program of a compiled function: when it may run, and what a run does to the caller's objects.
#pragma once
#include "bindings/compiled_match.hpp"
#include "bindings/gil_shared.hpp"
#include "dispatch/capture.hpp"
#include "dispatch/generator.hpp"
#include "dispatch/run_program.hpp"

namespace dovetail::bindings {
// A part of what the function returns, in the order of a depth-first traversal.
struct Returned {
  enum Kind : uint8_t {
    output,   // `n` of the program
    input,    // the caller's own array, input `n` of the program
    object,   // object `n` of the arguments
    value,    // `what`
    integer,  // constant `n` of the program, as a Python number
    real,
    tuple,  // of `n` parts
    list,
    dict,  // with the keys `keys`
    made,  // what(list of the parts)
  };
  Kind kind;
  uint32_t n = 0;
  py::object what;
  std::vector<py::object> keys;
};

// Draws of one generator of random numbers: hidden inputs, u32[4] {seed, offset}.
struct Draws {
  struct Draw {
    int input;
    size_t offset;  // a constant of the program: how far behind the generator's state
  };
  py::object object;
  Generator* generator;
  size_t total;  // a constant of the program: how far the generator goes on
  std::vector<Draw> draws;
};

// The constants of one run.
struct Constants {
  const Executable& executable;
  std::vector<Scalar> own;  // empty: those of the binding
  Scalar at(size_t i) const { return own.empty() ? executable.binding.constant(i) : own[i]; }
  const std::vector<Scalar>* given() const { return own.empty() ? nullptr : &own; }
};

// Why no program runs for the arguments of a call: what the first one says, which ran last.
struct Miss {
  std::string why;
  bool refused = false;  // a rule raises an error, and perhaps the function handles it

  void add(std::string other, bool refuses = false) {
    if (why.empty()) why = std::move(other);
    refused |= refuses;
  }
};

bool is_refusal(const Error&);  // a rule's, which the function may handle where it runs in Python

// Called for each result of a group, without the GIL.
using CompareGroup = std::function<void(const Executable&, const GroupResult&)>;

class CompiledProgram {
 public:
  struct Effects {
    std::vector<std::pair<int, int>> written;          // (input, output): the array's new value
    std::vector<std::pair<int, std::string>> donated;  // inputs whose memory the program takes, with their names
    std::vector<Draws> draws;
    std::vector<Returned> returned;
  };
  // `lower`: what an autocast scope made of the trace's calls (lower_dtype()).
  CompiledProgram(std::shared_ptr<RunnableProgram>, Device&, bool on_default_device, DType lower, Guards, Effects,
                  std::string function);

  bool match(const BoundArguments&, Match&, int* failed = nullptr) const;
  // Runs it; nullptr with an exception set, or without one where the program is not right for these sizes and
  // numbers.
  PyObject* run(Match&, Miss&);
  // The binding for a call. Throws what a rule does; nullptr where the program is not right for it.
  std::shared_ptr<const Executable> prepare(Match&, Miss&);
  // Runs it node by node beside its groups, and has no effects. False: it is not right for the call.
  bool compare_groups(Match&, Miss&, const CompareGroup&);
  int visit(visitproc, void*) const;
  const std::shared_ptr<RunnableProgram>& program() const { return program_; }
  // Its bindings are captured from now on, where the device captures.
  void capture_in(std::shared_ptr<Captures>);
  // How a binding is captured, or why not, for the user; empty on a device that does not capture.
  std::string capture_state(const Executable&) const;

 private:
  // A binding with what its inputs must be for it.
  struct Bound {
    std::vector<int64_t> key;
    std::shared_ptr<const Executable> executable;
    std::shared_ptr<CapturedBinding> capture;  // nullptr: never
    bool brief;                                // the run is short and waits for nothing: it keeps the GIL
  };
  using BoundPtr = GilShared<Bound>;
  // Real numbers among the arguments, where nothing but constants follows from them: they need no other binding.
  struct LateNumbers {
    bool all = false;             // no guard on more than that it has a value, and no attribute, follows from one
    std::vector<size_t> numbers;  // of the program, that follow from one; in order
    std::vector<size_t> constants;
  };
  static LateNumbers late_numbers(const Program&);
  // What a binding depends on, in an order: sizes, integers, reals that are not late. `f` may end it with false.
  template <class F>
  bool for_key(const Match&, F f) const;
  bool is_last(const Match&) const;  // last_ is right for it
  // Those of a run. Nothing where Python would raise, which `why` explains.
  std::optional<Constants> constants(const Executable&, const std::vector<double>& reals, Miss&) const;
  struct Ready {
    BoundPtr bound;
    Constants constants;
    bool waited;  // others may have run meanwhile
  };
  std::optional<Ready> ready(const Match&, Miss&);  // throws what a rule does
  BoundPtr bind(const Match&, Miss&) const;
  std::vector<Tensor> operands(const Match&) const;  // those of draws have no elements
  std::vector<Tensor> operands(const Match&, std::vector<Tensor>& keys) const;
  // The keys, by input. `goes_on`: the generators' next draws begin behind them.
  std::vector<Tensor> drawn(const Constants&, bool goes_on = true) const;
  void give_away(const Match&) const;
  // The program's results, as new arrays in `made`.
  void run_briefly(Match&, const Constants&, const std::vector<Tensor>& keys,
                   std::span<PyObject* const> made) const;
  void run_for_long(const Match&, const Ready&, std::vector<Tensor>& keys, std::span<PyObject* const> made) const;

  const std::shared_ptr<RunnableProgram> program_;
  Device& device_;
  const bool on_default_device_;
  const DType lower_;
  const Guards guards_;
  const Effects effects_;
  const std::string function_;
  const LateNumbers late_;
  std::shared_ptr<Captures> captures_;  // of the function; nullptr: nothing is captured
  BoundPtr last_;
};
}  // namespace dovetail::bindings
