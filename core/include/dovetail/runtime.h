/* dovetail/runtime.h - the runtime for programs that are not Python: load devices, make arrays, call ops.
 *
 * C11 and C++17. libdovetail exports these functions and needs no Python.
 *
 * RULES
 *
 * Errors    A function that can fail returns a dvr_status. DVR_OK is 0. For all other values dvr_last_error()
 *           gives the message, the cure and the op; they belong to the calling thread and are valid until its next
 *           failure. No exception leaves a function, none aborts, and none writes to stdout. Where a function
 *           fails, its results are untouched, unless its comment says otherwise.
 * Threads   Any function may be called from any thread. Two threads must not use one dvr_tensor at the same time.
 * Lifetime  Devices, ops and names live as long as the process. Buffers are counted: dvr_retain, dvr_release.
 *           Streams, events and generators are freed by their free function, which accepts NULL.
 * Order     Calls are asynchronous on devices with streams. They go to the calling thread's current stream. The
 *           runtime orders streams that share a buffer. A fault found later (a bad index) is returned by the next
 *           function that waits.
 * Versions  Structs that grow begin with struct_size: set it to sizeof before the call. dvr_tensor, dvr_attr,
 *           dvr_index and dvr_number_at never change. New functions are added at the end of a section, and none is
 *           removed.
 */
#ifndef DOVETAIL_RUNTIME_H
#define DOVETAIL_RUNTIME_H

#include "dovetail/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DVR_VERSION 1u
DVT_EXPORT uint32_t dvr_version(void); /* DVR_VERSION of the library that runs */

/* ---- errors -------------------------------------------------------------------------------------- */

typedef int32_t dvr_status;
enum {
  DVR_OK,
  DVR_TYPE,            /* an operand or attribute of the wrong kind or dtype */
  DVR_VALUE,           /* a wrong shape, value or name */
  DVR_INDEX,           /* an index out of range */
  DVR_MEMORY,          /* no memory is left on the device or the host */
  DVR_NOT_IMPLEMENTED, /* the device has no kernel for the call */
  DVR_DEVICE_LOST,     /* the device failed: dvr_device_reset, or end the process */
  DVR_RUNTIME,         /* all other errors */
  DVR_INTERRUPTED      /* Ctrl-C ended a wait; Python's KeyboardInterrupt */
};
typedef struct {
  uint32_t struct_size;
  dvr_status kind;
  const char* message; /* "[op] what happened: got X, expected Y; cure" */
  const char* cure;    /* what to do, where it is known apart from the message; else "" */
  const char* op;      /* the op or function in the message's brackets; else "" */
} dvr_error_info;
DVT_EXPORT void dvr_last_error(dvr_error_info* out); /* of this thread; kind DVR_OK: none so far */

/* ---- backends and devices ------------------------------------------------------------------------ */

typedef struct dvr_device dvr_device;

/* Opens one plugin. name: NULL takes the plugin's own. search: folders of the libraries that it depends on, ends
 * with NULL; NULL: the plugin's folder. Opening the same library again does nothing. */
DVT_EXPORT dvr_status dvr_load_backend(const char* name, const char* library, const char* const* search);
/* Opens plugins by their paths. A path is a library, or a folder whose files libdovetail_<name>.so (Windows:
 * dovetail_<name>.dll) are opened in alphabetical order. Paths are UTF-8 on every system. A plugin that fails is
 * quarantined and the others are opened: see dvr_quarantine. Returns an error only for a path that does not
 * exist. */
DVT_EXPORT dvr_status dvr_load_backends(const char* const* paths, uint32_t n_paths);
typedef struct {
  uint32_t struct_size, reserved;
  const char *name, *library; /* name is "" where the plugin did not get so far */
  const char *reason, *cure;
} dvr_quarantined;
/* Plugins that cannot be used, or that found no device. Returns how many there are and writes at most `room`.
 * struct_size of the first entry is that of all. */
DVT_EXPORT uint32_t dvr_quarantine(dvr_quarantined* out, uint32_t room);

