"""Attention of packed sequences: each sequence gets the same result as alone."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.nn import scaled_dot_product_attention as sdpa
from dovetail.nn import scaled_dot_product_attention_varlen as sdpa_varlen
from dovetail.nn import sdpa_engine

RNG = np.random.default_rng(12)
BEGINS_Q, BEGINS_K = [0, 5, 5, 12, 13], [0, 3, 10, 10, 17]


def packed(dtype: str = "float32") -> list[dt.Array]:
    shapes = [(BEGINS_Q[-1], 6, 8), (BEGINS_K[-1], 2, 8), (BEGINS_K[-1], 2, 5)]
    return [dt.asarray(RNG.normal(size=s), dtype=dtype) for s in shapes]


def offsets(*lists: list[int], dtype: str = "int32") -> list[dt.Array]:
    return [dt.asarray(x, dtype=dtype) for x in lists]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_each_sequence_as_if_it_were_alone(dtype, is_causal):
    q, k, v = packed()
    ends = offsets(BEGINS_Q, BEGINS_K, dtype=dtype)
    out = sdpa_varlen(q, k, v, *ends, is_causal=is_causal, enable_gqa=True).numpy()
    for i in range(len(BEGINS_Q) - 1):
        rows, keys = slice(*BEGINS_Q[i : i + 2]), slice(*BEGINS_K[i : i + 2])
        alone = [dt.permute_dims(x, (1, 0, 2)) for x in (q[rows], k[keys], v[keys])]
        want = sdpa(*alone, is_causal=is_causal, enable_gqa=True).numpy().transpose(1, 0, 2)
        np.testing.assert_allclose(out[rows], want, rtol=1e-5, atol=1e-6)


def test_rows_of_no_sequence_and_of_one_without_keys():
    q, k, v = packed()
    out = sdpa_varlen(q, k, v, *offsets([2, 4, 6, 9], [1, 5, 5, 11]), enable_gqa=True).numpy()
    nothing = [0, 1, 4, 5, 9, 10, 11, 12]
    assert not out[nothing].any() and all(out[i].all() for i in range(13) if i not in nothing)


@pytest.mark.parametrize(
    ("begins_q", "begins_k"),
    [
        ([0, 12, 5, 5, 13], BEGINS_K),
        ([-(2**31), 2**31 - 1, 0, 7, -1], BEGINS_K),
        (BEGINS_Q, [1000, -1000, 2**31 - 1, 3, 1]),
    ],
)
def test_invalid_offsets(begins_q, begins_k):
    """Padding rows are unspecified and must not touch other rows."""
    q, k, v = packed()
    assert sdpa_varlen(q, k, v, *offsets(begins_q, begins_k), enable_gqa=True).numpy().shape == (13, 6, 5)


def test_what_is_refused():
    q, k, v = packed()
    with pytest.raises(ValueError, match="6 query heads and 2 key heads: expected as many; enable_gqa=True"):
        sdpa_varlen(q, k, v, *offsets(BEGINS_Q, BEGINS_K))
    with pytest.raises(ValueError, match="cu_seq_q of 5 offsets and cu_seq_k of 4"):
        sdpa_varlen(q, k, v, *offsets(BEGINS_Q, BEGINS_K[1:]), enable_gqa=True)
    with pytest.raises(TypeError, match="cu_seq_k is uint8: expected int32 or int64"):
        sdpa_varlen(q, k, v, *offsets(BEGINS_Q), *offsets(BEGINS_K, dtype="uint8"), enable_gqa=True)


def test_a_chosen_engine_applies_to_it_and_its_decomposition():
    q, k, v = packed()
    with sdpa_engine("own"), pytest.raises(NotImplementedError, match="own: this device has no engine 'own'"):
        sdpa_varlen(q, k, v, *offsets(BEGINS_Q, BEGINS_K), enable_gqa=True)
    with sdpa_engine("math"):
        sdpa_varlen(q, k, v, *offsets(BEGINS_Q, BEGINS_K), enable_gqa=True)
