"""FlashAttention's kernels on the emulated driver, by name, against NumPy float64: including cases that no op
uses."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from ctypes import c_double, c_float, c_int64, c_uint32, c_uint64, c_void_p
from typing import NamedTuple

import ml_dtypes
import numpy as np
from dovetail.schema.ops.random import philox_words
from libcuda import SHARED_BYTES, Device

TOP_LEFT, BOTTOM_RIGHT = 1, 2
DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
MASKS = {"bool": 1, "float16": 2, "bfloat16": 3, "float32": 4}
TOLERANCE = 6  # ulp of the schema
rng = np.random.default_rng(5)


def draw(*shape: int, dtype: np.dtype) -> np.ndarray:
    return rng.uniform(-2, 2, shape).astype(dtype)


# ---- as in src/kernels/common/flash.hpp -----------------------------------------------------------------------


class Strides(ctypes.Structure):
    _fields_ = [(name, c_int64) for name in ("batch", "head", "row")]


class Drop(ctypes.Structure):
    _fields_ = [("key", c_void_p), ("below", c_uint32), ("kept_scale", c_double)]


class Flash(ctypes.Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("q", "k", "v", "out", "lse", "q_begin", "k_begin")),
        *((name, c_uint32) for name in ("sequences", "wide_begins", "queries", "keys", "heads", "heads_per_key")),
        *((name, c_uint32) for name in ("size", "value_size", "blocks")),
        ("causal", c_uint32),
        ("scale", c_float),
        *((name, Strides) for name in ("q_strides", "k_strides", "v_strides", "out_strides")),
        *(("mask", c_void_p), ("mask_kind", c_uint32), ("mask_strides", Strides), ("mask_column", c_int64)),
        ("dropout", Drop),
    ]


class Shape(NamedTuple):
    """A kernel: the largest head size, threads of a block, queries and keys per step."""

    size: int
    threads: int
    queries: int
    keys: int

    def shared_bytes(self) -> int:
        return (self.queries + 2 * self.keys) * self.size * 2


SHAPES = [
    *(Shape(32, 128, 128, 64), Shape(64, 128, 128, 64), Shape(96, 128, 128, 64)),
    *(Shape(128, 128, 128, 32), Shape(192, 256, 128, 64), Shape(256, 256, 128, 32)),
]


class Backward(ctypes.Structure):
    _fields_ = [
        *(("p", Flash), ("d_out", c_void_p), ("delta", c_void_p)),
        *((name, c_void_p) for name in ("d_q", "d_k", "d_v")),
        *((f"{name}_strides", Strides) for name in ("d_out", "d_q", "d_k", "d_v")),
    ]


BACKWARD_THREADS, BACKWARD_BLOCK, BACKWARD_SCORES = 128, 64, 32


class Maps(ctypes.Structure):
    _fields_ = [(name, c_uint64 * 16) for name in "qkv"] + [("p", Flash), ("pad", ctypes.c_char * 64)]


HOPPER_THREADS, HOPPER_BLOCK, HOPPER_STAGES = 384, 128, 2


def hopper_shared_bytes(size: int) -> int:
    return (1 + 2 * HOPPER_STAGES) * HOPPER_BLOCK * size * 2 + (1 + 4 * HOPPER_STAGES) * 8 + 1024


# ---- a launch --------------------------------------------------------------------------------------------------


class Sequences(NamedTuple):
    """The offsets of concatenated sequences, including the end of the last."""

    queries: list[int]
    keys: list[int]
    dtype: type = np.int32


class Dropout(NamedTuple):
    key: list[int]
    probability: float

    def below(self) -> int:
        return math.ceil(self.probability * 2**24)


class Given(NamedTuple):
    """Shapes (batches, heads, rows, columns); sequences form one batch of all their rows."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    causal: int = 0
    scale: float | None = None
    mask: np.ndarray | None = None
    dropout: Dropout | None = None
    sequences: Sequences | None = None
    general: bool = False

    def factor(self) -> float:
        return self.q.shape[-1] ** -0.5 if self.scale is None else self.scale

    def widest(self) -> int:
        return max(self.q.shape[-1], self.v.shape[-1])