DVT_EXPORT uint32_t dvr_devices(dvr_device** out, uint32_t room); /* returns how many there are */
DVT_EXPORT dvr_device* dvr_find_device(const char* name);         /* "sim:1"; "cpu" is "cpu:0"; NULL: not there */
typedef struct {
  uint32_t struct_size, kind, caps; /* DVT_KIND_*, DVT_CAP_* */
  uint32_t ordinal;                 /* the 1 of "sim:1" */
  const char *name, *backend, *model, *arch;
  int32_t dl_device_type, dl_device_id; /* what DLPack calls it */
  uint32_t has_streams, host_mapped;    /* host_mapped: the host may read and write its memory */
  uint64_t mem_total, mem_free;         /* mem_free is 0 where the device does not report it */
  const char* build; /* how its backend was built and which libraries it has or goes without; "" where unknown */
} dvr_device_info;
DVT_EXPORT dvr_status dvr_get_device_info(dvr_device*, dvr_device_info* out);
DVT_EXPORT dvr_status dvr_synchronize(dvr_device*); /* waits for all of its streams */
/* After DVR_DEVICE_LOST: the device can be used again, what its memory held is undefined. */
DVT_EXPORT dvr_status dvr_device_reset(dvr_device*);
enum { DVR_UNSUPPORTED, DVR_KERNEL, DVR_DECOMPOSITION };
/* How the device runs an op for operands of one dtype. */
DVT_EXPORT dvr_status dvr_supports(dvr_device*, const char* op, DLDataType, uint32_t* how);
enum { DVR_FALLBACK_ERROR, DVR_FALLBACK_WARN, DVR_FALLBACK_ALLOW };
/* Whether a cpu device may run a call that its own device cannot. DVR_FALLBACK_WARN, the default, writes to stderr
 * once for each op. */
DVT_EXPORT dvr_status dvr_set_fallback(uint32_t mode);

/* ---- memory -------------------------------------------------------------------------------------- */

typedef struct dvr_buffer dvr_buffer;
typedef struct dvr_stream dvr_stream;

DVT_EXPORT dvr_status dvr_alloc(dvr_device*, uint64_t bytes, dvr_buffer** out); /* on the current stream */
/* Memory of the caller that the device can use. release(owner) is called when the last reference is gone and no
 * stream uses the memory, on any thread. */
DVT_EXPORT dvr_status dvr_adopt(dvr_device*, void* data, void (*release)(void*), void* owner, dvr_buffer** out);
DVT_EXPORT void dvr_retain(dvr_buffer*);
DVT_EXPORT void dvr_release(dvr_buffer*); /* NULL: nothing */
DVT_EXPORT void* dvr_data(const dvr_buffer*);
/* Before memory is read (or, with write, written) without the runtime: waits for the streams that wrote (used) it.
 */
DVT_EXPORT dvr_status dvr_host_access(dvr_buffer*, uint32_t write);
/* Before foreign work on a stream reads (writes) the buffer. */
DVT_EXPORT dvr_status dvr_use(dvr_buffer*, dvr_stream*, uint32_t write);

/* Host memory that the device copies from and to asynchronously. *pinned (may be NULL): 0 where the device has no
 * such memory; the result is then plain host memory. dvr_free_pinned waits for the device. */
DVT_EXPORT dvr_status dvr_alloc_pinned(dvr_device*, uint64_t bytes, void** out, uint32_t* pinned);
DVT_EXPORT dvr_status dvr_free_pinned(void*);

typedef struct {
  uint32_t struct_size, reserved_;
  uint64_t in_use, peak, cached, reserved, packed, limit; /* bytes; limit 0: none */
  uint64_t allocations, frees;                            /* calls of the device's functions */
} dvr_memory_stats_info;
DVT_EXPORT dvr_status dvr_memory_stats(dvr_device*, dvr_memory_stats_info* out);
DVT_EXPORT dvr_status dvr_reset_peak(dvr_device*);
DVT_EXPORT dvr_status dvr_set_memory_limit(dvr_device*, uint64_t bytes); /* 0: none */
DVT_EXPORT dvr_status dvr_empty_cache(dvr_device*);

/* ---- arrays -------------------------------------------------------------------------------------- */

/* An array: a view of a buffer. view.data includes the offset; view.device and view.byte_offset are ignored, as the
 * buffer has a device. view.strides may be NULL for a row-major array. Where the runtime fills a dvr_tensor, shape
 * and strides point into `dims` of that struct: set them anew after copying the struct. buffer NULL and ndim 0: a
 * number, whose value is in the struct, too: see dvr_number_*. As a result of dvr_call, buffer NULL asks for a new
 * array. */
