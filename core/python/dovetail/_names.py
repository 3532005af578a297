"""Dovetail's names for functions of NumPy and torch that are called differently there."""

from __future__ import annotations

from importlib import import_module

RENAMED = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "array": "asarray",
    "bool_": "bool",
    "cat": "concat",
    "concatenate": "concat",
    "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum",
    "float": "float32",
    "hstack": "concat",
    "int": "int64",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "mod": "remainder",
    "ndarray": "Array",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "tensor": "asarray",
    "transpose": "permute_dims",
    "true_divide": "divide",
    "unique": "unique_values",
    "unsqueeze": "expand_dims",
    "vstack": "concat",
}
RENAMED |= {f"arc{name}": f"a{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")}
RENAMED["arctan2"] = "atan2"


def hint(name: str) -> str:
    """ ": it is dovetail.concat", or "" for an unknown name. Python itself corrects misspelt names."""
    if name in RENAMED:
        return f": it is dovetail.{RENAMED[name]}"
    for space in ("nn", "linalg", "fft", "random"):
        if name in import_module(f"dovetail.{space}").__all__:
            return f": it is dovetail.{space}.{name}"
    return ""
