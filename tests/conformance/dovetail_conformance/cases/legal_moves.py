"""Legal calls of the rules of ops that make, move and pick elements, and of elementwise ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dovetail.schema import dtypes as dt

from .legal import SIZES, SMALL, Drawing, legal
from .operand import ANY, KINDS, Operand

SCALARS = {
    "b": (True, False),
    "i": (1, 0, 2, 3, -1),
    "u": (1, 0, 2, 3),
    "f": (1, 0.5, 0.0, -0.0, 3, math.inf, math.nan),
}


@legal("same")
def same(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape())
    return _converted(m, x) if m.op.name == "astype" else {m.op.operands[0].name: x}


def _converted(m: Drawing, x: Operand) -> dict[str, Any]:
    """Conversions to an integer type get values in its range; all others get any value."""
    target = m.pick([m.dtype, *m.device_dtypes])
    if m.dtype.kind == "f" and target.kind in "iu":
        x = x._replace(low=0 if target.kind == "u" else -100, high=100, values=m.pick(KINDS[:2]))
    return {"x": x, "dtype": target}


@legal("broadcast")
def broadcast(m: Drawing) -> dict[str, Any]:
    shape = m.shape()
    given: dict[str, Any] = {}
    for i, p in enumerate(m.op.operands):
        if p.optional and m.rarely():
            given[p.name] = None
            continue
        own = shape if i == 0 else m.part_of(shape)
        given[p.name] = m.mask(own) if p.kind == "mask" else m.operand(own)
    values = [p.name for p in m.op.operands if p.kind == "value"]
    weak = m.op.spec.dtype in ("promote", "numeric", "float", "compare", "integer", "bit") and len(values) == 2
    if weak and m.rarely():
        which = m.pick((1, 0))
        other, domain = given[values[1 - which]], (m.op.domain and m.op.domain[which]) or (None, None)
        if other.dtype is m.dtype:
            options = [s for s in SCALARS[m.dtype.kind] if domain[0] is None or domain[0] <= s <= domain[1]]
            given[values[which]] = m.pick(options)
    return given


# ---- made from attributes ----------------------------------------------------------------------------------------


@legal("from_shape")
def from_shape(m: Drawing) -> dict[str, Any]:
    given: dict[str, Any] = {"shape": m.shape(), "dtype": m.dtype}
    if "key" in m.names:
        given["key"] = Operand((4,), dt.uint32, ANY, m.integer(0, 255))
        if "dtype" not in m.names:
            del given["dtype"]
        if "low" in m.names:
            given |= {"low": 0, "high": m.pick((1, 2, 10, 100))}
    if "fill_value" in m.names:
        given["fill_value"] = m.pick(SCALARS[m.dtype.kind])
    return given


@legal("iota")
def iota(m: Drawing) -> dict[str, Any]:
    return {"size": min(m.pick((0, *SIZES)), m.dtype.max if m.dtype.kind in "iu" else 1 << m.dtype.mant)}


@legal("arange")
def arange(m: Drawing) -> dict[str, Any]:
    start, count = m.integer(0, 20), m.integer(0, 40)
    if m.dtype.kind == "f" and m.pick((False, True)):
        step = m.pick((0.5, 0.125, 0.25))
        return {"start": start * step, "stop": (start + count) * step, "step": step, "dtype": m.dtype}
    step = m.pick((1, 2, 3))
    start, stop = m.pick(((start, start + step * count), (start + count, start)))
    return {"start": start, "stop": stop, "step": step if stop >= start else -step, "dtype": m.dtype}


@legal("linspace")
def linspace(m: Drawing) -> dict[str, Any]:
    ends = (0.0, 1.0, -2.0, 3.5, 100.0)
    return {"start": m.pick(ends), "stop": m.pick(ends), "num": m.pick((0, *SIZES)), "dtype": m.dtype}


@legal("eye")
def eye(m: Drawing) -> dict[str, Any]:
    columns = m.pick((None, 0, *SIZES[:12]))
    return {"n_rows": m.pick((0, *SIZES[:12])), "n_cols": columns, "k": m.integer(-9, 9), "dtype": m.dtype}


@legal("one_hot")
def one_hot(m: Drawing) -> dict[str, Any]:
    classes = m.pick(SIZES[:16])
    return {"x": m.indices(m.shape(0, 2), classes), "num_classes": classes, "dtype": m.dtype}


# ---- views -------------------------------------------------------------------------------------------------------


@legal("reshape")
def reshape(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape())
    factors = [n for size in x.shape for n in _factors(size)]
    shape: list[int] = []
    for n in factors:
        if shape and m.pick((True, False)):
            shape[-1] *= n
        else:
            shape.append(n)
    if shape and math.prod(shape) and m.pick((False, True)):
        shape[m.integer(0, len(shape) - 1)] = -1
    return {"x": x, "shape": tuple(shape)}


def _factors(n: int) -> list[int]:
    least = next((p for p in (2, 3, 5) if n and n % p == 0), n)
    return [n] if least == n else [least, n // least]


@legal("permute_dims")
def permute_dims(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape())
    rank = len(x.shape)
    return {"x": x, "axes": tuple(a - m.pick((0, rank)) for a in m.order(rank))}


@legal("expand_dims")
def expand_dims(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape())
    added = m.integer(1, 2)
    rank = len(x.shape) + added
    axes = m.order(rank)[:added]
    return {"x": x, "axis": axes[0] if added == 1 else tuple(a - m.pick((0, rank)) for a in axes)}


@legal("squeeze")
def squeeze(m: Drawing) -> dict[str, Any]:
    shape = [*m.shape(0, 3)]
    for _ in range(m.integer(1, 2)):
        shape.insert(m.integer(0, len(shape)), 1)
    ones = [i for i, n in enumerate(shape) if n == 1]
    chosen = ones[: m.integer(1, len(ones))]
    return {"x": m.operand(tuple(shape)), "axis": tuple(a - m.pick((0, len(shape))) for a in chosen)}


@legal("broadcast_to")
def broadcast_to(m: Drawing) -> dict[str, Any]:
    shape = m.shape()
    return {"x": m.operand(m.part_of(shape)), "shape": shape}


def _region(m: Drawing, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    ends = [sorted((m.integer(0, n), m.integer(0, n))) for n in shape]
    steps = tuple(m.pick((1, 2, 3, 7)) for _ in shape)
    return {"start": tuple(a for a, _ in ends), "stop": tuple(b for _, b in ends), "step": steps}


@legal("slice")
def slice_(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape())
    return {"x": x, **_region(m, x.shape)}


@legal("set_slice")
def set_slice(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape())
    region = _region(m, x.shape)
    taken = tuple(len(range(a, b, s)) for a, b, s in zip(*region.values(), strict=True))
    return {"x": x, "updates": m.operand(m.part_of(taken)), **region}


@legal("bitcast")
def bitcast(m: Drawing) -> dict[str, Any]:
    twins = [t for t in dt.NOT_COMPLEX if t.itemsize == m.dtype.itemsize and t.kind != "b" and t in m.device_dtypes]
    x = m.operand(m.shape())
    tame = x.values == ANY and m.dtype.kind == "f"  # NumPy would turn a signalling NaN into a quiet one
    return {"x": x._replace(values="uniform") if tame else x, "dtype": m.pick([m.dtype, *twins])}


@legal("reinterpret")
def reinterpret(m: Drawing) -> dict[str, Any]:
    return bitcast(m) | {"shape": (-1,)}


@legal("diagonal")
def diagonal(m: Drawing) -> dict[str, Any]:
    return {"x": m.operand(m.shape(2)), "offset": m.integer(-8, 8)}


@legal("matrix")
def matrix(m: Drawing) -> dict[str, Any]:
    return {"x": m.operand(m.shape(2)), "k": m.integer(-8, 8)}


@legal("matrix_transpose")
def matrix_transpose(m: Drawing) -> dict[str, Any]:
    return {"x": m.operand(m.shape(2))}


@legal("sliding_window")
def sliding_window(m: Drawing) -> dict[str, Any]:
    n = m.integer(1, 2)
    kernel = tuple(m.integer(1, 3) for _ in range(n))
    dilation = tuple(m.integer(1, 2) for _ in range(n))
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    x = m.operand((*m.shape(0, 2), *(r + m.integer(0, 4) for r in reach)))
    stride = tuple(m.integer(1, 3) for _ in range(n))
    return {"x": x, "kernel_size": kernel, "stride": stride, "dilation": dilation}


@legal("moveaxis")
def moveaxis(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape())
    rank = len(x.shape)
    n = m.integer(0, rank)
    return {"x": x, "source": tuple(m.order(rank)[:n]), "destination": tuple(m.order(rank)[:n])}


# ---- joining and repeating ---------------------------------------------------------------------------------------


@legal("concat")
def concat(m: Drawing) -> dict[str, Any]:
    shape = m.shape(1)
    axis = m.axis(len(shape))
    parts = []
    for _ in range(m.integer(1, 4)):
        own = [*shape]
        own[axis] = m.pick((shape[axis], *SMALL, 0))
        parts.append(m.operand(tuple(own)))
    return {"arrays": parts, "axis": None if m.rarely() else axis}


@legal("stack")
def stack(m: Drawing) -> dict[str, Any]:
    shape = m.shape(0, 3)
    return {"arrays": [m.operand(shape) for _ in range(m.integer(1, 4))], "axis": m.axis(len(shape) + 1)}


@legal("repeat")
def repeat(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape())
    axis = m.axis(len(x.shape)) if x.shape and m.pick((True, False)) else None
    return {"x": x, "repeats": m.integer(0, 4), "axis": axis}


@legal("tile")
def tile(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape(0, 3))
    return {"x": x, "repetitions": tuple(m.integer(0, 3) for _ in range(m.integer(0, 4)))}


@legal("pad")
def pad(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape(1))
    width = m.pick((1, 2, 2 * len(x.shape)))
    return {"x": x, "pad_width": tuple(m.integer(0, 3) for _ in range(width))}


@legal("flip")
def flip(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape())
    return {"x": x, "axis": m.axes(len(x.shape))}


@legal("roll")
def roll(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape())
    if not x.shape or m.pick((False, True)):
        return {"x": x, "shift": m.integer(-9, 9), "axis": None}
    axes = tuple(m.axis(len(x.shape)) for _ in range(m.integer(1, 2)))
    return {"x": x, "shift": tuple(m.integer(-9, 9) for _ in axes), "axis": axes}


# ---- picking -----------------------------------------------------------------------------------------------------


@legal("take")
def take(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape(1))
    axis = m.axis(len(x.shape))
    n = x.shape[axis]
    if len(x.shape) == 1 and m.pick((False, True)):
        return {"x": x, "indices": m.indices(m.shape(0, 2), n), "axis": None}
    return {"x": x, "indices": m.indices(m.shape(0, 2) if math.prod(x.shape) < 100 else (3,), n), "axis": axis}


@legal("take_along_axis")
def take_along_axis(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape(1))
    axis = m.axis(len(x.shape))
    own = [1 if m.rarely() else n for n in x.shape]
    own[axis] = m.pick(SMALL) if x.shape[axis] else 0
    low, high = -x.shape[axis], max(x.shape[axis] - 1, 0)
    indices = Operand(tuple(own), dt.int64, "uniform", m.integer(0, 255), m.layout(tuple(own)), low, high)
    return {"x": x, "indices": indices, "axis": axis}


def _scatter(m: Drawing, x: Operand, axis: int) -> dict[str, Any]:
    """Each place at most once: of several writes any may win."""
    n = x.shape[axis]
    rng = np.random.default_rng(m.integer(0, 255))
    places = rng.permutation(n)[: m.integer(0, min(n, 40))]
    places = np.where(rng.random(places.size) < 0.3, places - n, places)
    region = [*x.shape]
    region[axis] = places.size
    indices = Operand(places.shape, dt.int64, layout=m.layout(places.shape), given=tuple(places.tolist()))
    indices = indices._replace(layout="" if indices.layout == "repeated" else indices.layout)
    return {"x": x, "indices": indices, "updates": m.operand(m.part_of(tuple(region)))}


@legal("scatter")
def scatter(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape(1))
    axis = m.axis(len(x.shape))
    given = _scatter(m, x, axis) | {"axis": axis}
    if m.dtype.kind not in "iub":  # sums are rounded, and of two zeros max may choose either
        return given
    return given | {"mode": m.pick(("set", "set", "add", "max", "min", "multiply"))}


@legal("put_along_axis")
def put_along_axis(m: Drawing) -> dict[str, Any]:
    """Each place at most once, as for scatter."""
    x = m.operand(m.shape(1))
    axis = m.axis(len(x.shape))
    n, rng = x.shape[axis], np.random.default_rng(m.integer(0, 255))
    places = np.argsort(rng.random(x.shape), axis=axis)
    places = np.take(places, np.arange(m.integer(0, min(n, 40))), axis)
    places = np.where(rng.random(places.shape) < 0.3, places - n, places)
    indices = Operand(places.shape, dt.int64, given=tuple(places.ravel().tolist()))
    mode = m.pick(("set", "set", "add", "max", "min", "multiply")) if m.dtype.kind in "iub" else "set"
    return {"x": x, "indices": indices, "values": m.operand(m.part_of(places.shape)), "axis": axis, "mode": mode}


@legal("scatter_middle")
def scatter_middle(m: Drawing) -> dict[str, Any]:
    modes = ("add", "max", "min", "multiply") if m.dtype.kind in "iub" else ("add", "multiply")
    return _scatter(m, m.operand(m.shape(3, 3)), 1) | {"mode": m.pick(modes)}


@legal("segment_sum")
def segment_sum(m: Drawing) -> dict[str, Any]:
    x, segments = m.operand(m.shape(1)), m.pick(SMALL)
    ids = Operand(x.shape[:1], dt.int64, "uniform", m.integer(0, 255), m.layout(x.shape[:1]), -1, segments)
    return {"x": x, "segment_ids": ids, "num_segments": segments}


@legal("dynamic_slice", "dynamic_update_slice")
def dynamic_slice(m: Drawing) -> dict[str, Any]:
    """Starts inside and outside of x; some calls name axes."""
    x = m.operand(m.shape())
    rank = len(x.shape)
    axes = tuple(range(rank)) if m.pick((True, False)) else m.axes(rank, 1) if rank else ()
    named = [a % rank for a in ((axes,) if isinstance(axes, int) else axes)]
    sizes = [m.integer(0, min(x.shape[a], 40)) for a in named]
    shape = () if len(named) == 1 and m.pick((True, False)) else (len(named),)
    starts = Operand(shape, dt.int64, "uniform", m.integer(0, 255), m.layout(shape), -3, max((*x.shape, 1)) + 3)
    given: dict[str, Any] = {"x": x, "starts": starts, "axis": axes}
    if "sizes" in m.names:
        return given | {"sizes": tuple(sizes)}
    region = [*x.shape]
    for a, size in zip(named, sizes, strict=True):
        region[a] = size
    return given | {"update": m.operand(tuple(region))}


@legal("dynamic_slice_axis")
def dynamic_slice_axis(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape(1))
    axis = m.axis(len(x.shape))
    n = x.shape[axis]
    start = Operand((1,), dt.int64, "uniform", m.integer(0, 255), "", -3, n + 3)
    return {"x": x, "start": start, "size": m.pick((n, m.integer(0, n))), "axis": axis}


@legal("embedding")
def embedding(m: Drawing) -> dict[str, Any]:
    rows = m.pick(SIZES[:12])
    return {"x": m.indices(m.shape(0, 2), rows), "weight": m.operand((rows, m.pick(SIZES[:16])))}


@legal("quantize", "dequantize")
def quantize(m: Drawing) -> dict[str, Any]:
    """All values at once, or those along one axis."""
    shape, quantized = m.shape(), m.pick((dt.int8, dt.uint8))
    given: dict[str, Any]
    if m.op.name == "quantize":
        given = {"x": m.operand(shape), "dtype": quantized}
    else:
        given = {"x": Operand(shape, quantized, ANY, m.integer(0, 255), m.layout(shape))}
    axis = m.axis(len(shape)) if shape and m.pick((True, False)) else None
    n = () if axis is None else (shape[axis],)
    given |= {"scale": m.operand(n), "axis": axis}
    if m.pick((False, True)):
        of_zero = m.pick((n, ()))
        given["zero_point"] = Operand(of_zero, dt.int64, "uniform", m.integer(0, 255), m.layout(of_zero), -9, 200)
    return given
