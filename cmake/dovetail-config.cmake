# find_package(dovetail CONFIG REQUIRED HINTS "<output of `dovetail --cmake-dir`>").
# For programs: dovetail::runtime is libdovetail with <dovetail/runtime.h>.
# For device authors: a backend links nothing of Dovetail; dovetail::abi is a folder of headers.
include_guard(GLOBAL)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH dovetail_INCLUDE_DIR)
if(EXISTS "${dovetail_INCLUDE_DIR}/include/dovetail/abi.h")  # installed
  cmake_path(APPEND dovetail_INCLUDE_DIR include)
else()  # in Dovetail's own repository
  cmake_path(APPEND dovetail_INCLUDE_DIR core/include)
endif()
if(NOT TARGET dovetail::abi)
  add_library(dovetail::abi INTERFACE IMPORTED GLOBAL)
  target_include_directories(dovetail::abi INTERFACE "${dovetail_INCLUDE_DIR}")
endif()

# A program finds the library where it was linked: its build has that folder as RUNPATH.
cmake_path(GET dovetail_INCLUDE_DIR PARENT_PATH _dovetail_package)
set(_dovetail_library "${_dovetail_package}/${CMAKE_SHARED_LIBRARY_PREFIX}dovetail${CMAKE_SHARED_LIBRARY_SUFFIX}")
if(NOT TARGET dovetail::runtime AND EXISTS "${_dovetail_library}")
  add_library(dovetail::runtime SHARED IMPORTED GLOBAL)
  set_target_properties(dovetail::runtime PROPERTIES IMPORTED_LOCATION "${_dovetail_library}"
                                                     IMPORTED_IMPLIB "${_dovetail_library}.a") # on Windows
  target_link_libraries(dovetail::runtime INTERFACE dovetail::abi)
endif()

# dovetail_add_backend(<name> SOURCES ... [LIBRARIES ...]): the plugin libdovetail_<name>.so, on Windows dovetail_<name>.dll,
# target dovetail_<name>.
# It exports the two functions of abi.h and nothing else, and is installed into the package dovetail_<name>.
function(dovetail_add_backend name)
  _dovetail_add_plugin(dovetail_add_backend dvt_backend_v1 ${name} ${ARGN})
endfunction()

# dovetail_add_kernel_pack(<name> SOURCES ... [LIBRARIES ...]): the same for a kernel pack.
function(dovetail_add_kernel_pack name)
  _dovetail_add_plugin(dovetail_add_kernel_pack dvt_kernels_v1 ${name} ${ARGN})
endfunction()

function(_dovetail_add_plugin caller entry name)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "SOURCES;LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "${caller}(${name}): expected SOURCES ... [LIBRARIES ...], got ${ARGN}")
  endif()
  set(target dovetail_${name})
  set(prefix lib)
  if(WIN32)
    set(prefix "")
  endif()
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(
    ${target}
    PROPERTIES PREFIX "${prefix}"
               CXX_VISIBILITY_PRESET hidden
               C_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               BUILD_RPATH "$ORIGIN"
               INSTALL_RPATH "$ORIGIN")
  target_compile_features(${target} PRIVATE cxx_std_17)
  # Messages have paths relative to the project, not to the building machine.
  target_compile_options(${target} PRIVATE -Wall -Wextra "-ffile-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}/="
                                           "-ffile-prefix-map=${dovetail_INCLUDE_DIR}/=")
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")  # otherwise instances of the standard library's templates are visible
    set(exports "${CMAKE_CURRENT_BINARY_DIR}/${target}.exports")
    file(CONFIGURE OUTPUT "${exports}" CONTENT "{ global: dvt_probe_v1; ${entry}; local: *; };\n")
    target_link_options(${target} PRIVATE "-Wl,--version-script=${exports}")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${exports}")
  endif()
  target_link_libraries(${target} PRIVATE dovetail::abi ${arg_LIBRARIES})
  install(TARGETS ${target} LIBRARY DESTINATION ${target})
endfunction()
