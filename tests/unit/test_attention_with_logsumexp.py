"""Attention with its logsumexp and with dropout: the uses of its two results and its key."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.nn import scaled_dot_product_attention as sdpa
from dovetail.nn import scaled_dot_product_attention_with_logsumexp as sdpa_lse
from dovetail.nn import sdpa_engine

RNG = np.random.default_rng(11)


def operands(*keys: int, dtype: str = "float32") -> list[dt.Array]:
    shapes = [(2, 3, 8, 16), (2, 3, *keys, 16), (2, 3, *keys, 5)]
    return [dt.asarray(RNG.normal(size=s), dtype=dtype) for s in shapes]


def test_the_first_result_is_attention():
    q, k, v = operands(12)
    out, logsumexp = sdpa_lse(q, k, v, is_causal=True)
    np.testing.assert_allclose(out.numpy(), sdpa(q, k, v, is_causal=True).numpy(), rtol=1e-5, atol=1e-6)
    assert logsumexp.shape == (2, 3, 8)


def test_attention_over_parts_of_the_keys():
    """Blocks are weighted by their softmax denominators, like in ring attention."""
    q, k, v = operands(12)
    parts = [sdpa_lse(q, k[:, :, a:b], v[:, :, a:b]) for a, b in ((0, 5), (5, 12))]
    total = dt.logsumexp(dt.stack([lse for _, lse in parts]), axis=0)
    whole = sum(out * dt.exp(lse - total)[..., None] for out, lse in parts)
    np.testing.assert_allclose(whole.numpy(), sdpa(q, k, v).numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total.numpy(), sdpa_lse(q, k, v)[1].numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [("float16", "float32"), ("bfloat16", "float32"), ("float32", "float32"), ("float64", "float64")],
)
def test_the_logsumexp_is_float32_at_least(dtype, wide):
    out, logsumexp = sdpa_lse(*operands(12, dtype=dtype))
    assert (out.dtype, logsumexp.dtype) == (dtype, wide)


def test_rows_without_keys():
    q, k, v = operands(12)
    out, logsumexp = sdpa_lse(q, k, v, dt.asarray([[False]]))
    assert not out.numpy().any() and np.isneginf(logsumexp.numpy()).all()
    out, logsumexp = sdpa_lse(q, k[:, :, :0], v[:, :, :0])
    assert not out.numpy().any() and np.isneginf(logsumexp.numpy()).all()


def test_dropout_is_the_draw_of_its_key():
    q, k, v = operands(12)
    key = dt.random.Generator(7).key((2, 3, 8, 12))
    out, logsumexp = sdpa_lse(q, k, v, dropout_p=0.25, dropout_key=key)
    kept = dt.random.Generator(7).uniform((2, 3, 8, 12)).numpy() >= 0.25
    assert 0.7 < kept.mean() < 0.8
    scores = q.numpy() @ np.swapaxes(k.numpy(), -1, -2) / 4
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(out.numpy(), (weights * kept / 0.75) @ v.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(logsumexp.numpy(), sdpa_lse(q, k, v)[1].numpy(), rtol=1e-6)


def test_a_key_advances_past_its_draw():
    one, other = dt.random.Generator(7), dt.random.Generator(7)
    first = one.key((3, 5))
    other.uniform((3, 5))
    assert one.state == other.state == (7, 4)
    assert first.tolist() == [7, 0, 0, 0] and one.key(1).tolist() == [7, 0, 4, 0]
    with pytest.raises(ValueError, match=r"\[random.key\] shape"):
        one.key(-1)


def test_what_dropout_refuses():
    q, k, v = operands(12)
    key = dt.random.key(1)
    for p in (-0.5, 1.5, float("nan")):
        with pytest.raises(ValueError, match="dropout_p: expected 0 to 1"):
            sdpa_lse(q, k, v, dropout_p=p, dropout_key=key)
    with pytest.raises(ValueError, match=r"dropout_p without dropout_key: .* dovetail.random.key\(\)"):
        sdpa_lse(q, k, v, dropout_p=0.5)
    with pytest.raises(TypeError, match="dropout_key is float32: expected uint32"):
        sdpa_lse(q, k, v, dropout_p=0.5, dropout_key=dt.ones((4,)))
    with pytest.raises(ValueError, match=r"dropout_key of shape \(2,\)"):
        sdpa_lse(q, k, v, dropout_p=0.5, dropout_key=key[:2])


def test_a_chosen_engine_applies_to_both_ops():
    q, k, v = operands(12)
    with sdpa_engine("own"):
        sdpa(q, k, v)
        with pytest.raises(NotImplementedError, match="own: this device has no engine 'own': it has math"):
            sdpa_lse(q, k, v)
