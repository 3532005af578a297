// Programs as files: .dvt, a safetensors file whose metadata have the program's JSON and whose tensors are the
// program's arrays. docs/file_format.md describes it.
#pragma once
#include "graph/program.hpp"

namespace dovetail {
// Readers of `path` see the old file or the new one. Throws Error(runtime) where it cannot be written.
void save_program(const Program&, const std::string& path);
// The program's arrays are the mapped file: it must stay as it is while the program lives. Nothing of them is read
// here, and nothing in the file is trusted: offsets, sizes, the program. Throws Error(value), with the file's name
// in brackets.
std::shared_ptr<const Program> load_program(const std::string& path);
}  // namespace dovetail
