/* A small device on host memory for the tests of packaging. Macros break it in one way each:
 * NAME, MAJOR, DRAFT, PROBE_SAYS_NO, CRASH_IN_CONSTRUCTOR, CRASH_IN_PROBE, CRASH_IN_COUNT, EXIT_IN_COUNT,
 * COUNT_FAILS, NO_TABLE, UNDEFINED_SYMBOL, DEVICES. */
#include <dovetail/abi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#ifndef NAME
#define NAME "acme"
#endif
#ifndef MAJOR
#define MAJOR DVT_ABI_MAJOR
#endif
#ifndef DRAFT
#define DRAFT DVT_ABI_DRAFT
#endif
#ifndef DEVICES
#define DEVICES 1
#endif

struct dvt_device {
  int unused;
};
static struct dvt_device the_device;
static const dvt_host* host __attribute__((unused));

#ifdef CRASH_IN_CONSTRUCTOR
__attribute__((constructor)) static void on_load(void) { raise(SIGSEGV); }
#endif
#ifdef UNDEFINED_SYMBOL
extern int acme_driver_symbol_nobody_has(void);
#endif

static dvt_status device_count(uint32_t* count) {
#ifdef CRASH_IN_COUNT
  raise(SIGSEGV);
#endif
#ifdef EXIT_IN_COUNT
  exit(0);
#endif
#ifdef COUNT_FAILS
  return host->fail(host, DVT_INTERNAL, 0, __FILE__, __LINE__, "the acme driver is from 1999: update it");
#endif
  *count = DEVICES;
  return DVT_OK;
}
static dvt_status device_open(uint32_t index, dvt_device** out) {
  (void)index;
  *out = &the_device;
  return DVT_OK;
}
static void device_close(dvt_device* d) { (void)d; }
static dvt_status device_props(dvt_device* d, dvt_props* p) {
  (void)d;
  DVT_PUT(p, dvt_props, kind, DVT_KIND_OTHER);
  strcpy(p->name, "Acme");
  strcpy(p->arch, "test");
  DVT_PUT(p, dvt_props, caps, DVT_CAP_HOST_MAPPED);
  DVT_PUT(p, dvt_props, dl_device_type, 12);
  DVT_PUT(p, dvt_props, mem_total, (uint64_t)1 << 30);
  DVT_PUT(p, dvt_props, alloc_align, 64);
  return DVT_OK;
}
static dvt_status take(dvt_device* d, uint64_t size, uint32_t mem, dvt_stream* s, void** out) {
  (void)d, (void)mem, (void)s;
  *out = aligned_alloc(64, size);
  return *out ? DVT_OK : DVT_OOM;
}
static void give_back(dvt_device* d, void* p, uint32_t mem, dvt_stream* s) {
  (void)d, (void)mem, (void)s;
  free(p);
}
static dvt_status copy(dvt_device* d, const DLTensor* dst, const DLTensor* src, dvt_stream* s) {
  (void)d, (void)s;
  size_t bytes = (size_t)src->dtype.bits / 8;
  for (int i = 0; i < src->ndim; ++i) bytes *= (size_t)src->shape[i];
  memcpy(dst->data, src->data, bytes);
  return DVT_OK;
}

static const dvt_backend backend __attribute__((unused)) = {
    .struct_size = sizeof(dvt_backend),
    .abi_major = MAJOR,
    .abi_minor = DVT_ABI_MINOR,
    .abi_draft = DRAFT,
    .name = NAME,
    .version = "1.0",
    .build_info = "a test",
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .device_props = device_props,
    .alloc = take,
    .dealloc = give_back,
    .copy = copy,
};

DVT_EXPORT int32_t dvt_probe_v1(char* reason, size_t size) {
#ifdef CRASH_IN_PROBE
  raise(SIGSEGV);
#endif
#ifdef PROBE_SAYS_NO
  strncpy(reason, "there is no acme driver 7 on this machine", size);
  return 0;
#endif
  (void)reason, (void)size;
  return 1;
}

#ifndef NO_TABLE
DVT_EXPORT dvt_status dvt_backend_v1(const dvt_host* h, const dvt_backend** out) {
  host = h;
  *out = &backend;
#ifdef UNDEFINED_SYMBOL
  return acme_driver_symbol_nobody_has();
#endif
  return DVT_OK;
}
#endif
