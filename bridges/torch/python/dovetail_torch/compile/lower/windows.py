"""Pools and images in another size."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt
from dovetail import nn

from dovetail_torch.compile.table import Call, Unsupported, lower, pair


def _with_batch(function: Any, x: Any, n: int) -> Any:
    """The function of a batch, also of one element without the batch's axis."""
    if x.ndim == n + 2:
        return function(x)
    made = function(x[None])
    return tuple(m[0] for m in made) if isinstance(made, tuple) else made[0]


def _rank(call: Call) -> int:
    """The number of spatial axes that the overload's name ends with."""
    return int(call.node.target.overloadpacket.__name__.rstrip("d").removesuffix("d_with_indices")[-1])


@lower("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(
    call: Call, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> Any:
    return _max_pool(_rank(call), x, kernel, stride, padding, dilation, ceil, False)


@lower("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool_with_indices(
    call: Call, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> Any:
    made = _max_pool(_rank(call), x, kernel, stride, padding, dilation, ceil, call.uses(1))
    return made if call.uses(1) else (made, None)


def _max_pool(
    n: int, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, indices: bool
) -> Any:
    kernel = pair(kernel, n)
    step = pair(stride, n) if stride else kernel
    pool = getattr(nn, f"max_pool{n}d")
    return _with_batch(
        lambda batch: pool(batch, kernel, step, pair(padding, n), pair(dilation, n), ceil, indices), x, n
    )


@lower("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    call: Call, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil: bool = False,
    counts_padding: bool = True, divisor: Any = None,
) -> Any:  # fmt: skip
    n = _rank(call)
    kernel = pair(kernel, n)
    step = pair(stride, n) if stride else kernel
    more = {} if divisor is None else {"divisor_override": divisor}
    pool = getattr(nn, f"avg_pool{n}d")
    return _with_batch(
        lambda batch: pool(batch, kernel, step, pair(padding, n), ceil, counts_padding, **more), x, n
    )


@lower(
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "_adaptive_avg_pool3d",
)  # fmt: skip
def adaptive_avg_pool(call: Call, x: Any, size: Any) -> Any:
    n = _rank(call)
    if all(s == 1 for s in size):
        return dt.mean(x, axis=tuple(range(x.ndim - n, x.ndim)), keepdims=True)
    pool = getattr(nn, f"adaptive_avg_pool{n}d")
    return _with_batch(lambda batch: pool(batch, tuple(size)), x, n)


@lower("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def nearest(call: Call, x: Any, size: Any, scale: Any) -> Any:
    return _resized(call, x, size, scale, mode="nearest")


@lower("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
def nearest_of_size(call: Call, x: Any, size: Any, *scale: Any) -> Any:
    return _resized(call, x, size, _scale(scale), mode="nearest")


@lower("upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec", "upsample_bicubic2d.vec")
def linear(call: Call, x: Any, size: Any, align_corners: bool, scale: Any) -> Any:
    return _resized(call, x, size, scale, mode=_mode(call), align_corners=align_corners)


@lower("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d")
def linear_of_size(call: Call, x: Any, size: Any, align_corners: bool, *scale: Any) -> Any:
    return _resized(call, x, size, _scale(scale), mode=_mode(call), align_corners=align_corners)


def _mode(call: Call) -> str:
    return call.node.target.overloadpacket.__name__.removeprefix("upsample_")[:-2]


def _scale(given: tuple[Any, ...]) -> Any:
    return None if not given or any(s is None for s in given) else list(given)


def _resized(call: Call, x: Any, size: Any, scale: Any, **how: Any) -> Any:
    """torch rounds a size of size * scale down, and then uses the scale that it was given."""
    if scale is not None:
        return nn.interpolate(x, scale_factor=tuple(scale), **how)
    return nn.interpolate(x, size=tuple(size), **how)


# ---- gradients ---------------------------------------------------------------------------------------------------


@lower("max_pool2d_with_indices_backward")
def max_pool_backward(
    call: Call, grad: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, indices: Any
) -> Any:
    """Each element of the gradient goes to the place that the indices name."""
    planes = (*x.shape[:-2], math.prod(x.shape[-2:]))
    flat = (*grad.shape[:-2], math.prod(grad.shape[-2:]))
    zeros = dt.zeros(planes, dtype=grad.dtype)
    put = dt._core.op_function("put_along_axis")
    made = put(zeros, dt.reshape(indices, flat), dt.reshape(grad, flat), axis=-1, mode="add")
    return dt.reshape(made, x.shape)


@lower("avg_pool2d_backward")
def avg_pool_backward(
    call: Call, grad: Any, x: Any, kernel: Any, stride: Any, padding: Any, ceil: bool, counts_padding: bool,
    divisor: Any,
) -> Any:  # fmt: skip
    if ceil or divisor is not None or x.ndim != 4:
        raise Unsupported("ceil_mode, a divisor or an image without a batch")
    kernel = pair(kernel, 2)
    step = pair(stride, 2) if stride else kernel
    return nn.avg_pool_grad(grad, x.shape, kernel, step, pair(padding, 2), count_include_pad=counts_padding)
