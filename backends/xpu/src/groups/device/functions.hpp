// The functions that the texts of groups call, in C++ for OpenCL. The build replaces the #include lines by what
// they name (cmake/groups.cmake), and the driver compiles the result with each text.
#pragma OPENCL FP_CONTRACT OFF
#define half software_half  // a type of OpenCL's has the name of dvt::half
#define GPU_GROUP_FUNCTION static
#include "gpu/groups/functions.hpp"
