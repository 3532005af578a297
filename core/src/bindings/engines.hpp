// Applies the engines that Python code has chosen to the calls that it makes.
#pragma once
#include "bindings/array.hpp"
#include "dispatch/engines.hpp"

namespace dovetail::bindings {
extern bool engines_chosen;  // whether this process has ever made a choice

// Sets engine_choice to the choice of the current context, for a scope.
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
  PyObject* held_ = nullptr;  // owns the choice: the context may end before the call does
  const EngineChoice* before_;
};
}  // namespace dovetail::bindings
