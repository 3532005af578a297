"""Arrays of numbers."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import torch

from dovetail_torch.compile.table import Call, Unsupported, cast, dtype_name, is_array, lower


def _full(call: Call, value: Any) -> Any:
    """An array of the result's shape and dtype."""
    if is_array(value):
        return dt.broadcast_to(cast(value, call.dtype), call.shape)
    if call.dtype == "bool":
        value = bool(value)
    elif "integer" in dt._core.to_dtype(call.dtype).kind:
        value = value if not isinstance(value, float) else int(value)
    return dt.full(call.shape, value, dtype=call.dtype)


@lower("full", "full_like", "new_full", "fill.Scalar", "fill.Tensor")
def full(call: Call, like: Any, value: Any = None, *rest: Any, **kwargs: Any) -> Any:
    return _full(call, rest[0] if call.node.target.overloadpacket.__name__ == "new_full" else value)


@lower("zeros", "zeros_like", "new_zeros")
def zeros(call: Call, *given: Any, **kwargs: Any) -> Any:
    return _full(call, 0)


@lower("ones", "ones_like", "new_ones")
def ones(call: Call, *given: Any, **kwargs: Any) -> Any:
    return _full(call, 1)


@lower("empty.memory_format", "empty_like", "new_empty", "empty_permuted", "empty_strided", "new_empty_strided")
def empty(call: Call, *given: Any, **kwargs: Any) -> Any:
    return _full(call, 0)


@lower("scalar_tensor")
def number(call: Call, value: Any, **kwargs: Any) -> Any:
    return _full(call, value)


@lower("arange", "arange.start", "arange.start_step")
def arange(call: Call, first: Any, stop: Any = None, step: Any = 1, **kwargs: Any) -> Any:
    start = 0 if stop is None else first
    if all(_is_whole(x) for x in (start, step)):
        made = dt.arange(call.shape[0], dtype=call.dtype)
        made = made if isinstance(step, int) and step == 1 else made * step
        return made if isinstance(start, int) and start == 0 else made + start
    if "integer" in dt._core.to_dtype(call.dtype).kind:
        raise Unsupported("integers between real numbers")
    return dt.arange(start, first if stop is None else stop, step, dtype=call.dtype)


def _is_whole(x: Any) -> bool:
    return not isinstance(x, float) and not getattr(x, "is_real", False)


@lower("linspace")
def linspace(call: Call, start: float, stop: float, steps: int, **kwargs: Any) -> Any:
    if "integer" in dt._core.to_dtype(call.dtype).kind:
        raise Unsupported("integers between real numbers")
    return dt.linspace(start, stop, steps, dtype=call.dtype)


@lower("eye", "eye.m")
def eye(call: Call, rows: Any, columns: Any = None, **kwargs: Any) -> Any:
    return dt.eye(rows, columns, dtype=call.dtype)


@lower("tril_indices", "triu_indices")
def triangle_indices(call: Call, rows: int, columns: int, offset: int = 0, **kwargs: Any) -> Any:
    import numpy as np

    function = np.tril_indices if call.node.target.overloadpacket.__name__ == "tril_indices" else np.triu_indices
    return dt.asarray(np.stack(function(rows, offset, columns)))


@lower("complex")
def complex_of(call: Call, real: Any, imaginary: Any) -> Any:
    if real.dtype != imaginary.dtype:
        raise Unsupported("parts of two dtypes")
    name = dtype_name(torch.complex64 if real.dtype == "float32" else torch.complex128)
    return cast(real, name) + cast(imaginary, name) * 1j
