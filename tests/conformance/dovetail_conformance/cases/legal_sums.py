"""Legal calls of the rules of ops that reduce, sort, multiply matrices, normalise and slide windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from dovetail.schema import dtypes as dt

from .legal import SIZES, Drawing, legal
from .operand import ANY, Operand

DEPTH = SIZES  # of a sum of products
SIDE = SIZES[:16]  # of a matrix
# The dtypes other than their own that products may have.
WIDER = dict.fromkeys(dt.HALVES, dt.float32) | dict.fromkeys((dt.int8, dt.uint8, dt.int16), dt.int32)


# ---- along axes --------------------------------------------------------------------------------------------------


@legal("reduce")
def reduce_(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape(empty=m.op.spec.dtype != "same" and m.op.name != "vector_norm"))
    return {"x": x, "axis": m.axes(len(x.shape))}


@legal("arg_reduce")
def arg_reduce(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape(empty=False))
    return {"x": x, "axis": m.axis(len(x.shape)) if x.shape and m.pick((True, False)) else None}


@legal("scan", "along_axis")
def along_axis(m: Drawing) -> dict[str, Any]:
    first, *others = (p.name for p in m.op.operands)
    x = m.operand(m.shape(1))
    given = {first: x, "axis": m.axis(len(x.shape))}
    if others:  # a gradient: a product of what is not finite and 0 may be left out
        given |= {first: finite(x), **{name: finite(m.operand(x.shape)) for name in others}}
    return given


@legal("middle", "reduce_middle")
def middle(m: Drawing) -> dict[str, Any]:
    return {"x": m.operand(m.shape(3, 3))}


@legal("top_k")
def top_k(m: Drawing) -> dict[str, Any]:
    """From nothing to all."""
    given = along_axis(m)
    n = given["x"].shape[given["axis"]]
    return given | {"k": m.integer(0, n), "mode": m.pick(("largest", "smallest"))}


@legal("diff")
def diff(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape(1))
    axis = m.axis(len(x.shape))
    given = {"x": x, "axis": axis, "n": m.integer(0, 3)}
    for end in ("prepend", "append"):
        own = [*x.shape]
        own[axis] = m.integer(0, 2)
        given[end] = m.operand(m.pick((tuple(own), ()))) if m.pick((False, True)) else None
    return given


# ---- products ----------------------------------------------------------------------------------------------------


def _factors(m: Drawing) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of the operands of a product."""
    long = m.integer(0, 2)  # which of n, k, m may be large
    n, k, o = (m.pick(DEPTH if i == long else SIDE[:10]) for i in range(3))
    k = 0 if m.rarely() else k
    batch = m.pick(((), (), (2,), (3, 2), (0,)))
    a, b = (*m.part_of(batch), n, k), (*m.part_of(batch), k, o)
    if m.rarely():
        a = (k,)
    if m.rarely():
        b = (k,)
    return a, b


@legal("matmul")
def matmul(m: Drawing) -> dict[str, Any]:
    a, b = _factors(m)
    given: dict[str, Any] = {"x1": m.operand(a), "x2": m.operand(b)}
    wide = WIDER.get(m.dtype)
    if "dtype" in m.names and wide in m.device_dtypes and m.pick((False, True)):
        given["dtype"] = wide
    return given


@legal("matmul_integer")
def matmul_integer(m: Drawing) -> dict[str, Any]:
    a, b = _factors(m)
    given: dict[str, Any] = {}
    for name, shape, each in (("x1", a, a[-2:-1]), ("x2", b, b[-1:] if len(b) > 1 else ())):
        d = m.pick((dt.int8, dt.uint8))
        given[name] = m.operand(shape)._replace(dtype=d, values=ANY)
        zero_point = m.operand(m.pick(((), (1,), each)))._replace(dtype=d, values=ANY)
        given[f"{name}_zero_point"] = m.pick((None, zero_point))
    return given


@legal("linear")
def linear(m: Drawing) -> dict[str, Any]:
    inner, outer = m.pick(DEPTH), m.pick(SIDE)
    bias = m.operand((outer,)) if m.pick((False, True)) else None
    given = {"x": m.operand((*m.shape(0, 1), inner)), "weight": m.operand((outer, inner)), "bias": bias}
    if "activation" in m.names:  # of -inf gelu_tanh may be NaN
        given = {name: a and finite(a) for name, a in given.items()}
    return given


