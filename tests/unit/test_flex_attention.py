"""flex_attention: the masks and changed scores that people write, against NumPy in float64."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail import nn
from dovetail.nn import create_block_mask, flex_attention

pytestmark = pytest.mark.usefixtures("home", "no_fallback")
INF = float("inf")
B, H, L, S, E = 2, 4, 70, 90, 16


@pytest.fixture
def no_fallback():
    before = dt.fallback("error")
    yield
    dt.fallback(before)


def operands(queries=L, keys=S, heads=H, key_heads=H, size=E, value_size=E, dtype="float32", batch=B):
    rng = np.random.default_rng(7)
    shapes = (batch, heads, queries, size), (batch, key_heads, keys, size), (batch, key_heads, keys, value_size)
    return [dt.asarray(rng.standard_normal(s).astype("float32"), dtype=dtype) for s in shapes]


def oracle(q, k, v, score_mod=None, mask_mod=None, scale=None):
    """(attention, logsumexp) in float64."""
    q, k, v = (np.asarray(x.astype("float32").numpy(), np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    s = np.einsum("bhie,bhje->bhij", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    at = np.ogrid[tuple(slice(n) for n in s.shape)]
    if score_mod is not None:
        s = np.broadcast_to(score_mod(s, *at), s.shape)
    if mask_mod is not None:
        s = np.where(mask_mod(*at), s, -INF)
    top = s.max(-1, keepdims=True, initial=-INF)
    e = np.exp(s - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.log(total) + np.where(np.isinf(top), 0, top)
    return np.einsum("bhij,bhje->bhie", e / np.where(total == 0, 1, total), v), lse[..., 0]


def close(got, expected, tol=2e-6):
    np.testing.assert_allclose(got.astype("float64").numpy(), expected, rtol=tol, atol=tol)


# ---- the functions, of arrays of dovetail and of NumPy -----------------------------------------------------------

DOCUMENTS = np.repeat([0, 1, 2, 3], [11, 37, 2, 40])
SLOPES = np.array([0.5, 0.25, 0.125, 0.0625], np.float32)


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def window(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx <= 20)


def prefix(b, h, q_idx, kv_idx):
    return (kv_idx < 25) | (q_idx >= kv_idx)


def of_head(b, h, q_idx, kv_idx):
    return (q_idx + h) % 3 != (kv_idx + b) % 3


def nothing(b, h, q_idx, kv_idx):
    return (q_idx < 0) & (kv_idx < 0)


def some_rows(b, h, q_idx, kv_idx):
    return (q_idx % 7 != 3) & (q_idx >= 20) & (kv_idx > 30)


def document(documents):
    return lambda b, h, q_idx, kv_idx: documents[q_idx] == documents[kv_idx]


MASKS = {f.__name__: f for f in (causal, window, prefix, of_head, nothing, some_rows)}


def soft_cap(module):
    return lambda s, b, h, q_idx, kv_idx: 3.0 * module.tanh(s / 3.0)


def alibi(slopes):
    return lambda s, b, h, q_idx, kv_idx: s + slopes[h] * (kv_idx - q_idx)


def relative(s, b, h, q_idx, kv_idx):
    return s + (q_idx - kv_idx)


def of_indices(s, b, h, q_idx, kv_idx):
    return (q_idx - kv_idx) * 0.01


def mask_of(name):
    if name == "document":
        return document(dt.asarray(DOCUMENTS)), document(DOCUMENTS)
    return MASKS[name], MASKS[name]


def score_of(name):
    if name == "alibi":
        return alibi(dt.asarray(SLOPES)), alibi(SLOPES)
    if name == "soft_cap":
        return soft_cap(dt), soft_cap(np)
    return {"relative": relative, "of_indices": of_indices}[name], {"relative": relative, "of_indices": of_indices}[
        name
    ]


# ---- results -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [128, 32, (16, 64), (64, 16), 7])
@pytest.mark.parametrize("name", [*MASKS, "document"])
def test_masks(name, size):
    ours, of_numpy = mask_of(name)
    q, k, v = operands()
    batch, heads = (B, H) if name == "of_head" else (None, None)
    mask = create_block_mask(ours, batch, heads, L, S, BLOCK_SIZE=size)
    out, lse = oracle(q, k, v, mask_mod=of_numpy)
    got, got_lse = flex_attention(q, k, v, block_mask=mask, return_lse=True)
    close(got, out)
    close(got_lse, lse)
    close(flex_attention(q, k, v, mask_mod=ours), out)


@pytest.mark.parametrize("name", ["alibi", "soft_cap", "relative", "of_indices"])
@pytest.mark.parametrize("masks", [None, "causal", "document"])
def test_changed_scores(name, masks):
    ours, of_numpy = score_of(name)
    q, k, v = operands()
    shown, shown_of_numpy = (None, None) if masks is None else mask_of(masks)
    mask = shown and create_block_mask(shown, None, None, L, S, BLOCK_SIZE=32)
    out, lse = oracle(q, k, v, of_numpy, shown_of_numpy)
    for _ in range(2):  # the first call traces
        got, got_lse = flex_attention(q, k, v, ours, mask, return_lse=True)
        close(got, out, 5e-6)
        close(got_lse, lse, 5e-6)
    close(flex_attention(q, k, v, ours, mask_mod=shown), out, 5e-6)


RNG = np.random.default_rng(3)
BIAS = {
    "whole": RNG.standard_normal((B, H, L, S)).astype("float32"),
    "of_batch": RNG.standard_normal((B, 1, L, S)).astype("float32"),
    "of_heads": RNG.standard_normal((H, L, 1)).astype("float32"),
    "of_keys": RNG.standard_normal((B, 1, 1, S)).astype("float32"),
    "one": RNG.standard_normal((1, 1)).astype("float32"),
    "wide": RNG.standard_normal((L, S)),
    "turned": RNG.standard_normal((S, L)).astype("float32").T,
}


@pytest.mark.parametrize("name", BIAS)
def test_arrays_of_all_shapes(name):
    """Blocks of scores meet the part of an array that is theirs."""
    q, k, v = operands()
    bias = dt.asarray(BIAS[name].T).T if name == "turned" else dt.asarray(BIAS[name])
    mask = create_block_mask(window, None, None, L, S, BLOCK_SIZE=32)
    out, _ = oracle(q, k, v, lambda s, *at: np.tanh(s + BIAS[name]) * BIAS[name], window)
    ours = lambda s, *at: dt.tanh(s + bias) * bias  # noqa: E731
    close(flex_attention(q, k, v, ours, mask), out, 5e-6)


def test_functions_look_arrays_up():
    q, k, v = operands()
    table, lengths = RNG.standard_normal((H, 2 * S)).astype("float32"), np.array([13, 61])
    ours, our_lengths = dt.asarray(table), dt.asarray(lengths)
    out, _ = oracle(
        q, k, v, lambda s, b, h, i, j: s + table[h, i - j + S], lambda b, h, i, j: (j < lengths[b]) | (j == i)
    )
    got = flex_attention(
        q, k, v,
        lambda s, b, h, i, j: s + ours[h, i - j + S],
        create_block_mask(lambda b, h, i, j: (j < our_lengths[b]) | (j == i), B, None, L, S, BLOCK_SIZE=32),
    )  # fmt: skip
    close(got, out, 5e-6)


def test_functions_of_whole_rows():
    """Not one block of scores at a time: as in any traced function."""
    q, k, v = operands()
    out, _ = oracle(q, k, v, lambda s, *at: s - 2 * s.max(-1, keepdims=True) * (s > 0), causal)
    ours = lambda s, *at: s - 2 * dt.max(s, axis=-1, keepdims=True) * (s > 0).astype(s.dtype)  # noqa: E731
    close(flex_attention(q, k, v, ours, mask_mod=causal), out, 5e-6)


def test_a_compiler_joins_functions_to_the_kernel():
    if dt.default_device().name != "cpu:0":
        pytest.skip("sim has no kernel of attention")
    q, k, v = operands()
    mask = create_block_mask(causal, None, None, L, S, BLOCK_SIZE=32)
    slopes = dt.asarray(SLOPES)
    layer = dt.compile(lambda q, k, v: flex_attention(q, k, v, alibi(slopes), mask))
    text = layer.explain(q, k, v)
    assert "attention_scores+subtract+astype+multiply+add+block_attention" in text and "blocks of scores" in text
    with dt.compile.off():
        expected = layer(q, k, v).numpy()
    close(layer(q, k, v), expected)


def test_layers_share_no_arithmetic_of_indices():
    """What two calls computed together would be an array of all scores."""
    if dt.default_device().name != "cpu:0":
        pytest.skip("sim has no kernel of attention")
    q, k, v = operands(S)
    slopes = dt.asarray(SLOPES)

    @dt.compile
    def layers(q, k, v):
        x = flex_attention(q, k, v, alibi(slopes))
        return flex_attention(x, k, v, alibi(slopes))

    x, _ = oracle(q, k, v, alibi(SLOPES))
    close(layers(q, k, v), oracle(dt.asarray(x, dtype="float32"), k, v, alibi(SLOPES))[0], 1e-5)
    text = layers.explain(q, k, v)
    assert text.count("attention_scores+subtract+astype+multiply+add+block_attention") == 2


def test_a_mask_within_score_mod():
    q, k, v = operands()
    out, lse = oracle(q, k, v, mask_mod=some_rows)
    hides = lambda s, *at: dt.where(some_rows(*at), s, -INF)  # noqa: E731
    got, got_lse = flex_attention(q, k, v, hides, return_lse=True)
    close(got, out)
    close(got_lse, lse)


@pytest.mark.parametrize("queries", [1, 70, 300])
def test_causal_is_that_of_attention(queries):
    q, k, v = operands(queries, queries, size=24)
    mask = create_block_mask(causal, None, None, queries, queries)
    expected = nn.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()
    close(flex_attention(q, k, v, block_mask=mask), expected)
    close(flex_attention(q, k, v, mask_mod=causal), expected)


@pytest.mark.parametrize("key_heads", [1, 2])
def test_groups_of_heads(key_heads):
    q, k, v = operands(key_heads=key_heads, value_size=5)
    mask = create_block_mask(of_head, B, H, L, S, BLOCK_SIZE=32)
    ours, of_numpy = score_of("alibi")
    out, _ = oracle(q, k, v, mask_mod=of_head)
    close(flex_attention(q, k, v, block_mask=mask, enable_gqa=True), out)
    out, lse = oracle(q, k, v, of_numpy, of_head, scale=0.5)
    got, got_lse = flex_attention(q, k, v, ours, mask, 0.5, True, True)
    close(got, out, 5e-6)
    close(got_lse, lse, 5e-6)


@pytest.mark.parametrize("scale", [0.0, -0.3, 2.0])
def test_scales(scale):
    q, k, v = operands()
    mask = create_block_mask(causal, None, None, L, S, BLOCK_SIZE=16)
    out, _ = oracle(q, k, v, mask_mod=causal, scale=scale)
    close(flex_attention(q, k, v, block_mask=mask, scale=scale), out, 1e-5)
    out, _ = oracle(q, k, v, relative, causal, scale=scale)
    close(flex_attention(q, k, v, relative, mask, scale=scale), out, 1e-5)


@pytest.mark.parametrize(
    ("dtype", "wide", "tol"),
    [("float16", "float32", 2e-3), ("bfloat16", "float32", 2e-2), ("float64", "float64", 1e-12)],
)
def test_dtypes(dtype, wide, tol):
    q, k, v = operands(dtype=dtype)
    mask = create_block_mask(causal, None, None, L, S, BLOCK_SIZE=32)
    for score_mod in (None, relative):
        out, lse = oracle(q, k, v, score_mod, causal)
        got, got_lse = flex_attention(q, k, v, score_mod, mask, return_lse=True)
        assert (got.dtype, got_lse.dtype) == (dtype, wide)
        close(got, out, tol)
        close(got_lse, lse, max(1e-6, tol) if wide == "float32" else tol)


def test_many_keys():
    """More than a kernel takes at once, and blocks larger than that."""
    q, k, v = operands(200, 1500, heads=1, key_heads=1, batch=1)
    for size in ((128, 128), (200, 2048), (40, 600)):
        mask = create_block_mask(window, None, None, 200, 1500, BLOCK_SIZE=size)
        close(flex_attention(q, k, v, block_mask=mask), oracle(q, k, v, mask_mod=window)[0])
        mask = create_block_mask(of_head, 1, 1, 200, 1500, BLOCK_SIZE=size)
        out, _ = oracle(q, k, v, of_indices, of_head)
        close(flex_attention(q, k, v, of_indices, mask), out, 1e-5)


def test_empty_operands():
    q, k, v = operands(0, 5)
    assert flex_attention(q, k, v, block_mask=create_block_mask(causal, None, None, 0, 5)).shape == (B, H, 0, E)
    q, k, v = operands(5, 0)
    out, lse = flex_attention(q, k, v, block_mask=create_block_mask(causal, None, None, 5, 0), return_lse=True)
    assert not out.numpy().any() and np.isneginf(lse.numpy()).all()


# ---- programs ----------------------------------------------------------------------------------------------------


def test_within_compiled_functions():
    q, k, v = operands()
    slopes, mask = dt.asarray(SLOPES), create_block_mask(causal, None, None, L, S, BLOCK_SIZE=32)

    @dt.compile
    def layer(q, k, v, mask):
        return flex_attention(q * 2.0, k, v, alibi(slopes), mask) + 1.0

    out, _ = oracle(q * 2.0, k, v, alibi(SLOPES), causal)
    for _ in range(2):
        close(layer(q, k, v, mask), out + 1.0, 5e-6)
    other = create_block_mask(prefix, None, None, L, S, BLOCK_SIZE=16)
    close(layer(q, k, v, other), oracle(q * 2.0, k, v, alibi(SLOPES), prefix)[0] + 1.0, 5e-6)


def test_another_block_mask_in_place_of_a_captured_one():
    q, k, v = operands()
    masks = {"now": None}
    layer = dt.compile(lambda q, k, v: flex_attention(q, k, v, block_mask=masks["now"]))
    for mask_mod in (causal, prefix, causal):
        masks["now"] = create_block_mask(mask_mod, None, None, L, S, BLOCK_SIZE=32)
        close(layer(q, k, v), oracle(q, k, v, mask_mod=mask_mod)[0])


def test_within_exported_programs():
    q, k, v = operands()
    mask = create_block_mask(window, None, None, L, S, BLOCK_SIZE=32)
    program = dt.export(lambda q, k, v: flex_attention(q, k, v, relative, mask, return_lse=True), q, k, v)
    out, lse = program(q, k, v)
    expected = oracle(q, k, v, relative, window)
    close(out, expected[0], 5e-6)
    close(lse, expected[1], 5e-6)


def test_constants_of_an_exported_program():
    q, k, v = operands()
    bias, one = dt.asarray(BIAS["of_heads"]), dt.asarray(0.5)
    program = dt.export(lambda q, k, v: flex_attention(q, k, v, lambda s, *at: s * one + bias), q, k, v)
    close(program(q, k, v), oracle(q, k, v, lambda s, *at: s * 0.5 + BIAS["of_heads"])[0], 5e-6)


def test_arrays_that_a_function_uses_may_change():
    q, k, v = operands()
    slopes = {"now": dt.asarray(SLOPES)}

    def score_mod(s, b, h, q_idx, kv_idx):
        return alibi(slopes["now"])(s, b, h, q_idx, kv_idx)

    for factor in (1, 1, 2):
        slopes["now"] = dt.asarray(SLOPES * factor)
        close(flex_attention(q, k, v, score_mod), oracle(q, k, v, alibi(SLOPES * factor))[0], 5e-6)


def test_other_sizes():
    ours, of_numpy = score_of("alibi")
    for queries, keys in ((L, S), (1, 5), (33, 1)):
        q, k, v = operands(queries, keys)
        close(flex_attention(q, k, v, ours), oracle(q, k, v, of_numpy)[0], 5e-6)


# ---- tables of blocks --------------------------------------------------------------------------------------------


def test_a_block_mask_describes_itself():
    mask = create_block_mask(causal, None, None, 300, 300, BLOCK_SIZE=100)
    assert mask.shape == (1, 1, 300, 300) and mask.seq_lengths == (300, 300) and mask.BLOCK_SIZE == (100, 100)
    assert mask.numel() == 90000 and mask.sparsity() == pytest.approx(100 / 3) and mask.mask_mod is causal
    assert mask.to_dense().numpy().tolist() == [[np.tri(3, dtype=int).tolist()]]
    assert mask.kv_num_blocks.numpy().tolist() == [[[1, 1, 1]]]
    assert mask.kv_indices.numpy()[0, 0, :, 0].tolist() == [0, 1, 2]
    assert mask.full_kv_num_blocks.numpy().tolist() == [[[0, 1, 2]]]
    assert mask.full_kv_indices.numpy()[0, 0, 2].tolist() == [0, 1, 2]
    assert "(1, 1, 300, 300)" in repr(mask) and mask.device == dt.default_device()
    assert mask.to_device("cpu").device.name == "cpu:0"


def test_equal_blocks_are_stored_once():
    assert create_block_mask(causal, None, None, 4096, 4096)._tiles.shape == (1, 128, 128)
    assert create_block_mask(window, None, None, 1024, 1024, BLOCK_SIZE=16)._tiles.shape[0] <= 3


def test_sizes_may_be_integers_of_numpy():
    n = np.int64
    mask = create_block_mask(causal, n(1), n(2), n(70), n(90), BLOCK_SIZE=(n(16), n(32)))
    assert mask.shape == (1, 2, 70, 90) and mask.BLOCK_SIZE == (16, 32)
    assert {type(size) for size in mask.shape} == {int}


def test_what_lies_behind_the_last_row_and_column_does_not_count():
    mask = create_block_mask(lambda b, h, q_idx, kv_idx: q_idx + kv_idx >= 0, None, None, 70, 90, BLOCK_SIZE=64)
    assert mask.full_kv_num_blocks.numpy().tolist() == [[[2, 2]]] and mask.sparsity() == 0


# ---- errors ------------------------------------------------------------------------------------------------------


def refused(error, match, *args, **kwargs):
    with pytest.raises(error, match=match):
        flex_attention(*args, **kwargs)


def test_operands_that_do_not_fit():
    q, k, v = operands()
    refused(ValueError, r"query: got shape \(4, 70, 16\), expected four axes.*x\[None\]", q[0], k, v)
    refused(TypeError, "key: expected a dovetail array, got ndarray", q, k.numpy(), v)
    refused(TypeError, "key float64.*expected one real floating dtype; astype", q, k.astype("float64"), v)
    refused(TypeError, "query int32", *(x.astype("int32") for x in (q, k, v)))
    refused(ValueError, "enable_gqa=True", q, k[:, :2], v[:, :2])
    refused(ValueError, "expected a multiple of the key heads", q, k[:, :3], v[:, :3], enable_gqa=True)
    refused(ValueError, "query's head size 16 and key's 8 differ", q, k[..., :8], v)
    refused(ValueError, "90 keys and 80 values", q, k, v[:, :, :80])


def test_functions_that_do_not_fit():
    q, k, v = operands()
    refused(TypeError, r"score_mod: got a function of \(s, b\), expected one of score, b, h, q_idx, kv_idx",
            q, k, v, lambda s, b: s)  # fmt: skip
    refused(TypeError, "score_mod: got int, expected a function", q, k, v, 3)
    refused(TypeError, "score_mod returned bool, expected scores", q, k, v, lambda s, b, h, i, j: i > j)
    refused(TypeError, "the result of score_mod: expected a dovetail array", q, k, v, lambda s, b, h, i, j: None)
    refused(TypeError, "mask_mod: got a function of", q, k, v, mask_mod=lambda i, j: i > j)
    refused(TypeError, "mask_mod returned int32, expected bool", q, k, v, mask_mod=lambda b, h, i, j: i - j)
    with pytest.raises(TypeError, match="mask_mod returned int32, expected bool"):
        create_block_mask(lambda b, h, i, j: i - j, None, None, L, S)
    with pytest.raises(TypeError, match="mask_mod: got a function of"):
        create_block_mask(relative, None, None, L, S)


def test_block_masks_that_do_not_fit():
    q, k, v = operands()
    of = lambda *shape, **more: create_block_mask(causal, *shape, **more)  # noqa: E731
    cure = r"make one by create_block_mask\(mask_mod, B, H, 70, 90\)"
    refused(ValueError, f"is for 64 queries and 90 keys, got 70 and 90: {cure}",
            q, k, v, block_mask=of(None, None, 64, S))  # fmt: skip
    refused(ValueError, "block_mask is for B=3, got 2", q, k, v, block_mask=of(3, None, L, S))
    refused(ValueError, "block_mask is for H=2, got 4.*H=None", q, k, v, block_mask=of(None, 2, L, S))
    refused(TypeError, "block_mask: got function.*mask_mod=", q, k, v, block_mask=causal)
    elsewhere = "sim:0" if dt.default_device().name == "cpu:0" else "cpu:0"
    refused(ValueError, f"block_mask is on {elsewhere}.*to_device",
            q, k, v, block_mask=of(None, None, L, S, device=elsewhere))  # fmt: skip
    with pytest.raises(TypeError, match=r"Q_LEN: got 2\.5, expected an integer"):
        of(None, None, 2.5, S)
    with pytest.raises(ValueError, match="BLOCK_SIZE: got 0, expected at least 1"):
        of(None, None, L, S, BLOCK_SIZE=0)
    with pytest.raises(TypeError, match="make it outside of the traced function"):
        dt.compile(lambda q: flex_attention(q, k, v, block_mask=of(None, None, L, S)))(q)
