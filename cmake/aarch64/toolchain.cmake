# Debian's cross compiler and the sysroot that sysroot.sh makes: DOVETAIL_SYSROOT in the environment says where.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT "$ENV{DOVETAIL_SYSROOT}")

# Programs are this machine's, what is linked the other's; packages of headers only, as pybind11, are anybody's.
set(CMAKE_FIND_ROOT_PATH "${CMAKE_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)

# The headers of the Python that runs it, and the name that Python gives to its modules.
file(GLOB Python_INCLUDE_DIR "${CMAKE_SYSROOT}/usr/include/python3.*")
set(Python_INCLUDE_DIR "${Python_INCLUDE_DIR}" CACHE PATH "")
string(REGEX REPLACE ".*python3\\." "3" tag "${Python_INCLUDE_DIR}")
set(PYTHON_MODULE_EXTENSION ".cpython-${tag}-aarch64-linux-gnu.so" CACHE STRING "")
