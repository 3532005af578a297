"""What an import may cost: a file that is not trusted makes no import run for ever, or fill memory."""

from __future__ import annotations

import time
from dataclasses import dataclass

__all__ = ["Budget", "LimitError", "Limits"]


class LimitError(ValueError):
    """An import goes beyond its limits."""


@dataclass(frozen=True)
class Limits:
    """nodes: how many nodes one import may visit, rounds of unrolled loops included. folded_bytes: how much memory
    constants that the import computes may take. seconds: how long one import may take. depth: how deeply subgraphs
    and functions may be nested. variants: for how many sets of values or sizes programs are made, before calls of
    others run node by node; 0: all calls do."""

    nodes: int = 100_000
    folded_bytes: int = 1 << 30
    seconds: float = 600.0
    depth: int = 32
    variants: int = 8


class Budget:
    """What is left of the limits in one import."""

    def __init__(self, limits: Limits, model: str):
        self.limits, self.model = limits, model
        self.nodes = self.folded = self.depth = 0
        self.end = time.monotonic() + limits.seconds

    def visit(self) -> None:
        self.nodes += 1
        if self.nodes > self.limits.nodes:
            raise LimitError(
                f"[{self.model}] the import visits more than {self.limits.nodes} nodes, loops unrolled; allow more "
                f"with limits=dovetail.onnx.Limits(nodes={self.limits.nodes * 10})"
            )
        if time.monotonic() > self.end:
            raise LimitError(
                f"[{self.model}] the import takes longer than {self.limits.seconds:g} s; allow more with "
                f"limits=dovetail.onnx.Limits(seconds={self.limits.seconds * 10:g})"
            )

    def fold(self, n_bytes: int) -> bool:
        """Takes the bytes of a folded constant, or reports that it is too much."""
        if self.folded + n_bytes > self.limits.folded_bytes:
            return False
        self.folded += n_bytes
        return True

    def enter(self) -> None:
        self.depth += 1
        if self.depth > self.limits.depth:
            raise LimitError(
                f"[{self.model}] subgraphs and functions are nested more than {self.limits.depth} deep; inline "
                f"them, or allow more with limits=dovetail.onnx.Limits(depth={self.limits.depth * 2})"
            )

    def leave(self) -> None:
        self.depth -= 1