@legal("scaled_linear")
def scaled_linear(m: Drawing) -> dict[str, Any]:
    rows, inner, outer = m.shape(0, 2), m.pick(DEPTH), m.pick(SIDE)
    eight = [dt.int8, *(d for d in m.device_dtypes if d in dt.FLOAT8)]
    given: dict[str, Any] = {}
    for name, shape in (("x", (*rows, inner)), ("weight", (outer, inner))):
        given[name] = m.operand(shape, low=-100, high=100)._replace(dtype=m.pick(eight), values="uniform")
    for name, shape in (("x_scale", rows), ("weight_scale", (outer,))):
        given[name] = m.operand(m.pick(((), (1,), shape)), low=0.01, high=0.1)._replace(values="uniform")
    floats = [d for d in dt.FLOATS if d in m.device_dtypes]
    bias = m.operand((outer,))._replace(dtype=m.pick(floats), values="uniform")
    return given | {"bias": m.pick((None, bias)), "dtype": m.pick((None, *floats))}


@legal("vecdot")
def vecdot(m: Drawing) -> dict[str, Any]:
    n, axis = m.pick((0, *DEPTH)), -m.integer(1, 2)
    batch = m.pick(((3, 5), (2,), (1, 4), ()))
    shapes = []
    for part in (batch, m.part_of(batch)):
        own = [*part]
        while len(own) < -1 - axis:
            own.insert(0, 1)
        own.insert(len(own) + 1 + axis, n)
        shapes.append(tuple(own))
    x1, x2 = (m.operand(s) for s in shapes)
    if -axis == len(x1.shape) and x1.layout == "repeated":  # equal products are all rounded the same way
        x1 = x1._replace(layout="")
    return {"x1": x1, "x2": x2, "axis": axis}


@legal("outer")
def outer(m: Drawing) -> dict[str, Any]:
    return {"x1": m.operand((m.pick((0, *SIDE)),)), "x2": m.operand((m.pick((0, *SIDE)),))}


# ---- factorizations ----------------------------------------------------------------------------------------------


def _matrix(m: Drawing, shape: tuple[int, ...], *, symmetric: bool = False) -> Operand:
    """Matrices that are far from singular: their factors are as exact as their elements."""
    x = np.random.default_rng(m.integer(0, 255)).uniform(-1, 1, shape)
    if symmetric:
        x = (x + np.swapaxes(x, -1, -2)) / 2
    x += (max(shape[-2:]) + 1) * np.eye(*shape[-2:])
    layout = m.layout(shape)
    return Operand(shape, m.dtype, layout="" if layout == "repeated" else layout, given=tuple(x.ravel().tolist()))


def _square_shape(m: Drawing) -> tuple[int, ...]:
    n = m.pick((0, 1, 2, 3, 5, 31, 32, 33, 65))
    return (*m.pick(((), (), (2,), (3, 2), (0,))), n, n)


@legal("square", "lu")
def square(m: Drawing) -> dict[str, Any]:
    return {"x": _matrix(m, _square_shape(m), symmetric=True)}


@legal("qr")
def qr(m: Drawing) -> dict[str, Any]:
    shape = (*_square_shape(m)[:-1], m.pick((0, 1, 4, 33)))
    return {"x": _matrix(m, shape), "mode": m.pick(("reduced", "complete"))}


def _far_apart(m: Drawing, shape: tuple[int, ...], *, symmetric: bool = False) -> Operand:
    """Matrices whose eigenvalues or singular values are far from each other, so that their vectors are certain."""
    drawn = _matrix(m, shape, symmetric=symmetric)
    x = np.reshape(drawn.given or (), shape) / (max(shape[-2:]) + 1)
    i = np.arange(min(shape[-2:]))
    x[..., i, i] += 3 * i
    return drawn._replace(given=tuple(x.ravel().tolist()))


@legal("eigh")
def eigh(m: Drawing) -> dict[str, Any]:
    n = m.pick((0, 1, 2, 3, 8))
    return {"x": _far_apart(m, (*m.pick(((), (2,), (3, 2), (0,))), n, n), symmetric=True)}


