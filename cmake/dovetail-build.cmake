# Compile options of every target of this repository.
include_guard(GLOBAL)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH DOVETAIL_ROOT)
file(STRINGS "${DOVETAIL_ROOT}/VERSION" DOVETAIL_VERSION LIMIT_COUNT 1)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${DOVETAIL_ROOT}/VERSION")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "")
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_INSTALL_MESSAGE NEVER)
# The same $ORIGIN in the build tree and in the wheel; the linker needs no path of this machine.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN")

set(DOVETAIL_SANITIZE "" CACHE STRING "address (with undefined) or thread")
set_property(CACHE DOVETAIL_SANITIZE PROPERTY STRINGS "" address thread)

# dovetail_compile(target): warnings, and the sanitizer that the tree was configured with.
function(dovetail_compile target)
  # Messages have a source's path in the repository, not on the machine that built it.
  target_compile_options(${target} PRIVATE -Wall -Wextra "-ffile-prefix-map=${DOVETAIL_ROOT}=.")
  if(NOT DOVETAIL_SANITIZE)
    return()
  endif()
  if(DOVETAIL_SANITIZE STREQUAL "address")
    # Instrumented code compiles three times as fast without optimisation, and nothing is optimised away before it is checked.
    set(flags -fsanitize=address,undefined -fno-sanitize-recover=undefined -O0)
  elseif(DOVETAIL_SANITIZE STREQUAL "thread")
    set(flags -fsanitize=thread -O1)
  else()
    message(FATAL_ERROR "DOVETAIL_SANITIZE: expected address or thread, got ${DOVETAIL_SANITIZE}")
  endif()
  target_compile_options(${target} PRIVATE ${flags} -g -fno-omit-frame-pointer -UNDEBUG)
  target_link_options(${target} PRIVATE ${flags})
endfunction()

# dovetail_precompile(target [from]): headers of the standard library, whose parsing takes a third of the time that a file of
# the core compiles. `from`: a target with the same flags, whose precompiled headers serve this one too.
function(dovetail_precompile target)
  if(ARGC GREATER 1)
    target_precompile_headers(${target} REUSE_FROM ${ARGV1})
    return()
  endif()
  target_precompile_headers(
    ${target}
    PRIVATE <algorithm>
            <atomic>
            <chrono>
            <condition_variable>
            <cstring>
            <deque>
            <functional>
            <map>
            <memory>
            <mutex>
            <optional>
            <span>
            <string>
            <thread>
            <unordered_map>
            <vector>)
endfunction()

# dovetail_unity(target): eight sources at a time, which compile in less than half the time: they share the templates that they
# use. Not in a developer's tree, where a change should compile one file.
function(dovetail_unity target)
  if(SKBUILD OR DOVETAIL_SANITIZE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# dovetail_overlay(root backend...): python/ in the build tree, links to the Python sources next to the compiled files, so
# that an edit of a Python file counts at once.
function(dovetail_overlay root)
  set(overlay "${CMAKE_BINARY_DIR}/python")
  set(projects "${root}" "${root}/tests/conformance")
  set(install "")
  foreach(backend IN LISTS ARGN)
    list(APPEND projects "${root}/backends/${backend}")
    list(APPEND install COMMAND "${CMAKE_COMMAND}" --install "${CMAKE_BINARY_DIR}/backends/${backend}" --prefix "${overlay}")
  endforeach()
  add_custom_target(
    overlay ALL
    COMMAND "${Python_EXECUTABLE}" "${root}/cmake/overlay.py" "${overlay}" ${projects} ${install}
    COMMENT "Linking the Python sources into ${overlay}"
    VERBATIM)
  foreach(backend IN LISTS ARGN)
    get_property(targets DIRECTORY "${root}/backends/${backend}" PROPERTY BUILDSYSTEM_TARGETS)
    add_dependencies(overlay ${targets})
  endforeach()
endfunction()
