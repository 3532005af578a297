/* dovetail/abi.h - the device protocol between the Dovetail runtime (host) and a device's plugin.
 *
 * C11 and C++17, identical layout in both, with and without the real <dlpack/dlpack.h>. Nothing is
 * linked in either direction: the host hands the plugin a table of services (dvt_host), the plugin
 * hands back a table of functions (dvt_backend).
 *
 * RULES (conformance tests each of them)
 *
 * Lifetime  Everything reachable from a call (tensors, shapes, attributes, host scalars) is valid only
 *           until the function returns: copy what a worker needs. (DOVETAIL_POISON_CALLS=1 has the host
 *           overwrite it then; the conformance suite does.) Device memory it names stays valid and
 *           unmoved until the call's stream has passed the work. Tables a plugin returns live as long as
 *           the process.
 * Streams   stream != NULL: enqueue and return; work on one stream happens in the order of the calls.
 *           A stream outlives every event last recorded on it, and every wrap borrowed from it.
 *           stream == NULL: the plugin has completed the work on return. A device without streams only
 *           ever sees NULL.
 * Memory    alloc(stream): usable by work on that stream at once, elsewhere after an event.
 *           dealloc(stream): may be reused after work now enqueued on that stream; the host has ordered
 *           every other stream before it. The size is > 0 and a multiple of alloc_align. `data` is an
 *           address in the device's own space: the host adds to it (pool, views) and never reads through
 *           it, unless the device declares DVT_CAP_HOST_MAPPED; a handle-based API reserves a range of
 *           fake addresses per buffer. byte_offset is 0 in every call. Alignment of a view: one element,
 *           or the operand's align_log2.
 * Tensors   strides are never NULL, counted in elements, >= 0 (0 = broadcast); ndim <= DVT_MAX_NDIM.
 *           Elementwise operands already have the output's shape, whose adjacent axes the host may
 *           have merged; only a host scalar comes as ndim 0. run is not called when every output is
 *           empty; an input may be (data NULL). Inputs and outputs do not overlap, except exactly (same
 *           data, same strides) where the operand says DVT_O_ALIAS. 4- and 6-bit types are packed, lowest
 *           bits first, views start on a byte. device_id is the backend's own index; process-wide DLPack
 *           ids are the host's business, at import and export only.
 * Threads   Any function may be called from any thread. Calls on one stream never overlap; everything
 *           else may. During a call the host holds no lock but that stream's, and it never waits for a
 *           lock while it holds Python's GIL. Plugins may use dvt_host from any thread, but parallel_for
 *           only inside run and pack.
 * Errors    A function that returns non-OK has called host->fail on the calling thread; OOM and
 *           UNSUPPORTED may come without a message. A fault found later is kept by the plugin with its
 *           correlation_id and returned ONCE, through fail, by the next sync, ev_sync or ev_query on that
 *           stream; outputs written since are undefined, the stream goes on unless it is DEVICE_LOST.
 *           Kernels never touch memory outside their operands whatever the data: a bad index is such a
 *           fault (DVT_INDEX).
 *           (DOVETAIL_GUARD_MEMORY=1 has the host look for writes outside outputs; the suite does, too.)
 * Out-structs (dvt_props, dvt_answer)  The host sets struct_size; write tail members with DVT_PUT only.
 * End       Never dlclose. device_close comes from the host's atexit, queues drained; nothing is called
 *           after it. Exit handlers registered since device_open, as of libraries opened late, have run
 *           before it. In a forked child only a DVT_CAP_FORK_SAFE backend is called.
 * Versions  Every struct begins with struct_size and only grows at its end. dvt_attr, dvt_packed, dvt_operand and
 *           dvt_peak are elements of arrays and never grow. A reserved member is 0. A new flag is a permission: a
 *           peer that does not know it may ignore it. A kernel row of op_version v serves every call whose
 *           attributes newer than v are at their defaults and whose operands newer than v are absent; it
 *           describes, and its calls have, the operands of version v alone.
 */
#ifndef DOVETAIL_ABI_H
#define DOVETAIL_ABI_H