def forward_kernel(g: Given, shape: Shape) -> str:
    special = "general_" if g.general or g.dropout or g.mask is not None else ""
    return f"flash_{special}{type_of(g.q)}_{shape.size}"


class Launcher:
    def __init__(self) -> None:
        self.device = Device()

    def strided(self, x: np.ndarray) -> tuple[c_uint64, list[int]]:
        """A copy on the device with the same strides, and those in elements."""
        base = x
        while isinstance(base.base, np.ndarray):
            base = base.base
        strides = [s // x.itemsize for s in x.strides]
        if not x.size:
            return c_uint64(0), strides
        return c_uint64(self.device.put(base).value + x.ctypes.data - base.ctypes.data), strides

    def describe(self, g: Given) -> tuple[Flash, c_uint64, c_uint64]:
        """Outputs filled with NaN, and the addresses of the results and of their logarithms."""
        p, s = Flash(), g.sequences
        batches, heads, queries = g.q.shape[:3]
        p.keys = g.k.shape[2]
        if s:
            p.sequences, p.wide_begins = len(s.queries) - 1, s.dtype is np.int64
            p.q_begin, p.k_begin = (self.device.put(np.array(x, s.dtype)).value for x in (s.queries, s.keys))
        out = np.full((*g.q.shape[:3], g.v.shape[3]), np.nan, g.q.dtype)
        lse = np.full((batches, heads, queries), np.nan, np.float32)
        at = {}
        for name, x in {"q": g.q, "k": g.k, "v": g.v, "out": out}.items():
            at[name], strides = self.strided(x)
            setattr(p, name, at[name].value)
            setattr(p, f"{name}_strides", Strides(*strides[:3]))
        at["lse"] = self.device.put(lse)
        p.lse, p.queries, p.heads, p.heads_per_key = at["lse"].value, queries, heads, heads // g.k.shape[1]
        p.size, p.value_size, p.causal, p.scale = g.q.shape[3], g.v.shape[3], g.causal, g.factor()
        if g.mask is not None:
            address, _ = self.strided(g.mask)
            strides = [n // g.mask.itemsize for n in np.broadcast_to(g.mask, (*lse.shape, p.keys)).strides]
            p.mask, p.mask_kind, p.mask_column = address.value, MASKS[g.mask.dtype.name], strides[3]
            p.mask_strides = Strides(*strides[:3])
        p.dropout.kept_scale = 1
        if g.dropout:
            p.dropout.key = self.device.put(np.array(g.dropout.key, np.uint32)).value
            p.dropout.below, p.dropout.kept_scale = g.dropout.below(), 1 / (1 - g.dropout.probability)
        return p, at["out"], at["lse"]

    def results(self, p: Flash, out: c_uint64, lse: c_uint64, g: Given) -> tuple[np.ndarray, np.ndarray]:
        got = self.device.get(out, (*g.q.shape[:3], g.v.shape[3]), g.q.dtype)
        return got.astype(np.float64), self.device.get(lse, g.q.shape[:3], np.float32)

    def launch(self, name: str, argument, blocks: int, threads: int, shared: int) -> None:
        self.device.driver.cuKernelSetAttribute(SHARED_BYTES, shared, self.device.kernel(name), 0)
        self.device.launch(name, argument, grid=(blocks,), block=(threads,), shared=shared)
        self.device.wait()

    def run(self, g: Given) -> tuple[np.ndarray, np.ndarray]:
        """Runs the kernels on mma.sync."""
        shape = next(s for s in SHAPES if s.size >= g.widest())
        p, out, lse = self.describe(g)
        p.blocks = -(-p.queries // shape.queries)
        if g.sequences:
            p.blocks = p.queries // shape.queries + p.sequences + 2
        matrices = p.heads * g.q.shape[0]
        self.launch(forward_kernel(g, shape), p, p.blocks * matrices, shape.threads, shape.shared_bytes())
        return self.results(p, out, lse, g)

    def tensor_map(self, x: np.ndarray, address: int) -> ctypes.Array:
        """A tensor map of tiles of HOPPER_BLOCK rows of 64 columns."""
        encoded, batches, heads, rows, columns = (c_uint64 * 16)(), *x.shape
        sizes = (c_uint64 * 4)(columns, rows, heads, batches)
        strides = (c_uint64 * 3)(x.strides[2], x.strides[1], x.strides[0])
        box, steps = (c_uint32 * 4)(64, HOPPER_BLOCK, 1, 1), (c_uint32 * 4)(1, 1, 1, 1)
        kind = {"f16": 6, "bf16": 9}[type_of(x)]
        no_interleave, swizzle_128, promotion_256, zeros = 0, 3, 3, 0
        self.device.driver.cuTensorMapEncodeTiled(
            *(ctypes.byref(encoded), kind, 4, c_uint64(address), sizes, strides, box, steps),
            *(no_interleave, swizzle_128, promotion_256, zeros),
        )
        return encoded

    def run_hopper(self, g: Given) -> tuple[np.ndarray, np.ndarray]:
        size = 64 if g.widest() <= 64 else 128
        p, out, lse = self.describe(g)
        p.blocks = -(-p.queries // HOPPER_BLOCK)
        maps = Maps(*(self.tensor_map(x, getattr(p, name)) for name, x in zip("qkv", g[:3], strict=True)), p)
        blocks = p.blocks * p.heads * g.q.shape[0]
        self.launch(f"flash_hopper_{type_of(g.q)}_{size}", maps, blocks, HOPPER_THREADS, hopper_shared_bytes(size))
        return self.results(p, out, lse, g)

    def run_backward(self, g: Given, d_out: np.ndarray) -> list[np.ndarray]:
        """The gradients of q, k and v, from the forward kernel's results."""
        b, type_, size = Backward(), type_of(g.q), 64 if g.widest() <= 64 else 128
        b.p, _, _ = self.describe(g)
        shape = next(s for s in SHAPES if s.size >= g.widest())
        matrices = g.q.shape[0] * b.p.heads
        b.p.blocks = -(-b.p.queries // shape.queries)
        self.launch(forward_kernel(g, shape), b.p, b.p.blocks * matrices, shape.threads, shape.shared_bytes())
        b.delta = self.device.put(np.full(g.q.shape[:3], np.nan, np.float32)).value
        at = {}
        for name, x in {
            "d_out": d_out,
            **{f"d_{n}": np.full(x.shape, np.nan, x.dtype) for n, x in zip("qkv", g)},
        }.items():
            at[name], strides = self.strided(x)
            setattr(b, name, at[name].value)
            setattr(b, f"{name}_strides", Strides(*strides[:3]))
        shared = 4 * BACKWARD_BLOCK * size * 2 + (0 if g.mask is None else BACKWARD_SCORES * BACKWARD_THREADS * 4)
        b.p.blocks = -(-b.p.queries // BACKWARD_BLOCK)
        self.launch(f"flash_deltas_{type_}", b, b.p.blocks * matrices, BACKWARD_THREADS, 0)
        self.launch(f"flash_query_gradients_{type_}_{size}", b, b.p.blocks * matrices, BACKWARD_THREADS, shared)
        b.p.blocks = -(-b.p.keys // BACKWARD_BLOCK)
        blocks = b.p.blocks * g.k.shape[0] * g.k.shape[1]
        self.launch(f"flash_key_gradients_{type_}_{size}", b, blocks, BACKWARD_THREADS, shared)
        return [self.device.get(at[f"d_{n}"], x.shape, x.dtype).astype(np.float64) for n, x in zip("qkv", g)]


def type_of(x: np.ndarray) -> str:
    return next(name for name, dtype in DTYPES.items() if dtype == x.dtype)


# ---- the oracle ------------------------------------------------------------------------------------------------


class Weights(NamedTuple):
    """softmax of the scores, its dropout factors, and the logarithms of its denominators."""

    softmax: np.ndarray
    kept: np.ndarray
    lse: np.ndarray


def weights_of(
    g: Given, q: np.ndarray, k: np.ndarray, row: int = 0, key: int = 0, of: Given | None = None
) -> Weights:
    """Repeat the heads of keys to match those of queries; dropout as if they were stored in `of`."""
    s = q @ k.swapaxes(-1, -2) * g.factor()
    queries, keys = s.shape[-2:]
    if g.causal:
        s = np.where(np.tri(queries, keys, 0 if g.causal == TOP_LEFT else keys - queries, dtype=bool), s, -np.inf)
    if g.mask is not None:
        s = np.where(g.mask, s, -np.inf) if g.mask.dtype == bool else s + g.mask.astype(np.float64)
    m = np.max(s, -1, keepdims=True, initial=-np.inf)
    m = np.where(np.isinf(m), 0, m)
    e = np.exp(s - m)
    total = e.sum(-1, keepdims=True)
    kept = np.ones_like(s)
    if g.dropout:
        all_queries, all_keys = (of or g).q.shape[2], (of or g).k.shape[2]
        matrix = np.arange(q.shape[0] * q.shape[1]).reshape(*q.shape[:2], 1, 1)
        element = (matrix * all_queries + row + np.arange(queries)[:, None]) * all_keys + key + np.arange(keys)
        words = philox_words(g.dropout.key, int(element.max(initial=0)) + 1)[element]
        kept = np.where(words >> 8 < g.dropout.below(), 0, 1 / (1 - g.dropout.probability))
    return Weights(e / np.where(total == 0, 1, total), kept, (np.log(total) + m)[..., 0])


def largest_half(g: Given, q: np.ndarray, k: np.ndarray) -> float:
    """The weight of a score's error: half the largest sum of the magnitudes of its terms."""
    terms = np.abs(q) @ np.abs(k).swapaxes(-1, -2) * abs(g.factor())
    return max(1, np.max(terms, initial=1, where=np.isfinite(terms)) / 2)


def reference(g: Given, *place) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Results, their logarithms and the scales of their errors."""
    q, k, v = (x.astype(np.float64) for x in g[:3])
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    w = weights_of(g, q, k, *place)
    return w.softmax * w.kept @ v, w.lse, w.softmax * w.kept @ np.abs(v) * largest_half(g, q, k)


def reference_gradients(g: Given, d_out: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each with the scale of its errors: the sums of the magnitudes of its terms."""
    groups = g.q.shape[1] // g.k.shape[1]
    q, d_out = g.q.astype(np.float64), d_out.astype(np.float64)
    k, v = (np.repeat(x.astype(np.float64), groups, 1) for x in (g.k, g.v))
    w, kept, _ = weights_of(g, q, k)
    t = (0, 1, 3, 2)
    counted, delta = w * kept, ((w * kept @ v) * d_out).sum(-1, keepdims=True)
    slope, size = d_out @ v.transpose(t) * kept, np.abs(d_out) @ np.abs(v).transpose(t) * kept
    sizes = size + ((counted @ np.abs(v)) * np.abs(d_out)).sum(-1, keepdims=True)
    terms = largest_half(g, q, k)

    def by_head(x: np.ndarray) -> np.ndarray:
        return x.reshape(*g.k.shape[:2], groups, *x.shape[2:]).sum(2)

    d_s, size = w * (slope - delta) * g.factor(), w * sizes * g.factor() * terms
    return [
        (d_s @ k, size @ np.abs(k)),
        (by_head(d_s.transpose(t) @ q), by_head(size.transpose(t) @ np.abs(q))),
        (by_head(counted.transpose(t) @ d_out), by_head(counted.transpose(t) @ np.abs(d_out)) * terms),
    ]


def compare(g: Given, got: np.ndarray, got_lse: np.ndarray, expected: tuple, what: str) -> None:
    want, lse, size = expected
    digits, smallest = {"f16": (10, 2.0**-24), "bf16": (7, 1e-38)}[type_of(g.q)]
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want), what)
    error = np.abs(got - want) / (size * 2.0**-digits + smallest)
    assert not np.any(error > TOLERANCE), f"{what}: {np.nanmax(error)} ulp"
    np.testing.assert_allclose(got_lse, lse, rtol=0, atol=2e-5, err_msg=what)


def check(launcher: Launcher, g: Given, what: str = "", hopper: bool = False) -> None:
    got, lse = launcher.run_hopper(g) if hopper else launcher.run(g)
    with np.errstate(all="ignore"):
        compare(g, got, lse, reference(g), f"{what} {g.q.shape} {g.k.shape} {g.q.dtype}")


# ---- what is checked -------------------------------------------------------------------------------------------


def forward_cases(dtype: np.dtype, size: int) -> Iterator[tuple[str, Given]]:
    """Features of every kernel, at lengths that are no multiples of blocks."""
    g = Given(draw(1, 2, 130, size, dtype=dtype), *(draw(1, 1, 150, size, dtype=dtype) for _ in range(2)))
    yield "whole", g
    yield "causal", g._replace(causal=TOP_LEFT)
    yield "bottom right", g._replace(causal=BOTTOM_RIGHT)
    yield "narrow values", g._replace(v=draw(1, 1, 150, 8, dtype=dtype))
    yield "narrow heads", g._replace(q=g.q[..., :8].copy(), k=g.k[..., :8].copy())
    late = g.k.copy()
    late[:, :, 140:] *= 3  # the maximum comes with the last block
    yield "late maximum", g._replace(k=late)
    tokens_first = [x.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3) for x in g[:3]]
    yield "heads of tokens", Given(*tokens_first, causal=TOP_LEFT)
    one = draw(2, 2, 1, size, dtype=dtype)
    yield "one key", Given(one, one, one)
    strange = g.k.copy()
    strange[0, 0, 3, 1], strange[0, 0, 120, 2] = np.nan, np.inf
    yield "NaN and infinity", g._replace(k=strange, causal=TOP_LEFT)


def general_cases(dtype: np.dtype, size: int) -> Iterator[tuple[str, Given]]:
    """Features of the kernels on mma.sync only."""
    g = Given(draw(2, 2, 70, size, dtype=dtype), *(draw(2, 1, 90, size, dtype=dtype) for _ in range(2)))
    yield "no keys", Given(g.q, g.k[:, :, :0].copy(), g.v[:, :, :0].copy())
    yield (
        "more queries than keys",
        g._replace(k=g.k[:, :, :20].copy(), v=g.v[:, :, :20].copy(), causal=BOTTOM_RIGHT),
    )
    yield "negative scale", g._replace(scale=-0.25, general=True)
    yield "mask", g._replace(mask=rng.random((70, 90)) < 0.5)
    yield "mask of each head", g._replace(mask=rng.random((2, 2, 70, 90)) < 0.05, causal=TOP_LEFT)
    yield "mask of keys", g._replace(mask=rng.random((2, 1, 1, 90)) < 0.5)
    yield "all hidden", g._replace(mask=np.zeros((1, 1), bool))
    for kind in (np.float16, ml_dtypes.bfloat16, np.float32):
        added = draw(2, 1, 70, 90, dtype=np.dtype(kind))
        added[:, :, 5], added[..., 60:] = -np.inf, -np.inf
        yield f"added {np.dtype(kind)}", g._replace(mask=added)
    strange, shown = g.k.copy(), np.ones((1, 90), bool)
    strange[:, :, 7], shown[0, 7] = np.nan, False
    yield "hidden NaN", g._replace(k=strange, mask=shown)
    yield "dropout", g._replace(dropout=Dropout([1, 2, 0xFFFFFFF0, 3], 0.3), causal=TOP_LEFT)


def check_cases(cases: str, dtype: str, size: int) -> None:
    launcher = Launcher()
    for what, g in {"forward": forward_cases, "general": general_cases}[cases](DTYPES[dtype], size):
        check(launcher, g, what)


def check_hopper(dtype: str, size: int) -> None:
    launcher = Launcher()
    for what, g in forward_cases(DTYPES[dtype], size):
        check(launcher, g, what, hopper=True)
    q, k, v = (draw(1, 1, 600, size, dtype=DTYPES[dtype]) for _ in range(3))  # the ring of stages wraps around
    check(launcher, Given(q, k, v), "many keys", hopper=True)
    check(launcher, Given(q, k, v, causal=TOP_LEFT), "many keys, causal", hopper=True)


def check_sequences(dtype: str) -> None:
    """Sequences of several lengths, concatenated: each as if alone; zeros outside of all sequences."""
    launcher, lengths = Launcher(), ([5, 0, 200, 33, 128, 4], [7, 3, 160, 33, 0, 130])
    begins = [np.cumsum([before, *n]).tolist() for before, n in zip((3, 2), lengths)]
    q, k, v = (
        draw(begins[i][-1] + behind, heads, 64, dtype=DTYPES[dtype]).transpose(1, 0, 2)[None]
        for i, heads, behind in ((0, 4, 131), (1, 2, 1), (1, 2, 1))
    )
    for causal in (0, TOP_LEFT, BOTTOM_RIGHT):
        for dropout, kind in ((None, np.int32), (Dropout([9, 8, 7, 6], 0.25), np.int64)):
            g = Given(q, k, v, causal, dropout=dropout, sequences=Sequences(*begins, kind))
            got, lse = launcher.run(g)
            of_none = [*range(3), *range(begins[0][-1], q.shape[2])]
            assert not got[:, :, of_none].any() and np.isneginf(lse[:, :, of_none]).all()
            for b in range(len(lengths[0])):
                rows, keys = slice(*begins[0][b : b + 2]), slice(*begins[1][b : b + 2])
                alone = g._replace(q=q[:, :, rows], k=k[:, :, keys], v=v[:, :, keys])
                with np.errstate(all="ignore"):
                    expected = reference(alone, rows.start, keys.start, g)
                    compare(alone, got[:, :, rows], lse[:, :, rows], expected, f"sequence {b} {g[3:]}")


def check_offsets_that_make_no_sense(dtype: str) -> None:
    """Keys next to the operand's must not be read: they are infinite and would change the result."""
    launcher, kind = Launcher(), DTYPES[dtype]
    q, shown = draw(1, 2, 140, 64, dtype=kind), draw(1, 2, 140, 64, dtype=kind)
    k, v = np.zeros((1, 2, 400, 64), kind), np.full((1, 2, 400, 64), np.inf, kind)
    k[:, :, 130:270], v[:, :, 130:270] = shown, shown
    k, v = k[:, :, 130:270], v[:, :, 130:270]
    for begins in ([0, 140, 20, 20, 300], [-(2**31), 2**31 - 1, 0, 7, -1], [1000, -1000, 2**31 - 1, 3, 1]):
        for other in (begins, begins[::-1], [-50, 30, 60, 90, 180]):
            for sequences in (Sequences(begins, other), Sequences(other, begins, np.int64)):
                got, _ = launcher.run(Given(q, k, v, sequences=sequences))
                assert not np.isinf(got).any(), sequences


def gradient_cases(dtype: np.dtype, size: int) -> Iterator[tuple[str, Given]]:
    for queries, keys in ((130, 150), (150, 70), (1, 64)):
        q = draw(2, 4, queries, size, dtype=dtype)
        k, v = (draw(2, 2, keys, columns, dtype=dtype) for columns in (size, 48))
        for causal in (0, TOP_LEFT, BOTTOM_RIGHT):
            yield f"causal {causal}", Given(q, k, v, causal)
    g = Given(draw(2, 4, 70, size, dtype=dtype), *(draw(2, 2, 90, columns, dtype=dtype) for columns in (size, 48)))
    drop = Dropout([1, 2, 0xFFFFFFF0, 3], 0.3)
    yield "dropout", g._replace(dropout=drop)
    hides = rng.random((2, 4, 70, 90)) < 0.3
    hides[:, :, 5] = False
    yield "mask and dropout", g._replace(mask=hides, dropout=drop, causal=TOP_LEFT)
    yield "mask of keys", g._replace(mask=rng.random((2, 1, 1, 90)) < 0.5)
    for kind in (np.float16, ml_dtypes.bfloat16, np.float32):
        added = draw(2, 1, 70, 90, dtype=np.dtype(kind))
        added[:, :, 5], added[..., 60:] = -np.inf, -np.inf
        yield f"added {np.dtype(kind)}", g._replace(mask=added)


def check_gradients(dtype: str, size: int) -> None:
    launcher = Launcher()
    for what, g in gradient_cases(DTYPES[dtype], size):
        d_out = draw(*g.q.shape[:3], g.v.shape[3], dtype=DTYPES[dtype])
        with np.errstate(all="ignore"):
            expected = reference_gradients(g, d_out)
        for name, got, (want, scale) in zip("qkv", launcher.run_backward(g, d_out), expected):
            error = np.abs(got - want) / (scale * {"f16": 2.0**-10, "bf16": 2.0**-7}[dtype] + 1e-6)
            assert np.all(error < TOLERANCE), f"d_{name}, {what}, {g.q.shape} x {g.k.shape}: {error.max()} ulp"
