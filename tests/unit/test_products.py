"""matmul in a dtype of its own, and matmul_integer: by kernels, by decompositions and within compiled functions."""

import dovetail as dt
import numpy as np
import pytest
from dovetail.prototype import PythonDevice, kernel

DEVICES = pytest.mark.parametrize("device", ["cpu", "sim"])
rng = np.random.default_rng(5)


def halves(device, dtype, *shape):
    return dt.asarray(rng.standard_normal(shape), dtype=dtype, device=device)


def integers(device, dtype, *shape):
    info = np.iinfo(dtype)
    return dt.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True), device=device)


def wide(x):
    return x.astype("float64").numpy() if x.dtype in (dt.float16, dt.bfloat16) else x.numpy().astype("i8")


# ---- few rows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [48, 160])
@pytest.mark.parametrize("n", [15, 64, 96, 100, 192, 200])
def test_one_and_two_rows_have_the_bits_of_many(n, k, dtype):
    """Wide tiles multiply them where b is row-major; many rows go through tiles of two vectors."""
    x, w, b = (dt.asarray(rng.standard_normal(s), dtype=dtype, device="cpu") for s in ((12, k), (k, n), (n,)))
    exact = x.numpy().astype("f8") @ w.numpy().astype("f8")
    many = x @ w
    np.testing.assert_allclose(many.numpy(), exact, rtol=1e-4, atol=1e-4)
    biased = dt.nn.linear(x, w.T, b)
    np.testing.assert_allclose(biased.numpy(), exact + b.numpy(), rtol=1e-4, atol=1e-4)
    for rows in (1, 2):
        assert (x[:rows] @ w).numpy().tobytes() == many[:rows].numpy().tobytes()
        assert dt.nn.linear(x[:rows], w.T, b).numpy().tobytes() == biased[:rows].numpy().tobytes()


@pytest.mark.parametrize("rows", [3, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "complex64"])
def test_few_rows_of_each_of_many_matrices_are_one_product(dtype, rows):
    """Rows whose strides do not let them be those of one matrix, as of a batch whose first axes are swapped."""
    x, w, b = (dt.asarray(np.round(rng.standard_normal(s) * 4), dtype=dtype, device="cpu")
               for s in ((rows, 40, 33), (50, 33), (50,)))  # fmt: skip
    swapped = dt.permute_dims(x, (1, 0, 2))
    for got in (dt.nn.linear(swapped, w, b), dt.matmul(swapped, w.T) + b):
        exact = swapped.numpy().astype("c16") @ w.numpy().T.astype("c16") + b.numpy().astype("c16")
        np.testing.assert_allclose(got.numpy().astype("c16"), exact, rtol=1e-2 if dtype == "bfloat16" else 1e-6)
        same = dt.nn.linear(dt.copy(swapped), w, b)  # they are those of one
        assert dtype == "bfloat16" or got.numpy().tobytes() == same.numpy().tobytes()


# ---- matmul(dtype=) ----------------------------------------------------------------------------------------------


@DEVICES
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_float32_sums_are_not_rounded(device, dtype):
    x, y = halves(device, dtype, 40, 300), halves(device, dtype, 300, 33)
    got = dt.matmul(x, y, dtype=dt.float32)
    assert got.dtype == dt.float32
    np.testing.assert_allclose(got.numpy(), wide(x) @ wide(y), rtol=1e-5, atol=1e-4)
    assert (got != got.astype(dtype).astype("float32")).any()
    assert dt.matmul(x, y).dtype == dt.matmul(x, y, dtype=dtype).dtype == x.dtype
    assert (dt.matmul(x, y) == dt.matmul(x, y, dtype=dtype)).all()


@DEVICES
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_small_integers_add_up_in_int32(device, dtype):
    x, y = integers(device, dtype, 9, 300), integers(device, dtype, 300, 7)
    got = dt.matmul(x, y, dtype="int32")
    assert got.dtype == dt.int32
    np.testing.assert_array_equal(got.numpy(), (wide(x) @ wide(y)).astype("i4"))


@DEVICES
def test_mixed_integers_are_promoted_first(device):
    x, y = integers(device, "int8", 5, 40), integers(device, "uint8", 40, 6)
    np.testing.assert_array_equal(dt.matmul(x, y, dtype="int32").numpy(), wide(x) @ wide(y))


@DEVICES
@pytest.mark.parametrize("dtype", ["int64", "float64", "complex64"])
def test_the_operands_own_dtype_changes_nothing(device, dtype):
    x = dt.asarray(rng.integers(-9, 9, (4, 4)), dtype=dtype, device=device)
    assert (dt.matmul(x, x, dtype=dtype) == x @ x).all()