@legal("svd")
def svd(m: Drawing) -> dict[str, Any]:
    """With all rows and columns U and Vh end in any basis of what is left: those of squares alone are certain."""
    n = m.pick((0, 1, 2, 3, 8))
    shape = (*m.pick(((), (2,), (3, 2), (0,))), n, n if m.pick((False, True)) else m.pick((1, 4)))
    return {"x": _far_apart(m, shape), "full_matrices": shape[-1] == n}


@legal("solve")
def solve(m: Drawing) -> dict[str, Any]:
    a = _square_shape(m)
    b = (*m.part_of(a[:-2]), a[-1], m.pick((0, 1, 3, 40)))
    right = m.operand(b)._replace(values="uniform")
    return {"x1": _matrix(m, a), "x2": right, "upper": m.pick((False, True)), "unitriangular": False}


def finite(a: Operand) -> Operand:
    """The operand without NaN and infinity, for which legal kernels differ: some skip masked and padded elements,
    others multiply them by 0 or add -inf; and a product that underflows becomes NaN next to an infinite weight."""
    return a._replace(values="uniform") if a.values in ("nan", "inf") else a


def _keys(m: Drawing, query: Operand, shape: tuple[int, ...]) -> Operand:
    """A query that underflows when it is scaled becomes NaN with an infinite key."""
    key = m.operand(shape)
    return finite(key) if query.values == "zeros" else key


@legal("attention")
def attention(m: Drawing) -> dict[str, Any]:
    queries, keys, size, out = (m.pick(SIDE[:12]) for _ in range(4))
    heads = m.pick(((), (1,), (2, 4), (3, 1)))
    grouped = len(heads) == 2 and heads[1] == 4 and m.pick((False, True))
    of_keys = (heads[0], 2) if grouped else heads
    query = m.operand((*heads, queries, size))
    given: dict[str, Any] = {"query": query, "key": _keys(m, query, (*of_keys, keys, size))}
    given["value"] = finite(m.operand((*of_keys, keys, out)))
    mask = m.pick(("none", "bool", "float"))
    scores = m.part_of((*heads, queries, keys))
    if mask != "none":
        given["attn_mask"] = m.mask(scores) if mask == "bool" else finite(m.operand(scores)._replace(dtype=m.dtype))
    if "dropout_key" in m.names and m.pick((False, True)):
        given["dropout_p"] = m.pick((0.5, 0.25, 1.0))
        given["dropout_key"] = Operand((4,), dt.uint32, ANY, m.integer(0, 255))
    if "kv_length" in m.names and m.pick((False, True)):
        of_length = heads[:1] if m.pick((False, True)) else ()
        given["kv_length"] = Operand(
            of_length, dt.int64, "uniform", m.integer(0, 255), m.layout(of_length), -1, keys + 1
        )
    return given | ({"enable_gqa": True} if grouped else {})


@legal("attention_varlen")
def attention_varlen(m: Drawing) -> dict[str, Any]:
    """Sequences with arbitrary offsets, concatenated, some of them empty."""
    queries, keys, size, out = (m.pick(SIDE[:12]) for _ in range(4))
    heads, key_heads = m.pick(((1, 1), (3, 3), (4, 2)))
    sequences, of_offsets = m.integer(0, 4), m.pick((dt.int32, dt.int64))

    def offsets(tokens: int) -> Operand:
        at = sorted(m.integer(0, tokens) for _ in range(sequences + 1))
        return Operand((len(at),), of_offsets, layout=m.layout((len(at),)), given=tuple(at))

    query = m.operand((queries, heads, size))
    given: dict[str, Any] = {"query": query, "key": _keys(m, query, (keys, key_heads, size))}
    given |= {"value": finite(m.operand((keys, key_heads, out)))}
    given |= {"cu_seq_q": offsets(queries), "cu_seq_k": offsets(keys)}
    return given | ({"enable_gqa": True} if heads != key_heads else {})


def _block_heads(m: Drawing) -> tuple[dict[str, Any], tuple[int, int], int]:
    """query, key and enable_gqa; batch and heads of the keys, and how many keys."""
    queries, keys, size = (m.pick(SIDE[:12]) for _ in range(3))
    batch, (heads, key_heads) = m.pick((1, 2)), m.pick(((1, 1), (3, 3), (4, 2)))
    query = m.operand((batch, heads, queries, size))
    given: dict[str, Any] = {"query": query, "key": _keys(m, query, (batch, key_heads, keys, size))}
    return given | ({"enable_gqa": True} if heads != key_heads else {}), (batch, key_heads), keys


