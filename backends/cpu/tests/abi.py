"""dovetail/abi.h for ctypes, as far as the harness needs it."""

import ctypes as ct

OK, UNSUPPORTED, INVALID, OOM, DEVICE_LOST, INTERNAL, INDEX = range(7)
ANY = 255
FLUSHES_SUBNORMALS = 4
STRIDED, HOST_SCALAR, OPTIONAL, VARIADIC, ALIAS, PACKABLE = 1, 2, 4, 8, 16, 32


class DLDataType(ct.Structure):
    _fields_ = [("code", ct.c_uint8), ("bits", ct.c_uint8), ("lanes", ct.c_uint16)]


class DLTensor(ct.Structure):
    _fields_ = [
        ("data", ct.c_void_p),
        ("device_type", ct.c_int32),
        ("device_id", ct.c_int32),
        ("ndim", ct.c_int32),
        ("dtype", DLDataType),
        ("shape", ct.POINTER(ct.c_int64)),
        ("strides", ct.POINTER(ct.c_int64)),
        ("byte_offset", ct.c_uint64),
    ]


class AttrValue(ct.Union):
    _fields_ = [
        ("i", ct.c_int64),
        ("f", ct.c_double),
        ("s", ct.c_char_p),
        ("ints", ct.POINTER(ct.c_int64)),
        ("floats", ct.POINTER(ct.c_double)),
        ("dtype", DLDataType),
        ("raw", ct.c_uint64),
    ]


class Attr(ct.Structure):
    _fields_ = [("kind", ct.c_uint32), ("count", ct.c_uint32), ("v", AttrValue)]


class Packed(ct.Structure):
    _fields_ = [("data", ct.c_void_p), ("size", ct.c_uint64), ("layout", ct.c_uint64)]


class Call(ct.Structure):
    _fields_ = [
        ("struct_size", ct.c_uint32),
        ("n_in", ct.c_uint32),
        ("n_out", ct.c_uint32),
        ("n_attr", ct.c_uint32),
        ("ins", ct.POINTER(ct.POINTER(DLTensor))),
        ("outs", ct.POINTER(ct.POINTER(DLTensor))),
        ("attrs", ct.POINTER(Attr)),
        ("workspace", ct.c_void_p),
        ("workspace_size", ct.c_uint64),
        ("stream", ct.c_void_p),
        ("correlation_id", ct.c_uint64),
        ("packed", ct.POINTER(Packed)),
    ]


class Answer(ct.Structure):
    _fields_ = [
        ("struct_size", ct.c_uint32),
        ("level", ct.c_uint32),
        ("workspace", ct.c_uint64),
        ("need_compact", ct.c_uint64),
        ("reason", ct.c_char_p),
    ]


class Operand(ct.Structure):
    _fields_ = [
        ("dtype", DLDataType),
        ("flags", ct.c_uint8),
        ("align_log2", ct.c_uint8),
        ("reserved", ct.c_uint16),
    ]


U64 = ct.POINTER(ct.c_uint64)


class Kernel(ct.Structure):
    _fields_ = [
        ("struct_size", ct.c_uint32),
        ("op_version", ct.c_uint32),
        ("op", ct.c_char_p),
        ("engine", ct.c_char_p),
        ("operands", ct.POINTER(Operand)),
        ("n_in", ct.c_uint32),
        ("n_out", ct.c_uint32),
        ("flags", ct.c_uint32),
        ("max_ulp", ct.c_float),
        ("run", ct.CFUNCTYPE(ct.c_int32, ct.c_void_p, ct.POINTER(Call))),
        ("query", ct.CFUNCTYPE(ct.c_int32, ct.c_void_p, ct.POINTER(Call), ct.POINTER(Answer))),
        ("pack_size", ct.CFUNCTYPE(ct.c_int32, ct.c_void_p, ct.POINTER(Call), ct.c_uint32, U64, U64)),
        ("pack", ct.CFUNCTYPE(ct.c_int32, ct.c_void_p, ct.POINTER(Call), ct.c_uint32, ct.POINTER(Packed))),
    ]


