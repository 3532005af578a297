#include "isa.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "system/system.hpp"

namespace dovetail::cpu {
const Features& features() {
  static const Features f = read_features();
  return f;
}

const char* name(Level level) { return level == Level::none ? "none" : level_names()[size_t(level)].name; }

std::string built_levels(const char* separator) {
  std::string names;
  for (size_t i = 0; i < level_names().size(); ++i)
    if (is_built(Level(i))) names += (names.empty() ? "" : separator) + std::string(level_names()[i].name);
  return names;
}

namespace {
Level best_built(Level of_processor) {
  int i = int(of_processor);
  while (i >= 0 && !is_built(Level(i))) --i;
  return Level(i);
}

constexpr char build_all[] = "build all levels with `pip install --force-reinstall ./backends/cpu`";

Level choose_by_name(const char* wish, char* error, size_t size) {
  std::string known;
  for (const LevelName& l : level_names()) {
    const Level level = Level(&l - level_names().data());
    if (!std::strcmp(wish, l.name)) {
      if (level > features().level) {
        std::snprintf(error, size,
                      "[cpu] DOVETAIL_CPU_CAPABILITY=%s is more than this processor (%s) has: expected at most "
                      "\"%s\"; lower or unset it",
                      wish, features().name, name(features().level));
        return Level::none;
      }
      if (is_built(level)) return level;
      std::snprintf(error, size,
                    "[cpu] DOVETAIL_CPU_CAPABILITY names a level that this build leaves out: got \"%s\", expected "
                    "%s; unset it or %s",
                    wish, built_levels(" or ").c_str(), build_all);
      return Level::none;
    }
    known += known.empty() ? l.name : std::string(&l == &level_names().back() ? " or " : ", ") + l.name;
  }
  std::snprintf(error, size,
                "[cpu] DOVETAIL_CPU_CAPABILITY is not a capability: expected %s, got \"%s\"; correct or unset it",
                known.c_str(), wish);
  return Level::none;
}
}  // namespace

Level choose_level(char* error, size_t size) {
  if (features().level == Level::none) {
    std::snprintf(
        error, size,
        "[cpu] this processor is too old: expected x86-64-v2 (SSE4.2, POPCNT; any since 2009), got \"%s\"",
        features().name);
    return Level::none;
  }
  const char* wish = std::getenv("DOVETAIL_CPU_CAPABILITY");
  if (wish && *wish) return choose_by_name(wish, error, size);
  const Level best = best_built(features().level);
  if (best == Level::none)
    std::snprintf(
        error, size,
        "[cpu] this build has no kernels that this processor (%s) can run: got %s, expected at most \"%s\"; %s",
        features().name, built_levels(" and ").c_str(), name(features().level), build_all);
  return best;
}

bool may_multiply_bfloat16() {
  return features().bf16_products && active_level() == Level(level_names().size() - 1);
}

bool may_use_tiles() {
  static const bool permitted = [] {
    const char* const wish = std::getenv("DOVETAIL_CPU_AMX");
    return !(wish && !std::strcmp(wish, "0")) && features().tiles && may_multiply_bfloat16() && permit_tiles();
  }();
  return permitted;
}
}  // namespace dovetail::cpu
