import math

import harness
import numpy as np
import pytest
from abi import FLUSHES_SUBNORMALS, UNSUPPORTED
from closeness import assert_close

rng = np.random.default_rng(5)
OP = "scaled_dot_product_attention"


@pytest.fixture
def cpu(with_and_without_amx):
    return with_and_without_amx


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
    terms = np.abs(q) @ np.abs(k).swapaxes(-1, -2) * abs(scale)
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


@pytest.mark.parametrize("dtype", [np.dtype("f4"), harness.bfloat16], ids=lambda d: d.name)
def test_strides(cpu, dtype):
    """Heads in the layout of a projection: (batch, tokens, heads, size) permuted."""
    q, k, v = (draw((2, 20, 3, 32), dtype).transpose(0, 2, 1, 3) for _ in range(3))
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


@pytest.mark.parametrize("dtype", [np.dtype("f4"), harness.bfloat16], ids=lambda d: d.name)
def test_sizes_that_fill_no_tile(cpu, dtype):
    for queries, keys, size, value_size in [
        (8, 1, 1, 1),
        (17, 31, 2, 3),
        (33, 33, 31, 17),
        (50, 32, 33, 80),
        (130, 513, 80, 16),
        (129, 1025, 100, 40),
    ]:
        q, k, v = draw((3, queries, size), dtype), draw((3, keys, size), dtype), draw((3, keys, value_size), dtype)
        check(cpu, q, k, v)
        check(cpu, q, k, v, causal=True)
        check(cpu, q, k, v, mask=rng.random((queries, keys)) < 0.5)
        check(cpu, q, k, v, mask=draw((3, 1, keys), dtype), scale=-0.25)
        check(cpu, q, k[:1], v[:1])


@pytest.mark.parametrize("dtype", [np.dtype("f4"), harness.bfloat16], ids=lambda d: d.name)
def test_heads_that_share_keys(cpu, dtype):
    q, k, v = draw((2, 6, 140, 24), dtype), draw((2, 2, 70, 24), dtype), draw((2, 2, 70, 24), dtype)
    check(cpu, q, k, v)
    check(cpu, q, k, v, causal=True, mask=rng.random((2, 6, 140, 70)) < 0.9)
    check(cpu, q, k[:, :1], v[:, :1])


@pytest.mark.parametrize("dtype", [np.dtype("f4"), harness.bfloat16], ids=lambda d: d.name)
@pytest.mark.parametrize("lengths", [(70, 1), (0, 33), (32, 64), (90, -1)])
def test_keys_that_do_not_take_part(cpu, dtype, lengths):
    """The last keys and values may hold anything."""
    q, k, v = draw((2, 2, 40, 16), dtype), draw((2, 2, 70, 16), dtype), draw((2, 2, 70, 16), dtype)
    ends = [min(max(n, 0), 70) for n in lengths]
    for i, n in enumerate(ends):
        k[i, :, n:], v[i, :, n:] = np.nan, np.inf
    got = cpu.run(
        OP, q, k, v, None, np.array(lengths, np.int64), out=dtype, shape=q.shape, attrs=[False, 0.25, True]
    )
    for i, n in enumerate(ends):
        if n == 0:
            assert not got[i].any()
        else:
            want, size = reference(q[i], k[i, :, :n], v[i, :, :n], None, False, 0.25)
            assert_close(got[i], want, 8, size)


def test_what_is_not_finite_with_and_without_amx(without_amx):
    """NaN and infinities come where they come without tiles."""
    dtype, with_amx = harness.bfloat16, harness.session("avx512")
    seed = 11
    print("seed", seed)
    draw_places = np.random.default_rng(seed)
    for value in (np.nan, np.inf, -np.inf):
        for operand in range(3):
            operands = [draw((2, n, 40), dtype) for n in (40, 600, 600)]
            place = tuple(draw_places.integers(n) for n in operands[operand].shape)
            operands[operand][place] = value
            for mask in (None, draw_places.random((40, 600)) < 0.5):
                got, want = (
                    s.run(OP, *operands, mask, out=dtype, shape=(2, 40, 40), attrs=[False, 0.2, True]).astype("f4")
                    for s in (with_amx, without_amx)
                )
                assert (np.isnan(got) == np.isnan(want)).all(), (value, operand, place)
                assert (np.isinf(got) == np.isinf(want)).all(), (value, operand, place)
                finite = np.isfinite(want)
                np.testing.assert_allclose(got[finite], want[finite], rtol=0.02, atol=0.02)


