set(hints "${CMAKE_CURRENT_LIST_DIR}/../../cmake")
