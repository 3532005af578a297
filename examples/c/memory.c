/* Device memory in and out, without a copy by the runtime: memory DEVICE LIBRARY MODEL ROWS
 *
 * The operand is memory of the program itself where the device works in the host's memory (host_mapped), and device
 * memory that the program allocates and fills elsewhere. The result is written where the program wants it. */
#include "example.h"

static void released(void* owner) { *(int*)owner = 1; }

/* A view of a buffer, row-major from its start. */
static dvr_tensor array_in(dvr_buffer* buffer, int64_t rows, int64_t columns) {
  dvr_tensor t = {.view = {.dtype = float32, .ndim = 2}, .buffer = buffer};
  t.view.data = dvr_data(buffer);
  t.dims[0] = rows, t.dims[1] = columns;
  return t;
}

int main(int argc, char** argv) {
  if (argc != 5) return fprintf(stderr, "usage: %s DEVICE LIBRARY MODEL ROWS\n", argv[0]), 2;
  dvr_device* device = open_device(argv[1], argv[2]);
  dvr_program* program = open_program(argv[3], device);
  dvr_device_info info = {.struct_size = sizeof info};
  check(dvr_get_device_info(device, &info));

  const int64_t rows = atoll(argv[4]), columns = columns_of(program);
  const uint64_t bytes = (uint64_t)(rows * columns) * sizeof(float);
  float* own = aligned_alloc(64, (bytes + 63) / 64 * 64); /* as kernels want it */
  if (!own) return 1;
  fill_rows(own, rows, columns);
  int is_released = 0;
  dvr_buffer* buffer;
  if (info.host_mapped) check(dvr_adopt(device, own, released, &is_released, &buffer));
  else check(dvr_alloc(device, bytes, &buffer));
  dvr_tensor x = array_in(buffer, rows, columns);
  x.view.shape = x.dims; /* set after the struct was copied */
  if (!info.host_mapped) check(dvr_write(&x, own));

  dvr_tensor shape_of_result = {.buffer = NULL};
  const dvr_tensor* operands[] = {&x};
  check(dvr_program_infer(program, operands, 1, &shape_of_result, 1)); /* dtype and shape; nothing runs */
  const int64_t n_rows = shape_of_result.view.shape[0], n_columns = shape_of_result.view.shape[1];
  dvr_buffer* place;
  check(dvr_alloc(device, (uint64_t)(n_rows * n_columns) * sizeof(float), &place));
  dvr_tensor y = array_in(place, n_rows, n_columns);
  y.view.shape = y.dims;

  dvr_tensor* in[] = {&x};
  check(dvr_program_run(program, device, in, 1, NULL, &y, 1));
  check(dvr_synchronize(device));
  const float* at = dvr_data(place);
  float* copy = NULL;
  if (!info.host_mapped) {
    copy = malloc((size_t)(n_rows * n_columns) * sizeof *copy);
    if (!copy) return 1;
    check(dvr_read(&y, copy));
    at = copy;
  }
  print_rows(at, n_rows, n_columns);

  dvr_tensor_release(&x);
  dvr_tensor_release(&y);
  dvr_program_free(program);
  if (info.host_mapped && !is_released) return fprintf(stderr, "the runtime still holds the operand\n"), 1;
  free(own);
  free(copy);
  return 0;
}
