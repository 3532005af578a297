# DOVETAIL_INCLUDE, the folder of dovetail/abi.h: this source archive's own, the source tree's, or the one of an
# installed dovetail.
set(DOVETAIL_INCLUDE "" CACHE PATH "The folder of dovetail/abi.h; found if empty")
if(NOT DOVETAIL_INCLUDE)
  foreach(folder include ../../core/include)
    get_filename_component(folder "${CMAKE_CURRENT_SOURCE_DIR}/${folder}" ABSOLUTE)
    if(NOT DOVETAIL_INCLUDE AND EXISTS "${folder}/dovetail/abi.h")
      set(DOVETAIL_INCLUDE "${folder}")
    endif()
  endforeach()
endif()
if(NOT DOVETAIL_INCLUDE)
  find_package(Python 3.11 COMPONENTS Interpreter QUIET)
  if(Python_FOUND)
    execute_process(COMMAND "${Python_EXECUTABLE}" -m dovetail --include-dir OUTPUT_VARIABLE DOVETAIL_INCLUDE
                    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
endif()
