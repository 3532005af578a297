"""The modules with handlers: importing them registers these."""

from __future__ import annotations

from importlib import import_module

__all__ = ["NAMES", "load"]

NAMES = (
    "attention", "control", "detection", "elementwise", "index", "layers", "maps", "microsoft", "ml", "quantized",
    "random", "recurrent", "reduction", "resize", "sequence", "shape", "signal", "svm", "text", "training", "trees",
    "window",
)  # fmt: skip


def load() -> None:
    """Registers all handlers."""
    for name in NAMES:
        import_module(f"dovetail.onnx.{name}")