#include <stddef.h>
#include <stdint.h>

/* The real DLPack header wins where it is at hand: ours declares the same types under the same names. */
#if !defined(DLPACK_DLPACK_H_) && defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#define DVT_STATIC_ASSERT static_assert
#else
#define DVT_STATIC_ASSERT _Static_assert
#endif

/* ---- versions and exports ------------------------------------------------------------------------ */

#define DVT_ABI_MAJOR 1u /* layout break: a new entry symbol dvt_backend_v2, never a silent change */
#define DVT_ABI_MINOR 0u /* append-only growth */
#define DVT_ABI_DRAFT 0u /* 0: frozen; docs/stability.md has what that means */
#define DVT_MAX_NDIM 16

#if defined(_WIN32)
#define DVT_EXPORT __declspec(dllexport)
#else /* also under -fvisibility=hidden */
#define DVT_EXPORT __attribute__((visibility("default")))
#endif

/* Has *p, which may come from an older or newer peer, the member f? A NULL pointer member is absent. */
#define DVT_HAS(p, T, f) ((p)->struct_size >= offsetof(T, f) + sizeof((p)->f) && (p)->f)
/* Write a member of an out-struct only where the host's struct has it. */
#define DVT_PUT(p, T, f, v)                                                \
  do {                                                                     \
    if ((p)->struct_size >= offsetof(T, f) + sizeof((p)->f)) (p)->f = (v); \
  } while (0)

/* ---- status ---------------------------------------------------------------------------------- */

typedef int32_t dvt_status; /* int32, not an enum: fixed width in C and C++; unknown codes are legal */
#define DVT_OK 0
#define DVT_UNSUPPORTED \
  1 /* from query, pack_size, alloc (kind), device_count, dvt_kernels_v1, extensions; not run */
#define DVT_INVALID 2
#define DVT_OOM 3
#define DVT_DEVICE_LOST 4 /* sticky: the host must call device_reset or drop the device */
#define DVT_INTERNAL 5
#define DVT_INDEX 6 /* IndexError; may be asynchronous */

/* ---- tensors: bit-identical to DLPack 1.x ------------------------------------------------------- */

#ifndef DLPACK_DLPACK_H_
typedef struct {
  int32_t device_type, device_id;
} DLDevice;
typedef struct {
  uint8_t code, bits;
  uint16_t lanes;
} DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;
#endif
DVT_STATIC_ASSERT(sizeof(DLDevice) == 8 && sizeof(DLDataType) == 4 && sizeof(DLTensor) == 48,
                  "64-bit DLPack layout");

/* DLDataType.code; the values are DLPack's. Block scales of the narrow formats are operands. */
enum {
  DVT_INT = 0,
  DVT_UINT = 1,
  DVT_FLOAT = 2,
  DVT_BFLOAT = 4,
  DVT_COMPLEX = 5,
  DVT_BOOL = 6,
  DVT_F8_E4M3FN = 10,
  DVT_F8_E4M3FNUZ = 11,
  DVT_F8_E5M2 = 12,
  DVT_F8_E5M2FNUZ = 13,
  DVT_F8_E8M0FNU = 14,
  DVT_F6_E2M3FN = 15,
  DVT_F6_E3M2FN = 16,
  DVT_F4_E2M1FN = 17,
  DVT_ANY = 255 /* in a kernel row: {DVT_ANY, 32, 1} any 32-bit type, {DVT_ANY, 0, 1} any type */
};

/* ---- attributes: positional in schema order; a missing tail means the schema's defaults ----------- */

