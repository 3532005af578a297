/* Plugins that are wrong in one way each: FAULT names it, tests/abi/CMakeLists.txt builds all of them. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dovetail/abi.h"

/* The draft and major version that the plugin claims. */
#ifndef CLAIM_MAJOR
#define CLAIM_MAJOR DVT_ABI_MAJOR
#endif
#ifndef CLAIM_MINOR
#define CLAIM_MINOR DVT_ABI_MINOR
#endif
#ifndef CLAIM_DRAFT
#define CLAIM_DRAFT DVT_ABI_DRAFT
#endif

static const dvt_host* host;
#define FAIL(code, message) host->fail(host, code, 0, __FILE__, __LINE__, message)

struct dvt_device {
  int unused;
};
static struct dvt_device device;

static void crash(void) {
  fprintf(stderr, "about to crash\n");
#if defined(_WIN32) /* where abort() is no crash, but the exit code 3 */
  __builtin_trap();
#endif
  abort();
}

#if defined(FAULT_constructor_crashes)
__attribute__((constructor)) static void at_load(void) { crash(); }
#elif defined(FAULT_flushes_subnormals) && defined(__x86_64__)
__attribute__((constructor)) static void at_load(void) {
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
}
#elif defined(FAULT_flushes_subnormals) && defined(__aarch64__)
__attribute__((constructor)) static void at_load(void) {
  __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)1 << 24));
}
#elif defined(FAULT_constructor_exits)
__attribute__((constructor)) static void at_load(void) { exit(3); }
#endif

#if defined(FAULT_unresolved)
void nobody_has_this_function(void);
#endif

#if defined(NEEDS_LIBRARY)
int needed_number(void);
#endif

static dvt_status device_count(uint32_t* n) {
#if defined(NEEDS_LIBRARY)
  if (needed_number() != 42) return FAIL(DVT_INTERNAL, "another library of that name");
#endif
#if defined(FAULT_count_crashes)
  crash();
#elif defined(FAULT_count_fails)
  return FAIL(DVT_INTERNAL, "the driver does not answer");
#elif defined(FAULT_count_hangs)
  for (;;) {
    volatile int busy = 1;
    (void)busy;
  }
#elif defined(FAULT_says_why_none)
  return FAIL(DVT_UNSUPPORTED, "there is no driver; install one");
#elif defined(FAULT_no_devices)
  *n = 0;
  return DVT_OK;
#elif defined(FAULT_count_absurd)
  *n = 1000000;
  return DVT_OK;
#elif defined(FAULT_many_devices)
  *n = 100;
  return DVT_OK;
#endif
  *n = 2;
  return DVT_OK;
}

static dvt_status device_open(uint32_t index, dvt_device** out) {
#if defined(FAULT_open_fails)
  return FAIL(DVT_INTERNAL, "the firmware is missing");
#elif defined(FAULT_open_fails_colourfully)
  return FAIL(DVT_INTERNAL, "\033[31mred\033]0;title\a\x9b\xff \xc3\xa9t\xc3\xa9; retry");
#elif defined(FAULT_open_crashes)
  crash();
#elif defined(FAULT_open_crashes_here)
  if (strcmp(program_invocation_short_name, "dovetail-probe")) crash();
#elif defined(FAULT_one_open_fails)
  if (index == 0) return FAIL(DVT_INTERNAL, "the first one is busy");
#endif
  (void)index;
  *out = &device;
  return DVT_OK;
}
static void device_close(dvt_device* d) { (void)d; }
static dvt_status device_props(dvt_device* d, dvt_props* p) {
  (void)d;
#if defined(FAULT_props_hang)
  for (;;) {
    volatile int busy = 1;
    (void)busy;
  }
#endif
#if defined(FAULT_unended_text)
  memset(p->name, '\n', sizeof p->name);
  memset(p->arch, 'a', sizeof p->arch);
#else
  strcpy(p->name, "broken");
#endif
  DVT_PUT(p, dvt_props, caps, DVT_CAP_HOST_MAPPED);
  DVT_PUT(p, dvt_props, dl_device_type, 12);
#if defined(FAULT_bad_alignment)
  DVT_PUT(p, dvt_props, alloc_align, 48);
#elif defined(FAULT_no_alignment)
  DVT_PUT(p, dvt_props, alloc_align, 0);
#elif defined(FAULT_huge_alignment)
  DVT_PUT(p, dvt_props, alloc_align, (uint64_t)1 << 63);
#else
  DVT_PUT(p, dvt_props, alloc_align, 64);
#endif
  return DVT_OK;
}
static dvt_status alloc(dvt_device* d, uint64_t size, uint32_t mem, dvt_stream* s, void** out) {
  (void)d, (void)mem, (void)s;
  *out = malloc((size_t)size);
  return *out ? DVT_OK : DVT_OOM;
}
static void dealloc(dvt_device* d, void* data, uint32_t mem, dvt_stream* s) {
  (void)d, (void)mem, (void)s;
  free(data);
}
static dvt_status copy(dvt_device* d, const DLTensor* to, const DLTensor* from, dvt_stream* s) {
  (void)d, (void)to, (void)from, (void)s;
  return DVT_OK;
}
static dvt_status run(dvt_device* d, const dvt_call* c) {
  (void)d, (void)c;
  return DVT_OK;
}

