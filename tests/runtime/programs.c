/* The builder, files and runs of programs in C11: programs DEVICE LIBRARY... */
#include "api.h"

static dvr_device* device;
static const int64_t any_four[] = {-1, 4};

static int32_t call(dvr_builder* b, const char* op, int32_t x, int32_t y) {
  int32_t in[] = {x, y}, out = -1;
  OK(dvr_builder_call(b, dvr_find_op(op), in, y < 0 ? 1 : 2, NULL, 0, NULL, 0, &out));
  return out;
}

/* (x + y) @ w, in one axis */
static dvr_program* flat_product(void) {
  const char* const names[] = {"n", NULL};
  const float w[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const int64_t four_two[] = {4, 2};
  dvr_builder* b;
  int32_t x, y, product, weights, rows, columns, two, size, flat, ignored;
  OK(dvr_builder_new(&b));
  OK(dvr_builder_input(b, f32, 2, any_four, names, "x", &x));
  OK(dvr_builder_input(b, f32, 2, any_four, names, "y", &y));
  OK(dvr_builder_array(b, f32, 2, four_two, w, &weights));
  product = call(b, "matmul", call(b, "add", x, y), weights);
  dvr_tensor described;
  OK(dvr_builder_describe(b, product, &described));
  CHECK(described.view.ndim == 2 && described.view.shape[1] == 2 && !described.buffer);
  OK(dvr_builder_size(b, product, 0, &rows));
  OK(dvr_builder_size(b, weights, 1, &columns));
  OK(dvr_builder_integer(b, 2, &two));
  CHECK(two == columns); /* the size of an array of the program is known */
  OK(dvr_builder_arithmetic(b, DVR_MULTIPLY, rows, columns, &size));
  const int64_t shape[] = {0};
  const dvr_attr attr = {"shape", {DVT_A_I64S, 1, {.is = shape}}};
  const dvr_number_at at = {"shape", 0, size};
  OK(dvr_builder_call(b, dvr_find_op("reshape"), &product, 1, &attr, 1, &at, 1, &flat));
  FAILS(dvr_builder_size(b, flat, 1, &ignored), DVR_INDEX, "1 axes");
  FAILS(dvr_builder_size(b, 99, 0, &ignored), DVR_INDEX, "value 99");
  const dvr_number_at no_number = {"shape", 0, 99};
  FAILS(dvr_builder_call(b, dvr_find_op("reshape"), &product, 1, &attr, 1, &no_number, 1, &ignored), DVR_INDEX,
        "no number 99");
  FAILS(dvr_builder_call(b, dvr_find_op("add"), &product, 1, NULL, 0, NULL, 0, &ignored), DVR_TYPE,
        "misses the operand");
  FAILS(dvr_builder_arithmetic(b, 17, rows, rows, &ignored), DVR_VALUE, "DVR_ADD");
  dvr_program* program;
  const int32_t outputs[] = {flat, weights};
  OK(dvr_builder_finish(b, outputs, 2, &program));
  FAILS(dvr_builder_integer(b, 1, &ignored), DVR_RUNTIME, "ended");
  dvr_builder_free(b);
  return program;
}

static void expect_flat(dvr_program* program, int64_t n) {
  const int64_t shape[] = {n, 4};
  float* values = malloc(sizeof(float) * 4 * (size_t)(n + 1));
  float* got = malloc(sizeof(float) * 2 * (size_t)(n + 1));
  CHECK(values && got);
  for (int64_t i = 0; i < 4 * n; ++i) values[i] = (float)(i % 7);
  dvr_tensor x, out[2] = {nothing(), nothing()}, shapes[2];
  array(&x, device, f32, 2, shape, values);
  dvr_tensor* in[] = {&x, &x};
  OK(dvr_program_infer(program, (const dvr_tensor* const*)in, 2, shapes, 2));
  CHECK(shapes[0].view.ndim == 1 && shapes[0].view.shape[0] == 2 * n);
  OK(dvr_program_run(program, NULL, in, 2, NULL, out, 2));
  CHECK(x.buffer && out[0].view.ndim == 1 && out[0].view.shape[0] == 2 * n);
  OK(dvr_read(&out[0], got));
  for (int64_t i = 0; i < n; ++i)
    for (int c = 0; c < 2; ++c) {
      float sum = 0;
      for (int k = 0; k < 4; ++k) sum += 2 * values[4 * i + k] * (float)(2 * k + c + 1);
      CHECK(got[2 * i + c] == sum);
    }
  /* the results are the caller's own: writing them changes neither the program's arrays nor an operand */
  const float nought[8] = {0};
  OK(dvr_write(&out[1], nought));
  dvr_tensor_release(&out[0]), dvr_tensor_release(&out[1]);
  /* a given result, every second element of a larger array */
  const int64_t wide[] = {2 * n, 2};
  dvr_tensor memory;
  OK(dvr_empty(device, f32, 2, wide, &memory));
  out[0] = memory;
  int64_t strides[] = {2}, length[] = {2 * n};
  out[0].view.ndim = 1, out[0].view.shape = length, out[0].view.strides = strides;
  OK(dvr_program_run(program, device, in, 2, NULL, out, 2));
  float* both = malloc(sizeof(float) * 4 * (size_t)(n + 1));
  CHECK(both && out[0].buffer == memory.buffer);
  OK(dvr_read(&memory, both));
  for (int64_t i = 0; i < 2 * n; ++i) CHECK(both[2 * i] == got[i]);
  dvr_tensor_release(&out[1]), dvr_tensor_release(&memory), dvr_tensor_release(&x);
  free(values), free(got), free(both);
}

static void sizes(const char* path) {
  dvr_program* program = flat_product();
  OK(dvr_program_check(program, device, NULL, 0));
  dvr_value_info info = {.struct_size = sizeof info};
  OK(dvr_program_input(program, 1, &info));
  CHECK(!strcmp(info.name, "y") && info.ndim == 2 && info.shape[0] == -1 && info.shape[1] == 4);
  CHECK(!strcmp(info.size_names[0], "n") && !*info.size_names[1] && info.dtype.bits == 32);
  OK(dvr_program_output(program, 0, &info));
  CHECK(info.ndim == 1 && info.shape[0] == -1);
  FAILS(dvr_program_output(program, 2, &info), DVR_INDEX, "output 2");
  OK(dvr_program_save(program, path));
  dvr_program* loaded;
  OK(dvr_program_load(path, &loaded));
  remove(path); /* the mapped file lives on */
  const char *text, *again;
  OK(dvr_program_text(program, &text));
  OK(dvr_program_text(loaded, &again));
  CHECK(!strcmp(text, again));
  const dvt_program *view, *same;
  OK(dvr_program_view(loaded, &view));
  CHECK(view->n_inputs == 2 && view->n_outputs == 2 && view->n_symbols == 1 && view->n_nodes == 3);
  CHECK(!strcmp(view->symbols[0].name, "n") && view->values[view->inputs[1]].shape[0] == -1);
  const uint32_t weights = view->outputs[1];
  CHECK(view->info[weights].flags == (DVT_V_CONSTANT | DVT_V_WEIGHT));
  CHECK(view->values[weights].shape[0] == 4 && ((const float*)view->values[weights].data)[7] == 8);
  OK(dvr_program_view(program, &same));
  CHECK(view->hash[0] == same->hash[0] && view->hash[1] == same->hash[1]);
  FAILS(dvr_program_from_text(text, &program), DVR_VALUE, "load the .dvt file");
  const int64_t each[] = {1, 0, 3, 40, 3};
  for (int i = 0; i < 5; ++i) {
    expect_flat(program, each[i]);
    expect_flat(loaded, each[i]);
  }
  /* what is refused names the input and the size */
  const int64_t two_four[] = {2, 4}, one_four[] = {1, 4};
  const float values[8] = {0};
  dvr_tensor x, y, out[2] = {nothing(), nothing()};
  array(&x, device, f32, 2, two_four, values);
  array(&y, device, f32, 2, one_four, values);
  dvr_tensor* in[] = {&x, &y};
  const uint8_t both[] = {1, 1};
  FAILS(dvr_program_run(program, NULL, in, 2, NULL, out, 2), DVR_VALUE,
        "[program] y has size 1 on axis 0: expected 2, the size 'n' of x");
  FAILS(dvr_program_run(program, NULL, in, 2, both, out, 1), DVR_VALUE, "1 results: expected 2");
  CHECK(x.buffer && y.buffer); /* nothing was donated */
  FAILS(dvr_program_load("/no/such/file.dvt", &loaded), DVR_VALUE, "[file.dvt] no such file");
  dvr_tensor_release(&x), dvr_tensor_release(&y);
  dvr_program_free(program), dvr_program_free(loaded);
}

/* A program as a part of another: flat_product of (z, z), and the sum of its first result. */
static void inlined(void) {
  dvr_program *part = flat_product(), *whole;
  dvr_builder* b;
  int32_t z, wrong, in[2], out[2], ignored;
  OK(dvr_builder_new(&b));
  OK(dvr_builder_input(b, f32, 2, any_four, NULL, "z", &z));
  OK(dvr_builder_input(b, i64, 2, any_four, NULL, NULL, &wrong));
  in[0] = in[1] = z;
  FAILS(dvr_builder_inline(b, part, in, 1, out, 2), DVR_TYPE, "1 operands: expected 2");
  FAILS(dvr_builder_inline(b, part, in, 2, out, 1), DVR_VALUE, "1 results: expected 2");
  in[1] = 99;
  FAILS(dvr_builder_inline(b, part, in, 2, out, 2), DVR_INDEX, "value 99");
  in[1] = wrong;
  FAILS(dvr_builder_inline(b, part, in, 2, out, 2), DVR_TYPE, "[program] y has dtype int64: expected float32");
  in[1] = z;
  OK(dvr_builder_inline(b, part, in, 2, out, 2));
  dvr_program_free(part); /* its array is the builder's, too */
  dvr_tensor described;
  OK(dvr_builder_describe(b, out[1], &described));
  CHECK(described.view.ndim == 2 && described.view.shape[0] == 4);
  const int32_t total = call(b, "sum", out[0], -1);
  const int32_t outputs[] = {out[0], total};
  FAILS(dvr_builder_size(b, total, 0, &ignored), DVR_INDEX, "0 axes");
  OK(dvr_builder_finish(b, outputs, 2, &whole));
  dvr_builder_free(b);
  const int64_t shape[] = {3, 4};
  float values[12], got[6], sum, expected = 0;
  for (int i = 0; i < 12; ++i) values[i] = (float)i;
  int64_t unused[12] = {0};
  dvr_tensor x, y, made[2] = {nothing(), nothing()};
  array(&x, device, f32, 2, shape, values);
  array(&y, device, i64, 2, shape, unused);
  dvr_tensor* operands[] = {&x, &y};
  OK(dvr_program_run(whole, NULL, operands, 2, NULL, made, 2));
  OK(dvr_read(&made[0], got));
  OK(dvr_read(&made[1], &sum));
  for (int i = 0; i < 3; ++i)
    for (int c = 0; c < 2; ++c) {
      float one = 0;
      for (int k = 0; k < 4; ++k) one += 2 * values[4 * i + k] * (float)(2 * k + c + 1);
      CHECK(got[2 * i + c] == one);
      expected += one;
    }
  CHECK(sum == expected);
  dvr_tensor_release(&made[0]), dvr_tensor_release(&made[1]), dvr_tensor_release(&x), dvr_tensor_release(&y);
  dvr_program_free(whole);
}

/* A guard of a program within a program fails with the lines of both, when it runs and when it is inlined. */
static void guarded(void) {
  static const char text[] =
      "{\"dovetail\":1,\"inputs\":[{\"dtype\":\"bool\",\"shape\":[]},{\"dtype\":\"float32\",\"shape\":[null]}],"
      "\"programs\":[{\"inputs\":[{}],\"numbers\":[[\"size\",0,0],3],\"guards\":[[\"equal\",0,1,0,\"model.py:7\"]],"
      "\"nodes\":[],\"outputs\":[0]}],\"nodes\":[{\"op\":\"cond\",\"in\":[0,1],\"out\":1,"
      "\"at\":{\"then\":{\"program\":0},\"else\":{\"program\":0}},\"where\":\"model.py:9\"}],\"outputs\":[2]}";
  const char* const expected = "[program] then of cond (model.py:9): it was made for input 0.shape[0] (here ";
  const int64_t three[] = {3}, four[] = {4}, any[] = {-1};
  const float values[4] = {1, 2, 3, 4};
  const uint8_t yes = 1;
  const DLDataType truth = {6, 8, 1};
  dvr_program* program;
  dvr_tensor pred, x, y, out = nothing();
  OK(dvr_program_from_text(text, &program));
  array(&pred, device, truth, 0, NULL, &yes);
  array(&x, device, f32, 1, three, values);
  array(&y, device, f32, 1, four, values);
  dvr_tensor *good[] = {&pred, &x}, *bad[] = {&pred, &y};
  OK(dvr_program_run(program, NULL, good, 2, NULL, &out, 1));
  dvr_tensor_release(&out);
  FAILS(dvr_program_run(program, NULL, bad, 2, NULL, &out, 1), DVR_VALUE, expected);
  FAILS(dvr_program_run(program, NULL, bad, 2, NULL, &out, 1), DVR_VALUE, "4) == 3, at model.py:7; ");
  dvr_builder* b;
  int32_t in[2], result;
  OK(dvr_builder_new(&b));
  OK(dvr_builder_input(b, truth, 0, NULL, NULL, NULL, &in[0]));
  OK(dvr_builder_input(b, f32, 1, any, NULL, NULL, &in[1]));
  FAILS(dvr_builder_inline(b, program, in, 2, &result, 1), DVR_VALUE, expected); /* 120, where the size is open */
  dvr_builder_free(b);
  dvr_tensor_release(&pred), dvr_tensor_release(&x), dvr_tensor_release(&y);
  dvr_program_free(program);
}

static uint64_t bytes_in_use(void) {
  dvr_memory_stats_info stats = {.struct_size = sizeof stats};
  OK(dvr_memory_stats(device, &stats));
  return stats.peak;
}

/* A static cache of keys: a row is written at a position that the device knows. Given away, the cache is written in
 * place; kept, it does not change. */
static void cache(void) {
  enum { ROWS = 4096, WIDTH = 64 };
  const int64_t all[] = {ROWS, WIDTH}, row[] = {1, WIDTH}, one[] = {1}, axis[] = {0};
  dvr_builder* b;
  int32_t in[3], out;
  OK(dvr_builder_new(&b));
  OK(dvr_builder_input(b, f32, 2, all, NULL, "cache", &in[0]));
  OK(dvr_builder_input(b, f32, 2, row, NULL, "row", &in[1]));
  OK(dvr_builder_input(b, i64, 1, one, NULL, "at", &in[2]));
  const dvr_attr attr = {"axis", {DVT_A_I64S, 1, {.is = axis}}};
  OK(dvr_builder_call(b, dvr_find_op("dynamic_update_slice"), in, 3, &attr, 1, NULL, 0, &out));
  dvr_program* program;
  OK(dvr_builder_finish(b, &out, 1, &program));
  dvr_builder_free(b);
  float* values = calloc(ROWS * WIDTH, sizeof(float));
  float ones[WIDTH];
  CHECK(values);
  for (int i = 0; i < WIDTH; ++i) ones[i] = 1;
  dvr_tensor keys, new_row, at, kept = nothing(), updated = nothing();
  array(&keys, device, f32, 2, all, values);
  array(&new_row, device, f32, 2, row, ones);
  const int64_t place = 17;
  array(&at, device, i64, 1, one, &place);
  dvr_tensor* operands[] = {&keys, &new_row, &at};
  OK(dvr_program_run(program, device, operands, 3, NULL, &kept, 1)); /* not donated: a copy */
  CHECK(keys.buffer && kept.view.data != keys.view.data);
  OK(dvr_read(&keys, values));
  CHECK(values[place * WIDTH] == 0);
  dvr_tensor_release(&kept);
  OK(dvr_empty_cache(device));
  OK(dvr_reset_peak(device));
  const uint64_t before = bytes_in_use();
  void* memory = keys.view.data;
  const uint8_t donate[] = {1, 0, 0};
  OK(dvr_program_run(program, device, operands, 3, donate, &updated, 1));
  CHECK(!keys.buffer && new_row.buffer);
  OK(dvr_read(&updated, values));
  for (int64_t i = 0; i < ROWS * WIDTH; ++i) CHECK(values[i] == (float)(i / WIDTH == place));
  CHECK(updated.view.data == memory);
  CHECK(bytes_in_use() - before < ROWS * WIDTH * sizeof(float) / 4);
  /* given away, but somebody else holds it: it does not change */
  dvr_tensor other = updated;
  dvr_retain(other.buffer);
  other.view.shape = other.dims, other.view.strides = other.dims + DVT_MAX_NDIM;
  operands[0] = &updated;
  const int64_t next = 18;
  OK(dvr_write(&at, &next));
  OK(dvr_program_run(program, device, operands, 3, donate, &kept, 1));
  OK(dvr_read(&other, values));
  CHECK(!updated.buffer && kept.view.data != other.view.data && values[next * WIDTH] == 0);
  dvr_tensor_release(&other), dvr_tensor_release(&kept), dvr_tensor_release(&new_row), dvr_tensor_release(&at);
  dvr_program_free(program);
  free(values);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  OK(dvr_load_backends((const char* const*)argv + 2, (uint32_t)argc - 2));
  CHECK((device = dvr_find_device(argv[1])));
  char path[4096];
  snprintf(path, sizeof path, "%s.%p.dvt", argv[0], (void*)&path);
  sizes(path);
  inlined();
  guarded();
  cache();
  puts("ok");
  return 0;
}