@legal("attention_scores")
def attention_scores(m: Drawing) -> dict[str, Any]:
    return _block_heads(m)[0]


@legal("score_indices")
def score_indices(m: Drawing) -> dict[str, Any]:
    return {name: m.operand(tuple(m.pick(SIDE[:12]) for _ in range(4))) for name in ("query", "key")}


@legal("block_attention")
def block_attention(m: Drawing) -> dict[str, Any]:
    given, of_keys, keys = _block_heads(m)
    batch, heads, queries, _ = given["query"].shape
    given["value"] = finite(m.operand((*of_keys, keys, m.pick(SIDE[:12]))))
    if m.pick((False, True)):
        rows, columns, masks = m.pick((1, 4, 16)), m.pick((1, 4, 128)), m.integer(1, 3)
        of = (m.pick((1, batch)), m.pick((1, heads)), -(-queries // rows), -(-keys // columns))
        given["blocks"] = Operand(of, dt.int32, "uniform", m.integer(0, 255), m.layout(of), 0, masks + 1)
        given["tiles"] = m.mask((masks, rows, columns))
    if m.pick((False, True)):
        of_scores = dt.float64 if m.dtype is dt.float64 else dt.float32
        given["scores"] = finite(m.operand((batch, heads, queries, keys)))._replace(dtype=of_scores)
    return given


@legal("rotary_embedding")
def rotary_embedding(m: Drawing) -> dict[str, Any]:
    pairs, rest = m.pick((1, 2, 3, 4, 8, 16, 32, 33, 64)), m.pick((0, 0, 1, 7, 16))
    lead = m.shape(0, 3)
    angles = (*m.part_of(lead), pairs)
    given: dict[str, Any] = {"x": m.operand((*lead, 2 * pairs + rest))}
    return given | {"cos": m.operand(angles), "sin": m.operand(angles), "interleaved": m.pick((False, True))}


# ---- layers ------------------------------------------------------------------------------------------------------


@legal("layer_norm")
def layer_norm(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape(1, empty=False))
    last = x.shape[-m.integer(1, min(2, len(x.shape))) :]
    given: dict[str, Any] = {"x": x, "normalized_shape": last}
    for name in ("weight", "bias"):
        if name in m.names:
            given[name] = finite(m.operand(last)) if m.pick((False, True)) else None
    return given


@legal("batch_norm")
def batch_norm(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape(2))
    channels = x.shape[1:2]
    given: dict[str, Any] = {"x": x, "running_mean": m.operand(channels)}
    given["running_var"] = m.operand(channels, low=0.125, high=4.0)
    for name in ("weight", "bias"):
        given[name] = finite(m.operand(channels)) if m.pick((False, True)) else None
    return given


@legal("batch_norm_train")
def batch_norm_train(m: Drawing) -> dict[str, Any]:
    x = m.operand(m.shape(2, empty=False))
    return {"x": x, **_scale_and_shift(m, x.shape[1:2])}


@legal("group_norm")
def group_norm(m: Drawing) -> dict[str, Any]:
    shape = m.shape(2, empty=False)
    groups = m.pick((1, 2, 3))
    shape = (shape[0], shape[1] * groups, *shape[2:])
    return {"x": m.operand(shape), "num_groups": groups, **_scale_and_shift(m, shape[1:2])}


def _scale_and_shift(m: Drawing, channels: tuple[int, ...]) -> dict[str, Any]:
    return {name: finite(m.operand(channels)) if m.pick((False, True)) else None for name in ("weight", "bias")}


@legal("dropout")
def dropout(m: Drawing) -> dict[str, Any]:
    key = Operand((4,), dt.uint32, "uniform", m.integer(0, 255), "", 0, 1000)
    return {"x": m.operand(m.shape()), "key": key, "p": m.pick((0.5, 0.0, 0.125, 1.0))}


@legal("cross_entropy")
def cross_entropy(m: Drawing) -> dict[str, Any]:
    classes = m.pick(SIZES[:14])
    places = m.pick(((5,), (1,), (17,), (2, 3), (2, 3, 4), None))
    shape = (classes,) if places is None else (places[0], classes, *places[1:])
    ignored = {"ignore_index": 0} if m.rarely() else {}
    target = Operand(places or (), dt.int64, "uniform", m.integer(0, 255), "", 0, classes - 1)
    return {"x": m.operand(shape), "target": target, **ignored}


def _spatial_axes(m: Drawing) -> int:
    return int(m.op.name[-2])  # conv2d


def _windows(m: Drawing, n: int, least: list[int]) -> tuple[int, ...]:
    more = (0, 1, 2, 5) if n == 3 else (0, 1, 2, 5, 8, 15, 16, 33 if n == 1 else 9)
    return tuple(low + m.pick(more) for low in least)


def _each(m: Drawing, n: int, options: tuple[int, ...]) -> int | tuple[int, ...]:
    return m.pick(options) if m.pick((True, False)) else tuple(m.pick(options) for _ in range(n))


def spread(value: Any, n: int) -> list[int]:
    return [value] * n if isinstance(value, int) else [*value]


@legal("conv")
def conv(m: Drawing) -> dict[str, Any]:
    return convolution(m, _spatial_axes(m))


def convolution(m: Drawing, n: int) -> dict[str, Any]:
    groups = m.pick((1, 1, 2, 3))
    inputs, outputs = m.pick((1, 2, 3, 8, 17)), groups * m.pick((1, 2, 3, 8))
    kernel = [m.pick((1, 2, 3, 5)) for _ in range(n)]
    dilation, padding = _each(m, n, (1, 2)), _each(m, n, (0, 1, 2))
    size = _windows(m, n, [d * (k - 1) + 1 for k, d in zip(kernel, spread(dilation, n), strict=True)])
    bias = m.operand((outputs,)) if m.pick((False, True)) else None
    x = m.operand((m.pick((1, 2, 0)), groups * inputs, *size))
    weight = m.operand((outputs, inputs, *kernel))
    weight = finite(weight) if any(spread(padding, n)) else weight
    if groups > 1:  # which may be one dense product with zeros between them, as in cuDNN
        x, weight = finite(x), finite(weight)
    return {"x": x, "weight": weight, "bias": bias, "groups": groups,
            "stride": _each(m, n, (1, 2, 3)), "padding": padding, "dilation": dilation}  # fmt: skip


@legal("conv_transpose")
def conv_transpose(m: Drawing) -> dict[str, Any]:
    n = _spatial_axes(m)
    groups = m.pick((1, 1, 2, 3))
    inputs, outputs = m.pick((1, 2, 3, 8, 17)), m.pick((1, 2, 3, 8))
    kernel, places = ([m.pick(sizes) for _ in range(n)] for sizes in ((1, 2, 3, 4), (1, 2, 3, 5)))
    stride, dilation = ([m.pick((1, 2, 3)) for _ in range(n)] for _ in range(2))
    output_padding = [m.integer(0, max(s, d) - 1) for s, d in zip(stride, dilation, strict=True)]
    full = [(a - 1) * s + d * (k - 1) + 1 for a, s, d, k in zip(places, stride, dilation, kernel, strict=True)]
    padding = [m.integer(0, min(2, (size - 1) // 2)) for size in full]
    bias = m.operand((groups * outputs,)) if m.pick((False, True)) else None
    x = finite(m.operand((m.pick((1, 2, 0)), groups * inputs, *places)))
    weight = finite(m.operand((groups * inputs, outputs, *kernel)))
    spread = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    given = {name: tuple(values) for name, values in spread.items()}
    return {"x": x, "weight": weight, "bias": bias, "groups": groups, **given}


@legal("pool")
def pool(m: Drawing) -> dict[str, Any]:
    return pooling(m, _spatial_axes(m))


def pooling(m: Drawing, n: int) -> dict[str, Any]:
    kernel = _each(m, n, (2, 1, 3, 5))
    padding = tuple(m.integer(0, k // 2) for k in spread(kernel, n))
    dilation = _each(m, n, (1, 2)) if "dilation" in m.names else 1
    reach = [d * (k - 1) + 1 for k, d in zip(spread(kernel, n), spread(dilation, n), strict=True)]
    x = m.operand((m.pick((1, 2, 0)), m.pick((1, 3, 17)), *_windows(m, n, reach)))
    given = {"x": x, "kernel_size": kernel, "padding": padding, "stride": m.pick((None, 1, 2, 3))}
    return given | ({"dilation": dilation} if "dilation" in m.names else {})
