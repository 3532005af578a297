# Which instruction set levels are built. A wheel for other machines needs all of them. For this machine alone one level is
# enough, and it compiles in a third of the time; a build tree that is configured again with more levels compiles only those.

set(DOVETAIL_CPU_LEVELS all CACHE STRING
    "all, runnable (those that this machine can run), native (the best that this machine can run), or names separated by ;")

# dovetail_cpu_choose_levels(OUT KNOWN): those of KNOWN, the weakest first, that DOVETAIL_CPU_LEVELS names.
function(dovetail_cpu_choose_levels out known)
  set(wish "${DOVETAIL_CPU_LEVELS}")
  if(wish STREQUAL "all")
    set(chosen ${known})
  elseif(wish MATCHES "^(native|runnable)$")
    _dovetail_cpu_native_level(best)
    list(FIND known "${best}" last)
    if(last EQUAL -1)
      message(FATAL_ERROR "dovetail-cpu: this machine runs none of the levels ${known}: got \"${best}\"; set "
                          "-DDOVETAIL_CPU_LEVELS=all")
    endif()
    math(EXPR count "${last} + 1")
    list(SUBLIST known 0 ${count} chosen)
    if(wish STREQUAL "native")
      set(chosen ${best})
    endif()
  else()
    string(REPLACE ";" "|" pattern "${wish}")
    set(chosen ${known})
    list(FILTER chosen INCLUDE REGEX "^(${pattern})$")
    list(LENGTH wish wanted)
    list(LENGTH chosen found)
    if(NOT wanted EQUAL found)
      message(FATAL_ERROR "dovetail-cpu: DOVETAIL_CPU_LEVELS: expected all, runnable, native or some of ${known}, got "
                          "\"${wish}\"")
    endif()
  endif()
  list(JOIN chosen ", " names)
  message(STATUS "dovetail-cpu: levels ${names}")
  set(${out} ${chosen} PARENT_SCOPE)
endfunction()

# The level that the library would choose on this machine, by the code with which it chooses.
function(_dovetail_cpu_native_level out)
  if(CMAKE_CROSSCOMPILING)
    message(FATAL_ERROR "dovetail-cpu: DOVETAIL_CPU_LEVELS=${DOVETAIL_CPU_LEVELS} needs a build for this machine, not a "
                        "cross build: set -DDOVETAIL_CPU_LEVELS=all")
  endif()
  try_run(failed compiled "${CMAKE_CURRENT_BINARY_DIR}/native_level"
          "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/native_level.cpp"
          CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${CMAKE_CURRENT_SOURCE_DIR}/src"
          COMPILE_OUTPUT_VARIABLE messages RUN_OUTPUT_VARIABLE level)
  if(NOT compiled OR failed)
    message(FATAL_ERROR "dovetail-cpu: cannot find this machine's level: set -DDOVETAIL_CPU_LEVELS=all\n${messages}")
  endif()
  string(STRIP "${level}" level)
  set(${out} "${level}" PARENT_SCOPE)
endfunction()
