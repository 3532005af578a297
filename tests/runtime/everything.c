/* Every part of runtime.h in C11: everything DEVICE LIBRARY... */
#include "api.h"

static dvr_device* device;

static int64_t count(const dvr_tensor* t) {
  int64_t n = 1;
  for (int i = 0; i < t->view.ndim; ++i) n *= t->view.shape[i];
  return n;
}

static void expect_floats(const dvr_tensor* t, const float* values, int n) {
  float got[64];
  CHECK(count(t) == n && n <= 64);
  OK(dvr_read(t, got));
  for (int i = 0; i < n; ++i)
    if (got[i] != values[i]) {
      fprintf(stderr, "element %d: got %g, expected %g\n", i, got[i], values[i]);
      exit(1);
    }
}

static dvr_status call2(const char* name, const dvr_tensor* a, const dvr_tensor* b, dvr_tensor* out) {
  const dvr_tensor* in[] = {a, b};
  return dvr_call(dvr_find_op(name), NULL, in, 2, NULL, 0, out, 1, 0);
}

static const float six[] = {1, 2, 3, 4, 5, 6};
static const int64_t two_three[] = {2, 3};

static void devices(void) {
  dvr_device* found[8];
  CHECK(dvr_version() == DVR_VERSION);
  CHECK(dvr_devices(found, 8) >= 1 && dvr_devices(NULL, 0) == dvr_devices(found, 8));
  dvr_device_info info = {.struct_size = sizeof info, .build = NULL};
  OK(dvr_get_device_info(device, &info));
  CHECK(strlen(info.name) && strlen(info.backend) && info.mem_total);
  info.struct_size = 8, info.caps = 77;
  OK(dvr_get_device_info(device, &info));
  CHECK(info.caps == 77); /* behind what the caller's struct has */
  uint32_t how = 9;
  OK(dvr_supports(device, "add", f32, &how));
  CHECK(how == DVR_KERNEL);
  OK(dvr_synchronize(device));
}

static void numbers(void) {
  dvr_tensor x, n, b, m, y = nothing();
  array(&x, device, f32, 2, two_three, six);
  dvr_number_f64(&n, 0.5);
  OK(call2("add", &x, &n, &y));
  expect_floats(&y, (const float[]){1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f}, 6);
  CHECK(y.view.dtype.code == DVT_FLOAT && y.view.dtype.bits == 32);
  dvr_tensor_release(&y);
  const int8_t small[] = {1, 2};
  const int64_t two[] = {2};
  array(&b, device, (DLDataType){DVT_INT, 8, 1}, 1, two, small);
  dvr_number_i64(&n, 1000);
  FAILS(call2("add", &b, &n, &y), DVR_VALUE, "1000 does not fit in int8");
  CHECK(!strcmp(last_error().op, "add") && !y.buffer);
  dvr_number_u64(&n, UINT64_MAX);
  FAILS(call2("add", &b, &n, &y), DVR_VALUE, "18446744073709551615");
  const uint8_t truth[] = {1, 0};
  array(&m, device, boolean, 1, two, truth);
  OK(call2("add", &m, &m, &y)); /* as NumPy: or */
  CHECK(y.view.dtype.code == DVT_BOOL);
  dvr_tensor_release(&y), dvr_tensor_release(&m), dvr_tensor_release(&b), dvr_tensor_release(&x);
}

