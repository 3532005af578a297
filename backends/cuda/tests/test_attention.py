"""The attention kernels on the emulated driver, and the op's use of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from cuda_programs import EMULATED, python, run
from device_programs import prelude

HERE = str(Path(__file__).resolve().parent)
SIZES = [32, 64, 96, 128, 192, 256]
HOPPER_SIZES = [64, 128]
DTYPES = ["f16", "bf16"]
# Threads in another order, and copies made at once instead of at the wait.
LATE, EARLY = {}, {"DOVETAIL_CUDA_EMULATED_COPIES": "early", "DOVETAIL_CUDA_EMULATED_ORDER": "shuffled:3"}
timings = pytest.mark.parametrize("timing", [LATE, EARLY], ids=["late", "early"])


def kernels(code: str, **variables: str) -> None:
    python("from attention_kernels import *\n" + code, **EMULATED, PYTHONPATH=HERE, timeout=600, **variables)


@timings
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_forward(dtype, size, timing):
    kernels(f"check_cases('forward', {dtype!r}, {size})", **timing)


@timings
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_masks_and_dropout(dtype, size, timing):
    kernels(f"check_cases('general', {dtype!r}, {size})", **timing)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sequences_of_several_lengths(dtype):
    kernels(f"check_sequences({dtype!r})")


def test_invalid_offsets():
    kernels("check_offsets_that_make_no_sense('bf16')")


@timings
@pytest.mark.parametrize("size", HOPPER_SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_hopper(dtype, size, timing):
    kernels(f"check_hopper({dtype!r}, {size})", **timing)


@timings
@pytest.mark.parametrize("size", [40, 64, 128])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients(dtype, size, timing):
    kernels(f"check_gradients({dtype!r}, {size})", **timing)


def test_what_serves_a_call(program):
    """Calls for each engine agree with the CPU: dense and strided heads, odd sizes, masks, groups, many axes."""
    program("""
from dovetail import nn
rng = np.random.default_rng(1)
def both(q, k, v, *mask, **attributes):
    results = []
    for device in ("cuda", "cpu"):
        operands = [dv.asarray(x, device=device) for x in (q, k, v, *mask)]
        y = nn.scaled_dot_product_attention(*operands, **attributes)
        results.append(dv.astype(y, dv.float64).numpy())
    np.testing.assert_allclose(*results, rtol=0, atol=0.01)
def draw(*shape, dtype="float16"):
    return rng.uniform(-1, 1, shape).astype(dtype)
for size in (8, 64, 80, 128, 200, 21):
    q, k, v = draw(2, 4, 33, size), draw(2, 2, 50, size), draw(2, 2, 50, size)
    both(q, k, v, enable_gqa=True)
    both(q, k, v, enable_gqa=True, is_causal=True)
    both(q, k, v, rng.random((33, 50)) < 0.5, enable_gqa=True)
    both(q, k, v, enable_gqa=True, scale=-0.5)
    both(q[0, 0], k[0, 0], v[0, 0, :, :16])
    both(draw(2, 3, 2, 9, size), draw(2, 3, 2, 7, size), draw(2, 3, 2, 7, size))
for dtype in ("float32", "float64"):
    q, k, v = (draw(2, 4, *shape, dtype=dtype) for shape in ((70, 21), (90, 21), (90, 70)))
    both(q, k, v, is_causal=True)
""")


def test_logarithms_of_the_denominators(program):
    """Each engine's logarithms are the CPU's, also with no values, no keys, or infinite scores."""
    program("""
from dovetail import nn
rng = np.random.default_rng(2)
def lse_of(q, k, v, *mask, device="cuda", **attributes):
    operands = [dv.asarray(x, device=device) for x in (q, k, v, *mask)]
    return [x.numpy() for x in nn.scaled_dot_product_attention_with_logsumexp(*operands, **attributes)]
def draw(*shape, dtype="float16"):
    return rng.uniform(-1, 1, shape).astype(dtype)
