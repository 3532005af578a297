// Attributes by name, for callers that are not Python.
#pragma once
#include "dispatch/invocation.hpp"

namespace dovetail {
// The position of an attribute among the op's attributes. Throws Error(type), which lists the names.
int attr_position(const Op&, std::string_view name);
// Sets an attribute after a check that the op takes a value of this kind; DVT_A_NONE is Python's None. Lists and
// texts are not copied: they live as long as `attrs` is used.
void set_attr(const Op&, Attrs& attrs, std::string_view name, const dvt_attr& value);
void set_attr(const Op&, Attrs& attrs, int position, const dvt_attr& value);
uint32_t attr_kind(ParamKind);  // DVT_A_*; DVT_A_NONE for a number of any kind
}  // namespace dovetail
