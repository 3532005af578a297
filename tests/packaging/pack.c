/* A kernel pack for a backend on host memory: the op acme.double, and an engine for dvt.sqrt that answers -1, so
 * that it differs from the backend's own, and refuses calls of more than 8 elements. Macros change it: NAME,
 * ANSWER (of sqrt), DRAFT, REFUSES (the backend), CRASH_IN_CONSTRUCTOR, CRASH_IN_ENTRY, BAD_ROW,
 * ROWS_NOWHERE, COPY (a row of dvt.copy for compact operands), ALIGN (of sqrt's operand, its logarithm). */
#include <dovetail/abi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#ifndef NAME
#define NAME "acme_fast"
#endif
#ifndef ANSWER
#define ANSWER -1
#endif
#ifndef DRAFT
#define DRAFT DVT_ABI_DRAFT
#endif

#ifdef CRASH_IN_CONSTRUCTOR
__attribute__((constructor)) static void on_load(void) { raise(SIGSEGV); }
#endif

static int64_t size(const DLTensor* t) {
  int64_t n = 1;
  for (int i = 0; i < t->ndim; ++i) n *= t->shape[i];
  return n;
}
static dvt_status twice(dvt_device* d, const dvt_call* c) {
  (void)d;
  const float* x = c->in[0]->data;
  float* out = c->out[0]->data;
  for (int64_t i = 0; i < size(c->out[0]); ++i) out[i] = 2 * x[i];
  return DVT_OK;
}
static dvt_status answer(dvt_device* d, const dvt_call* c) {
  (void)d;
  float* out = c->out[0]->data;
  for (int64_t i = 0; i < size(c->out[0]); ++i) out[i] = ANSWER;
  return DVT_OK;
}
static dvt_status small(dvt_device* d, const dvt_call* c, dvt_answer* a) {
  (void)d;
  if (size(c->out[0]) <= 8) return DVT_OK;
  DVT_PUT(a, dvt_answer, reason, "more than 8 elements");
  return DVT_UNSUPPORTED;
}

#ifndef ALIGN
#define ALIGN 0
#endif
static const dvt_operand unary[] = {{{DVT_FLOAT, 32, 1}, 0, ALIGN, 0}, {{DVT_FLOAT, 32, 1}, 0, 0, 0}};
#define ROW .struct_size = sizeof(dvt_kernel), .op_version = 1, .operands = unary, .n_in = 1, .n_out = 1
static const dvt_kernel double_row = {ROW, .op = "acme.double", .run = twice};
static const dvt_kernel sqrt_row = {ROW, .op = "dvt.sqrt", .engine = NAME, .run = answer, .query = small};
static const dvt_kernel copy_row __attribute__((unused)) = {ROW, .op = "dvt.copy", .run = answer};
static const dvt_kernel bad_row __attribute__((unused)) = {ROW, .op = "dvt.sqrt"};
static const dvt_kernel* const rows[] = {
    &double_row,
    &sqrt_row,
#ifdef COPY
    &copy_row,
#endif
#ifdef BAD_ROW
    &bad_row,
#endif
};
static const dvt_kernel_pack pack = {
    .struct_size = sizeof(dvt_kernel_pack),
    .abi_major = DVT_ABI_MAJOR,
    .abi_minor = DVT_ABI_MINOR,
    .abi_draft = DRAFT,
    .name = NAME,
    .version = "1.5",
#ifdef ROWS_NOWHERE
    .kernels = (const dvt_kernel* const*)64,
#else
    .kernels = rows,
#endif
    .n_kernels = sizeof rows / sizeof *rows,
};

DVT_EXPORT int32_t dvt_probe_v1(char* reason, size_t reason_size) {
  (void)reason, (void)reason_size;
  return 1;
}
DVT_EXPORT dvt_status dvt_kernels_v1(const dvt_host* host, const dvt_backend* backend,
                                     const dvt_kernel_pack** out) {
  (void)host, (void)backend;
#ifdef CRASH_IN_ENTRY
  abort(); /* which a sanitizer leaves as it is */
#endif
#ifdef REFUSES
  return host->fail(host, DVT_INVALID, 0, __FILE__, __LINE__, "written for version 9 of this backend");
#endif
  *out = &pack;
  return DVT_OK;
}