static void attributes(void) {
  dvr_tensor x, y = nothing();
  array(&x, device, f32, 2, two_three, six);
  const dvr_tensor* in[] = {&x};
  const dvr_op* sum = dvr_find_op("sum");
  const dvr_attr axis = {"axis", {DVT_A_I64, 1, {.i = 0}}};
  OK(dvr_call(sum, NULL, in, 1, &axis, 1, &y, 1, 0));
  expect_floats(&y, (const float[]){5, 7, 9}, 3);
  dvr_tensor_release(&y);
  const dvr_attr place = {NULL, {DVT_A_I64, 1, {.i = 1}}};
  OK(dvr_call(sum, NULL, in, 1, &place, 1, &y, 1, 0));
  expect_floats(&y, (const float[]){6, 15}, 2);
  dvr_tensor_release(&y);
  const dvr_attr wrong = {"axes", {DVT_A_I64, 1, {.i = 0}}}, text = {"axis", {DVT_A_STR, 1, {.s = "x"}}};
  FAILS(dvr_call(sum, NULL, in, 1, &wrong, 1, &y, 1, 0), DVR_TYPE, "did you mean 'axis'");
  FAILS(dvr_call(sum, NULL, in, 1, &text, 1, &y, 1, 0), DVR_TYPE, "expected integers, got a string");
  FAILS(dvr_call(dvr_find_op("iota"), device, NULL, 0, NULL, 0, &y, 1, 0), DVR_TYPE, "misses the attribute 'size'");
  dvr_op_info info = {.struct_size = sizeof info};
  OK(dvr_get_op_info(sum, &info));
  CHECK(!strcmp(info.name, "sum") && info.n_out == 1 && info.n_params >= 2);
  dvr_param_info param = {.struct_size = sizeof param};
  OK(dvr_get_param_info(sum, 0, &param));
  CHECK(param.role == DVR_OPERAND && !param.optional);
  CHECK(dvr_ops(NULL, 0) > 150);
  /* without the optional operand, the bias */
  dvr_tensor product = nothing();
  OK(call2("linear", &x, &x, &product));
  expect_floats(&product, (const float[]){14, 32, 32, 77}, 4);
  dvr_tensor_release(&product);
  dvr_tensor_release(&x);
}

static void given_results(void) {
  dvr_tensor x, y, z, n;
  array(&x, device, f32, 2, two_three, six);
  array(&y, device, f32, 2, two_three, six);
  void* memory = y.view.data;
  OK(call2("add", &x, &x, &y));
  CHECK(y.view.data == memory);
  expect_floats(&y, (const float[]){2, 4, 6, 8, 10, 12}, 6);
  OK(call2("multiply", &y, &x, &y)); /* in place */
  expect_floats(&y, (const float[]){2, 8, 18, 32, 50, 72}, 6);
  /* the transpose of a (3, 2) array */
  const int64_t three_two[] = {3, 2};
  array(&z, device, f32, 2, three_two, six);
  dvr_tensor t = z;
  int64_t shape[] = {2, 3}, strides[] = {1, 2};
  t.view.shape = shape, t.view.strides = strides;
  OK(call2("add", &x, &x, &t));
  expect_floats(&z, (const float[]){2, 8, 4, 10, 6, 12}, 6);
  /* an operand that overlaps: x[:, :2] = x[:, 1:] + x[:, 1:] */
  dvr_tensor left, right;
  const dvr_index first[] = {{DVR_ELLIPSIS, 0, 0, 0, 1}, {DVR_SLICE, 0, 0, 2, 1}};
  const dvr_index last[] = {{DVR_ELLIPSIS, 0, 0, 0, 1}, {DVR_SLICE, 0, 1, DVR_END, 1}};
  OK(dvr_view(&x, first, 2, &left));
  OK(dvr_view(&x, last, 2, &right));
  OK(call2("add", &right, &right, &left));
  expect_floats(&x, (const float[]){4, 6, 3, 10, 12, 6}, 6);
  /* x[1:] = x[:-1] + x[:-1], and a product into its own operand */
  const int64_t sixty_four[] = {64}, two_two[] = {2, 2};
  float ones[64], shifted[64];
  for (int i = 0; i < 64; ++i) ones[i] = 1, shifted[i] = i ? 2 : 1;
  dvr_tensor v, front, back, square;
  array(&v, device, f32, 1, sixty_four, ones);
  const dvr_index all_but_last = {DVR_SLICE, 0, 0, -1, 1}, all_but_first = {DVR_SLICE, 0, 1, DVR_END, 1};
  OK(dvr_view(&v, &all_but_last, 1, &front));
  OK(dvr_view(&v, &all_but_first, 1, &back));
  OK(call2("add", &front, &front, &back));
  expect_floats(&v, shifted, 64);
  array(&square, device, f32, 2, two_two, six);
  OK(call2("matmul", &square, &square, &square));
  expect_floats(&square, (const float[]){7, 10, 15, 22}, 4);
  dvr_tensor_release(&v), dvr_tensor_release(&front), dvr_tensor_release(&back), dvr_tensor_release(&square);
  /* what is refused */
  int64_t zeros[] = {0, 1};
  t.view.strides = zeros;
  FAILS(call2("add", &x, &x, &t), DVR_VALUE, "place each element once");
  FAILS(call2("add", &x, &x, &z), DVR_VALUE, "expected (2, 3)");
  array(&n, device, i64, 2, two_three, (const int64_t[]){0, 0, 0, 0, 0, 0});
  FAILS(call2("add", &x, &x, &n), DVR_TYPE, "expected float32");
  dvr_tensor_release(&n), dvr_tensor_release(&left), dvr_tensor_release(&right);
  dvr_tensor_release(&x), dvr_tensor_release(&y), dvr_tensor_release(&z);
}

