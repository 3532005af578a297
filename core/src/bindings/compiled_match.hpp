// What the arguments of a compiled function must be for one of its programs: guards, checked at each call.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "bindings/array.hpp"
#include "bindings/captured.hpp"
#include "spare.hpp"

namespace dovetail::bindings {
// The parameters of a Python function, to which the arguments of a call are bound without Python code.
struct Parameters {
  std::vector<py::object> names, defaults;  // of the named ones; defaults[i] is empty where there is none
  int n_positional_only = 0, n_positional = 0;
  bool extra_positional = false, extra_keywords = false;  // *args, **kwargs
};

// Arguments by parameter, then further positional ones, then those of further keywords; borrowed.
class BoundArguments {
 public:
  BoundArguments() = default;
  BoundArguments(const BoundArguments&) = delete;
  // False where Python would raise: the call of the function then does.
  bool bind(const Parameters&, PyObject* const* args, int nargs, PyObject* kwnames);
  void set(const py::tuple& values, int n_extra, const py::tuple& keywords);

  std::span<PyObject* const> values;
  int n_extra = 0;
  std::vector<PyObject*> keywords;

 private:
  bool bind_by_name(const Parameters&, PyObject* const* args, int nargs, PyObject* kwnames);
  Spare<std::vector<PyObject*>> ordered_;  // `values`, where they are not the caller's arguments in their order
};

// A part of an argument, in the order of a depth-first traversal.
struct Part {
  enum Kind : uint8_t {
    array,     // input `n` of the program
    real,      // argument `n` of the program: a float, of type `what` where that is set
    integer,   // argument `n` of the program: an int of 64 bits, of type `what` where that is set
    value,     // equal to `what` bit by bit, and of its type
    object,    // what the weak reference `what`, or `what` itself, leads to; `n` names it for captured arrays
    owner,     // the object at `address`: who owns the compiled function drops it with the object
    sequence,  // of type `what` (tuple, a namedtuple or list) with `n` parts
    dict,      // with the keys `keys`, in this order
    fields,    // an object of type `what` with the attributes `hops`; `n` are in its __dict__, which has no others
  };
  Kind kind;
  uint32_t n = 0;
  py::object what;
  PyObject* address = nullptr;  // of owner
  std::vector<py::object> keys;
  std::vector<Hop> hops;
};

// An object that the function reads by itself: how to come to it, and what it must be.
struct Step {
  Hop hop;
  int parent = -1;  // an earlier step; of Hop::argument: the `n` of the Part
  int input = -1;   // of the program: the array that is there
  int same = -1;    // an earlier step that came to the same object, as in the trace
  Expectation expected;
};

// One call's values for a program, in the order of its inputs and arguments.
struct Match {
  void clear();  // drops what is held
  void clear(size_t n_inputs, size_t n_arguments, size_t n_objects);

  std::vector<PyObject*> arrays;   // by input; nullptr: not an array of the caller
  std::vector<PyObject*> objects;  // by `n` of a Part; borrowed
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::vector<PyObject*> held;          // new references, or nullptr
  std::vector<const Tensor*> operands;  // by input: the tensors of `arrays`
  std::vector<Tensor*> results;         // of a run
};
// The same in memory that the thread keeps.
class OwnMatch {
 public:
  OwnMatch() = default;
  ~OwnMatch() { spare_->clear(); }
  OwnMatch(const OwnMatch&) = delete;
  Match& operator*() { return *spare_; }
  Match* operator->() { return &*spare_; }

 private:
  Spare<Match> spare_;
};

struct Guards {
  std::vector<Part> parts;
  int n_extra = 0;
  std::vector<py::object> keywords;
  std::vector<Step> steps;
  std::vector<uint64_t> words;  // by input: word_of() of the array; 0: not an array of the caller
  std::vector<std::pair<size_t, py::object>> kept;  // (input, an array that no path leads to)
  size_t n_arguments = 0, n_objects = 0;

  // `failed` gets the step that did not hold, -1 for the arguments.
  bool match(const BoundArguments&, Match&, int* failed = nullptr) const;
  bool still_match(const Match&) const;  // the arrays, as far as other threads can change them
  int visit(visitproc, void*) const;
};

// Everything about an array that a program depends on, but for its sizes.
inline uint64_t word_of(const Tensor& t) {
  return uint64_t(t.dtype) | uint64_t(t.rank()) << 8 | uint64_t(t.device ? t.device->index + 1 : 0) << 16;
}
}  // namespace dovetail::bindings
