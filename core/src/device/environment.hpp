// Environment variables of the runtime. A value that none of these accepts is ignored with a warning that names
// what was expected.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace dovetail {
// "1", "on", "true", "yes" or "0", "off", "false", "no", in either case. `otherwise`: unset, empty or ignored.
bool environment_switch(const char* name, bool otherwise);
// A whole number from `least` to `most`.
uint32_t environment_number(const char* name, uint32_t least, uint32_t most, uint32_t otherwise);
// Seconds, with or without a fraction, from 0 to 1,000,000.
double environment_seconds(const char* name, double otherwise);
// Whether a list such as "-cse,-fuse" leaves `item`, which is one of `known`, on.
bool environment_leaves_on(const char* name, std::string_view item, std::span<const std::string_view> known);
}  // namespace dovetail
