"""copy, full, iota, astype, where, take, take_along_axis, scatter, random_bits."""

from __future__ import annotations

import itertools

import harness
import numpy as np
import pytest
from abi import INDEX
from harness import BOOL, COMPLEX, FLOATS, INTEGERS, KernelError, Scalar, bfloat16, float16

REAL = (BOOL, *INTEGERS, *FLOATS)
BY_SIZE = (np.dtype("u1"), bfloat16, np.dtype("f4"), np.dtype("i8"), np.dtype("c16"))
i64 = np.dtype("i8")


def filled(shape, dtype, seed=0):
    """Distinct values, as many as the type has."""
    n = int(np.prod(shape, dtype=np.int64))
    values = (np.arange(n) * 7 + seed) % 251
    return values.astype(dtype).reshape(shape)


# ---- copy
LAYOUTS = {
    "dense": lambda x: x,
    "transposed": lambda x: x.transpose(),
    "swapped": lambda x: x.swapaxes(-1, -2),
    "every second": lambda x: x[..., ::2],
    "rows": lambda x: x[::3],
    "broadcast": lambda x: np.broadcast_to(x[..., :1], x.shape),
    "broadcast rows": lambda x: np.broadcast_to(x[:1], x.shape),
    "inner part": lambda x: x[1:, ..., 1:],
}


