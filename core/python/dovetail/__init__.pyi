from os import PathLike

from dovetail import fft as fft
from dovetail import linalg as linalg
from dovetail import memory as memory
from dovetail import nn as nn
from dovetail import onnx as onnx
from dovetail import prototype as prototype
from dovetail import random as random
from dovetail import schema as schema
from dovetail._autocast import autocast as autocast
from dovetail._compile import compile as compile
from dovetail._compile import compile_report as compile_report
from dovetail._control import (
    cond as cond,
)
from dovetail._control import (
    scan as scan,
)
from dovetail._control import (
    while_loop as while_loop,
)
from dovetail._core import (
    Array as Array,
)
from dovetail._core import (
    Device as Device,
)
from dovetail._core import (
    DType as DType,
)
from dovetail._core import (
    Event as Event,
)
from dovetail._core import (
    Op as Op,
)
from dovetail._core import (
    Stream as Stream,
)
from dovetail._core import (
    __version__ as __version__,
)
from dovetail._core import (
    current_stream as current_stream,
)
from dovetail._core import (
    default_stream as default_stream,
)
from dovetail._creation import (
    asarray as asarray,
)
from dovetail._creation import (
    empty as empty,
)
from dovetail._creation import (
    empty_like as empty_like,
)
from dovetail._creation import (
    eye as eye,
)
from dovetail._creation import (
    from_dlpack as from_dlpack,
)
from dovetail._creation import (
    full as full,
)
from dovetail._creation import (
    full_like as full_like,
)
from dovetail._creation import (
    linspace as linspace,
)
from dovetail._creation import (
    ones_like as ones_like,
)
from dovetail._creation import (
    zeros_like as zeros_like,
)
from dovetail._devices import (
    default_device as default_device,
)
from dovetail._devices import (
    device as device,
)
from dovetail._devices import (
    devices as devices,
)
from dovetail._devices import (
    fallback as fallback,
)
from dovetail._devices import (
    fallback_report as fallback_report,
)
from dovetail._devices import (
    set_default_device as set_default_device,
)
from dovetail._devices import (
    synchronize as synchronize,
)
from dovetail._dtypes import (
    __array_namespace_info__ as __array_namespace_info__,
)
from dovetail._dtypes import (
    can_cast as can_cast,
)
from dovetail._dtypes import (
    finfo as finfo,
)
from dovetail._dtypes import (
    iinfo as iinfo,
)
from dovetail._dtypes import (
    isdtype as isdtype,
)
from dovetail._dtypes import (
    result_type as result_type,
)
from dovetail._einsum import (
    einsum as einsum,
)
from dovetail._errors import AxisError as AxisError
from dovetail._errors import DeviceLostError as DeviceLostError
from dovetail._errors import FallbackWarning as FallbackWarning
from dovetail._export import export as export
from dovetail._export import spec as spec
from dovetail._functions import (
    astype as astype,
)
from dovetail._functions import (
    broadcast_arrays as broadcast_arrays,
)
from dovetail._functions import (
    broadcast_shapes as broadcast_shapes,
)
from dovetail._functions import (
    conj as conj,
)
from dovetail._functions import (
    dot as dot,
)
from dovetail._functions import (
    imag as imag,
)
from dovetail._functions import (
    inner as inner,
)
from dovetail._functions import (
    kron as kron,
)
from dovetail._functions import (
    meshgrid as meshgrid,
)
from dovetail._functions import (
    pad as pad,
)
from dovetail._functions import (
    real as real,
)
from dovetail._functions import (
    reshape as reshape,
)
from dovetail._functions import (
    tensordot as tensordot,
)
from dovetail._functions import (
    unstack as unstack,
)
from dovetail._indexing import (
    put_along_axis as put_along_axis,
)
from dovetail._nan import (
    allclose as allclose,
)
from dovetail._nan import (
    isclose as isclose,
)
from dovetail._nan import (
    nan_to_num as nan_to_num,
)
from dovetail._nan import (
    nanargmax as nanargmax,
)
from dovetail._nan import (
    nanargmin as nanargmin,
)
from dovetail._nan import (
    nanmax as nanmax,
)
from dovetail._nan import (
    nanmean as nanmean,
)
from dovetail._nan import (
    nanmin as nanmin,
)
from dovetail._nan import (
    nanprod as nanprod,
)
from dovetail._nan import (
    nanstd as nanstd,
)
from dovetail._nan import (
    nansum as nansum,
)
from dovetail._nan import (
    nanvar as nanvar,
)
from dovetail._ops import *  # noqa: F403 - generated
from dovetail._profile import profile as profile
from dovetail._program import Program as Program
from dovetail._program import from_exported as from_exported
from dovetail._program import load as load
from dovetail._quantile import (
    median as median,
)
from dovetail._quantile import (
    nanmedian as nanmedian,
)
from dovetail._quantile import (
    nanpercentile as nanpercentile,
)
from dovetail._quantile import (
    nanquantile as nanquantile,
)
from dovetail._quantile import (
    percentile as percentile,
)
from dovetail._quantile import (
    quantile as quantile,
)
from dovetail._quantize import (
    dequantize as dequantize,
)
from dovetail._quantize import (
    quantize as quantize,
)
from dovetail._register import register_op as register_op
from dovetail._safetensors import load_safetensors as load_safetensors
from dovetail._safetensors import save_safetensors as save_safetensors
from dovetail._searching import (
    isin as isin,
)
from dovetail._searching import (
    masked_scatter as masked_scatter,
)
from dovetail._searching import (
    masked_select as masked_select,
)
from dovetail._searching import (
    nonzero as nonzero,
)
from dovetail._searching import (
    repeat as repeat,
)
from dovetail._searching import (
    searchsorted as searchsorted,
)
from dovetail._searching import (
    unique_all as unique_all,
)
from dovetail._searching import (
    unique_counts as unique_counts,
)
from dovetail._searching import (
    unique_inverse as unique_inverse,
)
from dovetail._searching import (
    unique_values as unique_values,
)
from dovetail._statistics import (
    bincount as bincount,
)
from dovetail._statistics import (
    corrcoef as corrcoef,
)
from dovetail._statistics import (
    cov as cov,
)
from dovetail._statistics import (
    digitize as digitize,
)
from dovetail._statistics import (
    histogram as histogram,
)
from dovetail._statistics import (
    interp as interp,
)
from dovetail.entry_points import (
    BackendError as BackendError,
)
from dovetail.entry_points import (
    BackendWarning as BackendWarning,
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
float8_e4m3fn: DType
float8_e5m2: DType
float32: DType
float64: DType
complex64: DType
complex128: DType
float8_e4m3fnuz: DType
float8_e5m2fnuz: DType
float8_e8m0fnu: DType
int4: DType
int2: DType
uint4: DType
uint2: DType
float4_e2m1fn: DType

def load_backend(what: str | PathLike[str] | type[prototype.PythonDevice]) -> list[Device]: ...
def load_kernels(name_or_path: str, *, device: str | None = None) -> None: ...
