from dovetail import linalg as linalg, memory as memory, nn as nn, random as random, schema as schema
from dovetail._core import (
    Array as Array,
    Device as Device,
    DType as DType,
    Event as Event,
    Op as Op,
    Stream as Stream,
    __version__ as __version__,
    current_stream as current_stream,
    default_stream as default_stream,
)
from dovetail._creation import (
    asarray as asarray,
    empty as empty,
    empty_like as empty_like,
    from_dlpack as from_dlpack,
    full_like as full_like,
    ones_like as ones_like,
    zeros_like as zeros_like,
)
from dovetail._devices import (
    default_device as default_device,
    device as device,
    devices as devices,
    fallback as fallback,
    fallback_report as fallback_report,
    set_default_device as set_default_device,
    synchronize as synchronize,
)
from dovetail._dtypes import (
    __array_namespace_info__ as __array_namespace_info__,
    can_cast as can_cast,
    finfo as finfo,
    iinfo as iinfo,
    isdtype as isdtype,
    result_type as result_type,
)
from dovetail._errors import DeviceLostError as DeviceLostError, FallbackWarning as FallbackWarning
from dovetail._functions import (
    broadcast_arrays as broadcast_arrays,
    broadcast_shapes as broadcast_shapes,
    meshgrid as meshgrid,
    tensordot as tensordot,
    unstack as unstack,
)
from dovetail._ops import *
from dovetail._register import register_op as register_op
from dovetail._searching import (
    isin as isin,
    nonzero as nonzero,
    searchsorted as searchsorted,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)

__array_api_version__: str
e: float
pi: float
inf: float
nan: float
newaxis: None
bool: DType
int8: DType
int16: DType
int32: DType
int64: DType
uint8: DType
uint16: DType
uint32: DType
uint64: DType
float16: DType
bfloat16: DType
float32: DType
float64: DType
complex64: DType
complex128: DType

def load_backend(name_or_path: str) -> list[Device]: ...
