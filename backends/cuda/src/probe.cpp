// The probe: may the library be used here? In a file of its own, without static constructors, and without starting
// the driver: whether there is a device is device_count's answer.
#include "dovetail/abi.h"

extern "C" int32_t dvt_probe_v1(char*, size_t) { return 1; }
