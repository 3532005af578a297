"""Runs decompositions on NumPy arrays, down to the must-have primitives, and checks the results. exp, log and sin
are correctly rounded here; any further error is the decomposition's own. Attributes are normalised and scalars cast
as in the core.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import numpy as np


def load_schema():
    """dovetail.schema: the installed one, or else the folder's, so that these tests need no compiled core."""
    try:
        import dovetail.schema as schema

        return schema
    except ImportError:
        folder = Path(__file__).resolve().parents[2] / "core" / "schema"
        spec = importlib.util.spec_from_file_location("dovetail_schema", folder / "__init__.py")
        schema = sys.modules["dovetail_schema"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(schema)
        return schema


schema = sys.modules.get("dovetail_schema") or load_schema()
dt, registry = schema.dtypes, schema.registry
oracle = importlib.import_module(f"{schema.__name__}.oracle")
rules = importlib.import_module(f"{schema.__name__}.rules")


# ---- dtype rules -------------------------------------------------------------------------------------------------


def promote(a, b):
    if a is b or b.kind == "b":
        return a
    if a.kind == "b":
        return b
    if "c" in (a.kind, b.kind):
        double = dt.float64 in (a, b) or dt.complex128 in (a, b)
        return dt.complex128 if double else dt.complex64
    if "f" in (a.kind, b.kind):
        if a.kind != b.kind:
            return a if a.kind == "f" else b
        return dt.float32 if a.itemsize == b.itemsize else max(a, b, key=lambda d: d.itemsize)
    both = np.promote_types(a.numpy, b.numpy)
    if both.kind == "f":
        raise TypeError(f"{a} with {b}")
    return dt.by_name[both.name]


def scalar_dtype(v):
    kinds = {bool: dt.bool_, int: dt.int64, complex: dt.complex64}
    return next((d for kind, d in kinds.items() if isinstance(v, kind)), dt.float32)


def joined(arrays, scalars):
    """The dtype that arrays and weak scalars compute in."""
    out = None
    for a in arrays:
        out = dt.of(a) if out is None else promote(out, dt.of(a))
    for s in map(scalar_dtype, scalars):
        if out is None or "bifc".index(out.kind.replace("u", "i")) < "bifc".index(s.kind):
            out = s if s.kind != "c" or out is not dt.float64 else dt.complex128
    return out


def dtypes_of(op, p, given):
    """(compute, result) by the dtype rule; p is what the value operands join to."""
    rule, asked = op.spec.dtype, next((given[a.name] for a in op.attributes if a.kind == "dtype"), None)
    if rule in (*rules.FLOATING, "quantize"):
        p = p if p.kind in "fc" else dt.float32
    if 0 in rules.REAL_RESULTS.get(rule, ()):
        return p, dt.PART.get(p, p)
    if rule in ("compare", "predicate"):
        return p, dt.bool_
    if rule == "logical":
        return dt.bool_, dt.bool_
    if rule == "index":
        return p, asked or dt.int64
    if rule in ("bits", "int32"):
        return p, getattr(dt, {"bits": "uint32"}.get(rule, rule))
    if rule == "quantize":
        return p, asked
    if rule == "scaled":
        return (dt.float64 if asked is dt.float64 else dt.float32), asked or dt.float32
    if rule == "given":
        scalars = [given[a.name] for a in op.attributes if a.kind == "scalar" and given[a.name] is not None]
        return p, asked or (joined([], scalars) if scalars else dt.float32)
    if rule == "accum":
        p = asked or (p if p.kind in "fc" else dt.uint64 if p.kind == "u" else dt.int64)
    if rule == "integer":
        assert p.kind in "iu", f"[{op.name}] {p}"
    if rule == "matmul" and asked:
        return p, asked
    if rule in ("numeric", "matmul"):
        assert p.kind != "b", f"[{op.name}] {p}"
    if rule == "bit":
        assert p.kind in "biu", f"[{op.name}] {p}"
    return p, p


# ---- attributes, as the shape rules normalise them -----------------------------------------------------------


def _axis(a, n):
    if not -max(n, 1) <= a < max(n, 1):
        raise ValueError(f"axis {a} of {n}")
    return a % n if n else 0


def _axes(v, n):
    return tuple(range(n)) if v is None else tuple(sorted(_axis(a, n) for a in _ints(v)))


def _ints(v, n=1):
    v = (v,) if isinstance(v, (int, np.integer)) else tuple(v)
    return v * n if len(v) == 1 else v


ONE_AXIS = (
    "arg_reduce scan along_axis top_k take take_along_axis scatter put_along_axis dynamic_slice_axis diff repeat "
    "quantize dequantize"
).split()


def normalise(op, g):
    rule = op.spec.shape
    for p in op.attributes:
        if p.kind == "i64s" and g[p.name] is not None:
            g[p.name] = _ints(g[p.name])
    x = next((g[p.name] for p in op.operands), None)
    n = x.ndim if hasattr(x, "ndim") else 0
    if rule in ("reduce", "flip"):
        g["axis"] = _axes(g["axis"], n)
    elif rule in ONE_AXIS:
        if g["axis"] is None and rule in ("scan", "take"):
            g["axis"] = 0
        g["axis"] = None if g["axis"] is None else _axis(g["axis"], n)
    elif rule in ("concat", "stack") and g["axis"] is not None:
        g["axis"] = _axis(g["axis"], x[0].ndim + (rule == "stack"))
    elif rule in ("dynamic_slice", "dynamic_update_slice"):
        g["axis"] = tuple(range(n)) if g["axis"] is None else tuple(_axis(a, n) for a in _ints(g["axis"]))
    elif rule == "expand_dims":
        g["axis"] = _axes(g["axis"], n + len(g["axis"]))
    elif rule == "squeeze":
        g["axis"] = _axes(g["axis"], n)
    elif rule == "permute_dims":
        g["axes"] = tuple(_axis(a, n) for a in g["axes"])
    elif rule == "moveaxis":
        g["source"], g["destination"] = (tuple(_axis(a, n) for a in g[k]) for k in ("source", "destination"))
    elif rule == "roll" and g["axis"] is not None:
        g["axis"] = tuple(_axis(a, n) for a in g["axis"])
        g["shift"] = _ints(g["shift"], len(g["axis"]))
    elif rule == "tile":
        g["repetitions"] = (1,) * (n - len(g["repetitions"])) + g["repetitions"]
    elif rule == "pad":
        w = _ints(g["pad_width"], 2)
        g["pad_width"] = w * n if len(w) == 2 else w
    elif rule == "matmul":
        g["dtype"] = None if g["dtype"] is x.dtype else g["dtype"]
    elif rule == "vecdot":
        g["axis"] = _axis(g["axis"], max(n, g["x2"].ndim))
    elif rule in ("layer_norm", "layer_norm_grad") and g["eps"] is None:
        g["eps"] = x.dtype.eps
    elif rule.startswith(("attention", "block_attention")) and g["scale"] is None:
        g["scale"] = 1 / np.sqrt(x.shape[-1]).item()
    elif rule in (
        "conv",
        "conv_transpose",
        "conv_grad_input",
        "conv_grad_weight",
        "pool",
        "max_pool_grad",
        "avg_pool_grad",
    ):
        g["stride"] = g["kernel_size"] if g["stride"] is None else g["stride"]
        for k in {"stride", "padding", "output_padding", "dilation", "kernel_size"} & {*g}:
            g[k] = _ints(g[k], n - 2)
    elif rule == "arange" and g["stop"] is None:
        g["start"], g["stop"] = 0, g["start"]
    elif rule == "eye" and g["n_cols"] is None:
        g["n_cols"] = g["n_rows"]


# ---- primitives ----------------------------------------------------------------------------------------------


INEXACT = {"exp": np.exp, "log": np.log, "sin": np.sin}


def rounded(fn, x, slop):
    """fn, correctly rounded; with slop 1 half of the results are the next number beyond the exact one."""
    exact = fn(x.astype(np.longdouble if x.dtype == np.float64 else np.float64))
    y = exact.astype(x.dtype)
    if slop:
        coin = np.asarray(y, order="C").view(f"u{y.itemsize}") * np.uint32(0x9E3779B9) >> 7 & 1
        other = np.nextafter(y, np.where(exact > y, np.inf, -np.inf).astype(x.dtype))
        y = np.where((coin == 1) & (exact != y) & np.isfinite(y) & (y != 0), other, y)
    return y


def _shift(fn):
    def run(x, n):
        width = 8 * x.dtype.itemsize
        inside = fn(x, np.minimum(n, width - 1).astype(x.dtype))
        beyond = np.where(x < 0, -1, 0).astype(x.dtype) if fn is np.right_shift else np.zeros_like(inside)
        return np.where(n >= width, beyond, inside)

    return run


def _take(x, indices, axis):
    if indices.size and not (-x.shape[axis] <= indices.min() and indices.max() < x.shape[axis]):
        raise IndexError(f"take: {indices.min()} to {indices.max()} of {x.shape[axis]}")
    return np.take(x, indices, axis)


def _region(start, stop, step):
    return tuple(map(slice, start, stop, step))


def _set_slice(x, updates, start, stop, step):
    out = np.array(x)
    out[_region(start, stop, step)] = updates
    return out


def _reduce(fn):
    return lambda x, axis, keepdims, dtype=None: fn(x, axis=axis, keepdims=keepdims)


def _sum(x, axis, keepdims, dtype=None):
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _max(x, axis, keepdims):
    return np.max(x, axis=axis, keepdims=keepdims) if x.ndim else x.copy()


RUN = {
    "copy": np.array,
    "full": lambda shape, fill_value, dtype: np.full(shape, fill_value),
    "iota": lambda size, dtype: np.arange(size),
    "take": _take,
    "where": np.where,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "less": np.less,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_left_shift": _shift(np.left_shift),
    "bitwise_right_shift": _shift(np.right_shift),
    "floor": np.floor,
    "sqrt": np.sqrt,
    "sum": _sum,
    "max": _max,
    "matmul": lambda x1, x2, dtype: np.matmul(x1, x2),
    "astype": lambda x, dtype: x != 0 if dtype is dt.bool_ else x.astype(dtype.numpy),
    "scatter": lambda x, indices, updates, **k: registry["scatter"].reference(x, indices, updates, **k),
    "quotient": lambda x1, x2: registry["quotient"].reference(x1, x2),
    # the core's own functions
    "reshape": lambda x, shape: x.reshape(shape),
    "permute_dims": np.transpose,
    "squeeze": np.squeeze,
    "expand_dims": lambda x, axis: np.expand_dims(x, axis),
    "broadcast_to": np.broadcast_to,
    "slice": lambda x, start, stop, step: x[_region(start, stop, step)],
    "set_slice": _set_slice,
    "bitcast": lambda x, **how: registry["bitcast"].reference(x, **how),
    "reinterpret": lambda x, **how: registry["reinterpret"].reference(x, **how),
    "moveaxis": np.moveaxis,
    "matrix_transpose": lambda x: np.swapaxes(x, -1, -2),
    "sliding_window": lambda x, **how: registry["sliding_window"].reference(x, **how),
    "diagonal": lambda x, offset: np.diagonal(x, offset, -2, -1),
}


class Machine:
    """A device with the must-have primitives. It counts their launches and records which op called which."""

    def __init__(self, slop=0):
        self.slop, self.launches, self.nested, self.edges = slop, Counter(), [], set()

    def run(self, op, *args, **kwargs):
        """Calls an op on NumPy arrays."""

        def wrap(a):
            if isinstance(a, (list, tuple)) and a and isinstance(a[0], np.ndarray):
                return [Traced(self, x) for x in a]
            return Traced(self, a) if isinstance(a, np.ndarray) else a

        with np.errstate(all="ignore"):
            out = self.__dovetail_op__(op, *map(wrap, args), **{k: wrap(v) for k, v in kwargs.items()})
        return tuple(o.v for o in out) if isinstance(out, tuple) else out.v

    def __dovetail_op__(self, op, *args, **kwargs):
        given = op.bind(*args, **kwargs)
        values = {p.name: given[p.name] for p in op.operands if p.kind == "value" and given[p.name] is not None}
        flat = [v for a in values.values() for v in (a if isinstance(a, (list, tuple)) else [a])]
        p = joined([v.v for v in flat if isinstance(v, Traced)], [v for v in flat if not isinstance(v, Traced)])
        compute, result = dtypes_of(op, p, given)
        via = dt.float32 if op.spec.half_in_f32 and compute in dt.HALVES else compute
        for param in op.operands:
            given[param.name] = self.cast(given[param.name], via if param.kind == "value" else param.kind)
        normalise(op, given)
        out = self.serve(op, given)
        first, *further = out if isinstance(out, tuple) else (out,)
        if (via is not compute and result in dt.HALVES) or op.name in ("full", "iota"):
            first = Traced(self, first.v.astype(result.numpy))
        assert first.dtype is result, f"[{op.name}] gives {first.dtype}: expected {result}"
        wide = dt.float32 if result in dt.HALVES else compute if compute and compute.kind == "c" else result
        wide = dt.int64 if op.spec.dtype == "same_and_index" else wide
        for i, o in enumerate(further, 1):
            real = i in rules.REAL_RESULTS.get(op.spec.dtype, ())
            expected = dt.PART.get(wide, wide) if real else wide
            assert o.dtype is expected, f"[{op.name}] gives {further}: expected {expected} of result {i}"
        return (first, *further) if further else first

    def cast(self, a, to):
        if a is None or to == "raw":
            return a
        if isinstance(a, (list, tuple)):
            return [self.cast(x, to) for x in a]
        to = {"mask": dt.bool_, "index": dt.int64}.get(to, to)
        v = a.v if isinstance(a, Traced) else np.asarray(a)
        return Traced(self, v if v.dtype == to.numpy else v.astype(to.numpy))

    def serve(self, op, given):
        name = f"complex {op.name}" if dt.any_complex(given.values()) else op.name
        if op.complex_decomposition and name != op.name:
            return self.trace(op, given, name)
        if op.name in INEXACT:
            self.launches[op.name] += 1
            return Traced(self, rounded(INEXACT[op.name], given["x"].v, self.slop))
        newer = op.name == "matmul" and given["dtype"] is not None
        if op.name in RUN and given.get("mode", "set") == "set" and not newer:
            assert op.decomposition is None or op.tier == "must"
            if op.tier == "must":
                self.launches[op.name] += 1
            bare = {k: [x.v for x in v] if isinstance(v, list) else getattr(v, "v", v) for k, v in given.items()}
            operands = [bare.pop(p.name) for p in op.operands]
            return Traced(self, RUN[op.name](*operands, **bare))
        return self.trace(op, given, name)

    def trace(self, op, given, name):
        assert name not in self.nested, f"{name} calls itself through {self.nested}"
        if self.nested:
            self.edges.add((self.nested[-1], name))
        self.nested.append(name)
        try:
            args = [given[p.name] for p in op.params if not p.keyword_only]
            return op.trace(self, *args, **{p.name: given[p.name] for p in op.params if p.keyword_only})
        finally:
            self.nested.pop()


class Traced:
    """An array inside a decomposition."""

    __hash__ = None

    def __init__(self, machine, v):
        self.machine, self.v = machine, np.asarray(v)

    shape = property(lambda self: self.v.shape)
    ndim = property(lambda self: self.v.ndim)
    dtype = property(lambda self: dt.of(self.v))

    def __dovetail_op__(self, op, *args, **kwargs):
        return self.machine.__dovetail_op__(op, *args, **kwargs)

    def __bool__(self):
        raise TypeError("a decomposition looks at a value")

    def __getitem__(self, key):
        for k in key if isinstance(key, tuple) else (key,):
            assert k is None or k is Ellipsis or isinstance(k, int) or (k.step or 1) > 0, (
                f"basic indexing only: {k!r}"
            )
        return Traced(self.machine, self.v[key])

    def __neg__(self):
        return registry["negative"](self)

    def __invert__(self):
        return registry["bitwise_invert"](self)


def _operators():
    names = dict(
        add="add",
        sub="subtract",
        mul="multiply",
        truediv="divide",
        floordiv="floor_divide",
        mod="remainder",
        pow="pow",
        matmul="matmul",
        lshift="bitwise_left_shift",
        rshift="bitwise_right_shift",
        eq="equal",
        ne="not_equal",
        lt="less",
        le="less_equal",
        gt="greater",
        ge="greater_equal",
        xor="bitwise_xor",
        **{"and": "bitwise_and", "or": "bitwise_or"},
    )
    for short, name in names.items():
        setattr(Traced, f"__{short}__", lambda a, b, name=name: registry[name](a, b))
        if short not in ("eq", "ne", "lt", "le", "gt", "ge"):
            setattr(Traced, f"__r{short}__", lambda a, b, name=name: registry[name](b, a))


_operators()


# ---- judging -------------------------------------------------------------------------------------------------


def ulps(got, want, scale, d):
    """The error in ulp of max(|want|, scale) in dtype d; infinite where only one is NaN."""
    with np.errstate(invalid="ignore"):
        got, want = np.asarray(got).astype(np.longdouble), np.asarray(want).astype(np.longdouble)
    top = np.longdouble(2) ** (np.frexp(d.max)[1])
    over = np.longdouble(d.max) * (1 + np.longdouble(d.eps) / 4)  # what rounds to infinity
    want = np.where(np.abs(want) >= over, np.copysign(top, want), want)
    got = np.where(np.isinf(got), np.copysign(top, got), got)
    size = np.maximum(np.abs(np.where(np.isnan(want), 0, want)), np.nan_to_num(np.abs(scale), nan=0, posinf=0))
    place = np.exp2(
        np.maximum(np.frexp(np.minimum(size, d.max))[1] - 1, np.frexp(d.tiny)[1] - 1) - np.longdouble(d.mant)
    )
    error = np.abs(got - want) / place
    return np.where(np.isnan(got) & np.isnan(want), 0, np.where(np.isnan(error), np.inf, error))


def signs_differ(got, want):
    """A mask of the zeros that have the wrong sign."""
    got, want = np.asarray(got), np.asarray(want)
    return (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))


