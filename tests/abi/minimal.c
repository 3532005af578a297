/* The least that is a device: host memory, no streams, three kernels, C11 and nothing but the C library. */
#include <stdlib.h>
#include <string.h>

#include "dovetail/abi.h"

static const dvt_host* host;
#define FAIL(code, message) host->fail(host, code, 0, __FILE__, __LINE__, message)

struct dvt_device {
  int open;
};
static struct dvt_device device;
enum { ALIGNMENT = 64 };

/* ---- kernels ---- */

static int64_t count(const DLTensor* t) {
  int64_t n = 1;
  for (int i = 0; i < t->ndim; ++i) n *= t->shape[i];
  return n;
}

/* The address of element i of `t`, counted row by row. */
static char* element(const DLTensor* t, int64_t i) {
  int64_t offset = 0;
  for (int axis = t->ndim - 1; axis >= 0; --axis) {
    offset += i % t->shape[axis] * t->strides[axis];
    i /= t->shape[axis];
  }
  return (char*)t->data + offset * (t->dtype.bits / 8);
}

static dvt_status copy_elements(dvt_device* d, const dvt_call* c) {
  (void)d;
  const DLTensor *from = c->in[0], *to = c->out[0];
  for (int64_t i = 0, n = count(to); i < n; ++i) memcpy(element(to, i), element(from, i), to->dtype.bits / 8);
  return DVT_OK;
}

static dvt_status add(dvt_device* d, const dvt_call* c) {
  (void)d;
  const DLTensor *a = c->in[0], *b = c->in[1], *sum = c->out[0];
  for (int64_t i = 0, n = count(sum); i < n; ++i) {
    /* a host scalar has no axes: element() finds it as it finds any other */
    *(float*)element(sum, i) = *(const float*)element(a, i) + *(const float*)element(b, i);
  }
  return DVT_OK;
}

/* out[i, j, k] = x[i, indices[j], k], all row-major */
static dvt_status take(dvt_device* d, const dvt_call* c) {
  (void)d;
  const DLTensor *x = c->in[0], *indices = c->in[1], *out = c->out[0];
  const int axis = c->n_attr && c->attr[0].kind == DVT_A_I64 ? (int)c->attr[0].v.i : 0;
  const int64_t axis_size = x->shape[axis], n = count(indices);
  int64_t outer = 1;
  size_t inner = x->dtype.bits / 8;
  for (int i = 0; i < axis; ++i) outer *= x->shape[i];
  for (int i = axis + 1; i < x->ndim; ++i) inner *= (size_t)x->shape[i];
  char* to = out->data;
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < n; ++j, to += inner) {
      int64_t k = ((const int64_t*)indices->data)[j];
      if (k < 0) k += axis_size;
      if (k < 0 || k >= axis_size) return FAIL(DVT_INDEX, "index out of range");
      memcpy(to, (const char*)x->data + (size_t)(i * axis_size + k) * inner, inner);
    }
  return DVT_OK;
}