typedef struct {
  DLTensor view;
  dvr_buffer* buffer;
  int64_t dims[2 * DVT_MAX_NDIM];
} dvr_tensor;

DVT_EXPORT dvr_status dvr_empty(dvr_device*, DLDataType, uint32_t ndim, const int64_t* shape, dvr_tensor* out);
/* A copy of row-major host memory. */
DVT_EXPORT dvr_status dvr_from_host(dvr_device*, DLDataType, uint32_t ndim, const int64_t* shape, const void* data,
                                    dvr_tensor* out);
DVT_EXPORT void dvr_tensor_release(dvr_tensor*); /* releases the buffer and sets it to NULL */

/* Numbers without a dtype of their own: as operands they take the dtype of the arrays, as Python's numbers do. A
 * number that the dtype cannot hold is DVR_VALUE. */
DVT_EXPORT void dvr_number_bool(dvr_tensor* out, uint32_t value);
DVT_EXPORT void dvr_number_i64(dvr_tensor* out, int64_t value);
DVT_EXPORT void dvr_number_u64(dvr_tensor* out, uint64_t value);
DVT_EXPORT void dvr_number_f64(dvr_tensor* out, double value);
DVT_EXPORT void dvr_number_c128(dvr_tensor* out, double real, double imaginary);

/* Row-major host memory; complete on return. */
DVT_EXPORT dvr_status dvr_read(const dvr_tensor* from, void* to);
DVT_EXPORT dvr_status dvr_write(const dvr_tensor* to, const void* from);
/* In the order of the stream (NULL: the current one). With memory of dvr_alloc_pinned the functions return at once,
 * and the memory is the runtime's until the stream has passed; with other memory they complete. A non-row-major
 * array is refused (DVR_VALUE). */
DVT_EXPORT dvr_status dvr_read_async(const dvr_tensor* from, void* to, dvr_stream*);
DVT_EXPORT dvr_status dvr_write_async(const dvr_tensor* to, const void* from, dvr_stream*);
/* Into the elements of `to`: any strides, dtypes, devices; `from` may be a number and is broadcast. */
DVT_EXPORT dvr_status dvr_copy(const dvr_tensor* to, const dvr_tensor* from);

/* x[items]: a view of x. An axis without an item is taken whole; at most one DVR_ELLIPSIS. */
enum { DVR_INDEX_AT, DVR_SLICE, DVR_NEW_AXIS, DVR_ELLIPSIS };
typedef struct {
  uint32_t kind, reserved;
  int64_t start, stop, step; /* as in Python; DVR_INDEX_AT: start. step >= 1. DVR_END as stop: to the end */
} dvr_index;
#define DVR_END INT64_MAX
DVT_EXPORT dvr_status dvr_view(const dvr_tensor* x, const dvr_index* items, uint32_t n_items, dvr_tensor* out);

/* DLPack 1.x. */
#ifndef DLPACK_DLPACK_H_
typedef struct {
  uint32_t major, minor;
} DLPackVersion;
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
#elif !defined(DLPACK_MAJOR_VERSION) || DLPACK_MAJOR_VERSION < 1
#error "dovetail/runtime.h takes the types of <dlpack/dlpack.h>, which is there: expected its version 1.0 or newer"
#endif
/* Shares the array's memory until the consumer calls the deleter. Waits for work that writes the memory. */
DVT_EXPORT dvr_status dvr_to_dlpack(const dvr_tensor*, DLManagedTensorVersioned** out);
enum { DVR_COPY_IF_NEEDED, DVR_COPY_ALWAYS, DVR_COPY_NEVER };
/* An array on `device` with the elements of `from`. On success the runtime owns `from`; on failure the caller does.
 */
DVT_EXPORT dvr_status dvr_from_dlpack(DLManagedTensorVersioned* from, dvr_device* device, uint32_t copy,
                                      dvr_tensor* out);

/* ---- ops ----------------------------------------------------------------------------------------- */