def check(op, args, kwargs, *, machine=None, what=""):
    """Runs the op on a Machine and fails where it is further from the oracle than its tolerance."""
    got = (machine or Machine()).run(op, *args, **kwargs)
    wide = np.longdouble if (got[0] if op.spec.n_out > 1 else got).dtype == np.float64 else np.float64
    want, scale = (fn(op, args, kwargs, wide=wide) for fn in (oracle.expected, oracle.scale))
    if op.spec.n_out == 1:
        return check_output(op, args, got, want, scale, what)
    return max(check_output(op, args, *output, what) for output in zip(got, want, scale, strict=True))


def check_output(op, args, got, want, scale, what):
    want, d = np.asarray(want), dt.of(got)
    assert got.shape == want.shape, f"[{op.name}] {what}: shape {got.shape}, expected {want.shape}"
    if d.kind != "f":
        wrong = np.argwhere(got != want.astype(got.dtype))
        assert not wrong.size, (
            f"[{op.name}] {what} at {wrong[0]}: {got[tuple(wrong[0])]}, expected {want[tuple(wrong[0])]}"
        )
        return 0.0
    error = ulps(got, want, np.broadcast_to(scale, want.shape), d)
    if not error.size:
        return 0.0
    at = np.unravel_index(np.argmax(error), error.shape)
    allowed = op.spec.tol
    assert error[at] <= allowed, (
        f"[{op.name}] {what} {d} at {at}: {got[at]!r}, expected {want[at]!r}: {float(error[at]):.3g} ulp, "
        f"allowed {allowed}; "
        f"arguments {[a[at] if isinstance(a, np.ndarray) and a.shape == got.shape else '...' for a in args]}"
    )
    return float(error[at])
