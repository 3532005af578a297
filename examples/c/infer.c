/* Opens a program, looks at its inputs and outputs, and runs it: infer DEVICE LIBRARY MODEL ROWS */
#include "example.h"

static void describe(dvr_program* program) {
  uint32_t n_in, n_out;
  check(dvr_program_counts(program, &n_in, &n_out));
  for (uint32_t i = 0; i < n_in + n_out; ++i) {
    dvr_value_info v = {.struct_size = sizeof v};
    check(i < n_in ? dvr_program_input(program, i, &v) : dvr_program_output(program, i - n_in, &v));
    fprintf(stderr, "%s %s(", i < n_in ? "input" : "output", v.name);
    for (uint32_t axis = 0; axis < v.ndim; ++axis) {
      if (axis) fprintf(stderr, ", ");
      if (v.shape[axis] >= 0) fprintf(stderr, "%" PRId64, v.shape[axis]);
      else fprintf(stderr, "%s", *v.size_names[axis] ? v.size_names[axis] : "any");
    }
    fprintf(stderr, ")\n");
  }
}

int main(int argc, char** argv) {
  if (argc != 5) return fprintf(stderr, "usage: %s DEVICE LIBRARY MODEL ROWS\n", argv[0]), 2;
  dvr_device* device = open_device(argv[1], argv[2]);
  dvr_program* program = open_program(argv[3], device);
  describe(program);

  const int64_t rows = atoll(argv[4]), columns = columns_of(program);
  const int64_t shape[] = {rows, columns};
  float* host = malloc((size_t)(rows * columns) * sizeof *host);
  if (!host) return 1;
  fill_rows(host, rows, columns);

  dvr_tensor x, y = {.buffer = NULL}; /* no buffer: the runtime makes the result */
  check(dvr_from_host(device, float32, 2, shape, host, &x));
  dvr_tensor* in[] = {&x};
  check(dvr_program_run(program, device, in, 1, NULL, &y, 1)); /* any number of rows: nothing is compiled anew */

  float* result = malloc((size_t)(y.view.shape[0] * y.view.shape[1]) * sizeof *result);
  if (!result) return 1;
  check(dvr_read(&y, result)); /* waits for the device */
  print_rows(result, y.view.shape[0], y.view.shape[1]);

  dvr_tensor_release(&x);
  dvr_tensor_release(&y);
  dvr_program_free(program);
  free(host);
  free(result);
  return 0;
}