typedef struct dvt_program dvt_program;
enum {
  DVT_A_NONE,
  DVT_A_I64,
  DVT_A_F64,
  DVT_A_BOOL,
  DVT_A_STR,
  DVT_A_I64S,
  DVT_A_DTYPE,
  DVT_A_U64,
  DVT_A_F64S, /* a complex number is count 2 */
  DVT_A_PROGRAM,
  /* Only in nodes of a program: entries of its `numbers` in place of numbers. */
  DVT_A_SIZE,  /* i: the entry of an integer */
  DVT_A_SIZES, /* is: the entries of integers, of literals, too */
  DVT_A_REAL   /* i: the entry of a number, which becomes a double */
};
typedef struct {
  uint32_t kind, count; /* count: elements of is and fs, bytes of s */
  union {
    int64_t i; /* also DVT_A_BOOL */
    double f;
    const char* s;
    const int64_t* is;
    const double* fs;
    const dvt_program* p;
    DLDataType dt;
    uint64_t raw;
  } v;
} dvt_attr;
DVT_STATIC_ASSERT(sizeof(dvt_attr) == 16, "attributes never grow");

/* ---- kernels ------------------------------------------------------------------------------------- */

typedef struct dvt_device dvt_device; /* all handles are opaque and owned by the plugin */
typedef struct dvt_stream dvt_stream;
typedef struct dvt_event dvt_event;

typedef struct { /* an operand in a kernel's own layout; data NULL = not packed. in[i] is given as ever */
  void* data;
  uint64_t size, layout;
} dvt_packed;

typedef struct { /* one invocation of an op; the host has allocated the outputs */
  uint32_t struct_size, n_in, n_out, n_attr;
  const DLTensor* const* in;  /* NULL entry: an optional input not given */
  const DLTensor* const* out; /* NULL entry: an optional output not wanted */
  const dvt_attr* attr;
  void* workspace; /* aligned to alloc_align; reusable in stream order after run */
  uint64_t workspace_size;
  dvt_stream* stream;
  uint64_t correlation_id;
  const dvt_packed* packed; /* NULL, or n_in entries */
} dvt_call;

enum { DVT_NATIVE = 1, DVT_EMULATED = 2 }; /* emulated, as fp8 through fp16: legal, but reported */
typedef struct {
  uint32_t struct_size, level;
  uint64_t workspace;    /* bytes */
  uint64_t need_compact; /* bit i: with operand i made row-major this call would be supported */
  const char* reason;    /* static string, required with DVT_UNSUPPORTED */
  /* Of dvt_compiler.query. Bit k: output k may be exactly the memory of an input that has its dtype and, whatever
   * the sizes, its shape, both row-major, for run reads no element of any such input after it has written output
   * k's element at that place. The host does so where the input's value ends with the run; each input serves one
   * output at most. */
  uint64_t in_place;
} dvt_answer;

/* Flags of one operand; inputs come first, then outputs. */
enum {
  DVT_O_STRIDED = 1,     /* takes any legal strides, else the host passes row-major copies.
                            Mandatory on input 0 of "dvt.copy" */
  DVT_O_HOST_SCALAR = 2, /* may be 0-d in host memory (kDLCPU), already of this dtype */
  DVT_O_OPTIONAL = 4,
  DVT_O_VARIADIC = 8, /* the last input, repeated n_in - i times: concat */
  DVT_O_ALIAS = 16,   /* output 0 may be exactly this input's memory */
  DVT_O_PACKABLE = 32
};
typedef struct {
  DLDataType dtype;
  uint8_t flags, align_log2;
  uint16_t reserved;
} dvt_operand;

enum { /* flags of a row */
       DVT_K_CAPTURE_SAFE = 1,
       DVT_K_BITWISE_DETERMINISTIC = 2,
       DVT_K_FLUSHES_SUBNORMALS = 4
};

/* A row of the kernel table. The support matrix is data: printable without the device.
 * Random ops have no generator object: in[0] is a u32[4] {seed lo, seed hi, offset lo, offset hi} read
 * on the device at run time, so that a replay advances; bits are Philox4x32-10 by element index. */
