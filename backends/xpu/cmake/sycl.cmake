# The SYCL runtime as its wheels bring it: the targets xpu::sycl and, for programs that run the build's own SYCL code
# on the CPU device, XPU_OPENCL_CPU. No compiler of Intel's: host code is compiled by the C++ compiler at hand.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)

# xpu_file_of(<variable> <distribution> <suffix>): the one file of an installed wheel whose path ends so. The prefix of
# the interpreter does not know it if the build is isolated.
function(xpu_file_of variable distribution suffix)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "
import os, sys
from importlib.metadata import files
found = [f for f in files(sys.argv[1]) or () if str(f).endswith(sys.argv[2])]
print(os.path.realpath(found[0].locate()) if found else '')" ${distribution} ${suffix}
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
  if(status OR NOT EXISTS "${found}")
    message(FATAL_ERROR "dovetail-xpu: no ${suffix} of the wheel ${distribution} for ${Python_EXECUTABLE}: "
                        "pip install ${distribution}")
  endif()
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()

xpu_file_of(sycl_header intel-sycl-rt include/sycl/sycl.hpp)
cmake_path(SET XPU_INCLUDE NORMALIZE "${sycl_header}/../..")
xpu_file_of(sycl_library intel-sycl-rt /libsycl.so)
cmake_path(GET sycl_library PARENT_PATH XPU_LIBRARIES)
xpu_file_of(dnnl_header onednn-devel include/oneapi/dnnl/dnnl.h) # the library itself is opened when it is first needed
cmake_path(SET XPU_DNNL_INCLUDE NORMALIZE "${dnnl_header}/../../..")
xpu_file_of(XPU_OPENCL_CPU intel-opencl-rt /libintelocl.so)

add_library(xpu::sycl INTERFACE IMPORTED)
target_include_directories(xpu::sycl SYSTEM INTERFACE "${XPU_INCLUDE}" "${XPU_DNNL_INCLUDE}")
target_compile_definitions(xpu::sycl INTERFACE SYCL_DISABLE_FSYCL_SYCLHPP_WARNING)
# DT_RPATH, which counts for the libraries of libsycl too; DT_RUNPATH does not. Without Intel's mathematics libraries in
# the process the OpenCL CPU device is not found: it opens them by names that nothing else would resolve.
target_link_options(xpu::sycl INTERFACE -Wl,--disable-new-dtags)
target_link_libraries(
  xpu::sycl
  INTERFACE "${XPU_LIBRARIES}/libsycl.so" -Wl,--push-state,--no-as-needed "${XPU_LIBRARIES}/libsvml.so"
            "${XPU_LIBRARIES}/libirng.so" "${XPU_LIBRARIES}/libimf.so" "${XPU_LIBRARIES}/libintlc.so" -Wl,--pop-state)