@pytest.mark.parametrize("dtype", BY_SIZE, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_copy_reads_any_strides(cpu, dtype, layout):
    for shape in [(1, 1), (3, 5), (7, 4), (33, 70), (2, 3, 37), (67, 2, 65), (130, 129), (300, 301)]:
        x = LAYOUTS[layout](filled(shape, dtype))
        if x.size:
            np.testing.assert_array_equal(cpu.run("copy", x, out=dtype), x)


@pytest.mark.parametrize("dtype", BY_SIZE, ids=str)
def test_copy_writes_any_strides_and_nothing_else(cpu, dtype):
    for shape in [(8, 6), (40, 36), (5, 70, 33)]:
        x = filled(shape, dtype, 1)
        for cut in ((slice(1, -1),) * len(shape), (slice(None, None, 2),) * len(shape)):
            for axes in itertools.permutations(range(len(shape))):
                base = np.full([shape[i] for i in np.argsort(axes)], 255, np.dtype("u1")).astype(dtype)
                before = base.copy()
                target = base.transpose(axes)
                assert target.shape == x.shape
                cpu.run("copy", x[cut], out=dtype, shape=x[cut].shape, into=target[cut])
                before.transpose(axes)[cut] = x[cut]
                np.testing.assert_array_equal(base, before)


@pytest.mark.parametrize("dtype", BY_SIZE, ids=str)
@pytest.mark.parametrize("offset", (0, 1), ids=("aligned", "unaligned"))
def test_copy_of_large_transpositions(cpu, dtype, offset):
    """In planes, to rows whose distance is a multiple of 1024 bytes or not, up to more than the caches hold."""
    line = 64 // dtype.itemsize
    for planes, rows, columns, pitch in [
        (1, 600, 2048, 2048),
        (3, 333, 2111, 4096),
        (1, 1000, 9216, 9216),
        (2, 1061, 4096, 4160),
        (1, 500, 2111, 2111),
    ]:
        x = filled((planes, columns, rows), dtype).swapaxes(1, 2)
        memory = np.full(planes * rows * pitch + 3 * line, 1, dtype)
        before = memory.copy()
        start = -(memory.ctypes.data // dtype.itemsize) % line + offset
        into, wanted = (
            m[start : start + planes * rows * pitch].reshape(planes, rows, pitch)[..., :columns]
            for m in (memory, before)
        )
        cpu.run("copy", x, out=dtype, shape=x.shape, into=into)
        wanted[...] = x
        np.testing.assert_array_equal(memory, before)


def test_copy_of_scalars_and_many_axes(cpu):
    assert cpu.run("copy", np.array(3.5, "f4"), out=np.dtype("f4")) == 3.5
    assert cpu.run("copy", Scalar(np.array(3.5, "f4")), out=np.dtype("f4"), shape=(1,)) == 3.5
    x = filled((2,) * 16, np.dtype("i4")).transpose(*range(0, 16, 2), *range(1, 16, 2))
    np.testing.assert_array_equal(cpu.run("copy", x, out=np.dtype("i4")), x)


# ---- full, iota
@pytest.mark.parametrize("dtype", (*REAL, *COMPLEX), ids=str)
def test_full(cpu, dtype):
    for value in (0, 1, 3, 1.0, True, *([] if dtype.kind in "ub" else [-2, -2.75])):
        for shape in ((), (1,), (67,), (3, 100_003)):
            got = cpu.run("full", out=dtype, shape=shape, attrs=[shape, value, dtype])
            want = np.full(shape, np.array(value).astype(dtype), dtype)
            np.testing.assert_array_equal(got, want)


def test_full_of_big_and_special_values(cpu):
    for value, dtype in [(2**64 - 1, "u8"), (-(2**63), "i8"), (2**63 - 1, "i8"), (-1, "u1"), (300, "u1")]:
        want = np.array([value & (2**64 - 1)], "u8").view(np.uint8)[: np.dtype(dtype).itemsize]
        got = cpu.run("full", out=np.dtype(dtype), shape=(1,), attrs=[(1,), value, None])
        np.testing.assert_array_equal(got.view(np.uint8), want)
    for value in (np.inf, -np.inf, np.nan, -0.0, 1e-310, 65520.0, 65519.996):
        for dtype in FLOATS:
            got = cpu.run("full", out=dtype, shape=(1,), attrs=[(1,), float(value), None])
            want = exact_half(np.array([value]), dtype) if dtype.itemsize == 2 else np.array([value]).astype(dtype)
            np.testing.assert_array_equal(got.astype("f8"), want.astype("f8"))
            assert np.signbit(got.astype("f8")) == np.signbit(value)
    got = cpu.run("full", out=np.dtype("c8"), shape=(2,), attrs=[(2,), 1.5 - 2j, None])
    np.testing.assert_array_equal(got, np.full(2, 1.5 - 2j, "c8"))


@pytest.mark.parametrize("dtype", (*INTEGERS, *FLOATS), ids=str)
def test_iota(cpu, dtype):
    for n in (1, 2, 17, 300, 70_001):
        want = np.arange(n, dtype=i64)
        with np.errstate(over="ignore"):
            want = (
                exact_half(want.astype("f8"), dtype)
                if dtype.itemsize == 2 and dtype in FLOATS
                else want.astype(dtype)
            )
        np.testing.assert_array_equal(cpu.run("iota", out=dtype, shape=(n,), attrs=[n, dtype]), want)


# ---- astype
def exact_half(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """float64 (or exact integers below 2^53 in it) to fp16 or bf16 with one rounding; ml_dtypes goes through
    float32."""
    if dtype == float16:
        with np.errstate(over="ignore"):
            return x.astype(float16)
    bits = x.astype("f8").view("u8")
    sticky = (bits & np.uint64((1 << 29) - 1)) != 0
    odd = ((bits >> np.uint64(29)) | sticky.astype("u8")) << np.uint64(29)  # float64 with 23 bits, rounded to odd
    with np.errstate(over="ignore"):
        return np.where(np.isfinite(x), odd.view("f8"), x).astype("f4").astype(bfloat16)


def samples(dtype: np.dtype) -> np.ndarray:
    rng = np.random.default_rng(5)
    if dtype == BOOL:
        return rng.integers(0, 2, 301).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        edge = [info.min, info.max, 0, 1, info.max - 1, info.max // 2 + 1, info.min // 2]
        power = [s * 2**k + d for k in range(1, 64) for s in (1, -1) for d in (-1, 0, 1)]
        values = [v for v in edge + power if info.min <= v <= info.max]
        return np.concatenate(
            [np.array(values, dtype), rng.integers(info.min, info.max, 500, dtype, endpoint=True)]
        )
    x = np.concatenate(
        [rng.normal(size=400) * 100, [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 0.99, 1e-30, 255.5]]
    )
    x = np.concatenate([x, 2.0 ** rng.uniform(-30, 70, 200) * rng.choice([1, -1], 200)])
    limits = 2.0 ** np.array([7, 8, 15, 16, 31, 32, 63, 64])  # of integers, and the floats next to them
    limits = np.concatenate([limits, limits * (1 - 2.0**-24), limits * (1 + 2.0**-23)])
    x = np.concatenate([x, limits, -limits])
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def cast(x: np.ndarray, to: np.dtype) -> np.ndarray:
    if to == BOOL:
        return x != 0
    if to in INTEGERS and x.dtype in FLOATS:  # saturates
        info, wide = np.iinfo(to), x.astype("f8")
        out = np.zeros(x.shape, to)
        inside = (wide > float(info.min) - 1) & (wide < float(info.max // 2 + 1) * 2)
        out[inside] = [int(v) for v in np.trunc(wide[inside])]
        out[wide >= float(info.max // 2 + 1) * 2] = info.max
        out[wide <= float(info.min) - (1 if to.itemsize < 8 else 0)] = info.min
        return out
    if to in (float16, bfloat16) and x.dtype in (np.dtype("i8"), np.dtype("u8")):
        with np.errstate(over="ignore"):
            return np.array([round_integer(int(v), 11 if to == float16 else 8) for v in x]).astype(to)
    if to in (float16, bfloat16):
        return exact_half(x.astype("f8"), to)
    with np.errstate(over="ignore"):
        return x.astype(to)


def round_integer(v: int, bits: int) -> float:
    """Round v to this many significant bits, ties to even."""
    drop = max(0, abs(v).bit_length() - bits)
    q, r = abs(v) >> drop, abs(v) & ((1 << drop) - 1)
    half = 1 << drop >> 1
    q += drop > 0 and (r > half or (r == half and q & 1))
    return float((q << drop) * (1 if v >= 0 else -1))


@pytest.mark.parametrize("source", REAL, ids=str)
def test_astype(cpu, source):
    x = samples(source)
    for to in REAL:
        got, want = cpu.run("astype", x, out=to, attrs=[to]), cast(x, to)
        same = (got == want) | ((got != got) & (want != want))
        assert same.all(), (to, x[~same][:5], got[~same][:5], want[~same][:5])
        if to in FLOATS and source in FLOATS:
            np.testing.assert_array_equal(np.signbit(got.astype("f8")), np.signbit(x.astype("f8")))


def test_astype_strided_sizes_and_scalars(cpu):
    for n in (1, 2, 31, 32, 33, 511, 512, 513, 70_003):
        x = np.arange(n * 3, dtype="i4").reshape(n, 3)[:, 1]
        np.testing.assert_array_equal(cpu.run("astype", x, out=float16, attrs=[float16]), cast(x, float16))
        np.testing.assert_array_equal(cpu.run("astype", x, out=np.dtype("f8"), attrs=[None]), x.astype("f8"))
    assert cpu.run("astype", Scalar(np.float32(2.9)), out=np.dtype("i4"), shape=(1,)) == 2


@pytest.mark.parametrize("half", (float16, bfloat16), ids=str)
def test_every_half_widens_and_narrows_back(cpu, half):
    x = np.arange(65536, dtype="u2").view(half)
    wide = cpu.run("astype", x, out=np.dtype("f4"))
    np.testing.assert_array_equal(wide, x.astype("f4"))
    back = cpu.run("astype", wide, out=half)
    nan = np.isnan(wide)
    np.testing.assert_array_equal(back.view("u2")[~nan], x.view("u2")[~nan])
    assert np.isnan(back.astype("f4")[nan]).all()


@pytest.mark.parametrize("half", (float16, bfloat16), ids=str)
def test_16_bit_floats_round_to_nearest_even(cpu, half):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2**32, 300_000, dtype="u4").view("f4")
    h = np.arange(65536, dtype="u2").view(half).astype("f4")
    h = h[np.isfinite(h)]
    h.sort()
    ties = ((h[1:].astype("f8") + h[:-1]) / 2).astype("f4")
    x = np.concatenate([x, ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))])
    got = cpu.run("astype", x, out=half)
    with np.errstate(over="ignore", invalid="ignore"):
        want = x.astype(half)
    nan = np.isnan(x)
    np.testing.assert_array_equal(got.view("u2")[~nan], want.view("u2")[~nan])
    assert np.isnan(got.astype("f4")[nan]).all()


# ---- where
@pytest.mark.parametrize("dtype", BY_SIZE, ids=str)
def test_where(cpu, dtype):
    rng = np.random.default_rng(2)
    for shape in [(1,), (3, 5), (64, 70), (5, 7, 66), (70_001,)]:
        c = rng.integers(0, 2, shape).astype(bool)
        a, b = filled(shape, dtype, 3), filled(shape, dtype, 100)
        row, one = a[..., :1], Scalar(b.reshape(-1)[0])
        np.testing.assert_array_equal(cpu.run("where", c, a, b, out=dtype), np.where(c, a, b))
        cases = [
            (np.broadcast_to(c[..., :1], shape), a, b),
            (c, np.broadcast_to(row, shape), b),
            (c, a, np.broadcast_to(row, shape)),
            (np.broadcast_to(c[:1], shape), np.broadcast_to(row, shape), np.broadcast_to(b[:1], shape)),
        ]
        for ins in cases:
            np.testing.assert_array_equal(cpu.run("where", *ins, out=dtype, shape=shape), np.where(*ins))
        np.testing.assert_array_equal(
            cpu.run("where", c, a, one, out=dtype, shape=shape), np.where(c, a, one.value)
        )
        np.testing.assert_array_equal(
            cpu.run("where", c, one, b, out=dtype, shape=shape), np.where(c, one.value, b)
        )
        np.testing.assert_array_equal(
            cpu.run("where", c, one, Scalar(a.reshape(-1)[-1]), out=dtype, shape=shape),
            np.where(c, one.value, a.reshape(-1)[-1]),
        )
        for flag in (True, False):
            got = cpu.run("where", Scalar(np.array(flag)), a, b, out=dtype, shape=shape)
            np.testing.assert_array_equal(got, a if flag else b)


# ---- take, take_along_axis, scatter
@pytest.mark.parametrize("dtype", BY_SIZE, ids=str)
def test_take(cpu, dtype):
    rng = np.random.default_rng(3)
    for shape, axis in [((7,), 0), ((5, 6), 0), ((5, 6), 1), ((3, 40, 5), 1), ((2, 3, 70), 2), ((1000, 33), 0)]:
        x = filled(shape, dtype)
        for index_shape in [(), (1,), (4, 3), (300,)]:
            k = rng.integers(-shape[axis], shape[axis], index_shape)
            got = cpu.run("take", x, np.asarray(k), out=dtype, shape=np.take(x, k, axis).shape, attrs=[axis])
            np.testing.assert_array_equal(got, np.take(x, k, axis))
    big = np.arange(200_000, dtype="i8") % 5
    x = filled((5,), dtype)
    np.testing.assert_array_equal(cpu.run("take", x, big, out=dtype, shape=big.shape, attrs=[0]), x[big])


@pytest.mark.parametrize("dtype", BY_SIZE, ids=str)
def test_take_along_axis(cpu, dtype):
    rng = np.random.default_rng(4)
    for shape, index_shape, axis in [
        ((7,), (9,), 0),
        ((5, 6), (2, 6), 0),
        ((5, 6), (5, 11), 1),
        ((5, 6), (1, 3), 1),
        ((1, 6), (4, 6), 1),
        ((3, 8, 5), (3, 2, 5), 1),
        ((40, 70), (40, 900), 1),
    ]:
        x = filled(shape, dtype)
        k = rng.integers(-shape[axis], shape[axis], index_shape)
        others = np.broadcast_shapes(
            tuple(1 if i == axis else n for i, n in enumerate(shape)),
            tuple(1 if i == axis else n for i, n in enumerate(index_shape)),
        )
        out = tuple(index_shape[axis] if i == axis else n for i, n in enumerate(others))
        full_x = np.broadcast_to(x, tuple(shape[axis] if i == axis else n for i, n in enumerate(others)))
        want = np.take_along_axis(full_x, np.broadcast_to(k, out), axis)
        np.testing.assert_array_equal(cpu.run("take_along_axis", x, k, out=dtype, shape=out, attrs=[axis]), want)
        got = cpu.run("take_along_axis", full_x, np.broadcast_to(k, out), out=dtype, shape=out, attrs=[axis])
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", BY_SIZE, ids=str)
@pytest.mark.parametrize("negative", ((), (0,), (601,), (600, 602, 1998), range(2001)), ids=str)
def test_take_along_axis_in_rows_with_few_negative_indices(cpu, dtype, negative):
    x = filled((3, 2500), dtype)
    k = np.random.default_rng(5).integers(0, 2500, (3, 2001))
    k[1, list(negative)] -= 2500
    got = cpu.run("take_along_axis", x, k, out=dtype, shape=k.shape, attrs=[1])
    np.testing.assert_array_equal(got, np.take_along_axis(x, k, 1))
    for place, bad in (*((600 + i, 2500) for i in range(4)), (1999, -2501), (2000, 2500)):
        wrong = k.copy()
        wrong[1, place] = bad
        with pytest.raises(KernelError, match=rf"index {bad} is out of range: axis 1 has 2500 elements"):
            cpu.run("take_along_axis", x, wrong, out=dtype, shape=k.shape, attrs=[1])


@pytest.mark.parametrize("dtype", BY_SIZE, ids=str)
def test_scatter(cpu, dtype):
    rng = np.random.default_rng(6)
    for shape, axis in [((7,), 0), ((5, 6), 0), ((5, 6), 1), ((3, 40, 5), 1), ((4, 3, 70), 2), ((60, 2, 333), 0)]:
        x = filled(shape, dtype)
        n = max(1, shape[axis] // 2)
        k = rng.permutation(shape[axis])[:n]
        k = np.where(rng.integers(0, 2, n) > 0, k, k - shape[axis])
        full = tuple(n if i == axis else s for i, s in enumerate(shape))
        for cut in (full, tuple(1 if i == axis else s for i, s in enumerate(full)), full[-1:], ()):
            u = np.asarray(filled(cut, dtype, 77))
            want = x.copy()
            want[(slice(None),) * axis + (k,)] = np.broadcast_to(u, full)
            for inplace in (False, True):
                got = cpu.run("scatter", x, k, u, out=dtype, shape=shape, attrs=[axis], inplace=inplace)
                np.testing.assert_array_equal(got, want)
    x = np.zeros(3, "f4")
    got = cpu.run("scatter", x, np.array([1, 1]), np.array([5, 6], "f4"), out=np.dtype("f4"), shape=(3,), attrs=[0])
    assert got[1] in (5, 6)
    empty = cpu.run("scatter", x, np.zeros(0, i64), np.zeros(0, "f4"), out=np.dtype("f4"), shape=(3,), attrs=[0])
    np.testing.assert_array_equal(empty, x)


@pytest.mark.parametrize("bad", [7, -8, 2**62, -(2**63)])
def test_bad_indices_name_themselves(cpu, bad):
    f4 = np.dtype("f4")
    x, u = np.zeros((2, 7), "f4"), np.zeros((2, 3), "f4")
    k = np.array([0, bad, 1])
    for op, ins, shape in [
        ("take", (x, k), (2, 3)),
        ("scatter", (x, k, u), (2, 7)),
        ("take_along_axis", (x, np.broadcast_to(k, (2, 3))), (2, 3)),
    ]:
        with pytest.raises(KernelError, match=rf"\[{op}\] index {bad} is out of range: axis 1 has 7 elements") as e:
            cpu.run(op, *ins, out=f4, shape=shape, attrs=[1])
        assert e.value.code == INDEX


# ---- random_bits
def philox(seed: int, offset: int, n: int) -> np.ndarray:
    """Straight from the definition, in Python integers."""
    out, mask = [], 2**32 - 1
    for block in range(-(-n // 4)):
        counter = (offset + block) & (2**64 - 1)
        c, key = [counter & mask, counter >> 32, 0, 0], [seed & mask, seed >> 32]
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(q >> 32) ^ c[1] ^ key[0], q & mask, (p >> 32) ^ c[3] ^ key[1], p & mask]
            key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
        out += c
    return np.array(out[:n], "u4")


def test_random_bits(cpu):
    u4 = np.dtype("u4")
    for seed, offset in [(0, 0), (1, 2), (2**63 + 12345, 2**32 - 3), (7, 2**64 - 2)]:
        key = np.array([seed & 0xFFFFFFFF, seed >> 32, offset & 0xFFFFFFFF, offset >> 32], "u4")
        want = philox(seed, offset, 1003)
        for shape in [(1,), (3,), (4, 16), (17, 59)]:
            got = cpu.run("random_bits", key, out=u4, shape=shape, attrs=[shape])
            np.testing.assert_array_equal(got.reshape(-1), want[: got.size])
    # the known answer of Random123 for an all-zero counter and key
    zero = cpu.run("random_bits", np.zeros(4, "u4"), out=u4, shape=(4,), attrs=[(4,)])
    np.testing.assert_array_equal(zero, np.array([0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], "u4"))
    long = cpu.run("random_bits", np.zeros(4, "u4"), out=u4, shape=(50_001,), attrs=[(50_001,)])
    tail = cpu.run("random_bits", np.array([0, 0, 12_500, 0], "u4"), out=u4, shape=(1,), attrs=[(1,)])
    assert long[-1] == tail[0]


def test_rows_cover_every_type(cpu):
    assert all(cpu.supports("astype", [a], [b]) for a in REAL for b in REAL)
    assert all(cpu.supports("copy", [d], [d]) and cpu.supports("full", [], [d]) for d in (*REAL, *COMPLEX))
    assert all(cpu.supports("iota", [], [d]) for d in (*INTEGERS, *FLOATS))
    assert not cpu.supports("iota", [], [harness.BOOL])
