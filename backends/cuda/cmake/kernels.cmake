# From src/kernels/*.cu and backends/gpu/kernels/*.hpp to kernels in the plugin: each file is a family, compiled to a fat
# binary and embedded.
set(GPU_KERNEL_OPTIONS
    -std=c++20 -O3 --fatbin
    --expt-relaxed-constexpr
    -fmad=false # a product and a sum are one rounding only where the source calls fma
    -Werror all-warnings -Xptxas -warn-spills,-warn-lmem-usage
    -Xfatbin -compress-all --compress-mode=size
    -ccbin "${CMAKE_CXX_COMPILER}" "-I${CMAKE_CURRENT_SOURCE_DIR}/src" "-I${CMAKE_CURRENT_SOURCE_DIR}/.."
    "-I${dovetail_INCLUDE_DIR}")
# Machine code for Ampere, which Ada runs too, and Hopper; PTX, which drivers compile, for all that comes later.
set(GPU_ARCHITECTURES -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90])
# For a file *_sm90a.cu: instructions that only Hopper has.
set(GPU_ARCHITECTURES_sm90a -gencode arch=compute_90a,code=sm_90a)
# Large families that models seldom use: the driver compiles them for Ampere too, at the first launch.
set(GPU_ARCHITECTURES_rare -gencode arch=compute_80,code=compute_80 -gencode arch=compute_90,code=sm_90)
set(GPU_RARE_FAMILIES elementwise_hyperbolic elementwise_power elementwise_trigonometry)
option(DOVETAIL_CUDA_AMPERE_ONLY "machine code for sm_80 only, and for sm_90a where a kernel needs it: half the time" OFF)
if(DOVETAIL_CUDA_AMPERE_ONLY)
  set(GPU_ARCHITECTURES -gencode arch=compute_80,code=sm_80)
  set(GPU_ARCHITECTURES_rare ${GPU_ARCHITECTURES})
endif()

# dovetail_cuda_kernels(<target> <file>...): compiles the families and links them into the target, with a table of all
# of their names (src/modules.hpp).
function(dovetail_cuda_kernels target)
  set(portable float* functors layout math* portable) # the core's headers that kernels include
  list(TRANSFORM portable REPLACE "(.+)" "${dovetail_INCLUDE_DIR}/dovetail/\\1.hpp")
  file(GLOB common CONFIGURE_DEPENDS src/kernels/common/*.cuh src/kernels/common/*.hpp ../gpu/kernels/shared/*.hpp
       ${portable})
  set(declarations "")
  set(entries "")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM family)
    set(out "${CMAKE_CURRENT_BINARY_DIR}/kernels/${family}")
    set(architectures ${GPU_ARCHITECTURES})
    if(family MATCHES "_sm90a$")
      set(architectures ${GPU_ARCHITECTURES_sm90a})
    elseif(family IN_LIST GPU_RARE_FAMILIES)
      set(architectures ${GPU_ARCHITECTURES_rare})
    endif()
    add_custom_command(
      OUTPUT "${out}.cpp" "${out}.fatbin"
      COMMAND ${CMAKE_COMMAND} -E make_directory "${CMAKE_CURRENT_BINARY_DIR}/kernels"
      # The names that the source declares, macros expanded: the preprocessor alone finds them in a moment.
      COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -E -P -x c++ -DGPU_LIST_KERNELS
              "-I${CMAKE_CURRENT_SOURCE_DIR}/src" "-I${CMAKE_CURRENT_SOURCE_DIR}/.." "-I${dovetail_INCLUDE_DIR}"
              "${source}" -o "${out}.names"
      COMMAND "${GPU_NVCC}" ${GPU_KERNEL_OPTIONS} ${architectures} -x cu "${source}" -o "${out}.fatbin"
      COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/tools/embed.py" ${family} "${out}.names"
              "${out}.fatbin" "${out}.cpp"
      DEPENDS "${source}" ${common} "${CMAKE_CURRENT_SOURCE_DIR}/tools/embed.py"
      COMMENT "Compiling the kernels of ${family}"
      VERBATIM)
    set_source_files_properties("${out}.cpp" PROPERTIES OBJECT_DEPENDS "${out}.fatbin")
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