#define X10(text) text text text text text text text text text text
#define LONG X10(X10(X10("0123456789")))

#if defined(FAULT_row_reserved)
enum { OPERAND_FLAGS = 0, RESERVED = 3 };
#elif defined(FAULT_newer_row) /* of a minor version to come: members and flags that mean something there */
enum { OPERAND_FLAGS = 128, RESERVED = 3 };
#else
enum { OPERAND_FLAGS = 0, RESERVED = 0 };
#endif
static const dvt_operand operands[] = {{{DVT_FLOAT, 32, 1}, OPERAND_FLAGS, 0, RESERVED},
                                       {{DVT_FLOAT, 32, 1}, 0, 0, 0}};
static const dvt_kernel row = {
#if defined(FAULT_row_too_short)
    .struct_size = 8,
#else
    .struct_size = sizeof row,
#endif
#if !defined(FAULT_row_without_version)
    .op_version = 1,
#endif
#if defined(FAULT_row_without_prefix)
    .op = "negative",
#elif defined(FAULT_row_misspelt)
    .op = "dvt.nn.softmax",
#elif defined(FAULT_row_public_name)
    .op = "linalg.outer",
#elif defined(FAULT_row_of_another)
    .op = "acme.swirl",
#elif defined(FAULT_row_long_name)
    .op = "dvt." LONG,
#elif defined(FAULT_row_two_lines)
    .op = "dvt.nega\ntive",
#elif !defined(FAULT_row_without_name)
    .op = "dvt.negative",
#endif
#if defined(FAULT_row_long_engine)
    .engine = LONG,
#elif defined(FAULT_row_empty_engine)
    .engine = "",
#elif defined(FAULT_row_math_engine)
    .engine = "math",
#endif
#if !defined(FAULT_row_without_operands)
    .operands = operands,
#endif
#if defined(FAULT_row_many_inputs)
    .n_in = 0xffffffff,
#else
    .n_in = 1,
#endif
#if !defined(FAULT_row_without_outputs)
    .n_out = 1,
#endif
#if !defined(FAULT_row_without_run)
    .run = run,
#endif
};
#if defined(FAULT_rows_missing)
static const dvt_kernel* const rows[] = {&row, NULL};
#else
static const dvt_kernel* const rows[] = {&row};
#endif

static const dvt_streams streams = {.struct_size = sizeof streams};

static const dvt_backend backend = {
    .struct_size = sizeof backend,
    .abi_major = CLAIM_MAJOR,
    .abi_minor = CLAIM_MINOR,
    .abi_draft = CLAIM_DRAFT,
    .name = NAME,
#if defined(FAULT_long_version)
    .version = LONG,
#endif
#if defined(FAULT_rows_nowhere)
    .kernels = (const dvt_kernel* const*)16,
#else
    .kernels = rows,
#endif
#if defined(FAULT_rows_absurd)
    .n_kernels = (uint64_t)-1,
#else
    .n_kernels = sizeof rows / sizeof *rows,
#endif
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .device_props = device_props,
    .alloc = alloc,
#if !defined(FAULT_no_dealloc)
    .dealloc = dealloc,
#endif
    .copy = copy,
#if defined(FAULT_half_streams)
    .streams = &streams,
#endif
};

DVT_EXPORT int32_t dvt_probe_v1(char* reason, size_t reason_size) {
#if defined(FAULT_probe_crashes)
  crash();
#elif defined(FAULT_probe_says_no)
  snprintf(reason, reason_size, "this machine has no frobnicator");
  return 0;
#elif defined(FAULT_unresolved)
  nobody_has_this_function();
#endif
  (void)reason, (void)reason_size, (void)host, (void)crash, (void)dealloc, (void)streams, (void)run, (void)operands;
  return 1;
}

#if !defined(FAULT_no_entry)
#if defined(FAULT_newer_entry)
DVT_EXPORT dvt_status dvt_backend_v2(const dvt_host* h, const dvt_backend** out);
#define dvt_backend_v1 dvt_backend_v2
#endif
DVT_EXPORT dvt_status dvt_backend_v1(const dvt_host* h, const dvt_backend** out) {
  host = h;
#if defined(FAULT_entry_refuses)
  return FAIL(DVT_INVALID, "built for draft 7 of the device protocol");
#endif
  *out = &backend;
  return DVT_OK;
}
#endif
