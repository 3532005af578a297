# For toolchain files: the libraries and headers of another system, in the folder that DOVETAIL_SYSROOT in the
# environment names.
set(CMAKE_SYSROOT "$ENV{DOVETAIL_SYSROOT}")

# Programs are this machine's, linked libraries the other's; header-only packages, as pybind11, come from either.
set(CMAKE_FIND_ROOT_PATH "${CMAKE_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)

# The headers of the Python that runs it.
file(GLOB Python_INCLUDE_DIR "${CMAKE_SYSROOT}/usr/include/python3.*")
set(Python_INCLUDE_DIR "${Python_INCLUDE_DIR}" CACHE PATH "")
