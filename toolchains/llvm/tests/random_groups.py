"""Groups of nodes in compiled functions: prints a digest of each one's results, and what was made of them.

For each dtype one that converts, rounds and shifts edge cases, and of floats one with a result that others need in
full; then COUNT random ones.

python random_groups.py SEED COUNT
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import dovetail as dt
import numpy as np

ARITHMETIC = ("add", "subtract", "multiply", "maximum", "minimum")
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
# The device's own functions, of floats, are called; those of float64 and the reductions end a run.
FUNCTIONS = ("exp", "tanh", "sin")
OTHERS = "exp2 expm1 log log2 log10 log1p sinh cosh asinh acosh atanh cos tan asin acos atan".split()
UNARY = {
    "f": ("negative", "abs", "square", "sqrt", "reciprocal", "floor", "ceil", "trunc", "round", "sign", *FUNCTIONS),
    "i": ("negative", "abs", "square", "floor", "sign"),
}
PREDICATES = ("isnan", "isinf", "isfinite")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
SHIFTS = BITWISE[3:]
REDUCTIONS = ("sum", "max")
DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "float16",
    "bfloat16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
)
REAL = tuple(dict.fromkeys(DTYPES))
SHAPES = (
    (1, 1),
    (7, 1024),
    (3, 1029),
    (2, 2500),
    (300, 1024),
    (40, 63),
    (300, 7),
    (5, 1),
    (0, 6),
    (6, 0),
    (2, 3, 4, 50),
)


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> dt.Array:
    """Numbers with NaN, infinities, both zeros and large ones among the floats, any among the integers."""
    if "int" in dtype:
        info = np.iinfo(dtype)
        return dt.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True), device="cpu")
    x = rng.normal(0, 2, shape)
    special = rng.random(shape)
    for i, value in enumerate((np.nan, np.inf, -np.inf, 0.0, -0.0, 300.7, -3e9, 2e19)):
        x = np.where((special > i * 0.01) & (special < (i + 1) * 0.01), value, x)
    wide = dt.asarray(x.astype("float64" if dtype == "float64" else "float32"), device="cpu")
    return dt.astype(wide, getattr(dt, dtype))


def group(rng: np.random.Generator, dtype: str, reduces: bool) -> Any:
    """A function of three arrays: of the whole shape, of its last axis, of one element a row."""
    kind = "i" if "int" in dtype else "f"
    plan: list[tuple[str, str, int, int]] = []
    for _ in range(rng.integers(3, 12)):
        what = rng.choice(["arithmetic", "arithmetic", "unary", "where", "cast", "clip", "divide", "reduce"])
        names = {
            "arithmetic": ARITHMETIC + (BITWISE if kind == "i" else ("atan2",)),
            "unary": UNARY[kind],
            "where": COMPARISONS,
        }
        name = str(rng.choice(names.get(what, REDUCTIONS)))
        plan.append((what, name, int(rng.integers(1 << 30)), int(rng.integers(1 << 30))))

    def run(x: dt.Array, w: dt.Array, r: dt.Array) -> tuple[dt.Array, ...]:
        values = [x, w, r, dt.add(x, w)]
        for what, name, i, j in plan:
            a, b = values[-1 - i % min(len(values), 3)], values[j % len(values)]
            if what == "unary" or (what == "divide" and kind == "i"):
                values.append(getattr(dt, name)(a) if what == "unary" else dt.bitwise_invert(a))
            elif what == "divide":
                values.append(dt.divide(a, b))
            elif what == "where":
                test = dt.logical_xor(getattr(dt, name)(a, b), dt.less(b, x))
                if kind == "f":
                    test = dt.logical_or(test, getattr(dt, PREDICATES[j % 3])(b))
                values.append(dt.where(dt.logical_not(test), a, b))
            elif what == "cast":
                between = REAL[j % len(REAL)]
                values.append(dt.astype(dt.astype(a, getattr(dt, between)), getattr(dt, dtype)))
            elif what == "clip":
                bounds = ((None, b), (b, None), (b, dt.add(b, x)), (None, 1), (0, 100))[j % 5]
                values.append(dt.clip(a, *bounds))
            elif name in SHIFTS:
                values.append(getattr(dt, name)(a, dt.bitwise_and(b, 0x17) if j % 4 else b))
            elif what == "reduce" and reduces and kind == "f" and a.shape == x.shape:
                values.append(dt.subtract(a, getattr(dt, name)(a, axis=-1, keepdims=True)))
            else:
                values.append(getattr(dt, name if what == "arithmetic" else "add")(a, b))
        last = dt.add(values[-1], x)
        return (
            last,
            dt.less(last, values[-2]),
            dt.maximum(values[4], x),
            dt.multiply(dt.add(dt.multiply(x, w), r), x),
            *([] if reduces else [dt.sum(last, axis=tuple(range(last.ndim - 1)))]),
        )

    return run


def digest(results: tuple[dt.Array, ...]) -> str:
    """Of all bits but those of NaN."""
    state = hashlib.sha256()
    for y in results:
        half = y.dtype in (dt.float16, dt.bfloat16)
        bits = np.ascontiguousarray(np.asarray(dt.astype(y, dt.float32) if half else y))
        state.update(
            np.where(np.isnan(bits), bits.dtype.type(np.nan), bits).tobytes() if bits.dtype.kind == "f" else bits
        )
    return state.hexdigest()[:16]


def edges(dtype: str) -> dt.Array:
    """Powers of two, numbers half-way between two of a shorter float, neighbours; of floats special ones."""
    whole = [(m << k) + d for m in (1, 257, 259, 2049, 2051) for k in range(64) for d in (-1, 0, 1)]
    whole = sorted({sign * x for x in whole for sign in (1, -1)})
    if "int" in dtype:
        info = np.iinfo(dtype)
        return dt.asarray(np.array([x for x in whole if info.min <= x <= info.max], dtype), device="cpu")
    wide = np.array(whole, "float64" if dtype == "float64" else "float32")
    wide = np.concatenate([wide, wide * 2.0**-40, wide + 0.5, [np.nan, np.inf, -np.inf, 0.0, -0.0]]).astype(
        wide.dtype
    )
    nan = np.array([0x7F800001], np.uint32).view(np.float32)  # infinity, if its low bits are cut off
    low = nan if dtype == "float32" else nan[:0].astype(wide.dtype)
    wide = np.concatenate([wide, np.nextafter(wide, wide.dtype.type(0)), np.nextafter(wide, wide * 2), low])
    return dt.astype(dt.asarray(wide, device="cpu"), getattr(dt, dtype))


def conversions(x: dt.Array, count: dt.Array) -> tuple[dt.Array, ...]:
    y = dt.maximum(x, dt.negative(x))
    results = [dt.astype(z, getattr(dt, to)) for to in (*REAL, "bool") for z in (x, y)]
    if count.dtype == x.dtype:
        results += [dt.bitwise_left_shift(x, count), dt.bitwise_right_shift(x, count)]
    return (*results, dt.sign(x))


def kept(x: dt.Array) -> tuple[dt.Array, ...]:
    """A result that another step needs before it is rounded to its dtype."""
    small = dt.minimum(x, 1)
    y = dt.multiply(small, x)
    return y, dt.subtract(dt.exp(small), y)


def functions(x: dt.Array) -> tuple[dt.Array, ...]:
    """What the device computes with functions of its own, each between two steps that have text."""
    unary = [getattr(dt, name) for name in (*FUNCTIONS, *OTHERS)]
    nn = [dt.nn.gelu, partial(dt.nn.gelu, approximate="tanh"), dt.erf, dt.nn.silu, dt.nn.sigmoid]
    z = dt.multiply(x, 0.75)
    return (*[dt.subtract(f(z), x) for f in unary + nn], dt.subtract(dt.pow(dt.abs(z), x), x))


def cases(seed: int, number: int) -> Iterator[tuple[list[object], Any, tuple[dt.Array, ...]]]:
    """What a group is, its function and arguments."""
    for dtype in REAL:
        x = edges(dtype)
        counts = np.arange(x.shape[0]) % 67 - 1
        count = dt.asarray(counts.astype(dtype if "int" in dtype else "int8"), device="cpu")
        yield ["edges", dtype], conversions, (x, count)
        if "float" in dtype:
            yield ["kept", dtype], kept, (x,)
            yield ["functions", dtype], functions, (x,)
    for case in range(seed, seed + number):
        rng = np.random.default_rng(case)
        dtype, shape = DTYPES[case % len(DTYPES)], SHAPES[rng.integers(len(SHAPES))]
        function = group(rng, dtype, 0 not in shape)
        strided = bool(rng.random() < 0.3)
        x = draw(rng, (*shape[:-1], shape[-1] * 2), dtype)[..., ::2] if strided else draw(rng, shape, dtype)
        arrays = x, draw(rng, shape[-1:], dtype), draw(rng, (*shape[:-1], 1), dtype)
        yield [case, dtype, shape, strided], function, arrays


def main(seed: int, count: int) -> None:
    for label, function, arrays in cases(seed, count):
        for numerics in ("wide", "eager"):
            compiled = partial(dt.compile(function, numerics=numerics), *arrays)
            compiled()  # is recorded
            print("case", *label, numerics, digest(compiled()), digest(function(*arrays)))
    print(dt.compile_report())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
