/* A device that is right, and with one switch wrong in one way: what the conformance suite must find.
 *
 *   cc -shared -fPIC -I core/include broken_device.c                    the good one
 *   cc ... -DBROKEN=LAST | STRIDES | CRASH | NANS | HANG | SILENT | WRITES_OPERAND | KEEPS_CALL
 *
 * The culprit is always multiply, but for NANS, which is maximum's. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dovetail/abi.h"

enum { NOTHING, LAST, STRIDES, CRASH, NANS, HANG, SILENT, WRITES_OPERAND, KEEPS_CALL };
#ifndef BROKEN
#define BROKEN NOTHING
#endif
enum { ALIGNMENT = 64 };

struct dvt_device {
  int open;
};
static struct dvt_device device;
static const dvt_host* host;

static int64_t count(const DLTensor* t) {
  int64_t n = 1;
  for (int i = 0; i < t->ndim; ++i) n *= t->shape[i];
  return n;
}

/* Where element i of `t`, counted row by row, lies. */
static char* element(const DLTensor* t, int64_t i) {
  int64_t offset = 0;
  for (int axis = t->ndim - 1; axis >= 0; --axis) {
    offset += i % t->shape[axis] * t->strides[axis];
    i /= t->shape[axis];
  }
  return (char*)t->data + offset * (t->dtype.bits / 8);
}

static float value(const DLTensor* t, int64_t i, int ignore_strides) {
  if (ignore_strides && t->ndim) return ((const float*)t->data)[t->strides[t->ndim - 1] ? i : 0];
  return *(const float*)element(t, i);
}

static float larger(float a, float b) {
  if (BROKEN == NANS) return fmaxf(a, b);
  return isnan(a) || a > b ? a : b;
}

static dvt_status copy_elements(dvt_device* d, const dvt_call* c) {
  (void)d;
  const DLTensor *from = c->in[0], *to = c->out[0];
  for (int64_t i = 0, n = count(to); i < n; ++i) memcpy(element(to, i), element(from, i), to->dtype.bits / 8);
  return DVT_OK;
}

static dvt_status add(dvt_device* d, const dvt_call* c) {
  (void)d;
  for (int64_t i = 0, n = count(c->out[0]); i < n; ++i)
    *(float*)element(c->out[0], i) = value(c->in[0], i, 0) + value(c->in[1], i, 0);
  return DVT_OK;
}

static dvt_status maximum(dvt_device* d, const dvt_call* c) {
  (void)d;
  for (int64_t i = 0, n = count(c->out[0]); i < n; ++i)
    *(float*)element(c->out[0], i) = larger(value(c->in[0], i, 0), value(c->in[1], i, 0));
  return DVT_OK;
}

static dvt_status multiply(dvt_device* d, const dvt_call* c) {
  (void)d;
  static const dvt_call* kept; /* of the call before: a worker that comes late reads it like that */
  if (BROKEN == KEEPS_CALL && kept && count(kept->out[0]) < 0) return DVT_INTERNAL;
  kept = c;
  if (BROKEN == CRASH) abort();
  while (BROKEN == HANG) sleep(1);
  if (BROKEN == SILENT) return DVT_OK;
  const int64_t n = count(c->out[0]) - (BROKEN == LAST);
  for (int64_t i = 0; i < n; ++i)
    *(float*)element(c->out[0], i) = value(c->in[0], i, BROKEN == STRIDES) * value(c->in[1], i, BROKEN == STRIDES);
  if (BROKEN == WRITES_OPERAND && c->in[0]->ndim) *(float*)c->in[0]->data = 77;
  return DVT_OK;
}

#define F32 {DVT_FLOAT, 32, 1}
#define OPERAND {F32, DVT_O_STRIDED | DVT_O_HOST_SCALAR, 0, 0}
static const dvt_operand binary[] = {OPERAND, OPERAND, {F32, 0, 0, 0}};
#define ROW(name)                        \
  static const dvt_kernel row_##name = { \
      sizeof(dvt_kernel), 1, "dvt." #name, NULL, binary, 2, 1, 0, 0, name, NULL, NULL, NULL}
ROW(add);
ROW(maximum);
ROW(multiply);
#define COPY(bits)                                                                                         \
  static const dvt_operand any##bits[] = {{{DVT_ANY, bits, 1}, DVT_O_STRIDED, 0, 0},                       \
                                          {{DVT_ANY, bits, 1}, DVT_O_STRIDED, 0, 0}};                      \
  static const dvt_kernel copy##bits = {sizeof(dvt_kernel), 1,    "dvt.copy", NULL, any##bits, 1, 1, 0, 0, \
                                        copy_elements,      NULL, NULL,       NULL}
COPY(8);
COPY(16);
COPY(32);
COPY(64);
COPY(128);
static const dvt_kernel* const rows[] = {&row_add, &row_maximum, &row_multiply, &copy8,
                                         &copy16,  &copy32,      &copy64,       &copy128};

static dvt_status device_count(uint32_t* n) {
  *n = 1;
  return DVT_OK;
}

static dvt_status device_open(uint32_t index, dvt_device** out) {
  if (index) return host->fail(host, DVT_INVALID, 0, __FILE__, __LINE__, "there is one device only");
  device.open = 1;
  *out = &device;
  return DVT_OK;
}

static void device_close(dvt_device* d) { d->open = 0; }

static dvt_status device_props(dvt_device* d, dvt_props* p) {
  (void)d;
  strcpy(p->name, "broken on purpose");
  strcpy(p->arch, "c11");
  DVT_PUT(p, dvt_props, kind, DVT_KIND_OTHER);
  DVT_PUT(p, dvt_props, caps, DVT_CAP_HOST_MAPPED);
  DVT_PUT(p, dvt_props, dl_device_type, 1 /* kDLCPU */);
  DVT_PUT(p, dvt_props, mem_total, UINT64_C(1) << 32);
  DVT_PUT(p, dvt_props, alloc_align, ALIGNMENT);
  return DVT_OK;
}

static dvt_status alloc(dvt_device* d, uint64_t size, uint32_t mem, dvt_stream* s, void** out) {
  (void)d, (void)mem, (void)s;
  return size <= SIZE_MAX / 2 && (*out = aligned_alloc(ALIGNMENT, size)) ? DVT_OK : DVT_OOM;
}

static void dealloc(dvt_device* d, void* p, uint32_t mem, dvt_stream* s) {
  (void)d, (void)mem, (void)s;
  free(p);
}

static dvt_status copy(dvt_device* d, const DLTensor* to, const DLTensor* from, dvt_stream* s) {
  (void)d, (void)s;
  memmove(to->data, from->data, (size_t)count(to) * (to->dtype.bits / 8));
  return DVT_OK;
}

static const dvt_backend backend = {
    .struct_size = sizeof backend,
    .abi_major = DVT_ABI_MAJOR,
    .abi_minor = DVT_ABI_MINOR,
    .abi_draft = DVT_ABI_DRAFT,
    .name = "meta",
    .version = "1",
    .build_info = "",
    .kernels = rows,
    .n_kernels = sizeof rows / sizeof *rows,
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .device_props = device_props,
    .alloc = alloc,
    .dealloc = dealloc,
    .copy = copy,
};

int32_t dvt_probe_v1(char* reason, size_t size) {
  (void)reason, (void)size;
  return 1;
}

dvt_status dvt_backend_v1(const dvt_host* given, const dvt_backend** out) {
  host = given;
  *out = &backend;
  return DVT_OK;
}
