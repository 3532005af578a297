# Fails where an object of one instruction set level defines a function that another level's object could define too:
# the linker would keep one of them, whatever instructions it is made of.
if(NOT NM)
  message(WARNING "nm not found: objects of ${NAMESPACE} are not checked for shared functions")
  file(TOUCH "${STAMP}")
  return()
endif()
string(LENGTH ${NAMESPACE} length)
set(token "${length}${NAMESPACE}") # as mangled names spell it
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --defined-only --extern-only "${object}" OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${NM} cannot read ${object}")
  endif()
  string(REPLACE "\n" ";" symbols "${symbols}")
  foreach(line IN LISTS symbols)
    if(line MATCHES "^[0-9a-f]* ([TWi]) (.*)$" AND NOT CMAKE_MATCH_2 MATCHES "${token}")
      message(SEND_ERROR "${object} defines ${CMAKE_MATCH_2}, which other levels may share: keep it in namespace "
        "${NAMESPACE}, force it inline, or move it to src/*.cpp")
    endif()
  endforeach()
endforeach()
file(TOUCH "${STAMP}")
