"""The operator schema: every op's signature, rules, decomposition, oracle, tolerance, samples; pure Python."""

from __future__ import annotations

from . import dtypes
from .declare import (
    DType,
    Index,
    Ints,
    Mask,
    Op,
    Param,
    Program,
    Raw,
    Scalar,
    Spec,
    Tensor,
    Unsupported,
    op,
    recorded,
    registry,
)
from .loops import loop
from .samples import Draw, Sample

from . import ops  # isort: skip  declares them all, with the names above

__all__ = [
    "DType",
    "Draw",
    "Index",
    "Ints",
    "Mask",
    "Op",
    "Param",
    "Program",
    "Raw",
    "Sample",
    "Scalar",
    "Spec",
    "Tensor",
    "Unsupported",
    "dtypes",
    "loop",
    "op",
    "ops",
    "recorded",
    "registry",
]
