"""Dtypes that are only stored: floats of 8 bits without arithmetic, and elements that share bytes."""

import math
import pickle

import dovetail as dt
import ml_dtypes
import numpy as np
import pytest

PACKED = ["int4", "int2", "uint4", "uint2", "float4_e2m1fn"]
FLOATS = ["float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"]
INTEGERS = {"int4": (-8, 7), "int2": (-2, 1), "uint4": (0, 15), "uint2": (0, 3)}
BITS = {"int4": 4, "int2": 2, "uint4": 4, "uint2": 2, "float4_e2m1fn": 4}


@pytest.fixture(params=["cpu:0", "sim:0"])
def device(request):
    return dt.device(request.param)


def foreign(dtype: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, dtype))


def every(dtype: str) -> np.ndarray:
    """All numbers of a dtype, and some again: the last byte of a packed array is not full."""
    if dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        return np.array([*range(low, high + 1), high, low, low][: high - low + 2]).astype(foreign(dtype))
    codes = np.arange(16 if dtype == "float4_e2m1fn" else 256, dtype=np.uint8)
    return np.append(codes, codes[3]).view(foreign(dtype))


def bytes_of(values: np.ndarray, dtype: str) -> bytes:
    """What an array of them holds: the first element in the lowest bits."""
    bits = BITS.get(dtype, 8)
    codes = values.view(np.uint8) & (2**bits - 1)
    padded = np.append(codes, np.zeros(-len(codes) % (8 // bits), np.uint8)).reshape(-1, 8 // bits)
    return (padded << (bits * np.arange(8 // bits, dtype=np.uint8))).sum(axis=1).astype(np.uint8).tobytes()


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """The nearest numbers by a search among all of them, in float64."""
    numbers = every(dtype).astype(np.float64)
    numbers = np.unique(np.abs(numbers[np.isfinite(numbers)]))
    largest = numbers[-1]
    powers = dtype == "float8_e8m0fnu"
    numbers = np.append(numbers, 2 * largest if powers else 2 * largest - numbers[-2])
    x = np.abs(values)
    found = []
    for v in x:
        near = np.abs(numbers - min(v, numbers[-1]))
        ties = np.flatnonzero(near == near.min()) if np.isfinite(v) else [len(numbers) - 1]
        found.append(numbers[max(ties) if powers else min(ties, key=lambda i: (i % 2, i))])
    found = np.array(found)
    if dtype == "float4_e2m1fn":
        return np.where(np.isnan(values), -0.0, np.copysign(np.minimum(found, largest), values))
    found = np.where((found > largest) | np.isnan(values), math.nan, found)
    return (
        np.where(values > 0, found, math.nan) if powers else np.where(found == 0, 0.0, np.copysign(found, values))
    )


def same(got, want):
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize("dtype", [*PACKED, *FLOATS[:-1]])
def test_every_number(dtype, device):
    values = every(dtype)
    x = dt.asarray(values, device=device)
    assert x.dtype == dtype and x.device == device and x.shape == values.shape
    assert x.nbytes == len(bytes_of(values, dtype)) and x.dtype.bits == BITS.get(dtype, 8)
    assert dt.asarray(x.tolist(), device=device).dtype == ("int64" if dtype in INTEGERS else "float32")
    got = x.numpy()
    assert got.dtype == foreign(dtype)
    wide = values.astype(np.float64)
    same(got.astype(np.float64), wide)
    for other in ("float32", "float16", "bfloat16"):
        if dtype != "float8_e8m0fnu" or other == "float32":
            same(x.astype(other).numpy().astype(np.float64), wide)
    finite = np.nan_to_num(wide, nan=1.0)
    np.testing.assert_array_equal(x.astype("bool").numpy(), wide != 0)
    if np.abs(finite).max() < 2**31:
        got = x.astype("int32").numpy()
        np.testing.assert_array_equal(got[~np.isnan(wide)], np.trunc(finite).astype(np.int32)[~np.isnan(wide)])


@pytest.mark.parametrize("source", ["float64", "float32", "float16", "bfloat16", "list"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_rounded_once(dtype, source, device):
    rng = np.random.default_rng(0)
    numbers = every(dtype).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    ties = (numbers[1:] + numbers[:-1]) / 2
    near = [t * (1 + s * 2.0**-e) for t in ties for s in (-1, 1) for e in (9, 22, 30, 50)]
    draws = rng.standard_normal(1000) * 10.0 ** rng.integers(-8, 8, 1000)
    ends = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e300, -1e300, 247.9, 248, 249, 61439, 61440, 61441, 5, -5.5]
    values = np.concatenate([numbers, ties, near, draws, ends])
    if source == "list":
        wanted = rounded(values, dtype)
        fits = ~np.isnan(wanted) | np.isnan(values)  # what has become NaN is refused
        got = dt.asarray(values[fits].tolist(), dtype=dtype, device=device)
        same(got.numpy().astype(np.float64), wanted[fits])
        return
    with np.errstate(all="ignore"):
        values = values.astype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    got = dt.asarray(values, device=device).astype(dtype)
    same(got.numpy().astype(np.float64), rounded(values.astype(np.float64), dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 3, 4), (0, 3), (257,)])
def test_integers_wrap(dtype, shape, device):
    rng = np.random.default_rng(1)
    low, high = INTEGERS[dtype]
    for source in ("int8", "uint8", "int32", "uint16", "int64"):
        x = rng.integers(np.iinfo(source).min, np.iinfo(source).max, shape, source, endpoint=True)
        got = dt.asarray(x, device=device).astype(dtype)
        assert got.shape == shape and got.dtype == dtype
        wanted = (x.astype(np.int64) - low) % (high - low + 1) + low
        np.testing.assert_array_equal(got.astype("int32").numpy(), wanted)
    floats = rng.uniform(low, high, shape).astype(np.float32)
    got = dt.asarray(floats, device=device).astype(dtype).astype("float32")
    np.testing.assert_array_equal(got.numpy(), np.trunc(floats) + 0.0)


def test_lists_and_numbers(device):
    x = dt.asarray([[1, -8, 7], [0, 2, -1]], dtype="int4", device=device)
    assert x.tolist() == [[1, -8, 7], [0, 2, -1]] and x.nbytes == 3
    assert "int4" in repr(x) and "-8" in repr(x)
    assert dt.full((3,), 5, dtype="uint4", device=device).tolist() == [5, 5, 5]
    assert dt.zeros((2, 3), dtype="int2", device=device).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert dt.asarray([0.5, -6.0, 100.0], dtype="float4_e2m1fn", device=device).tolist() == [0.5, -6.0, 6.0]
    assert dt.iinfo("int4")[:3] == (4, 7, -8) and dt.iinfo(dt.uint2)[:3] == (2, 3, 0)
    for name in FLOATS:
        info, own = ml_dtypes.finfo(getattr(ml_dtypes, name)), dt.finfo(name)
        assert (own.bits, own.max, own.min) == (info.bits, float(info.max), float(info.min))
        assert own.smallest_normal == float(info.smallest_normal) and own.eps == float(info.eps)
    with pytest.raises(OverflowError, match=r"8 does not fit in int4: expected -8 to 7"):
        dt.asarray([8], dtype="int4", device=device)
    with pytest.raises(OverflowError, match=r"300.* does not fit in float8_e4m3fnuz.*-240 to 240"):
        dt.asarray([300.0], dtype="float8_e4m3fnuz", device=device)
    with pytest.raises(OverflowError, match=r"float8_e8m0fnu.*2\*\*-127"):
        dt.asarray([0.0], dtype="float8_e8m0fnu", device=device)


def test_no_op_computes_with_packed_elements(device):
    x = dt.asarray([1, 2, 3], dtype="int4", device=device)
    for call in (
        lambda: x + x,
        lambda: x[1:],
        lambda: x[0],
        lambda: dt.flip(x),
        lambda: dt.reshape(x, (3, 1)),
        lambda: x == x,
    ):
        with pytest.raises(TypeError, match=r'int4 is for storage.*expected x.astype\("int8"\) first'):
            call()
    assert dt.sum(x).item() == 6  # which converts small integers to int64
    with pytest.raises(TypeError, match=r"int4 and int32 .*do not promote"):
        _ = x + dt.asarray([1, 2, 3], dtype="int32", device=device)
    with pytest.raises(TypeError, match="float8_e8m0fnu and float32"):
        dt.result_type(dt.float8_e8m0fnu, dt.float32)
    with pytest.raises(TypeError, match="int4 and a float"):
        dt.result_type("int4", 1.5)
    with pytest.raises(TypeError, match=r"'i4' is no dtype"):  # NumPy's int32
        x.astype("i4")
    for body, given in (
        (lambda c, row: (c, row.astype("int8")), x),
        (lambda c, n: (c, x), dt.ones(3, device=device)),
    ):
        step = dt.compile(lambda c, xs, body=body: dt.scan(body, c, xs))
        with pytest.raises(ValueError, match=r"scan.*int4 is for storage"):
            step(dt.asarray(0.0, device=device), given)


def test_no_op_computes_with_stored_floats(device):
    x = dt.asarray([1.0, 2.0, 4.0], dtype="float8_e8m0fnu", device=device)
    for call in (lambda: x - x, lambda: -x, lambda: x @ x, lambda: x * 2):
        with pytest.raises(TypeError, match=r'float8_e8m0fnu is for storage: expected x.astype\("float32"\) first'):
            call()
    for got, wanted in ((dt.sum(x), 7), (dt.sum(x[:0]), 0), (dt.log2(x), [0, 1, 2]), (dt.flip(x), [4, 2, 1])):
        assert got.tolist() == wanted
    assert dt.sum(x).dtype == "float32" and dt.max(x).dtype == x.dtype
    with pytest.raises(OverflowError, match=r"0 does not fit in float8_e8m0fnu"):
        dt.zeros_like(x)
    between = 1.125 * (1 + 2**-40)
    assert dt.full((2,), between, dtype="float8_e5m2fnuz", device=device).tolist() == [1.25, 1.25]
    assert dt.full((2,), dt.asarray(3.0, device=device), dtype="int4").tolist() == [3, 3]


@pytest.mark.parametrize("dtype", [*PACKED, *FLOATS[:-1]])
def test_copies(dtype, device, tmp_path):
    values = every(dtype)
    x = dt.asarray(values, device=device)
    wanted = bytes_of(values, dtype)

    def bits(a):
        return pickle.loads(pickle.dumps(a)).__reduce_ex__(2)[1][2]

    for other in ("cpu:0", "sim:0"):
        assert bits(x.to_device(other)) == wanted
    assert bits(x.copy()) == wanted and bits(pickle.loads(pickle.dumps(x, protocol=5))) == wanted
    step = dt.export(lambda a: (a.astype("float32"), x), dt.spec(values.shape, dtype))
    step.save(tmp_path / "kept.dvt")
    back, constant = dt.load(tmp_path / "kept.dvt")(x)
    same(back.numpy().astype(np.float64), values.astype(np.float64))
    assert bits(constant) == wanted


@pytest.mark.parametrize("dtype", FLOATS)
def test_safetensors(dtype, device, tmp_path):
    load_file = pytest.importorskip("safetensors").safe_open
    values = every(dtype)[:-1].reshape(2, -1)
    dt.save_safetensors({"x": dt.asarray(values, device=device)}, tmp_path / "x.safetensors")
    names = {"float8_e8m0fnu": "F8_E8M0", "float4_e2m1fn": "F4"}
    with load_file(tmp_path / "x.safetensors", "np") as file:
        x = file.get_slice("x")
        assert x.get_dtype() == names.get(dtype, dtype.replace("float8_", "F8_").upper())
        assert x.get_shape() == [2, values.shape[1]]
    again = dt.load_safetensors(tmp_path / "x.safetensors", device=device)["x"]
    same(again.numpy().astype(np.float64), values.astype(np.float64))


def test_what_safetensors_has_not(tmp_path):
    with pytest.raises(ValueError, match="3 elements of float4_e2m1fn do not fill their last byte"):
        dt.save_safetensors({"x": dt.zeros(3, dtype="float4_e2m1fn")}, tmp_path / "x")
    with pytest.raises(ValueError, match="no dtype int4"):
        dt.save_safetensors({"x": dt.zeros(4, dtype="int4")}, tmp_path / "x")


def test_dlpack():
    for dtype in (*PACKED, *FLOATS[:-1]):
        x = dt.asarray(every(dtype), device="cpu:0")
        again = dt.from_dlpack(x)
        assert again.dtype == dtype
        same(again.numpy().astype(np.float64), every(dtype).astype(np.float64))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("axis, block_size", [(None, None), (0, None), (1, None), (1, 3), (0, 2)])
def test_quantize(dtype, axis, block_size, device):
    rng = np.random.default_rng(2)
    low, high = INTEGERS[dtype]
    x = rng.standard_normal((4, 7)).astype(np.float32)
    sizes = {(None, None): (), (0, None): (4,), (1, None): (7,), (1, 3): (4, 3), (0, 2): (2, 7)}
    scale = rng.uniform(0.2, 0.5, sizes[axis, block_size]).astype(np.float32)
    zero = rng.integers(max(low, 0), high, scale.shape, endpoint=True)
    each = dict.fromkeys(("scale", "zero"))
    for name, v in (("scale", scale), ("zero", zero)):
        if axis is None:
            each[name] = v
        elif block_size is None:
            each[name] = np.expand_dims(v, 1 - axis)
        else:
            each[name] = np.repeat(v, block_size, axis)[: x.shape[0], : x.shape[1]]
    wanted = np.clip(np.rint(x / each["scale"]) + each["zero"], low, high)
    given = dt.asarray(scale, device=device), dt.asarray(zero, device=device)
    how = {"axis": axis, "block_size": block_size}
    q = dt.quantize(dt.asarray(x, device=device), *given, dtype=dtype, **how)
    assert q.dtype == dtype and q.shape == x.shape
    np.testing.assert_array_equal(q.numpy().astype(np.float64), wanted)
    for zeros in (given[1], given[1].astype(dtype)):
        back = dt.dequantize(q, given[0], zeros, **how)
        np.testing.assert_allclose(back.numpy(), (wanted - each["zero"]) * each["scale"], rtol=1e-6)
    powers = dt.asarray(np.ldexp(np.float32(1), -rng.integers(0, 4, scale.shape)).astype(np.float32), device=device)
    back = dt.dequantize(q, powers.astype("float8_e8m0fnu"), given[1], **how)
    assert back.dtype == "float32"
    np.testing.assert_array_equal(back.numpy(), dt.dequantize(q, powers, given[1], **how).numpy())


def test_compiled_functions(device):
    rng = np.random.default_rng(3)
    weight = dt.asarray(rng.integers(-8, 7, (32, 24)), device=device).astype("int4")
    scale = dt.asarray(rng.uniform(0.1, 0.2, 32).astype(np.float32), device=device)

    @dt.compile
    def layer(x, weight):
        y = dt.nn.linear(x, dt.dequantize(weight, scale, axis=0))
        return y, (y * 4).astype("int4"), dt.nn.relu(y).astype("float8_e4m3fnuz")

    for rows in (3, 5):
        x = dt.asarray(rng.standard_normal((rows, 24)).astype(np.float32) / 8, device=device)
        with dt.compile.off():
            wanted = layer(x, weight)
        for got, want in zip(layer(x, weight), wanted, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got.numpy().astype(np.float64), want.numpy().astype(np.float64), rtol=1e-5)
