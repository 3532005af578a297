"""Weights packed for oneDNN or for our own loops: the right operand of a product, the filters of a convolution."""

import ctypes
import math
import platform
from itertools import product

import harness
import numpy as np
import pytest
from abi import UNSUPPORTED
from harness import KernelError
from test_matmul import check, draw, laid_out
from test_windows import check as check_convolution


def is_packed(check, *operands) -> bool:
    try:
        check(*operands, pack=1)
    except KernelError as e:
        assert e.code == UNSUPPORTED
        return False
    return True


OWN = platform.machine() == "x86_64"  # float32 is packed for our own loops there, which read few rows' b as it is


def check_packed(cpu, op, x, y, bias=None):
    if OWN and x.dtype == np.float32 and math.prod(x.shape[:-1]) <= 4:
        assert not is_packed(check, cpu, op, x, y, bias)
    else:
        check(cpu, op, x, y, bias, pack=1)


def would_pack(cpu, dtype) -> bool:
    return is_packed(check, cpu, "matmul", draw((8, 64), dtype), draw((64, 64), dtype))


def would_pack_filters(cpu, dtype) -> bool:
    return is_packed(check_convolution, cpu, draw((1, 16, 5, 5), dtype), draw((16, 16, 3, 3), dtype))


@pytest.fixture(params=["f4", "f2", "bfloat16", "i1", "u1"])
def dtype(cpu, request):
    if not would_pack(cpu, request.param):
        pytest.skip(f"{request.param} is not packed here")
    return np.dtype(request.param)


def sve_bytes() -> int:
    pr_sve_get_vl = 51  # linux/prctl.h; the lower bits of the result are the bytes of a vector
    return ctypes.CDLL(None).prctl(pr_sve_get_vl) & 0xFFFF


def test_what_is_packed_where():
    """Otherwise the tests below could all be skipped."""
    for level in filter(harness.available, harness.LEVELS):
        cpu = harness.session(level)
        info = cpu.table.build_info.decode()
        if "; oneDNN" not in info:
            pytest.skip("built without oneDNN")
        has = set(info.replace(";", " ").split())
        bfloat16 = bool({"avx512_bf16", "bf16"} & has) and level in ("avx512", "neon_bf16")
        assert would_pack(cpu, harness.bfloat16) == would_pack_filters(cpu, harness.bfloat16) == bfloat16
        assert would_pack(cpu, "f2") == (level == "avx512" and "avx512_fp16" in has)
        if level == "avx512":
            int8 = "avx512_vnni" in has
        else:  # oneDNN multiplies int8 only in vectors of 128 and 256 bits
            int8 = level == "neon_bf16" and {"sve", "i8mm"} <= has and sve_bytes() <= 32
        assert would_pack(cpu, "i1") == would_pack(cpu, "u1") == int8
        assert would_pack_filters(cpu, "f4") == (bfloat16 and "sve" in has)
        assert would_pack(cpu, "f4") == (OWN or (bfloat16 and "sve" in has))


def test_layouts(cpu, dtype):
    for (m, k, n), a, b in product([(33, 65, 127), (40, 300, 65), (1, 100, 90)], "NTS", "NTS"):
        x, y = laid_out(draw((m, k), dtype), a), laid_out(draw((k, n), dtype), b)
        check_packed(cpu, "matmul", x, y)


def test_linear(cpu, dtype):
    for shape, n in [((384,), 100), ((2, 3, 50), 64), ((130, 33), 65), ((3, 1100), 200)]:
        x, w, bias = draw(shape, dtype), draw((n, shape[-1]), dtype), draw(n, dtype)
        check_packed(cpu, "linear", x, w)
        check_packed(cpu, "linear", x, w, bias)
        check_packed(cpu, "linear", laid_out(x, "S"), laid_out(w, "T"), bias)


def test_several_panels_and_tiles(cpu, dtype):
    """Weights of 2**17 numbers and more are cut; the last panel is narrower."""
    check_packed(cpu, "linear", draw((70, 600), dtype), draw((700, 600), dtype), draw(700, dtype))
    check_packed(cpu, "matmul", draw((2, 35, 600), dtype), draw((600, 700), dtype))


def test_batches_of_one_matrix(cpu, dtype):
    y = draw((40, 70), dtype)
    check_packed(cpu, "matmul", draw((3, 2, 5, 40), dtype), y)
    check_packed(cpu, "matmul", np.broadcast_to(draw((1, 40), dtype), (9, 40)), y)
    check_packed(cpu, "matmul", draw((40,), dtype), y)
    with pytest.raises(KernelError) as e:
        check(cpu, "matmul", draw((3, 5, 40), dtype), draw((3, 40, 70), dtype), pack=1)
    assert e.value.code == UNSUPPORTED