typedef struct {
  uint32_t struct_size, op_version;
  const char* op;     /* "dvt.matmul": names, never an enum of ops */
  const char* engine; /* NULL, or "cudnn", "flash": several rows may serve one op, tried in table order or as the
                         user chooses. The user writes "own" for NULL and "math", which no row may be called,
                         for the op's decomposition */
  const dvt_operand* operands;
  uint32_t n_in, n_out, flags;
  float max_ulp; /* 0 = the schema's tolerance; else a tighter promise */
  dvt_status (*run)(dvt_device*, const dvt_call*);
  /* (optional) Sees shapes, strides and attributes, data may be NULL. Pure: the host caches by them. */
  dvt_status (*query)(dvt_device*, const dvt_call*, dvt_answer*);
  /* (optional) Turn a constant operand into this kernel's own layout once. The host owns the bytes, drops
   * them with the array's value, and may save them; `layout` changes whenever they would mean something
   * else. A cache in the plugin keyed by pointer is forbidden: the pool reuses addresses. pack_size is pure, as
   * query is; pack is enqueued as run is, just before it, and may use the workspace, but writes no output. */
  dvt_status (*pack_size)(dvt_device*, const dvt_call*, uint32_t operand, uint64_t* size, uint64_t* layout);
  dvt_status (*pack)(dvt_device*, const dvt_call*, uint32_t operand, const dvt_packed* dst);
} dvt_kernel;

/* ---- devices --------------------------------------------------------------------------------------- */

enum { DVT_CAP_HOST_MAPPED = 1, DVT_CAP_P2P = 2, DVT_CAP_FORK_SAFE = 4 };
enum { DVT_KIND_CPU = 0, DVT_KIND_GPU = 1, DVT_KIND_NPU = 2, DVT_KIND_OTHER = 3 };
typedef struct {
  DLDataType dtype;
  uint32_t reserved;
  double flops; /* per second */
} dvt_peak;
typedef struct {
  uint32_t struct_size, kind;
  char name[64], arch[32], uuid[40], pci[20];
  uint32_t caps;
  int32_t dl_device_type, dl_device_id; /* what other libraries call it: kDLCPU 1, kDLCUDA 2, kDLExtDev 12 */
  /* alloc_align: a power of two >= 64. mem_total of DVT_CAP_HOST_MAPPED memory is the machine's: the host lowers
   * it to the limit of the process's control group. */
  uint64_t mem_total, alloc_align;
  /* max_streams: how many streams the device has at a time, the default one included; 0 = any number. The host
   * calls create no more often than that. Where a program wants more streams, several of them share one of the
   * device's: their work is then in order, and a wait between two of them is no call. */
  uint32_t max_streams, n_peaks;
  double peak_bytes_per_s; /* 0 = unknown: measure it */
  dvt_peak peaks[8];
} dvt_props;
enum { DVT_MEM_DEVICE, DVT_MEM_PINNED, DVT_MEM_SHARED };

/* ---- streams: a NULL group is absent; fallback: everything synchronous ------------------------------- */

enum { DVT_S_CROSS_DEVICE = 1 }; /* events may be waited on by other devices of this backend */
typedef struct {
  uint32_t struct_size, flags;
  dvt_status (*create)(dvt_device*, int32_t priority, dvt_stream**);
  void (*destroy)(dvt_stream*); /* queued work still completes */
  dvt_status (*sync)(dvt_stream*);
  dvt_status (*ev_create)(dvt_device*, uint32_t timing, dvt_event**);
  void (*ev_destroy)(dvt_event*);
  dvt_status (*ev_record)(dvt_event*, dvt_stream*); /* re-recording replaces; never recorded = done */
  dvt_status (*ev_wait)(dvt_stream*, dvt_event*);   /* the newest record at the time of this call */
  dvt_status (*ev_sync)(dvt_event*);                /* blocks without spinning */
  dvt_status (*ev_query)(dvt_event*, uint32_t* done);
  /* (optional) */
  dvt_status (*ev_elapsed_ns)(dvt_event*, dvt_event*, uint64_t*);
  dvt_status (*wrap)(dvt_device*, void* native, dvt_stream**); /* borrowed, not owned */
  void* (*native)(dvt_stream*);
  dvt_status (*host_fn)(dvt_stream*, void (*fn)(void*), void* ctx); /* in order; fn calls no device function */
} dvt_streams;

/* ---- services the host gives: each plugin gets its own table, passed back as self -------------------- */

