// What a device's compiler is given, as files to read.
#pragma once
#include "graph/program.hpp"

struct dvt_program;

namespace dovetail {
// Where DOVETAIL_COMPILE_DUMP names a folder: writes the program as JSON and, where it is one, the loops of
// dovetail/codegen.hpp. Files are named by `name` and the program's hash. Never fails; a warning says what did.
void dump_group(const std::string& name, const Program&, const dvt_program&);
}  // namespace dovetail