typedef struct dvr_op dvr_op;
DVT_EXPORT uint32_t dvr_ops(const dvr_op** out, uint32_t room); /* the public ops; returns how many there are */
/* "add", "softmax". NULL: there is none; dvr_last_error then has the nearest name. */
DVT_EXPORT const dvr_op* dvr_find_op(const char* name);
typedef struct {
  uint32_t struct_size, version, n_params, n_out;
  const char *name, *space; /* the public namespace: "", "nn", "random", "linalg" */
} dvr_op_info;
DVT_EXPORT dvr_status dvr_get_op_info(const dvr_op*, dvr_op_info* out);
enum { DVR_OPERAND, DVR_ATTRIBUTE };
typedef struct {
  uint32_t struct_size, role;
  uint32_t attr_kind; /* of an attribute: the DVT_A_* it takes; DVT_A_NONE: any number */
  uint32_t optional;  /* an operand may be NULL; an attribute has a default */
  uint32_t variadic;  /* the operand stands for any number of operands */
  uint32_t reserved;
  const char* name;
} dvr_param_info;
DVT_EXPORT dvr_status dvr_get_param_info(const dvr_op*, uint32_t i, dvr_param_info* out);

/* An attribute of a call. name NULL: the attribute at this position of the op's attributes. An attribute that is
 * not given has its default; DVT_A_NONE is Python's None. */
typedef struct {
  const char* name;
  dvt_attr value;
} dvr_attr;

enum {
  DVR_OWN_RESULTS = 1 /* new results are row-major and share no memory with operands: no views */
};
/* Calls an op. in: one entry per operand, NULL for an optional one that is not given. device: for an op without
 * operands (or with numbers alone), else NULL. out: the op's n_out results. out[i].buffer NULL: the runtime makes
 * the result, and the caller releases it. Else the result is written there: dtype, shape and device must be the
 * op's; the strides may be any that place each element once; the memory may overlap operands. Where a call with
 * given results fails while it runs, their contents are undefined. */
DVT_EXPORT dvr_status dvr_call(const dvr_op*, dvr_device* device, const dvr_tensor* const* in, uint32_t n_in,
                               const dvr_attr* attrs, uint32_t n_attrs, dvr_tensor* out, uint32_t n_out,
                               uint32_t flags);
/* Shapes and dtypes of the results, in out[i].view with buffer and data NULL. Nothing runs. Operands need no
 * memory: view.data and buffer may be NULL, and no device needs to be there. */
DVT_EXPORT dvr_status dvr_infer(const dvr_op*, const dvr_tensor* const* in, uint32_t n_in, const dvr_attr* attrs,
                                uint32_t n_attrs, dvr_tensor* out, uint32_t n_out);

/* Functions whose results' sizes depend on values; they wait for the device. */
/* Positions of the elements that are not zero, in row-major order: an int64 array per axis of x, n_out in all. */
DVT_EXPORT dvr_status dvr_nonzero(const dvr_tensor* x, dvr_tensor* out, uint32_t n_out);
/* The distinct values of x, sorted, and int64: for each its first place in the flattened x, for each element of x
 * the number of its value, for each value how often it occurs. A NULL result is not computed. */
DVT_EXPORT dvr_status dvr_unique(const dvr_tensor* x, dvr_tensor* values, dvr_tensor* indices, dvr_tensor* inverse,
                                 dvr_tensor* counts);

/* ---- random numbers ------------------------------------------------------------------------------ */

typedef struct dvr_generator dvr_generator;
/* The process's own generator; Python's dovetail.random draws from the same one. Not to be freed. */
DVT_EXPORT dvr_generator* dvr_default_generator(void);
DVT_EXPORT dvr_status dvr_generator_new(uint64_t seed, dvr_generator** out);
DVT_EXPORT void dvr_generator_free(dvr_generator*);
DVT_EXPORT dvr_status dvr_generator_get(dvr_generator*, uint64_t* seed, uint64_t* offset);
DVT_EXPORT dvr_status dvr_generator_set(dvr_generator*, uint64_t seed, uint64_t offset);
/* The key of a draw of `words` 32-bit words, which the generator then goes past. Random ops take it as an operand,
 * a uint32 array of 4. */
DVT_EXPORT dvr_status dvr_generator_key(dvr_generator*, uint64_t words, uint32_t key[4]);

/* ---- streams and events -------------------------------------------------------------------------- */