for dtype, size in (
    *(("float16", size) for size in (64, 128, 200, 21)), ("float32", 64), ("float64", 21)
):
    q, k, v = draw(2, 4, 33, size, dtype=dtype), *(draw(2, 2, 50, size, dtype=dtype) for _ in range(2))
    for how in ({}, {"is_causal": True}, {"scale": -0.5}):
        for mask in ((), (rng.random((33, 50)) < 0.3,)):
            (out, lse), (want, want_lse) = (
                lse_of(q, k, v, *mask, device=d, enable_gqa=True, **how) for d in ("cuda", "cpu")
            )
            assert lse.dtype == want_lse.dtype and lse.shape == (2, 4, 33)
            np.testing.assert_allclose(lse, want_lse, rtol=0, atol=1e-5 if dtype != "float64" else 1e-14)
            np.testing.assert_allclose(out.astype("f8"), want.astype("f8"), rtol=0, atol=0.01)
    out, lse = lse_of(q, k, v[..., :0], enable_gqa=True)
    np.testing.assert_allclose(lse, lse_of(q, k, v, enable_gqa=True)[1], rtol=0, atol=1e-5)
    out, lse = lse_of(q, k[:, :, :0], v[:, :, :0], enable_gqa=True)
    assert not out.any() and np.isneginf(lse).all()
    k[..., 0] = 0
    k[:, :, 7, 0], q[..., 0] = np.inf, 1  # a score that is infinite
    for engine in ("flash", "own", "cudnn"):  # whose logarithm may be NaN
        with nn.sdpa_engine([engine, "own"]):
            out, lse = lse_of(q, k, v, enable_gqa=True)
        assert (np.isposinf(lse) | (np.isnan(lse) & (engine == "cudnn"))).all() and np.isnan(out).all()
""")


def test_dropout_drops_the_same_weights_as_on_the_cpu(program):
    """The very same weights, by each engine that drops: of uniform weights on values that are the unit matrix."""
    program("""
from dovetail import nn
from dovetail.schema.ops.random import philox_words
rng = np.random.default_rng(3)
key = np.array([7, 9, 0xFFFFFF00, 3], np.uint32)
keys = 72
def kept(dtype, p, size, device, **attributes):
    q, k = np.zeros((2, 6, 33, size), dtype), np.zeros((2, 2, keys, size), dtype)
    v = np.broadcast_to(np.eye(keys, dtype=dtype), (2, 2, keys, keys))
    q, k, v, drawn = (dv.asarray(x, device=device) for x in (q, k, v, key))
    out, lse = nn.scaled_dot_product_attention_with_logsumexp(
        q, k, v, enable_gqa=True, dropout_p=p, dropout_key=drawn, **attributes)
    return out.numpy(), lse.numpy()
