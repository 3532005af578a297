// Files of weights that a .dvt file names: only such as lie in its folder.
#pragma once
#include <string>

namespace dovetail {
// "folder/" of a path, "" of a bare name.
std::string folder_of(const std::string& path);
// Why `name` must not be a file of weights of the program file at `path`; empty where it may. The name is relative,
// without "..". Where the name leads by symbolic links is looked at, too: into the file's folder, or into the
// folder blobs/ of the Hugging Face cache that the file is in.
std::string misplaced(const std::string& path, const std::string& name);
// Where the file is. Throws Error(value) where the name is misplaced, or there is no such file.
std::string external_file(const std::string& path, const std::string& name);
}  // namespace dovetail