static void views(void) {
  dvr_tensor x, y = nothing(), own = nothing();
  array(&x, device, f32, 2, two_three, six);
  const dvr_tensor* in[] = {&x};
  const int64_t flat[] = {6};
  const dvr_attr shape = {"shape", {DVT_A_I64S, 1, {.is = flat}}};
  const dvr_op* reshape = dvr_find_op("reshape");
  OK(dvr_call(reshape, NULL, in, 1, &shape, 1, &y, 1, 0));
  CHECK(y.buffer == x.buffer);
  OK(dvr_call(reshape, NULL, in, 1, &shape, 1, &own, 1, DVR_OWN_RESULTS));
  CHECK(own.buffer != x.buffer);
  expect_floats(&own, six, 6);
  dvr_tensor_release(&y), dvr_tensor_release(&own);
  const dvr_index at[] = {{DVR_INDEX_AT, 0, -1, 0, 1}, {DVR_NEW_AXIS, 0, 0, 0, 1}, {DVR_SLICE, 0, 0, DVR_END, 2}};
  OK(dvr_view(&x, at, 3, &y));
  CHECK(y.view.ndim == 2 && y.view.shape[0] == 1);
  expect_floats(&y, (const float[]){4, 6}, 2);
  dvr_tensor n;
  dvr_number_i64(&n, 9);
  OK(dvr_copy(&y, &n)); /* x[-1, None, ::2] = 9 */
  expect_floats(&x, (const float[]){1, 2, 3, 9, 5, 9}, 6);
  const dvr_index beyond = {DVR_INDEX_AT, 0, 2, 0, 1};
  FAILS(dvr_view(&x, &beyond, 1, &own), DVR_INDEX, "index 2 is out of range for axis 0 of size 2");
  dvr_tensor_release(&y), dvr_tensor_release(&x);
}

static void infer(void) {
  int64_t a[] = {4, 1}, b[] = {5};
  dvr_tensor x = nothing(), y = nothing(), out;
  x.view.dtype = y.view.dtype = f32;
  x.view.ndim = 2, x.view.shape = a, y.view.ndim = 1, y.view.shape = b;
  const dvr_tensor* in[] = {&x, &y};
  OK(dvr_infer(dvr_find_op("add"), in, 2, NULL, 0, &out, 1));
  CHECK(out.view.ndim == 2 && out.view.shape[0] == 4 && out.view.shape[1] == 5 && !out.buffer && !out.view.data);
  b[0] = 3, a[1] = 2;
  FAILS(dvr_infer(dvr_find_op("add"), in, 2, NULL, 0, &out, 1), DVR_VALUE, "[add]");
}