n = 2 * 6 * 33 * keys
drawn = philox_words(key, n).reshape(2, 6, 33, keys) >> 8
one = int(np.sort(drawn.ravel())[n // 3])  # a probability next to which one weight is drawn
near = [(one + step) * 2.0**-24 for step in (0, 0.25, 0.5, 0.75, 1)] + [one * 2.0**-24 + 2.0**-60]
for dtype, size in (("float16", 64), ("float16", 21), ("float32", 64), ("float64", 8)):
    for p in (0.3, 1e-30, 1.0, *(near if size != 21 else ())):
        for causal in (False, True):
            (out, lse), (want, want_lse) = (kept(dtype, p, size, d, is_causal=causal) for d in ("cuda", "cpu"))
            assert np.array_equal(out != 0, want != 0), (dtype, p)
            seen = np.tri(33, keys, dtype=bool) if causal else True
            assert np.array_equal(out != 0, (drawn * 2.0**-24 >= np.float32(p)) & seen), (dtype, p)
            np.testing.assert_allclose(out.astype("f8"), want.astype("f8"), rtol=1e-3)
            np.testing.assert_allclose(lse, want_lse, rtol=1e-6)
""")


def test_calls_that_cudnn_declines(program):
    """Dropout, as its random numbers are its own, and masks."""
    program("""
import pytest
from dovetail import nn
q = dv.ones((1, 2, 8, 16), dtype="float16")
key = dv.asarray(np.zeros(4, np.uint32))
def call(**attributes):
    return nn.scaled_dot_product_attention_with_logsumexp(q, q, q, **attributes)
with nn.sdpa_engine("cudnn"), pytest.raises(NotImplementedError, match="which dropout_key does not determine"):
    call(dropout_p=0.5, dropout_key=key)
for dtype, reason in (("bool", "False would not hide NaN"), ("float32", "-inf everywhere")):
    with nn.sdpa_engine("cudnn"), pytest.raises(NotImplementedError, match=reason):
        nn.scaled_dot_product_attention(q, q, q, dv.ones((8, 8), dtype=dtype))
for engine in ("flash", "own", "math"):
    with nn.sdpa_engine(engine):
        out, lse = call(dropout_p=0.5, dropout_key=key)
        np.testing.assert_allclose(lse.numpy(), 4 + np.log(8), rtol=1e-6)
        assert abs(out.numpy() - 1).max() > 0.1
""")


def test_packed_sequences(program):
    """By the kernels of FlashAttention as on the CPU: dense operands, and the parts of one projection."""
    program("""
from dovetail import nn
rng = np.random.default_rng(4)
def both(q, k, v, *begins, **attributes):
    results = []
    for device in ("cuda", "cpu"):
        operands = [dv.asarray(x, device=device) for x in (q, k, v, *begins)]
        if device == "cuda":
            with nn.sdpa_engine("flash"):
                y = nn.scaled_dot_product_attention_varlen(*operands, **attributes)
        else:
            y = nn.scaled_dot_product_attention_varlen(*operands, **attributes)
        results.append(y.numpy().astype("f8"))
    np.testing.assert_allclose(*results, rtol=0, atol=0.01)
begins = [np.cumsum([0, *n]).astype(np.int32) for n in ((40, 0, 150, 1), (7, 30, 130, 0))]
for size in (8, 64, 200):
    shapes = (191, 6, size), (167, 2, size), (167, 2, size)
    q, k, v = (rng.uniform(-1, 1, shape).astype("float16") for shape in shapes)
    both(q, k, v, *begins, enable_gqa=True)
    both(q, k, v, *(x.astype(np.int64) for x in begins), enable_gqa=True, is_causal=True, scale=-0.5)
    projection = rng.uniform(-1, 1, (191, 3, 4, size)).astype("float16")
    both(*(projection[:, i] for i in range(3)), begins[0], begins[0], is_causal=True)
""")


GRADIENTS = """
from dovetail import nn
rng = np.random.default_rng(6)
key = dv.asarray(np.array([7, 9, 0xFFFFFF00, 3], np.uint32))
def draw(*shape):
    return rng.uniform(-1, 1, shape).astype("f4")
def cpu(x):
    x = x.to_device("cpu")
    return dv.astype(x, "float32") if x.dtype in (dv.float16, dv.bfloat16) else x
def by_token(x):
    return dv.permute_dims(dv.permute_dims(x, (0, 2, 1, 3)) + 0, (0, 2, 1, 3)) if x.ndim == 4 else x
def both(q, k, v, mask=None, place=lambda x: x, **how):
    for dtype, ulp in (("float16", 2.0**-10), ("bfloat16", 2.0**-7)):
        given = [dv.astype(dv.asarray(x), dtype) for x in (q, k, v)]
        added = () if mask is None else (dv.asarray(mask),)
        out, lse = nn.scaled_dot_product_attention_with_logsumexp(*given, *added, enable_gqa=True, **how)
        given += [out, lse, dv.astype(dv.asarray(draw(*out.shape)), dtype)]
        got = nn.scaled_dot_product_attention_grad(*map(place, given), *added, enable_gqa=True, **how)
        if "dropout_p" in how:
            how |= {"dropout_key": key.to_device("cpu")}
        want = nn.scaled_dot_product_attention_grad(*map(cpu, (*given, *added)), enable_gqa=True, **how)
        if "dropout_p" in how:
            how |= {"dropout_key": key}
        for x, y in zip(map(cpu, got), want, strict=True):
            x, y = x.numpy(), y.numpy()
            np.testing.assert_allclose(x, y, rtol=0, atol=2 * ulp * np.abs(y).max(initial=0))
for size in (24, 128):
    q, k, v = draw(2, 4, 70, size), draw(2, 2, 90, size), draw(2, 2, 90, 48)
    both(q, k, v)
    both(q, k, v, rng.random((2, 1, 70, 90)) < 0.5, is_causal=True)
    both(q, k, v, draw(4, 1, 90), dropout_p=0.3, dropout_key=key)
    both(q, k, v, place=by_token, is_causal=True, scale=-0.5)
q, k, v = draw(1, 6, 5, 8), draw(1, 2, 7, 8), draw(1, 2, 7, 8)
both(q, k[:, :, :0], v[:, :, :0])
both(q[:, :, :0], k, v)
both(q, k, v, dropout_p=1.0, dropout_key=key)
both(q[:, :0], k, v)
both(q, k, v, scale=1e39)
both(q, k, v, draw(5, 7).astype("f8"))
both(draw(1, 2, 5, 136), draw(1, 2, 7, 136), v)
"""
DECLINED = [
    "there are no heads of queries",
    "the scale is not finite",
    "the mask is neither bool, float16, bfloat16 nor float32",
    "head sizes are not multiples of 8 up to 128",
]


def test_gradients_of_calls(machine):
    """Of 16-bit floats by FlashAttention's kernels, as the CPU's in float32, and why they decline a call."""
    ended = run(sys.executable, "-c", prelude("cuda") + GRADIENTS, **machine | {"DOVETAIL_LOGS": "+dispatch"})
    served = re.findall(r"scaled_dot_product_attention_grad on cuda:0 by (.*)", ended.stderr)
    assert served == ["flash"] * 22 + [f"math; flash: {reason}" for reason in DECLINED for _ in "ab"]
