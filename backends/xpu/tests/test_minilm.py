"""The example model on SYCL's CPU device, against a forward pass in NumPy float64."""

from __future__ import annotations

from minilm_float64 import assert_agrees, embed
from programs import ON_CPU


def test_embeddings_agree_with_float64():
    _, _, got = embed("xpu", **ON_CPU)
    assert_agrees(got)