class Props(ct.Structure):
    _fields_ = [
        ("struct_size", ct.c_uint32),
        ("kind", ct.c_uint32),
        ("name", ct.c_char * 64),
        ("arch", ct.c_char * 32),
        ("uuid", ct.c_char * 40),
        ("pci", ct.c_char * 20),
        ("caps", ct.c_uint32),
        ("dl_device_type", ct.c_int32),
        ("dl_device_id", ct.c_int32),
        ("mem_total", ct.c_uint64),
        ("alloc_align", ct.c_uint64),
        ("max_streams", ct.c_uint32),
        ("n_peaks", ct.c_uint32),
        ("peak_bytes_per_s", ct.c_double),
        ("peaks", ct.c_byte * (8 * 16)),
    ]


FAIL = ct.CFUNCTYPE(ct.c_int32, ct.c_void_p, ct.c_int32, ct.c_uint64, ct.c_char_p, ct.c_int, ct.c_char_p)
LOG = ct.CFUNCTYPE(None, ct.c_void_p, ct.c_int, ct.c_char_p)
NUM_THREADS = ct.CFUNCTYPE(ct.c_uint32, ct.c_void_p)
BODY = ct.CFUNCTYPE(None, ct.c_void_p, ct.c_uint64, ct.c_uint64, ct.c_uint32)
PARALLEL_FOR = ct.CFUNCTYPE(None, ct.c_void_p, ct.c_uint64, ct.c_uint64, BODY, ct.c_void_p)
TRACE = ct.CFUNCTYPE(None, ct.c_void_p, ct.c_uint64, ct.c_char_p, ct.c_uint64, ct.c_uint64)
EXTENSION = ct.CFUNCTYPE(ct.c_void_p, ct.c_void_p, ct.c_char_p, ct.c_uint32)


class Host(ct.Structure):
    _fields_ = [
        ("struct_size", ct.c_uint32),
        ("abi_major", ct.c_uint32),
        ("abi_minor", ct.c_uint32),
        ("abi_draft", ct.c_uint32),
        ("library_path", ct.c_char_p),
        ("fail", FAIL),
        ("log", LOG),
        ("num_threads", NUM_THREADS),
        ("parallel_for", PARALLEL_FOR),
        ("trace", TRACE),
        ("extension", EXTENSION),
    ]


class BackendTable(ct.Structure):
    _fields_ = [
        ("struct_size", ct.c_uint32),
        ("abi_major", ct.c_uint32),
        ("abi_minor", ct.c_uint32),
        ("abi_draft", ct.c_uint32),
        ("name", ct.c_char_p),
        ("version", ct.c_char_p),
        ("build_info", ct.c_char_p),
        ("kernels", ct.POINTER(ct.POINTER(Kernel))),
        ("n_kernels", ct.c_uint64),
        ("device_count", ct.CFUNCTYPE(ct.c_int32, ct.POINTER(ct.c_uint32))),
        ("device_open", ct.CFUNCTYPE(ct.c_int32, ct.c_uint32, ct.POINTER(ct.c_void_p))),
        ("device_close", ct.CFUNCTYPE(None, ct.c_void_p)),
        ("device_props", ct.CFUNCTYPE(ct.c_int32, ct.c_void_p, ct.POINTER(Props))),
        (
            "alloc",
            ct.CFUNCTYPE(ct.c_int32, ct.c_void_p, ct.c_uint64, ct.c_uint32, ct.c_void_p, ct.POINTER(ct.c_void_p)),
        ),
        ("dealloc", ct.CFUNCTYPE(None, ct.c_void_p, ct.c_void_p, ct.c_uint32, ct.c_void_p)),
        (
            "copy",
            ct.CFUNCTYPE(ct.c_int32, ct.c_void_p, ct.POINTER(DLTensor), ct.POINTER(DLTensor), ct.c_void_p),
        ),
        ("mem_info", ct.CFUNCTYPE(ct.c_int32, ct.c_void_p, ct.POINTER(ct.c_uint64), ct.POINTER(ct.c_uint64))),
        ("device_reset", ct.c_void_p),
        ("streams", ct.c_void_p),
        ("extension", ct.c_void_p),
    ]
