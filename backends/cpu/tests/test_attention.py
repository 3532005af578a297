import math

import harness
import numpy as np
import pytest
from abi import UNSUPPORTED
from closeness import assert_close

rng = np.random.default_rng(5)
OP = "scaled_dot_product_attention"


def draw(shape, dtype):
    return rng.uniform(-2, 2, shape).astype(dtype)


def reference(q, k, v, mask, causal, scale):
    q, k, v = (t.astype(np.float64) for t in (q, k, v))
    if k.ndim > 2 and q.shape[-3] > k.shape[-3] > 1:
        k, v = (np.repeat(t, q.shape[-3] // k.shape[-3], -3) for t in (k, v))
    s = q @ k.swapaxes(-1, -2) * scale
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask.astype(np.float64)
    m = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isinf(m), 0, m))
    total = e.sum(-1, keepdims=True)
    e = e / np.where(total == 0, 1, total)
    terms = np.abs(q) @ np.abs(k).swapaxes(-1, -2) * scale
    return e @ v, e @ np.abs(v) * max(1, terms.max() / 4)


def check(cpu, q, k, v, mask=None, causal=False, scale=None):
    scale = scale or 1 / math.sqrt(q.shape[-1])
    want, size = reference(q, k, v, mask, causal, scale)
    got = cpu.run(OP, q, k, v, mask, out=q.dtype, shape=want.shape, attrs=[causal, scale, True])
    assert_close(got, want, 8, size)


@pytest.mark.parametrize("dtype", harness.FLOATS, ids=lambda d: d.name)
def test_kinds(cpu, dtype):
    q, k, v = (draw((2, 4, n, 16), dtype) for n in (9, 11, 11))
    check(cpu, q, k, v)
    check(cpu, q, k, v, causal=True)
    check(cpu, q, k, v, scale=0.5)
    check(cpu, q, k, v, mask=rng.random((9, 11)) < 0.7)
    check(cpu, q, k, v, mask=rng.random((2, 4, 9, 11)) < 0.3)
    check(cpu, q, k, v, mask=rng.random((2, 1, 1, 11)) < 0.5)
    check(cpu, q, k, v, mask=np.zeros((1, 1), bool))
    check(cpu, q, k, v, mask=draw((2, 1, 9, 11), dtype), causal=True)
    check(cpu, q, k, v, mask=draw((9, 1), "f4"))
    check(cpu, q, draw((2, 2, 11, 16), dtype), draw((2, 2, 11, 16), dtype))
    check(cpu, draw((9, 16), dtype), draw((11, 16), dtype), draw((11, 24), dtype))
    check(cpu, draw((3, 1, 16), dtype), draw((1, 40, 16), dtype), draw((1, 40, 32), dtype))


@pytest.mark.parametrize("dtype", [np.dtype("f4"), harness.bfloat16], ids=lambda d: d.name)
def test_several_blocks(cpu, dtype):
    """More queries and keys than one block of either."""
    q, k, v = draw((2, 300, 32), dtype), draw((2, 1100, 32), dtype), draw((2, 1100, 32), dtype)
    k[:, 700:] *= 3  # the maximum comes late
    check(cpu, q, k, v)
    check(cpu, q, k, v, causal=True)
    mask = np.full((300, 1100), -np.inf, "f4")
    mask[:, 600:900] = 0
    mask[7] = -np.inf
    check(cpu, q, k, v, mask=mask)
    s = draw((1, 700, 16), dtype)
    check(cpu, s, s, s, causal=True)


@pytest.mark.parametrize("dtype", harness.FLOATS, ids=lambda d: d.name)
def test_few_queries(cpu, dtype):
    for queries, keys, size in [
        (1, 1, 16),
        (1, 7, 24),
        (1, 700, 64),
        (2, 530, 33),
        (3, 64, 40),
        (4, 65, 64),
        (5, 65, 64),
    ]:
        q, k, v = draw((2, queries, size), dtype), draw((2, keys, size), dtype), draw((2, keys, size), dtype)
        check(cpu, q, k, v)
        check(cpu, q, k, v, mask=rng.random((queries, keys)) < 0.7)
        gaps = draw((2, keys, 2, size), dtype)[:, :, 1]
        check(cpu, q, gaps, v, causal=True)
        check(cpu, q, np.ascontiguousarray(k.swapaxes(-1, -2)).swapaxes(-1, -2), v)


def test_strides(cpu):
    """Heads in the layout of a projection: (batch, tokens, heads, size) permuted."""
    q, k, v = (draw((2, 20, 3, 32), "f4").transpose(0, 2, 1, 3) for _ in range(3))
    check(cpu, q, k, v)
    check(cpu, q, k.swapaxes(-1, -2).copy().swapaxes(-1, -2), v.swapaxes(-1, -2).copy().swapaxes(-1, -2))
    check(cpu, q, np.broadcast_to(k[:1], k.shape), np.broadcast_to(v[:, :1], v.shape))


def test_an_integer_mask_is_left_to_the_decomposition(cpu):
    q = draw((4, 16), "f4")
    with pytest.raises(harness.KernelError) as e:
        check(cpu, q, q, q, mask=np.ones((4, 4), np.int32))
    assert e.value.code == UNSUPPORTED


@pytest.mark.parametrize("dtype", harness.FLOATS, ids=lambda d: d.name)
def test_rows_of_the_query_that_are_one_in_memory(cpu, dtype):
    q = np.broadcast_to(draw((2, 1, 16), dtype), (2, 5, 16))
    check(cpu, q, draw((2, 7, 16), dtype), draw((2, 7, 8), dtype))


def test_a_hidden_score_may_be_anything(cpu):
    q, k, v = (draw((n, 4), np.float32) for n in (3, 5, 5))
    k[2] = np.nan
    mask = np.array([True, True, False, True, True])[None, :]
    seen = np.delete(k, 2, 0), np.delete(v, 2, 0)
    want, size = reference(q, *seen, None, False, 0.5)
    got = cpu.run(OP, q, k, v, mask, out=q.dtype, shape=want.shape, attrs=[False, 0.5, True])
    assert_close(got, want, 8, size)
