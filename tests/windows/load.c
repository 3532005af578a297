/* Opens one plugin and prints its devices, or the error: load LIBRARY [FOLDER OF WHAT IT NEEDS]... */
#include <dovetail/runtime.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* const* search = argc > 2 ? (const char* const*)argv + 2 : NULL; /* argv ends with NULL */
  if (dvr_load_backend(NULL, argv[1], search)) {
    dvr_error_info error = {.struct_size = sizeof error};
    dvr_last_error(&error);
    printf("%s\n[cure] %s\n", error.message, error.cure);
    return 1;
  }
  dvr_device* devices[8];
  const uint32_t n = dvr_devices(devices, 8);
  for (uint32_t i = 0; i < n && i < 8; ++i) {
    dvr_device_info info = {.struct_size = sizeof info};
    if (dvr_get_device_info(devices[i], &info)) return 3;
    printf("%s%s", info.name, i + 1 < n ? " " : "\n");
    if (*info.build) printf("%s\n", info.build);
  }
  return 0;
}