typedef struct dvt_host dvt_host;
struct dvt_host {
  uint32_t struct_size, abi_major, abi_minor, abi_draft;
  const char* library_path;
  /* correlation_id 0 = the current call. Copies msg; returns code. */
  dvt_status (*fail)(const dvt_host* self, dvt_status code, uint64_t correlation_id, const char* file, int line,
                     const char* msg);
  void (*log)(const dvt_host* self, int level, const char* msg); /* 0 debug 1 info 2 warning 3 error */
  uint32_t (*num_threads)(const dvt_host* self);
  /* The process's one pool; worker < num_threads(); returns when all is done; nested calls run inline. */
  void (*parallel_for)(const dvt_host* self, uint64_t n, uint64_t grain,
                       void (*fn)(void* ctx, uint64_t begin, uint64_t end, uint32_t worker), void* ctx);
  void (*trace)(const dvt_host* self, uint64_t correlation_id, const char* name, uint64_t t0_ns,
                uint64_t t1_ns); /* CLOCK_MONOTONIC */
  const void* (*extension)(const dvt_host* self, const char* name, uint32_t version);
};

/* ---- the backend's table ----------------------------------------------------------------------------- */

typedef struct {
  uint32_t struct_size, abi_major, abi_minor, abi_draft;
  const char *name, *version, *build_info;
  const dvt_kernel* const* kernels; /* a table of pointers: rows may grow */
  uint64_t n_kernels;
  dvt_status (*device_count)(uint32_t*);                   /* DVT_UNSUPPORTED: none here; fail() gave the cause */
  dvt_status (*device_open)(uint32_t index, dvt_device**); /* once per index */
  void (*device_close)(dvt_device*);
  dvt_status (*device_props)(dvt_device*, dvt_props*);
  dvt_status (*alloc)(dvt_device*, uint64_t size, uint32_t mem, dvt_stream*, void**);
  void (*dealloc)(dvt_device*, void*, uint32_t mem, dvt_stream*); /* raw: the host owns the caching pool */
  /* Both compact, same shape and dtype; one side is this device, the other this device, the host (kDLCPU) or a
   * P2P sibling, which another thread may be using: the host has ordered its streams. Host memory not from
   * alloc(PINNED) is the caller's again on return: read, perhaps into a buffer of the plugin's, or written.
   * Strided copies are the op "dvt.copy". */
  dvt_status (*copy)(dvt_device*, const DLTensor* dst, const DLTensor* src, dvt_stream*);
  /* required ends here */
  dvt_status (*mem_info)(dvt_device*, uint64_t* free_, uint64_t* total);
  dvt_status (*device_reset)(dvt_device*);
  const dvt_streams* streams;
  const void* (*extension)(const char* name, uint32_t version); /* "dovetail.capture", or reverse DNS */
} dvt_backend;

/* The only two exports of a backend. probe lives in an object of its own, built for the baseline ISA, without
 * static constructors and without driver initialisation; 0 = unusable here, with the reason; else a score. What
 * needs the driver (is there a device?) is device_count's answer, which the host asks for first in a child process.
 */
DVT_EXPORT int32_t dvt_probe_v1(char* reason, size_t reason_size);
DVT_EXPORT dvt_status dvt_backend_v1(const dvt_host* host, const dvt_backend** out);

/* A kernel pack: rows for another author's backend, in a library of its own that exports dvt_probe_v1 and
 * dvt_kernels_v1. They go before the backend's own rows and get its handles: `backend` defines what those are
 * (streams->native, extension). A row that cannot serve a call answers so in query, and the next one gets it. */
typedef struct {
  uint32_t struct_size, abi_major, abi_minor, abi_draft;
  const char *name, *version, *build_info;
  const dvt_kernel* const* kernels;
  uint64_t n_kernels;
} dvt_kernel_pack;
DVT_EXPORT dvt_status dvt_kernels_v1(const dvt_host* host, const dvt_backend* backend, const dvt_kernel_pack** out);

