# dovetail_cuda_headers(<target>): embeds the headers that NVRTC needs for the texts of groups (src/groups/nvrtc.hpp).
function(dovetail_cuda_headers target)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/headers.cpp")
  set(functions "${CMAKE_CURRENT_SOURCE_DIR}/src/groups/device/functions.cuh")
  set(standard "${CMAKE_CURRENT_SOURCE_DIR}/src/groups/device/standard.cuh")
  set(shared "${CMAKE_CURRENT_SOURCE_DIR}/../gpu/groups")
  set(entries "groups/device/functions.cuh=${functions}" "gpu/groups/functions.hpp=${shared}/functions.hpp"
      "gpu/groups/standard.hpp=${shared}/standard.hpp" "type_traits=${standard}" "cmath=${standard}"
      "cstdint=${standard}" "cstring=${standard}")
  set(portable float8 floats functors math* portable)
  list(TRANSFORM portable REPLACE "(.+)" "${dovetail_INCLUDE_DIR}/dovetail/\\1.hpp")
  file(GLOB portable CONFIGURE_DEPENDS ${portable})
  foreach(header IN LISTS portable)
    cmake_path(GET header FILENAME name)
    list(APPEND entries "dovetail/${name}=${header}")
  endforeach()
  add_custom_command(
    OUTPUT "${out}"
    COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/tools/embed_headers.py" "${out}" ${entries}
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tools/embed_headers.py"
    VERBATIM)
  set(embedded "${functions}" "${standard}" "${shared}/functions.hpp" "${shared}/standard.hpp" ${portable})
  set_source_files_properties("${out}" PROPERTIES OBJECT_DEPENDS "${embedded}")
  target_sources(${target} PRIVATE "${out}")
endfunction()
