"""Rotary embedding as models call it: tables, positions, layouts, and errors for those that do not fit."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.nn import rotary_embedding

RNG = np.random.default_rng(12)


def tables(positions: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    angles = np.arange(positions)[:, None] / 10000.0 ** (np.arange(0, size, 2) / size)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def on_device(*arrays: np.ndarray) -> list[dt.Array]:
    return [dt.asarray(a) for a in arrays]


X = RNG.normal(size=(2, 3, 7, 16)).astype(np.float32)
COS, SIN = tables(7, 16)


def test_rotating_halves_as_models_do():
    """x * cos + rotate_half(x) * sin, with tables that have each angle twice."""
    half = np.concatenate([-X[..., 8:], X[..., :8]], axis=-1)
    want = X * np.concatenate([COS, COS], -1) + half * np.concatenate([SIN, SIN], -1)
    np.testing.assert_allclose(rotary_embedding(*on_device(X, COS, SIN)).numpy(), want, rtol=1e-6, atol=1e-6)


def test_interleaved_pairs_are_complex_numbers():
    turned = (X[..., 0::2] + 1j * X[..., 1::2]) * (COS + 1j * SIN)
    want = np.stack([turned.real, turned.imag], axis=-1).reshape(X.shape)
    out = rotary_embedding(*on_device(X, COS, SIN), interleaved=True)
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("interleaved", [False, True])
def test_narrow_tables_leave_the_rest_alone(interleaved):
    out = rotary_embedding(*on_device(X, COS[:, :3], SIN[:, :3]), interleaved=interleaved).numpy()
    alone = rotary_embedding(*on_device(X[..., :6], COS[:, :3], SIN[:, :3]), interleaved=interleaved).numpy()
    np.testing.assert_array_equal(out[..., 6:], X[..., 6:])
    np.testing.assert_array_equal(out[..., :6], alone)


def test_scores_depend_on_distances():
    """The purpose of the op."""
    q, k = (np.broadcast_to(RNG.normal(size=16).astype(np.float32), (7, 16)) for _ in range(2))
    scores = (rotary_embedding(*on_device(q, COS, SIN)) @ rotary_embedding(*on_device(k, COS, SIN)).T).numpy()
    np.testing.assert_allclose(scores[1:, 1:], scores[:-1, :-1], rtol=1e-5, atol=1e-5)


def test_other_positions_are_taken_from_the_tables():
    positions = np.array([[4, 5], [0, 6]])  # of each sequence of the batch
    x, cos, sin, at = on_device(X[:, :, :2], COS, SIN, positions)
    cos, sin = (dt.expand_dims(dt.take(t, at, axis=0), axis=1) for t in (cos, sin))
    out = rotary_embedding(x, cos, sin).numpy()
    for b, rows in enumerate(positions):
        want = rotary_embedding(*on_device(X[b, :, :2], COS[rows], SIN[rows])).numpy()
        np.testing.assert_array_equal(out[b], want)


def test_heads_behind_the_sequence_are_permuted():
    x = np.ascontiguousarray(X.transpose(0, 2, 1, 3))  # (batch, sequence, heads, size)
    out = rotary_embedding(dt.permute_dims(dt.asarray(x), (0, 2, 1, 3)), *on_device(COS, SIN))
    np.testing.assert_array_equal(out.numpy(), rotary_embedding(*on_device(X, COS, SIN)).numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes_are_promoted(dtype):
    x, cos, sin = (dt.astype(a, dtype) for a in on_device(X, COS, SIN))
    assert rotary_embedding(x, cos, sin).dtype == dtype
    assert rotary_embedding(x, dt.astype(cos, "float64"), sin).dtype == "float64"


@pytest.mark.parametrize(
    ("cos", "sin", "message"),
    [
        ((7, 16), (7, 16), r"16 angles: expected 1 to 8.*tables with each angle twice take half of the last axis"),
        (
            (7, 9),
            (7, 9),
            r"9 angles: expected 1 to 8, one for each pair of elements of x of shape \(2, 3, 7, 16\)$",
        ),
        ((7, 0), (7, 0), r"0 angles: expected 1 to 8"),
        ((6, 8), (6, 8), r"cos of shape \(6, 8\) does not broadcast to \(2, 3, 7, 8\)"),
        ((2, 7, 8), (2, 7, 8), r"expand_dims gives tables of a batch an axis for heads"),
        ((1, 2, 3, 7, 8), (1, 2, 3, 7, 8), r"cos of shape \(1, 2, 3, 7, 8\) has 5 axes: expected 1 to 4"),
        ((7, 8), (7, 7), r"sin of shape \(7, 7\) does not fit: expected shape \(7, 8\), that of cos"),
    ],
)
def test_tables_that_do_not_fit(cos, sin, message):
    with pytest.raises(ValueError, match=r"\[rotary_embedding\] .*" + message):
        rotary_embedding(dt.asarray(X), dt.ones(cos), dt.ones(sin))