/* ==== NOT FROZEN: what extension("dovetail.<group>", DVT_X_<GROUP>) gives must match exactly; a group moves
 * above this line when two backends in CI pass conformance with it ==== */

/* The host's, of dvt_host.extension: const char* const*, which ends with NULL. The folders that the plugin's entry
 * point names in .search, for libraries that it opens itself. */
#define DVT_X_SEARCH 1u

typedef struct dvt_graph dvt_graph;
typedef struct dvt_exe dvt_exe;
typedef struct dvt_comm dvt_comm;

/* Fallback: eager. Between begin and end the host only calls run, copy, ev_record and ev_wait; it allocates
 * nothing and keeps the memory used until destroy; host scalars are baked in. A graph outlives the stream that it
 * was recorded on. */
#define DVT_X_CAPTURE 1u
typedef struct {
  uint32_t struct_size, flags;
  dvt_status (*begin)(dvt_stream*);
  dvt_status (*end)(dvt_stream*, dvt_graph**); /* NULL: abandon */
  dvt_status (*replay)(dvt_graph*, dvt_stream*);
  void (*destroy)(dvt_graph*);
} dvt_capture;

/* ---- programs: a graph of ops, symbolic in its sizes. A decomposition, a traced function, a file ---------- */

/* Sizes. A dimension d < 0 is the symbol -1 - d. Axes that must be equal share a symbol. With DVT_P_TYPED more is
 * presumed: sizes of 1 are literals, axes that were equal at the hints may share a symbol. The host checks that for
 * the sizes of each run; no executable runs at sizes for which it does not hold. */
typedef struct {
  int64_t min, max, multiple;
  int64_t hint;        /* the size in the call that the types are of, for decisions, never for truth; -1: none */
  int32_t input, axis; /* of which input it is the size; input -1: derived, the host computes it for each run */
  const char* name;    /* as the user calls it; NULL */
  uint64_t reserved[2];
} dvt_symbol;

/* Numbers of attributes, of constants and of guards. Operands are earlier entries: evaluated in order, an
 * expression of any depth needs no recursion. Integers are exact; a program does not run where one leaves 64 bits
 * or where Python would raise. The host evaluates all of them for each run. */
enum {
  DVT_N_INTEGER,
  DVT_N_REAL,
  DVT_N_SIZE,      /* of value a on axis b */
  DVT_N_ATTRIBUTE, /* attribute a of the call that runs the program; b >= 0: its element b. In the body of dvt.loop
                      0 is the round, and 1 the list `numbers` */
  DVT_N_ADD,
  DVT_N_SUBTRACT,
  DVT_N_MULTIPLY,
  DVT_N_DIVIDE,       /* real */
  DVT_N_FLOOR_DIVIDE, /* as Python's // and % */
  DVT_N_MODULO,
  DVT_N_MINIMUM,
  DVT_N_MAXIMUM,
  DVT_N_SHIFT_LEFT,
  DVT_N_BIT_LENGTH, /* of a */
  DVT_N_TO_REAL,
  DVT_N_FLOOR, /* of a, to an integer */
  DVT_N_CEIL,
  DVT_N_NEGATIVE,
  DVT_N_POWER, /* as Python's **, where that has the kind of its operands */
  DVT_N_BIT_AND,
  DVT_N_BIT_OR,
  DVT_N_BIT_XOR,
  DVT_N_SHIFT_RIGHT
};
typedef union {
  int64_t i;
  double f;
} dvt_number_value;
typedef struct {
  uint32_t op, is_real;   /* is_real: its value is f, else i */
  int32_t a, b;           /* -1: absent */
  dvt_number_value value; /* of a literal */
  uint64_t reserved[2];
} dvt_number;

/* The program is right where all guards hold: it was traced by Python code that compared these numbers. SAME: bit
 * by bit, which tells 0.0 from -0.0; of an entry and itself: that it has a value. */
enum { DVT_G_EQUAL, DVT_G_NOT_EQUAL, DVT_G_LESS, DVT_G_LESS_EQUAL, DVT_G_SAME };
typedef struct {
  uint32_t compare, a, b; /* entries of `numbers` */
  uint32_t node;          /* it was recorded before this node, and may mention sizes of values made before it */
  uint64_t reserved[2];
} dvt_guard;

