# Writes ${out}.cpp, which compiles ${family} and registers the kernels that ${out}.names lists.
file(READ "${out}.names" names)
string(REGEX MATCHALL "@kernel [A-Za-z0-9_]+" kernels "${names}")
if(NOT kernels)
  message(FATAL_ERROR "${family} has no kernels")
endif()
string(REGEX REPLACE "@kernel ([A-Za-z0-9_]+)" "EMULATOR_REGISTER(\\1)" registrations "${kernels}")
string(REPLACE ";" "\n" registrations "${registrations}")
file(WRITE "${out}.cpp" "#include \"${family}\"\n${registrations}\n")
