// The probe: can this library be used here? It is in a file of its own, without static constructors, and must not
// start the driver: checks that need the driver belong in device_count.
#include "dovetail/abi.h"

extern "C" int32_t dvt_probe_v1(char*, size_t) { return 1; }
