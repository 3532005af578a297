#include "dispatch/generator.hpp"

#include <random>

namespace dovetail {
uint64_t random_seed() {
  std::random_device bits;
  return uint64_t{bits()} << 32 | bits();
}

Generator& default_generator() {
  static Generator& own = *new Generator(random_seed());
  return own;
}
}  // namespace dovetail