static void searching(void) {
  const float values[] = {0, 3, 0, 1, 3, 0};
  dvr_tensor x, at[2], v, counts;
  array(&x, device, f32, 2, two_three, values);
  OK(dvr_nonzero(&x, at, 2));
  int64_t rows[3], columns[3], times[3];
  CHECK(count(&at[0]) == 3);
  OK(dvr_read(&at[0], rows));
  OK(dvr_read(&at[1], columns));
  CHECK(rows[0] == 0 && rows[1] == 1 && rows[2] == 1 && columns[0] == 1 && columns[1] == 0 && columns[2] == 1);
  dvr_tensor_release(&at[0]), dvr_tensor_release(&at[1]);
  OK(dvr_unique(&x, &v, NULL, NULL, &counts));
  expect_floats(&v, (const float[]){0, 1, 3}, 3);
  OK(dvr_read(&counts, times));
  CHECK(times[0] == 3 && times[1] == 1 && times[2] == 2);
  dvr_tensor_release(&v), dvr_tensor_release(&counts);
  FAILS(dvr_nonzero(&x, at, 1), DVR_VALUE, "1 results");
  dvr_tensor_release(&x);
}

static void random_numbers(void) {
  dvr_generator* g;
  uint32_t key[4], again[4];
  uint64_t seed, offset;
  OK(dvr_generator_new(7, &g));
  OK(dvr_generator_key(g, 6, key));
  OK(dvr_generator_get(g, &seed, &offset));
  CHECK(seed == 7 && offset == 2 && key[0] == 7 && !key[1] && !key[2]);
  OK(dvr_generator_set(g, 7, 0));
  OK(dvr_generator_key(g, 1, again));
  CHECK(!memcmp(key, again, sizeof key));
  dvr_generator_free(g);
  CHECK(dvr_default_generator());
  dvr_generator_free(dvr_default_generator()); /* nothing */
}

static void pinned_and_streams(void) {
  uint32_t pinned = 9, done = 0;
  float* host;
  OK(dvr_alloc_pinned(device, sizeof six, (void**)&host, &pinned));
  CHECK(pinned <= 1);
  memcpy(host, six, sizeof six);
  dvr_tensor x;
  OK(dvr_empty(device, f32, 2, two_three, &x));
  dvr_stream* s;
  dvr_event *begin, *end;
  OK(dvr_stream_new(device, 0, &s));
  OK(dvr_event_new(device, 1, &begin));
  OK(dvr_event_new(device, 1, &end));
  OK(dvr_set_current_stream(device, s));
  CHECK(dvr_current_stream(device) == s);
  OK(dvr_event_record(begin, NULL));
  OK(dvr_write_async(&x, host, s));
  OK(call2("add", &x, &x, &x));
  OK(dvr_read_async(&x, host, NULL));
  OK(dvr_event_record(end, s));
  OK(dvr_event_synchronize(end));
  OK(dvr_event_query(end, &done));
  CHECK(done && host[0] == 2 && host[5] == 12);
  uint64_t ns;
  OK(dvr_event_elapsed_ns(begin, end, &ns));
  OK(dvr_stream_synchronize(s));
  OK(dvr_set_current_stream(device, NULL));
  CHECK(dvr_current_stream(device) == dvr_default_stream(device));
  OK(dvr_stream_wait(dvr_default_stream(device), s));
  dvr_event_free(begin), dvr_event_free(end), dvr_stream_free(s);
  OK(dvr_free_pinned(host));
  FAILS(dvr_free_pinned(&done), DVR_VALUE, "dvr_alloc_pinned");
  dvr_tensor_release(&x);
}

static void memory(void) {
  dvr_memory_stats_info before = {.struct_size = sizeof before}, after = before;
  OK(dvr_memory_stats(device, &before));
  dvr_buffer* b;
  OK(dvr_alloc(device, 1 << 20, &b));
  OK(dvr_memory_stats(device, &after));
  CHECK(after.in_use == before.in_use + (1 << 20));
  OK(dvr_host_access(b, 0));
  dvr_retain(b), dvr_release(b), dvr_release(b);
  OK(dvr_empty_cache(device));
  OK(dvr_reset_peak(device));
  OK(dvr_set_memory_limit(device, 1 << 22));
  FAILS(dvr_alloc(device, 1 << 23, &b), DVR_MEMORY, "");
  OK(dvr_set_memory_limit(device, 0));
}

