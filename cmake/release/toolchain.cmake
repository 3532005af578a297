# Debian's compilers and the sysroot that sysroot.sh makes, for x86-64 or aarch64.
file(GLOB folder "$ENV{DOVETAIL_SYSROOT}/usr/lib/*-linux-gnu")
get_filename_component(triplet "${folder}" NAME)
if(triplet STREQUAL "aarch64-linux-gnu")
  include("${CMAKE_CURRENT_LIST_DIR}/../aarch64/toolchain.cmake")
else()
  set(CMAKE_C_COMPILER ${triplet}-gcc)
  set(CMAKE_CXX_COMPILER ${triplet}-g++)
  include("${CMAKE_CURRENT_LIST_DIR}/../sysroot.cmake")
endif()

# The compiler would find newer libraries in its own folder first.
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-B${CMAKE_SYSROOT}/usr/lib/${triplet}/ -B${CMAKE_SYSROOT}/lib/${triplet}/ \
-Wl,--exclude-libs,libstdc++.a")
endforeach()
# And so would Debian's cross compiler find newer headers.
foreach(language C CXX)
  string(REPLACE "CXX" "c++" name ${language})
  string(TOLOWER ${name} name)
  execute_process(COMMAND ${CMAKE_${language}_COMPILER} --sysroot=${CMAKE_SYSROOT} -E -v -x ${name} /dev/null
                  OUTPUT_QUIET ERROR_VARIABLE folders COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE ".*#include <[^\n]*\n(.*)End of search list.*" "\\1" folders "${folders}")
  string(REGEX MATCHALL "[^ \n]+" folders "${folders}")
  list(FILTER folders EXCLUDE REGEX "/${triplet}/include$")
  list(JOIN folders " -isystem " folders)
  set(CMAKE_${language}_FLAGS_INIT "-nostdinc -isystem ${folders}")
endforeach()
