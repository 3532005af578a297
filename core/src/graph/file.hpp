// Programs as files: .dvt, a safetensors file whose metadata have the program's JSON and whose tensors are the
// program's arrays. docs/file_format.md describes it.
#pragma once
#include "error.hpp"
#include "graph/program.hpp"
#include "platform/platform.hpp"

namespace dovetail {
// "it cannot be written: ...", with the path and a cure, of the kind that Python's open raises.
Error write_error(const std::string& path, const platform::FileError&);

struct SaveOptions {
  std::vector<std::string> weights = {};
  const Program::Decompositions* decompositions = nullptr;  // in place of the program's own
};
// `weights`: safetensors files in the folder of `path`, or below it. Arrays that they have are named in the file
// and not written again. Readers of `path` see the old file or the new one. Throws write_error() where it cannot
// be written, Error(value) where one of `weights` cannot be read or lies elsewhere.
void save_program(const Program&, const std::string& path, const SaveOptions& = {});
// The program's arrays are the mapped files: they must stay as they are while the program lives. Of them only bools
// are read here: a byte that is neither 0 nor 1 is an error. Nothing in a file is trusted: offsets, sizes, names of
// files, the program. Throws Error(value), with the file's name in brackets.
std::shared_ptr<const Program> load_program(const std::string& path);

struct VerifiedFile {
  uint64_t tensors = 0, bytes = 0;  // that were compared with their hashes
  std::vector<std::string> without_hash, wrong;
};
// Opens the file and reads all of its tensors.
VerifiedFile verify_program_file(const std::string& path);
}  // namespace dovetail
