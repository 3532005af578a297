// Prints the best instruction set level that this machine can run.
#if defined(__x86_64__)
#include "isa/x86_64.cpp"
#else
#include "isa/aarch64.cpp"
#endif

int main() {
  using namespace dovetail::cpu;
  const Level level = read_features().level;
  std::puts(level == Level::none ? "none" : level_names()[size_t(level)].name);
}