typedef struct dvr_event dvr_event;
DVT_EXPORT dvr_status dvr_stream_new(dvr_device*, int32_t priority, dvr_stream** out);
DVT_EXPORT void dvr_stream_free(dvr_stream*); /* queued work still completes */
DVT_EXPORT dvr_stream* dvr_default_stream(dvr_device*);
DVT_EXPORT dvr_stream* dvr_current_stream(dvr_device*);                 /* of this thread */
DVT_EXPORT dvr_status dvr_set_current_stream(dvr_device*, dvr_stream*); /* of this thread; NULL: the default one */
DVT_EXPORT dvr_status dvr_stream_synchronize(dvr_stream*);
DVT_EXPORT dvr_status dvr_stream_query(dvr_stream*, uint32_t* idle);
DVT_EXPORT dvr_status dvr_stream_wait(dvr_stream*, dvr_stream* other); /* later work here runs after `other`'s */
DVT_EXPORT void* dvr_stream_native(dvr_stream*); /* the handle of the device's own library; NULL: it has none */
DVT_EXPORT dvr_status dvr_event_new(dvr_device*, uint32_t timing, dvr_event** out);
DVT_EXPORT void dvr_event_free(dvr_event*);
DVT_EXPORT dvr_status dvr_event_record(dvr_event*, dvr_stream*); /* NULL: the current stream; again: a new point */
DVT_EXPORT dvr_status dvr_event_wait(dvr_event*, dvr_stream*);   /* later work on the stream runs after the event */
DVT_EXPORT dvr_status dvr_event_synchronize(dvr_event*);
DVT_EXPORT dvr_status dvr_event_query(dvr_event*, uint32_t* done);
DVT_EXPORT dvr_status dvr_event_elapsed_ns(dvr_event* from, dvr_event* to, uint64_t* ns);

/* ---- programs ------------------------------------------------------------------------------------ */

/* A graph of calls, symbolic in the sizes of its inputs. Any number of threads may use one at the same time. */
typedef struct dvr_program dvr_program;
DVT_EXPORT void dvr_program_free(dvr_program*);
/* A .dvt file. Its arrays are read when a device first needs them: the file must stay as it is until
 * dvr_program_free. Where it is cut off before, reading them ends the process by SIGBUS. */
DVT_EXPORT dvr_status dvr_program_load(const char* path, dvr_program** out);
DVT_EXPORT dvr_status dvr_program_save(dvr_program*, const char* path);
/* The canonical JSON, which lives as long as the program; arrays are in it by name alone. */
DVT_EXPORT dvr_status dvr_program_text(dvr_program*, const char** text);
/* Its inputs, nodes, numbers and guards as C structs of abi.h, which live as long as the program. */
DVT_EXPORT dvr_status dvr_program_view(dvr_program*, const dvt_program** view);
DVT_EXPORT dvr_status dvr_program_from_text(const char* text, dvr_program** out); /* of a program without arrays */

DVT_EXPORT dvr_status dvr_program_counts(dvr_program*, uint32_t* n_inputs, uint32_t* n_outputs);
typedef struct {
  uint32_t struct_size, ndim;
  DLDataType dtype;              /* bits 0: any, and any number of axes */
  const char* name;              /* "" without one, as of outputs */
  const int64_t* shape;          /* -1: any size; of an output: one that depends on the operands' */
  const char* const* size_names; /* of each axis, "" without one; sizes of one name are equal */
} dvr_value_info;                /* pointers live as long as the program */
DVT_EXPORT dvr_status dvr_program_input(dvr_program*, uint32_t i, dvr_value_info* out);
DVT_EXPORT dvr_status dvr_program_output(dvr_program*, uint32_t i, dvr_value_info* out);
/* DVR_NOT_IMPLEMENTED: the device alone cannot run the program; the error names the op that has neither a kernel
 * nor a decomposition. in: operands for whose sizes it is checked, which need no memory; NULL: sizes that the
 * program takes are tried. Nothing runs. */
DVT_EXPORT dvr_status dvr_program_check(dvr_program*, dvr_device*, const dvr_tensor* const* in, uint32_t n_in);
/* Dtypes and shapes of the results, as dvr_infer. */
DVT_EXPORT dvr_status dvr_program_infer(dvr_program*, const dvr_tensor* const* in, uint32_t n_in, dvr_tensor* out,
                                        uint32_t n_out);
/* Operands are arrays on one device; device may be NULL where there are any. Results as of dvr_call with
 * DVR_OWN_RESULTS, made or given. donate (or NULL): n_in bytes; where one is not 0, the operand is given away: its
 * buffer is released and set to NULL, and a result may take its memory if nothing else holds it. This happens also
 * where the call fails after its arguments were checked. */