def test_one_layout_serves_any_number_of_rows(cpu, dtype):
    w, seen = draw((300, 500), dtype), set()
    for m in (5, 6, 16, 100, 600):
        check(cpu, "linear", draw((m, 500), dtype), w, pack=1)
        seen.add((cpu.packed.size, cpu.packed.layout))
    assert len(seen) == 1
    check(cpu, "linear", draw((16, 300), dtype), draw((500, 300), dtype), pack=1)
    assert cpu.packed.layout not in {layout for _, layout in seen}


def test_float32_has_the_same_bits_packed(cpu):
    """On x86-64: the host packs weights for their second use, which must not change a result."""
    if not OWN:
        pytest.skip("oneDNN's packed products round otherwise")
    for m, k, n in [(5, 300, 40), (7, 1000, 64), (16, 384, 100), (37, 257, 65), (130, 2000, 48), (600, 100, 200)]:
        x, w, bias = draw((m, k), "f4"), draw((n, k), "f4"), draw(n, "f4")
        for op, operands in [("linear", (x, w, bias)), ("matmul", (x, w.T.copy())), ("matmul", (x, w.T))]:
            how = {"out": "f4", "shape": (m, n)}
            plain, packed = cpu.run(op, *operands, **how), cpu.run(op, *operands, **how, pack=1)
            np.testing.assert_array_equal(plain.view("u4"), packed.view("u4"), f"{op} {m} {k} {n}")


def test_packed_bytes_are_what_is_read(cpu, dtype, monkeypatch):
    x, w = draw((16, 384), dtype), draw((400, 384), dtype)
    want, pack = cpu.run("linear", x, w, out=dtype, shape=(16, 400)), cpu._pack

    def then_spoil(*arguments):
        pack(*arguments)
        w[...] = 99

    monkeypatch.setattr(cpu, "_pack", then_spoil)
    got = cpu.run("linear", x, w, out=dtype, shape=want.shape, pack=1)
    np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), atol=0.2)


def test_another_layout_is_not_read(cpu, dtype, monkeypatch):
    def mislabelled(row, call, operand, keep):
        pack(row, call, operand, keep)
        call.packed[operand].layout ^= 1

    pack = cpu._pack
    monkeypatch.setattr(cpu, "_pack", mislabelled)
    check(cpu, "linear", draw((16, 384), dtype), draw((400, 384), dtype), pack=1)


def test_nan_and_infinity_spread(cpu, dtype):
    if dtype.kind in "iu":
        pytest.skip("integers have neither")
    x, w = draw((20, 40), dtype), draw((40, 70), dtype)
    x[1, 2], w[3, 1], w[0, 65] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        want = x.astype("f8") @ w.astype("f8")
    got = cpu.run("matmul", x, w, out=dtype, shape=(20, 70), pack=1).astype("f8")
    assert (np.isnan(got) == np.isnan(want)).all() and (np.isinf(got) == np.isinf(want)).all()
    assert (np.sign(got) == np.sign(want))[np.isinf(want)].all()


@pytest.mark.parametrize("dtype", ["i1", "u1"])
@pytest.mark.parametrize("pack", [None, 1])
def test_bytes_wrap(cpu, dtype, pack):
    """Sums beyond 2**31, pairs that saturate where products are added up in int16, and sums that float32 rounds."""
    if pack and not would_pack(cpu, dtype):
        pytest.skip(f"{dtype} is not packed here")
    info = np.iinfo(dtype)
    for m, k, n in [(5, 70_001, 33), (40, 300, 65), (3, 1041, 65)]:
        for a, b in product((info.min, info.max, -1 % 256 if dtype == "u1" else -1), repeat=2):
            x, w = np.full((m, k), a, dtype), np.full((n, k), b, dtype)
            check(cpu, "linear", x, w, draw(n, dtype), pack=pack)


# ---- convolutions


@pytest.fixture(params=["f4", "bfloat16"])
def filters(cpu, request):
    """Random operands of convolutions whose weights are packed."""
    if not would_pack_filters(cpu, request.param):
        pytest.skip(f"filters of {request.param} are not packed here")
    return lambda *shape: draw(shape, request.param)


def test_conv2d(cpu, filters):
    x, w, bias = filters(2, 16, 13, 11), filters(24, 16, 3, 2), filters(24)
    check_convolution(cpu, x, w, pack=1)
    check_convolution(cpu, x, w, bias, pack=1)
    check_convolution(cpu, x, w, bias, stride=2, pack=1)
    check_convolution(cpu, x, w, padding=(2, 1), pack=1)
    check_convolution(cpu, x, w, bias, dilation=2, stride=(1, 2), padding=3, pack=1)
    check_convolution(cpu, filters(2, 32, 13, 11), filters(32, 16, 3, 2), filters(32), groups=2, pack=1)
    check_convolution(cpu, x, filters(24, 16, 1, 1), pack=1)
    check_convolution(cpu, np.asfortranarray(x), w, bias, padding=1, pack=1)
    check_convolution(cpu, x[:, :, 1:-1, 2:], w, bias, padding=1, pack=1)