def test_rows_report_that_tiles_lose_subnormal_numbers(cpu):
    """And the loss shows that tiles multiplied."""
    dtype = harness.bfloat16
    row = cpu.find(OP, [dtype] * 3, [dtype])
    assert bool(row.flags & FLUSHES_SUBNORMALS) == harness.has_amx(cpu)
    v = np.full((64, 32), 2.0**-130).astype(dtype)
    got = cpu.run(
        OP, draw((64, 32), dtype), draw((64, 32), dtype), v, out=dtype, shape=v.shape, attrs=[False, 0.1, True]
    )
    assert not got.any() if harness.has_amx(cpu) else (got == v).all()


# ---- over a table of blocks -----------------------------------------------------------------------------------
HIDDEN, WHOLE, MASKED = 0, 1, 2


def seen_by_table(blocks, tiles, queries, keys):
    """The mask that a table of blocks and its tiles stand for."""
    _, rows, columns = tiles.shape
    seen = np.zeros((*blocks.shape[:2], blocks.shape[2] * rows, blocks.shape[3] * columns), bool)
    for (b, h, i, j), number in np.ndenumerate(blocks):
        tile = number == WHOLE if number < MASKED else tiles[number - MASKED]
        seen[b, h, i * rows : (i + 1) * rows, j * columns : (j + 1) * columns] = tile
    return seen[:, :, :queries, :keys]


@pytest.mark.parametrize("dtype", [np.dtype("f4"), harness.bfloat16], ids=lambda d: d.name)
@pytest.mark.parametrize("rows, columns", [(128, 128), (32, 64), (20, 12), (300, 32)])
def test_blocks(cpu, dtype, rows, columns):
    queries, keys, heads, size = 290, 310, 4, 40
    q = draw((2, heads, queries, size), dtype)
    k, v = draw((2, heads // 2, keys, size), dtype), draw((2, heads // 2, keys, 24), dtype)
    tiles = rng.random((3, rows, columns)) < 0.5
    tiles[1, :, columns // 2 :] = False  # hidden at its end
    blocks = rng.integers(0, MASKED + len(tiles), (2, heads, -(-queries // rows), -(-keys // columns)), np.int32)
    blocks[0, 0, 0] = HIDDEN
    seen = seen_by_table(blocks, tiles, queries, keys)
    scale = size**-0.5
    want, magnitude = reference(q, k, v, seen, False, scale)
    got, logsumexp = cpu.run(
        "block_attention", q, k, v, blocks, tiles, None, out=[dtype, "f4"],
        shape=[want.shape, want.shape[:3]], attrs=[scale],
    )  # fmt: skip
    assert_close(got, want, 8, magnitude)
    wide = np.repeat(k.astype("f8"), 2, 1)
    s = np.where(seen, q.astype("f8") @ wide.swapaxes(-1, -2) * scale, -np.inf)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(logsumexp, np.log(np.exp(s).sum(-1)), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("dtype", [np.dtype("f4"), harness.bfloat16], ids=lambda d: d.name)
def test_scores_in_place_of_products(cpu, dtype):
    q, k, v = draw((1, 2, 40, 16), dtype), draw((1, 2, 90, 16), dtype), draw((1, 2, 90, 16), dtype)
    scores = draw((1, 2, 40, 90), "f4")
    e = np.exp(scores.astype("f8"))
    e /= e.sum(-1, keepdims=True)
    got, _ = cpu.run(
        "block_attention", q, k, v, None, None, scores, out=[dtype, "f4"],
        shape=[(1, 2, 40, 16), (1, 2, 40)], attrs=[1.0],
    )  # fmt: skip
    assert_close(got, e @ v.astype("f8"), 8, e @ np.abs(v.astype("f8")))