DVT_EXPORT dvr_status dvr_program_run(dvr_program*, dvr_device* device, dvr_tensor* const* in, uint32_t n_in,
                                      const uint8_t* donate, dvr_tensor* out, uint32_t n_out);

/* Records calls as a program. One thread at a time. Values and numbers are named by small integers, which the
 * functions return. */
typedef struct dvr_builder dvr_builder;
DVT_EXPORT dvr_status dvr_builder_new(dvr_builder** out);
DVT_EXPORT void dvr_builder_free(dvr_builder*);
/* shape: -1 is any size. size_names (or NULL): of each axis, NULL or "" without one. name: or NULL. While the
 * program is recorded, shape rules see 120 where the size is open. */
DVT_EXPORT dvr_status dvr_builder_input(dvr_builder*, DLDataType, uint32_t ndim, const int64_t* shape,
                                        const char* const* size_names, const char* name, int32_t* value);
DVT_EXPORT dvr_status dvr_builder_constant(dvr_builder*, DLDataType, const void* number, int32_t* value);
/* A copy of row-major host memory. */
DVT_EXPORT dvr_status dvr_builder_array(dvr_builder*, DLDataType, uint32_t ndim, const int64_t* shape,
                                        const void* data, int32_t* value);
/* Numbers, for attributes of calls: an integer, the size of a value on an axis, arithmetic on these. */
enum {
  DVR_ADD,
  DVR_SUBTRACT,
  DVR_MULTIPLY,
  DVR_FLOOR_DIVIDE, /* towards minus infinity, as Python's */
  DVR_MODULO,       /* with the sign of b, as Python's */
  DVR_MINIMUM,
  DVR_MAXIMUM
};
DVT_EXPORT dvr_status dvr_builder_integer(dvr_builder*, int64_t, int32_t* number);
DVT_EXPORT dvr_status dvr_builder_size(dvr_builder*, int32_t value, uint32_t axis, int32_t* number);
DVT_EXPORT dvr_status dvr_builder_arithmetic(dvr_builder*, uint32_t operation, int32_t a, int32_t b,
                                             int32_t* number);
typedef struct {
  const char* attr; /* the attribute's name */
  int32_t element;  /* of a list; -1: the attribute is one integer */
  int32_t number;   /* takes the place of what the attribute has there */
} dvr_number_at;
/* in: values, -1 for an optional one that is not given. first: the first result; further ones follow it. */
DVT_EXPORT dvr_status dvr_builder_call(dvr_builder*, const dvr_op*, const int32_t* in, uint32_t n_in,
                                       const dvr_attr* attrs, uint32_t n_attrs, const dvr_number_at* numbers,
                                       uint32_t n_numbers, int32_t* first);
/* Records the calls of a program: its arrays, guards and programs within it become the builder's. in: a value for
 * each of its inputs; out: its results' values. */
DVT_EXPORT dvr_status dvr_builder_inline(dvr_builder*, dvr_program*, const int32_t* in, uint32_t n_in, int32_t* out,
                                         uint32_t n_out);
/* Dtype and shape of a value in out->view, with buffer and data NULL; open sizes are those of the recording. */
DVT_EXPORT dvr_status dvr_builder_describe(dvr_builder*, int32_t value, dvr_tensor* out);
/* After it the builder can only be freed. */
DVT_EXPORT dvr_status dvr_builder_finish(dvr_builder*, const int32_t* outputs, uint32_t n_outputs,
                                         dvr_program** out);

/* A folder that `dovetail build` made for the device's backend, or a .dvt file, to be run on the device. All that
 * runs need is looked up now: DVR_NOT_IMPLEMENTED names an op that the device cannot run. The files must stay as
 * they are until dvr_program_free. Weights and their packed forms are the mapped files where the device works in
 * the host's memory; forms of other kernels than the device has are packed anew, and the log says so once.
 * DVR_TRUST_CODE: run the machine code in the folder, too: only of a folder that you trust as you trust a program.
 */
enum { DVR_TRUST_CODE = 1 };
DVT_EXPORT dvr_status dvr_program_open(const char* path, dvr_device* device, uint32_t flags, dvr_program** out);

#ifdef __cplusplus
}
#endif
#endif /* DOVETAIL_RUNTIME_H */