#define F32 {DVT_FLOAT, 32, 1}
#define ROW(name, op, run, n_in)   \
  static const dvt_kernel name = { \
      sizeof name, 1, op, NULL, name##_operands, n_in, 1, DVT_K_BITWISE_DETERMINISTIC, 0, run, NULL, NULL, NULL}
static const dvt_operand row_add_operands[] = {{F32, DVT_O_STRIDED | DVT_O_HOST_SCALAR | DVT_O_ALIAS, 0, 0},
                                               {F32, DVT_O_STRIDED | DVT_O_HOST_SCALAR | DVT_O_ALIAS, 0, 0},
                                               {F32, 0, 0, 0}};
static const dvt_operand row_copy8_operands[] = {{{DVT_ANY, 8, 1}, DVT_O_STRIDED, 0, 0},
                                                 {{DVT_ANY, 8, 1}, 0, 0, 0}};
static const dvt_operand row_copy32_operands[] = {{{DVT_ANY, 32, 1}, DVT_O_STRIDED, 0, 0},
                                                  {{DVT_ANY, 32, 1}, 0, 0, 0}};
static const dvt_operand row_copy64_operands[] = {{{DVT_ANY, 64, 1}, DVT_O_STRIDED, 0, 0},
                                                  {{DVT_ANY, 64, 1}, 0, 0, 0}};
static const dvt_operand row_take_operands[] = {
    {{DVT_ANY, 32, 1}, 0, 0, 0}, {{DVT_INT, 64, 1}, 0, 0, 0}, {{DVT_ANY, 32, 1}, 0, 0, 0}};
ROW(row_add, "dvt.add", add, 2);
ROW(row_copy8, "dvt.copy", copy_elements, 1);
ROW(row_copy32, "dvt.copy", copy_elements, 1);
ROW(row_copy64, "dvt.copy", copy_elements, 1);
ROW(row_take, "dvt.take", take, 2);
static const dvt_kernel* const rows[] = {&row_add, &row_copy8, &row_copy32, &row_copy64, &row_take};

/* ---- the device ---- */

static dvt_status device_count(uint32_t* n) {
  *n = 1;
  return DVT_OK;
}

static dvt_status device_open(uint32_t index, dvt_device** out) {
  if (index) return FAIL(DVT_INVALID, "there is one device only");
  device.open = 1;
  *out = &device;
  return DVT_OK;
}

static void device_close(dvt_device* d) { d->open = 0; }

static dvt_status device_props(dvt_device* d, dvt_props* p) {
  (void)d;
  strcpy(p->name, "minimal");
  DVT_PUT(p, dvt_props, kind, DVT_KIND_OTHER);
  DVT_PUT(p, dvt_props, caps, DVT_CAP_HOST_MAPPED | DVT_CAP_FORK_SAFE);
  DVT_PUT(p, dvt_props, dl_device_type, 1 /* kDLCPU */);
  DVT_PUT(p, dvt_props, alloc_align, ALIGNMENT);
  return DVT_OK;
}

/* Every C library has malloc, not every one aligned_alloc: what malloc gave stands before the aligned memory. */
static dvt_status alloc(dvt_device* d, uint64_t size, uint32_t mem, dvt_stream* s, void** out) {
  (void)d, (void)mem, (void)s;
  if (size > SIZE_MAX - ALIGNMENT - sizeof(void*)) return DVT_OOM;
  char* raw = malloc((size_t)size + ALIGNMENT + sizeof(void*));
  if (!raw) return DVT_OOM;
  uintptr_t at = (uintptr_t)(raw + sizeof(void*) + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
  ((void**)at)[-1] = raw;
  *out = (void*)at;
  return DVT_OK;
}

static void dealloc(dvt_device* d, void* data, uint32_t mem, dvt_stream* s) {
  (void)d, (void)mem, (void)s;
  free(((void**)data)[-1]);
}

static dvt_status copy(dvt_device* d, const DLTensor* to, const DLTensor* from, dvt_stream* s) {
  (void)d, (void)s;
  memcpy(to->data, from->data, (size_t)count(from) * (from->dtype.bits / 8));
  return DVT_OK;
}

static const dvt_backend backend = {sizeof backend, DVT_ABI_MAJOR, DVT_ABI_MINOR,
                                    DVT_ABI_DRAFT,  "minimal",     "0.1",
                                    "C11",          rows,          sizeof rows / sizeof *rows,
                                    device_count,   device_open,   device_close,
                                    device_props,   alloc,         dealloc,
                                    copy,           NULL,          NULL,
                                    NULL,           NULL};

DVT_EXPORT int32_t dvt_probe_v1(char* reason, size_t reason_size) {
  (void)reason, (void)reason_size;
  return 1;
}

DVT_EXPORT dvt_status dvt_backend_v1(const dvt_host* h, const dvt_backend** out) {
  host = h;
  if (h->abi_draft != DVT_ABI_DRAFT) return FAIL(DVT_INVALID, "built for another draft of dovetail/abi.h");
  *out = &backend;
  return DVT_OK;
}
