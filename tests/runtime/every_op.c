/* Calls that a file describes, without Python: every_op DEVICE LIBRARY CALLS RESULTS. drawn_calls.py has the form
 * of both files. A call that fails is a result too: its status and message. */
#include "api.h"

typedef struct {
  const unsigned char *at, *end;
} reader;

static const void* bytes(reader* r, uint64_t n) {
  CHECK(n <= (uint64_t)(r->end - r->at));
  const void* found = r->at;
  r->at += n;
  return found;
}
#define READ(type, name)                                  \
  static type read_##name(reader* r) {                    \
    type value;                                           \
    memcpy(&value, bytes(r, sizeof value), sizeof value); \
    return value;                                         \
  }
READ(uint8_t, u8)
READ(uint32_t, u32)
READ(int64_t, i64)
READ(double, f64)

/* The strings of one call live until `text` is used for the next. */
static char text[1 << 14];
static size_t text_used;
static const char* read_text(reader* r, uint32_t* length) {
  const uint32_t n = read_u32(r);
  CHECK(text_used + n + 1 <= sizeof text);
  char* copy = text + text_used;
  memcpy(copy, bytes(r, n), n);
  copy[n] = 0;
  text_used += n + 1;
  if (length) *length = n;
  return copy;
}

static DLDataType read_dtype(reader* r) {
  DLDataType t = {0, 0, 1};
  t.code = read_u8(r), t.bits = read_u8(r);
  return t;
}

static void read_integers(reader* r, uint32_t n, int64_t* to) {
  for (uint32_t i = 0; i < n; ++i) to[i] = read_i64(r);
}

enum { ABSENT, ARRAY, BOOL, INTEGER, REAL };

/* false: the operand is not given. An array is a view of `n` elements that are uploaded. */
static int read_operand(reader* r, dvr_device* device, dvr_tensor* t) {
  switch (read_u8(r)) {
    case ABSENT: return 0;
    case BOOL: dvr_number_bool(t, (uint32_t)read_i64(r)); return 1;
    case INTEGER: dvr_number_i64(t, read_i64(r)); return 1;
    case REAL: dvr_number_f64(t, read_f64(r)); return 1;
  }
  const DLDataType dtype = read_dtype(r);
  const uint32_t ndim = read_u8(r);
  int64_t dims[2 * DVT_MAX_NDIM];
  read_integers(r, 2 * ndim, dims);
  const int64_t offset = read_i64(r), n = read_i64(r);
  const uint64_t size = dtype.bits / 8;
  OK(dvr_from_host(device, dtype, 1, &n, bytes(r, size * (uint64_t)n), t));
  memcpy(t->dims, dims, ndim * sizeof *dims);
  memcpy(t->dims + DVT_MAX_NDIM, dims + ndim, ndim * sizeof *dims);
  t->view.ndim = (int32_t)ndim;
  t->view.shape = t->dims, t->view.strides = t->dims + DVT_MAX_NDIM;
  if (n) t->view.data = (char*)t->view.data + offset * (int64_t)size;
  return 1;
}

static int64_t integers[256];
static uint32_t integers_used;
static void read_attribute(reader* r, dvr_attr* a) {
  a->name = read_text(r, NULL);
  memset(&a->value, 0, sizeof a->value);
  a->value.kind = read_u32(r), a->value.count = 1;
  switch (a->value.kind) {
    case DVT_A_NONE: break;
    case DVT_A_I64:
    case DVT_A_BOOL: a->value.v.i = read_i64(r); break;
    case DVT_A_F64: a->value.v.f = read_f64(r); break;
    case DVT_A_STR: a->value.v.s = read_text(r, &a->value.count); break;
    case DVT_A_DTYPE: a->value.v.dt = read_dtype(r); break;
    case DVT_A_I64S:
      a->value.count = read_u32(r);
      CHECK(integers_used + a->value.count <= sizeof integers / sizeof *integers);
      read_integers(r, a->value.count, integers + integers_used);
      a->value.v.is = integers + integers_used;
      integers_used += a->value.count;
      break;
    default: CHECK(!"a kind of attribute");
  }
}

static void write_text(FILE* to, const char* s) {
  const uint32_t n = (uint32_t)strlen(s);
  fwrite(&n, sizeof n, 1, to), fwrite(s, 1, n, to);
}

static void write_array(FILE* to, const dvr_tensor* t) {
  const uint8_t head[] = {t->view.dtype.code, t->view.dtype.bits, (uint8_t)t->view.ndim};
  fwrite(head, 1, sizeof head, to);
  uint64_t size = t->view.dtype.bits / 8;
  for (int i = 0; i < t->view.ndim; ++i) size *= (uint64_t)t->view.shape[i];
  fwrite(t->view.shape, sizeof(int64_t), (size_t)t->view.ndim, to);
  void* data = malloc(size + 1);
  OK(dvr_read(t, data));
  fwrite(data, 1, size, to);
  free(data);
}

enum { MOST_OPERANDS = 32, MOST_ATTRIBUTES = 16, MOST_RESULTS = 4 };

static void one_call(reader* r, dvr_device* device, FILE* to) {
  text_used = integers_used = 0;
  const dvr_op* op = dvr_find_op(read_text(r, NULL));
  CHECK(op);
  static dvr_tensor operands[MOST_OPERANDS];
  static dvr_attr attributes[MOST_ATTRIBUTES];
  const dvr_tensor* in[MOST_OPERANDS] = {0};
  const uint32_t n_in = read_u32(r);
  CHECK(n_in <= MOST_OPERANDS);
  int arrays = 0;
  for (uint32_t i = 0; i < n_in; ++i) {
    operands[i] = nothing();
    if (read_operand(r, device, &operands[i])) in[i] = &operands[i], arrays += operands[i].buffer != NULL;
  }
  const uint32_t n_attributes = read_u32(r);
  CHECK(n_attributes <= MOST_ATTRIBUTES);
  for (uint32_t i = 0; i < n_attributes; ++i) read_attribute(r, &attributes[i]);
  dvr_op_info info = {.struct_size = sizeof info};
  OK(dvr_get_op_info(op, &info));
  dvr_tensor out[MOST_RESULTS] = {0};
  CHECK(info.n_out <= MOST_RESULTS);
  const dvr_status status =
      dvr_call(op, arrays ? NULL : device, in, n_in, attributes, n_attributes, out, info.n_out, 0);
  const uint32_t head[] = {(uint32_t)status, status ? 0 : info.n_out};
  fwrite(head, sizeof *head, 2, to);
  write_text(to, status ? last_error().message : "");
  for (uint32_t i = 0; i < head[1]; ++i) write_array(to, &out[i]), dvr_tensor_release(&out[i]);
  for (uint32_t i = 0; i < n_in; ++i) dvr_tensor_release(&operands[i]);
}

int main(int n, char** args) {
  CHECK(n == 5);
  OK(dvr_load_backend(NULL, args[2], NULL));
  OK(dvr_set_fallback(DVR_FALLBACK_ERROR));
  dvr_device* device = dvr_find_device(args[1]);
  CHECK(device);
  FILE* from = fopen(args[3], "rb");
  CHECK(from && !fseek(from, 0, SEEK_END));
  const long size = ftell(from);
  rewind(from);
  unsigned char* file = malloc((size_t)size);
  CHECK(file && fread(file, 1, (size_t)size, from) == (size_t)size);
  fclose(from);
  FILE* to = fopen(args[4], "wb");
  CHECK(to);
  reader r = {file, file + size};
  while (r.at < r.end) one_call(&r, device, to);
  CHECK(!fclose(to));
  free(file);
  return 0;
}