enum {
  DVT_V_CONSTANT = 1,    /* data is there, valid until compile returns */
  DVT_V_WEIGHT = 2,      /* its value seldom changes: pack it, by `identity` */
  DVT_V_HOST_SCALAR = 4, /* 0-d, in host memory at run */
  DVT_V_ANY_LAYOUT = 8, /* an output or an inner value: strides are the executable's choice (dvt_compiler.layout) */
  DVT_V_NUMBER = 16     /* 0-d, neither input nor output of a node: entry `number`, rounded to the value's dtype */
};
typedef struct {
  uint32_t flags;
  uint32_t reserved0;
  uint64_t identity; /* of a weight's value: changes when its elements do; 0: unknown */
  int32_t number;    /* of DVT_V_NUMBER, else -1 */
  uint32_t reserved32;
  const char* name; /* of an input or a weight; NULL */
  uint64_t reserved[2];
} dvt_value;

typedef struct {
  uint32_t struct_size, op_version;
  const char* op;           /* as kernel rows spell it, "dvt.exp". dvt.loop, dvt.cond, dvt.while_loop and dvt.scan
                               have attributes of kind DVT_A_PROGRAM */
  const uint32_t *in, *out; /* indices into values; UINT32_MAX = absent */
  const dvt_attr* attr;     /* all of them, also those at their defaults */
  uint32_t n_in, n_out, n_attr, flags;
  const char* where; /* "model.py:84", for messages and profiles; NULL */
} dvt_node;

enum {
  DVT_P_ROUND_EACH = 1,    /* f16, bf16: round after every node, as eager execution does; else once per group */
  DVT_P_DETERMINISTIC = 2, /* the same bits whatever the number of threads */
  /* The types of all values are known, as in each program that a compiler gets. In others, also in those that
   * attributes hold, only inputs and constants have types, as far as the program names them: an unknown dtype has
   * code DVT_ANY, an unknown shape ndim -1. */
  DVT_P_TYPED = 4
};
struct dvt_program {
  uint32_t struct_size, flags, n_values, n_nodes, n_inputs, n_outputs, n_symbols, n_numbers, n_guards, reserved;
  const DLTensor* values; /* the inputs, the outputs of all nodes in order, constants. strides NULL = free choice */
  const dvt_value* info;  /* one per value */
  const dvt_node* const* nodes; /* in an order in which they may run */
  const uint32_t *inputs, *outputs;
  const dvt_symbol* symbols;
  const dvt_number* numbers;
  const dvt_guard* guards;
  /* Of all but the elements and identities of weights, hints and `where`: equal programs share code. 0 in the
   * program that claim gets, which is not compiled as a whole. */
  uint64_t hash[2];
};

/* ---- compiler: groups of nodes as one executable. Fallback: node by node --------------------------------- */