def test_sizes_that_fill_no_vector(cpu, filters):
    check_convolution(cpu, filters(1, 18, 9, 10), filters(13, 18, 3, 3), filters(13), padding=1, pack=1)
    check_convolution(cpu, filters(1, 34, 8, 8), filters(71, 34, 1, 1), filters(71), stride=2, pack=1)


def test_odd_channels(cpu, filters):
    x, weight = filters(1, 17, 9, 10), filters(13, 17, 3, 3)
    if x.dtype == np.float32:
        check_convolution(cpu, x, weight, filters(13), padding=1, pack=1)
    else:  # oneDNN would multiply the next pixel's value by 0
        assert not is_packed(check_convolution, cpu, x, weight)


def test_infinity_stays_in_its_pixel(cpu, filters):
    for channels in range(8, 36, 2):
        x, weight = filters(1, channels, 3, 4), filters(9, channels, 1, 1)
        x[0, ::3, 1, 1] = np.inf
        how = {"out": x.dtype, "shape": (1, 9, 3, 4), "attrs": [(1, 1), (0, 0), (1, 1), 1]}
        got = cpu.run("conv2d", x, weight, **how, pack=1).astype("f4")
        assert not np.isfinite(got[..., 1, 1]).any() and np.isfinite(got).sum() == got.size - 9, channels


def test_pieces_that_lie_in_the_padding(cpu, filters):
    """oneDNN has no images without rows; our own loops take such chunks."""
    check_convolution(cpu, filters(1, 16, 3, 3), filters(16, 16, 1, 1), filters(16), padding=9, pack=1)
    check_convolution(cpu, filters(1, 16, 5, 6), filters(16, 16, 3, 3), padding=12, dilation=3, pack=1)


def test_several_panels_of_filters(cpu, filters):
    check_convolution(cpu, filters(1, 256, 7, 7), filters(150, 256, 3, 3), filters(150), padding=1, pack=1)
    check_convolution(cpu, filters(2, 64, 30, 28), filters(70, 64, 3, 3), filters(70), padding=1, pack=1)


def test_conv1d(cpu, filters):
    x = filters(2, 16, 50)
    check_convolution(cpu, x, filters(24, 16, 3), filters(24), pack=1)
    x, w = filters(2, 32, 50), filters(32, 16, 5)
    check_convolution(cpu, x, w, stride=2, padding=1, dilation=3, groups=2, pack=1)


def test_few_channels_are_not_packed(cpu, filters):
    for x, w, groups in [((1, 3, 9, 9), (16, 3, 3, 3), 1), ((1, 16, 9, 9), (16, 1, 3, 3), 16)]:
        with pytest.raises(KernelError) as e:
            check_convolution(cpu, filters(*x), filters(*w), groups=groups, pack=1)
        assert e.value.code == UNSUPPORTED


def test_packed_filters_are_what_is_read(cpu, filters, monkeypatch):
    x, w = filters(2, 64, 20, 20), filters(64, 64, 3, 3)
    how = {"out": x.dtype, "shape": (2, 64, 20, 20), "attrs": [(1, 1), (1, 1), (1, 1), 1]}
    want, pack = cpu.run("conv2d", x, w, **how), cpu._pack

    def then_spoil(*arguments):
        pack(*arguments)
        w[...] = np.nan

    monkeypatch.setattr(cpu, "_pack", then_spoil)
    got = cpu.run("conv2d", x, w, **how, pack=1)
    np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), atol=0.5)


def test_the_first_use_has_the_bits_of_later_ones(cpu):
    """The host packs a value for its second use."""
    dtype = harness.bfloat16
    if not would_pack(cpu, dtype):
        pytest.skip("bfloat16 is not packed here")
    for (m, k, n), a, b in product([(64, 257, 64), (150, 1025, 300), (16, 700, 1200)], "NTS", "NTS"):
        operands = laid_out(draw((m, k), dtype), a), laid_out(draw((k, n), dtype), b)
        first, later = (cpu.run("matmul", *operands, out=dtype, shape=(m, n), pack=pack) for pack in (None, 1))
        assert (first == later).all(), (m, k, n, a, b)
    operands = draw((2, 64, 14, 14), dtype), draw((64, 32, 3, 3), dtype), draw((64,), dtype)
    how = {"out": dtype, "shape": (2, 64, 12, 12), "attrs": [(1, 1), (0, 0), (1, 1), 2]}
    assert (cpu.run("conv2d", *operands, **how) == cpu.run("conv2d", *operands, **how, pack=1)).all()
