#include "isa.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace dovetail::cpu {
const Features& features() {
  static const Features f = read_features();
  return f;
}

const char* name(Level level) { return level == Level::none ? "none" : level_names()[size_t(level)].name; }

Level choose_level(char* error, size_t size) {
  const Level best = features().level;
  if (best == Level::none) {
    std::snprintf(
        error, size,
        "[cpu] this processor is too old: expected x86-64-v2 (SSE4.2, POPCNT; any since 2009), got \"%s\"",
        features().name);
    return Level::none;
  }
  const char* wish = std::getenv("DOVETAIL_CPU_CAPABILITY");
  if (!wish || !*wish) return best;
  std::string known;
  for (const LevelName& l : level_names()) {
    const Level level = Level(&l - level_names().data());
    if (!std::strcmp(wish, l.name)) {
      if (level <= best) return level;
      std::snprintf(error, size,
                    "[cpu] DOVETAIL_CPU_CAPABILITY=%s is more than this processor (%s) has: expected at most "
                    "\"%s\"; lower or unset it",
                    wish, features().name, name(best));
      return Level::none;
    }
    known += known.empty() ? l.name : std::string(&l == &level_names().back() ? " or " : ", ") + l.name;
  }
  std::snprintf(error, size,
                "[cpu] DOVETAIL_CPU_CAPABILITY is not a capability: expected %s, got \"%s\"; correct or unset it",
                known.c_str(), wish);
  return Level::none;
}

bool may_multiply_bfloat16() {
  return features().bf16_products && active_level() == Level(level_names().size() - 1);
}
}  // namespace dovetail::cpu
