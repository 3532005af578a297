# The host code that GPU backends share: headers next to the backends' folders, included as "gpu/<name>.hpp".
include_guard(GLOBAL)

# gpu_host(<target> <file>...): the target sees the headers, and its kernel table gets their rows
# (gpu/rows.hpp) and those that each file, of src/ops, defines as `void GPU_ROWS(dvt::KernelTable&)`. The backend's
# src/verified.hpp, if there is one, lists those that are used.
function(gpu_host target)
  cmake_path(GET CMAKE_CURRENT_FUNCTION_LIST_DIR PARENT_PATH backends)
  target_include_directories(${target} PRIVATE src "${backends}")
  target_compile_options(${target} PRIVATE "-ffile-prefix-map=${backends}/gpu/=gpu/")
  set(condition "true")
  set(header "")
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/src/verified.hpp")
    set(condition "is_verified(family)")
    set(header "#include \"verified.hpp\"\n")
  endif()
  set(declarations "")
  set(entries "")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM family)
    set_source_files_properties("${source}" PROPERTIES COMPILE_DEFINITIONS GPU_ROWS=rows_${family})
    string(APPEND declarations "void rows_${family}(dvt::KernelTable&);\n")
    string(APPEND entries "      {\"${family}\", rows_${family}},\n")
  endforeach()
  file(CONFIGURE OUTPUT rows.cpp CONTENT "// Generated from the names of the files in src/ops.
#include \"gpu/rows.hpp\"
#include \"gpu/functions.hpp\"
${header}namespace gpu {
${declarations}void add_rows(dvt::KernelTable& table) {
  static constexpr FamilyRows own[] = {
${entries}  };
  const auto add = [&]([[maybe_unused]] const char* family, void (*rows)(dvt::KernelTable&)) {
    if (${condition}) rows(table);
  };
  for (const auto& [family, rows] : shared_rows) add(family, rows);
  for (const auto& [family, rows] : own) add(family, rows);
}
}
")
  target_sources(${target} PRIVATE ${ARGN} "${CMAKE_CURRENT_BINARY_DIR}/rows.cpp")
endfunction()
