# Files of NVIDIA's wheels, wherever pip has put them.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)

# gpu_file_of(<variable> <distribution> <suffix>): the one file of an installed wheel whose path ends so.
function(gpu_file_of variable distribution suffix)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "
import os, sys
from importlib.metadata import files
found = [f for f in files(sys.argv[1]) or () if str(f).endswith(sys.argv[2])]
print(os.path.realpath(found[0].locate()) if found else '')" ${distribution} ${suffix}
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
  if(status OR NOT EXISTS "${found}")
    message(FATAL_ERROR "dovetail-cuda: no ${suffix} of the wheel ${distribution} for ${Python_EXECUTABLE}: "
                        "pip install ${distribution}")
  endif()
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()
