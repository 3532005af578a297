/* One program, many threads, each with sizes of its own: threads DEVICE LIBRARY MODEL THREADS */
#include <pthread.h>

#include "example.h"

typedef struct {
  dvr_device* device;
  dvr_program* program; /* shared: it is never changed by a run */
  int64_t rows;
  float sum;
} worker;

static void* work(void* argument) {
  worker* w = argument;
  const int64_t columns = columns_of(w->program), shape[] = {w->rows, columns};
  float* host = malloc((size_t)(w->rows * columns) * sizeof *host);
  if (!host) exit(1);
  fill_rows(host, w->rows, columns);
  for (int round = 0; round < 20; ++round) {
    dvr_tensor x, y = {.buffer = NULL};
    check(dvr_from_host(w->device, float32, 2, shape, host, &x));
    dvr_tensor* in[] = {&x};
    const uint8_t donate[] = {1}; /* x is not needed any more: a result may take its memory */
    check(dvr_program_run(w->program, w->device, in, 1, donate, &y, 1));
    const int64_t n = y.view.shape[0] * y.view.shape[1];
    float* result = malloc((size_t)n * sizeof *result);
    if (!result) exit(1);
    check(dvr_read(&y, result));
    w->sum = 0;
    for (int64_t i = 0; i < n; ++i) w->sum += result[i];
    dvr_tensor_release(&y);
    free(result);
  }
  free(host);
  return NULL;
}

int main(int argc, char** argv) {
  enum { MOST = 64 };
  if (argc != 5) return fprintf(stderr, "usage: %s DEVICE LIBRARY MODEL THREADS\n", argv[0]), 2;
  const int n = atoi(argv[4]);
  if (n < 1 || n > MOST) return fprintf(stderr, "expected 1 to %d threads\n", MOST), 2;
  dvr_device* device = open_device(argv[1], argv[2]);
  dvr_program* program = open_program(argv[3], device);
  pthread_t threads[MOST];
  worker workers[MOST];
  for (int i = 0; i < n; ++i) {
    workers[i] = (worker){device, program, i + 1, 0};
    if (pthread_create(&threads[i], NULL, work, &workers[i])) return fprintf(stderr, "no thread\n"), 1;
  }
  for (int i = 0; i < n; ++i) {
    pthread_join(threads[i], NULL);
    printf("%" PRId64 " rows: %.6g\n", workers[i].rows, workers[i].sum);
  }
  dvr_program_free(program);
  return 0;
}
