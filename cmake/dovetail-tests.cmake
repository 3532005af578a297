# C++ tests for ctest: one executable per file, named as the file: unit/rules/test_slice.cpp is rules.test_slice.

set(DOVETAIL_HAMMER_SECONDS 3 CACHE STRING "How long each test runs that hammers from many threads")

# dovetail_test(name source library...)
function(dovetail_test name source)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE dovetail ${ARGN} Threads::Threads ${CMAKE_DL_LIBS})
  target_include_directories(${name} PRIVATE "${tests_dir}/unit")
  set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH OFF RUNTIME_OUTPUT_DIRECTORY
                                                                        "${CMAKE_BINARY_DIR}/tests")
  dovetail_compile(${name})
  if(source MATCHES "[.]cpp$")
    get_property(first GLOBAL PROPERTY dovetail_first_test)
    dovetail_precompile(${name} ${first})
    if(NOT first)
      set_property(GLOBAL PROPERTY dovetail_first_test ${name})
    endif()
  endif()
  if(DOVETAIL_LIBRARY) # what is tested was compiled before: here only the time to compile counts
    target_compile_options(${name} PRIVATE -O0)
  endif()
  if(name MATCHES "hammer$")
    add_test(NAME ${name} COMMAND ${name} ${DOVETAIL_HAMMER_SECONDS})
  else()
    add_test(NAME ${name} COMMAND ${name})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()

find_package(Threads REQUIRED)
set(tests_dir "${DOVETAIL_ROOT}/tests")

# Other sources beside them are compiled by Python tests.
file(GLOB_RECURSE unit_tests CONFIGURE_DEPENDS "${tests_dir}/unit/test_*.cpp")
foreach(source IN LISTS unit_tests)
  file(RELATIVE_PATH name "${tests_dir}/unit" "${source}")
  string(REGEX REPLACE "[.]cpp$" "" name "${name}")
  string(REPLACE "/" "." name "${name}")
  dovetail_test(${name} "${source}")
endforeach()

add_subdirectory("${tests_dir}/abi" "${CMAKE_BINARY_DIR}/tests/abi")
add_subdirectory("${tests_dir}/runtime" "${CMAKE_BINARY_DIR}/tests/runtime")
if(TARGET dovetail-probe) # not where an installed library is tested
  add_subdirectory("${tests_dir}/fuzz" "${CMAKE_BINARY_DIR}/tests/fuzz")
endif()