#define DVT_X_COMPILER 2u
typedef struct {  /* one per node, filled in by claim */
  uint32_t group; /* 0: not mine. Nodes of one number become one executable; the host splits what is not convex */
  float gain_ns;  /* what it expects to save over node by node at the hints; <= 0: only where asked */
  const char* reason; /* static; of group 0, why not */
  uint64_t reserved[2];
} dvt_claim;
typedef struct { /* one run */
  uint32_t struct_size, n_symbols, n_numbers, reserved;
  const int64_t* symbols; /* the values of the program's symbols and numbers */
  const dvt_number_value* numbers;
  const dvt_call* call; /* inputs and outputs of the program; attr: what DVT_N_ATTRIBUTE refers to */
} dvt_exe_call;
enum { /* flags of a compiler */
       /* As DVT_K_CAPTURE_SAFE, of each run. What a run has enqueued stays valid until the executable is destroyed,
        * also where other code has replaced it. */
       DVT_C_CAPTURE_SAFE = 1
};
typedef struct {
  uint32_t struct_size, flags;
  /* Pure and quick: under 2 us a node. A node that is not claimed and has a decomposition may come again, as the
   * nodes of that. */
  dvt_status (*claim)(dvt_device*, const dvt_program*, dvt_claim* out);
  /* One group. From any thread; may take seconds; sees no stream. The executable may be slow at first and replace
   * its code later: run is legal from here on. */
  dvt_status (*compile)(dvt_device*, const dvt_program*, const char* options_json, dvt_exe**);
  /* For these sizes: workspace, operands needed compact. Pure: the host caches the answer by sizes and strides. */
  dvt_status (*query)(dvt_exe*, const dvt_exe_call*, dvt_answer*);
  dvt_status (*run)(dvt_exe*, const dvt_exe_call*);
  void (*destroy)(dvt_exe*); /* its work is done, no run is in progress */
  /* (optional) */
  dvt_status (*layout)(dvt_exe*, const dvt_exe_call*, uint32_t output, int64_t* strides);
  dvt_status (*save)(dvt_exe*, void (*sink)(void*, const void*, size_t), void* ctx); /* UNSUPPORTED until final */
  dvt_status (*load)(dvt_device*, const dvt_program*, const void*, size_t, dvt_exe**);
  /* Writes what saved bytes depend on beside the program: compiler, its version, processor, driver. */
  dvt_status (*fingerprint)(dvt_device*, void (*sink)(void*, const void*, size_t), void* ctx);
  /* Writes one line for the user, what runs now: "12 loops on tiles, 9 of them joined in machine code". */
  dvt_status (*describe)(dvt_exe*, void (*sink)(void*, const void*, size_t), void* ctx);
} dvt_compiler;

/* ---- toolchain: the host's, of dvt_host.extension("dovetail.toolchain", DVT_X_TOOLCHAIN). Fallback: none --- */

/* Tools outside of this process that make machine code: entry points of the group dovetail.toolchains. What they
 * made is cached, in this process and on disk. */
#define DVT_X_TOOLCHAIN 1u
typedef struct dvt_code dvt_code; /* executable code in memory */
typedef struct {
  uint32_t struct_size, flags;
  /* From any thread; returns at once. DVT_OK: `ready` is called once, from any thread, perhaps before build
   * returns: with code, which the callee releases, or with NULL and why there is none. It is quick, and does not
   * call build. Other statuses: it is not called. A process that ends calls it no more. */
  dvt_status (*build)(const dvt_host*, const char* tool, const void* request, size_t size,
                      void (*ready)(void* ctx, dvt_code* code, const char* reason), void* ctx);
  const void* (*entry)(const dvt_code*, uint32_t index); /* of the request's functions, in its order; NULL: none */
  void (*release)(dvt_code*);                            /* nothing runs in it any more; NULL is allowed */
} dvt_toolchain;

/* ---- collectives ------------------------------------------------------------------------------------ */

/* Fallback: stage through pinned host memory. */
#define DVT_X_COLLECTIVES 1u
typedef struct {
  uint32_t struct_size, flags;
  dvt_status (*unique_id)(uint8_t id[128]); /* on rank 0; the host ships it to the others */
  dvt_status (*init)(dvt_device*, const uint8_t id[128], int32_t rank, int32_t n, dvt_comm**);
  void (*destroy)(dvt_comm*);
  dvt_status (*abort)(dvt_comm*);
  dvt_status (*async_error)(dvt_comm*);
  dvt_status (*group)(uint32_t begin);
  /* kind: 0 allreduce 1 allgather 2 reduce_scatter 3 broadcast 4 all_to_all; redop: 0 sum 1 product 2 max 3 min
   * 4 mean. Of in[0] and out[0], row-major. Within a group all is enqueued when it ends. */
  dvt_status (*collective)(dvt_comm*, uint32_t kind, uint32_t redop, int32_t root, const dvt_call*);
  dvt_status (*p2p)(dvt_comm*, uint32_t is_send, int32_t peer, const dvt_call*);
} dvt_collectives;

#ifdef __cplusplus
}
#endif
#endif /* DOVETAIL_ABI_H */
