// The backend's name: the prefix of its devices ("sim:0") and of its environment variables (DOVETAIL_SIM_...). The
// same name is in pyproject.toml, in CMakeLists.txt and in the name of the folder python/dovetail_sim.
#pragma once

inline constexpr char backend_name[] = "sim";
