// The engines that Python code has chosen, brought to the calls that it makes.
#pragma once
#include "bindings/array.hpp"
#include "dispatch/engines.hpp"

namespace dovetail::bindings {
extern bool engines_chosen;  // ever, in this process

// While it lives, engine_choice is what the current context says.
class ContextEngines {
 public:
  ContextEngines() {
    if (engines_chosen) [[unlikely]]
      enter();
  }
  ~ContextEngines() {
    if (held_) [[unlikely]]
      leave();
  }
  ContextEngines(const ContextEngines&) = delete;

 private:
  void enter();
  void leave();
  PyObject* held_ = nullptr;  // what owns the choice: the context may end before the call does
  const EngineChoice* before_;
};
}  // namespace dovetail::bindings
