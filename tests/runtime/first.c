/* The guide's program: adds two arrays on a device. first DEVICE LIBRARY... */
#include <dovetail/runtime.h>
#include <stdio.h>

static int failed(const char* step) {
  dvr_error_info error = {.struct_size = sizeof error};
  dvr_last_error(&error);
  fprintf(stderr, "%s: %s\n", step, error.message);
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (dvr_load_backends((const char* const*)argv + 2, (uint32_t)argc - 2)) return failed("load");
  dvr_device* device = dvr_find_device(argv[1]);
  if (!device) return fprintf(stderr, "there is no device %s\n", argv[1]), 1;

  const int64_t shape[] = {2, 3};
  const float values[] = {1, 2, 3, 4, 5, 6};
  const DLDataType f32 = {DVT_FLOAT, 32, 1};
  dvr_tensor x, half, sum = {.buffer = NULL}; /* no buffer: dvr_call makes the result */
  if (dvr_from_host(device, f32, 2, shape, values, &x)) return failed("from_host");
  dvr_number_f64(&half, 0.5);

  const dvr_tensor* operands[] = {&x, &half};
  if (dvr_call(dvr_find_op("add"), NULL, operands, 2, NULL, 0, &sum, 1, 0)) return failed("add");

  float result[6];
  if (dvr_read(&sum, result)) return failed("read");
  for (int i = 0; i < 6; ++i) printf("%g%s", result[i], i < 5 ? " " : "\n");
  dvr_tensor_release(&x);
  dvr_tensor_release(&sum);
  return 0;
}
