// Numbers and guards of a program as a user reads them.
#pragma once
#include "graph/program.hpp"

namespace dovetail {
// "ids.shape[1] // 2". `depth`: of the expression around it, which is cut where it is deep.
std::string text_of(const Program&, int number, int depth);
// Why a guard does not hold, and where the user's code relies on it.
std::string broken(const Program&, const Guard&, const std::vector<NumberValue>& values);
}  // namespace dovetail
