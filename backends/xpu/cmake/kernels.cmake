# From src/kernels/*.hpp and backends/gpu/kernels/*.hpp to kernels in the plugin: each file is a family, compiled to SPIR-V
# at build time.
add_executable(xpu_kernelc tools/kernelc.cpp tools/spirv.cpp)
target_compile_features(xpu_kernelc PRIVATE cxx_std_20)
target_compile_options(xpu_kernelc PRIVATE -Wall -Wextra)
target_link_libraries(xpu_kernelc PRIVATE xpu::sycl)
set_target_properties(xpu_kernelc PROPERTIES BUILD_RPATH "${XPU_LIBRARIES}" BUILD_WITH_INSTALL_RPATH OFF)

# Device code keeps its rounding: a product and a sum are one rounding only if it calls sycl::fma.
set(XPU_KERNEL_OPTIONS -std=c++20 -O2 -ffp-contract=off "-I${CMAKE_CURRENT_SOURCE_DIR}/src"
    "-I${CMAKE_CURRENT_SOURCE_DIR}/.." "-I${dovetail_INCLUDE_DIR}")

# dovetail_xpu_kernels(<target> <file>...): compiles the families and links them into the target, with a table of all of
# their names (src/modules.hpp).
function(dovetail_xpu_kernels target)
  set(portable float* functors layout math* portable) # the core's headers that kernels include
  list(TRANSFORM portable REPLACE "(.*)" "${dovetail_INCLUDE_DIR}/dovetail/\\1.hpp")
  file(GLOB common CONFIGURE_DEPENDS src/kernels/common/*.hpp ../gpu/kernels/shared/*.hpp ${portable})
  set(declarations "")
  set(entries "")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM family)
    set(out "${CMAKE_CURRENT_BINARY_DIR}/kernels/${family}")
    # The names that the source declares, macros expanded: the preprocessor alone finds them in a moment.
    add_custom_command(
      OUTPUT "${out}.cpp" "${out}.spv"
      COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -E -P -x c++ -DDOVETAIL_XPU_LIST_KERNELS
              "-I${CMAKE_CURRENT_SOURCE_DIR}/src" "-I${CMAKE_CURRENT_SOURCE_DIR}/.." "-I${dovetail_INCLUDE_DIR}"
              "${source}" -o "${out}.names"
      COMMAND ${CMAKE_COMMAND} -E env "OCL_ICD_FILENAMES=${XPU_OPENCL_CPU}" ONEAPI_DEVICE_SELECTOR=opencl:cpu
              $<TARGET_FILE:xpu_kernelc> "${source}" "${out}" ${family} ${XPU_KERNEL_OPTIONS}
      DEPENDS xpu_kernelc "${source}" ${common}
      COMMENT "Compiling the kernels of ${family}"
      VERBATIM)
    set_source_files_properties("${out}.cpp" PROPERTIES OBJECT_DEPENDS "${out}.spv")
    target_sources(${target} PRIVATE "${out}.cpp")
    string(APPEND declarations "extern const Family ${family};\n")
    string(APPEND entries "&families::${family}, ")
  endforeach()
  file(CONFIGURE OUTPUT families.cpp CONTENT "// Generated from the names of the files in src/kernels.
#include \"modules.hpp\"
namespace gpu {
namespace families {
${declarations}}
const std::vector<const Family*>& all_families() {
  static const std::vector<const Family*>& all = *new std::vector<const Family*>{${entries}};
  return all;
}
}
")
  target_sources(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/families.cpp")
endfunction()
