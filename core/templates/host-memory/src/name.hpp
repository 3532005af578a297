// The backend's name: the prefix of its devices ("@{name}@:0"). The same name is in pyproject.toml, in
// CMakeLists.txt and in the name of the folder python/dovetail_@{name}@.
#pragma once

inline constexpr char backend_name[] = "@{name}@";
