# Debian's cross compiler and the sysroot that sysroot.sh makes.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
include("${CMAKE_CURRENT_LIST_DIR}/../sysroot.cmake")

# The name that this Python gives to its modules.
string(REGEX REPLACE ".*python3\\." "3" tag "${Python_INCLUDE_DIR}")
set(PYTHON_MODULE_EXTENSION ".cpython-${tag}-aarch64-linux-gnu.so" CACHE STRING "")
