// Waiting for other threads of the block by instructions that are no CUDA barriers.
#pragma once
#include <source_location>

namespace emulator {
// Lets other threads run until ready() returns true; ends a kernel in which it never does.
template <class Ready>
void spin(const char* in, Ready ready, std::source_location where = std::source_location::current()) {
  constexpr int patience = 100000;
  for (int turns = 0; !ready(); ++turns) {
    Multiprocessor& on = Multiprocessor::of_this_thread();
    if (turns == patience) on.fail(*current_thread, std::string(in) + " waits for ever");
    on.let_others_run(in, where);
  }
}
}  // namespace emulator