@pytest.mark.parametrize(
    ("of", "dtype"),
    [
        ("float32", "float64"),
        ("float32", "float16"),
        ("float16", "float64"),
        ("int8", "float32"),
        ("int8", "int64"),
    ],
)
def test_other_dtypes_are_refused(of, dtype):
    x = dt.ones((2, 2), dtype=of)
    with pytest.raises(TypeError, match=rf"\[matmul\] dtype={dtype} of {of} operands: expected .* astype the op"):
        dt.matmul(x, x, dtype=dtype)


def test_autocast_lowers_the_operands_alone():
    x, y = halves("cpu", "float32", 5, 40), halves("cpu", "float32", 40, 6)
    low = [a.astype("bfloat16") for a in (x, y)]
    with dt.autocast(dtype="bfloat16"):
        got = dt.matmul(x, y, dtype=dt.float32)
    assert got.dtype == dt.float32 and (got == dt.matmul(*low, dtype=dt.float32)).all()


@DEVICES
def test_compiled_functions_keep_the_dtype(device):
    x, w = halves(device, "bfloat16", 5, 40), halves(device, "bfloat16", 6, 40)
    bias = halves(device, "float32", 6)

    def layer(x):
        return dt.matmul(x, dt.matrix_transpose(w), dtype=dt.float32) + bias

    got = dt.compile(layer)(x)
    assert got.dtype == dt.float32
    np.testing.assert_allclose(got.numpy(), wide(x) @ wide(w).T + bias.numpy(), rtol=1e-5, atol=1e-5)


def test_rows_of_the_first_version_serve_calls_without_a_wider_dtype():
    class Old(PythonDevice):
        name = "old_products"
        calls: list = []  # noqa: RUF012

        @kernel("astype", "float16->float32")
        def astype(self, x, out, *, dtype):
            out.numpy()[...] = x.numpy()

        @kernel("matmul", "float32 float16")
        def matmul(self, a, b, out):
            self.calls.append(a.dtype.name)
            out.numpy()[...] = np.matmul(a.numpy(), b.numpy())

    dt.load_backend(Old)
    x = dt.asarray(np.full((2, 2), 1 / 3), dtype=dt.float16, device="old_products")
    for how, called in (({}, "float16"), ({"dtype": "float16"}, "float16"), ({"dtype": "float32"}, "float32")):
        Old.calls.clear()
        got = dt.matmul(x, x, **how)
        assert Old.calls == [called] and got.dtype == how.get("dtype", dt.float16)


# ---- matmul_integer ----------------------------------------------------------------------------------------------


@DEVICES
@pytest.mark.parametrize("signs", ["int8 int8", "int8 uint8", "uint8 int8", "uint8 uint8"])
def test_integer_products(device, signs):
    of_x, of_y = signs.split()
    x, y = integers(device, of_x, 3, 5, 40), integers(device, of_y, 40, 6)
    rows, columns = integers(device, of_x, 5), integers(device, of_y, 6)
    got = dt.matmul_integer(x, y, rows, columns)
    assert got.dtype == dt.int32
    np.testing.assert_array_equal(got.numpy(), (wide(x) - wide(rows)[:, None]) @ (wide(y) - wide(columns)))
    np.testing.assert_array_equal(dt.matmul_integer(x, y).numpy(), wide(x) @ wide(y))
    one = dt.matmul_integer(x, y, x2_zero_point=columns[0])
    np.testing.assert_array_equal(one.numpy(), wide(x) @ (wide(y) - wide(columns)[0]))


@DEVICES
def test_integer_products_within_compiled_functions(device):
    x, y = integers(device, "uint8", 5, 40), integers(device, "int8", 40, 6)
    scale = dt.asarray(0.125, dtype="float32", device=device)
    got = dt.compile(lambda x: dt.matmul_integer(x, y, x[0, 0]).astype("float32") * scale)(x)
    np.testing.assert_array_equal(got.numpy(), (((wide(x) - wide(x)[0, 0]) @ wide(y)) * 0.125).astype("f4"))


def test_integer_products_refuse_other_operands():
    x, y = integers("cpu", "uint8", 4, 5), integers("cpu", "int8", 5, 6)
    with pytest.raises(TypeError, match=r"x1 is float32: expected int8 or uint8; matmul\(\) takes others"):
        dt.matmul_integer(dt.ones((4, 5)), y)
    with pytest.raises(TypeError, match="x2_zero_point is uint8: expected int8, the dtype of x2; astype it"):
        dt.matmul_integer(x, y, None, x[0, 0])
    with pytest.raises(ValueError, match=r"x1_zero_point of shape \(5,\) .* one value for each row of x1"):
        dt.matmul_integer(x, y, x[0])
    with pytest.raises(ValueError, match="expected one value, as x1 is a vector"):
        dt.matmul_integer(x[0], y, x[0])
