"""The example model, against a forward pass in NumPy float64."""

from __future__ import annotations

from minilm_float64 import assert_agrees, embed


def test_embeddings_agree_with_float64(machine):
    _, _, got = embed("cuda", **machine)
    assert_agrees(got)