static void dlpack(void) {
  dvr_tensor x, y;
  array(&x, device, f32, 2, two_three, six);
  DLManagedTensorVersioned* m;
  OK(dvr_to_dlpack(&x, &m));
  dvr_device_info info = {.struct_size = sizeof info, .build = NULL};
  OK(dvr_get_device_info(device, &info));
  CHECK(m->dl_tensor.data == x.view.data && m->dl_tensor.ndim == 2);
  if (info.dl_device_type == 12) { /* a device of no other library: only itself can read it */
    CHECK(dvr_from_dlpack(m, device, DVR_COPY_IF_NEEDED, &y) == DVR_VALUE);
    m->deleter(m);
  } else {
    OK(dvr_from_dlpack(m, device, DVR_COPY_NEVER, &y));
    CHECK(y.view.data == x.view.data);
    expect_floats(&y, six, 6);
    dvr_tensor_release(&y);
  }
  dvr_tensor_release(&x);
}

/* Each kind of error but MEMORY, which memory() has, and DEVICE_LOST. */
static void errors(void) {
  dvr_tensor x, y = nothing();
  array(&x, device, f32, 2, two_three, six);
  FAILS(dvr_call(NULL, NULL, NULL, 0, NULL, 0, &y, 1, 0), DVR_VALUE, "the op is NULL");
  CHECK(!dvr_find_op("softmux") && SAYS("softmax"));
  FAILS(call2("add", &x, &y, &y), DVR_TYPE, "has no buffer");
  FAILS(dvr_empty(device, (DLDataType){DVT_INT, 3, 1}, 0, NULL, &y), DVR_TYPE, "3 bits");
  FAILS(dvr_empty(device, f32, 1, (const int64_t[]){-1}, &y), DVR_VALUE, "negative");
  FAILS(dvr_load_backend(NULL, "/nowhere/libdovetail_x.so", NULL), DVR_RUNTIME, "there is no file");
  CHECK(*last_error().cure);
  FAILS(dvr_load_backend(NULL, "/nowhere/libdovetail_z.so", NULL), DVR_RUNTIME, "there is no file");
  dvr_quarantined q[2] = {{.struct_size = sizeof *q}};
  CHECK(dvr_quarantine(q, 2) == 2 && strstr(q[0].library, "libdovetail_x.so") && READS(q[0].reason, "no file"));
  struct { /* as of a program that was built for an earlier runtime, whose entries are smaller */
    uint32_t struct_size, reserved;
    const char *name, *library;
  } small[2] = {{.struct_size = sizeof *small}};
  CHECK(dvr_quarantine((dvr_quarantined*)(void*)small, 2) == 2 && strstr(small[1].library, "libdovetail_z.so"));
  FAILS(dvr_load_backends((const char* const[]){"/nowhere"}, 1), DVR_VALUE, "/nowhere");
  const dvr_tensor* in[] = {&x};
  OK(dvr_call(dvr_find_op("logsumexp"), NULL, in, 1, NULL, 0, &y, 1,
              0)); /* by its decomposition where it has no kernel */
  dvr_tensor_release(&y);
  dvr_tensor_release(&x);
}

#if defined(__linux__)
static void no_python_is_mapped(void) {
  char line[4096];
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps);
  int runtime = 0;
  while (fgets(line, sizeof line, maps)) {
    CHECK(!strstr(line, "libpython") && !strstr(line, "_core."));
    runtime |= strstr(line, "libdovetail.so") != NULL;
  }
  fclose(maps);
  CHECK(runtime);
}
#endif

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  CHECK(last_error().kind == DVR_OK);
  OK(dvr_load_backends((const char* const*)argv + 2, (uint32_t)argc - 2));
  device = dvr_find_device(argv[1]);
  CHECK(device);
  OK(dvr_set_fallback(DVR_FALLBACK_ERROR));
  devices(), numbers(), attributes(), given_results(), views(), infer(), searching(), random_numbers();
  pinned_and_streams(), memory(), dlpack(), errors();
#if defined(__linux__)
  no_python_is_mapped();
#endif
  puts("ok");
  return 0;
}
