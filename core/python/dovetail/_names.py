"""Dovetail's names for functions of NumPy and torch that are called differently there."""

from __future__ import annotations

from importlib import import_module

RENAMED = {
    "Tensor": "Array",
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "array": "asarray",
    "bool_": "bool",
    "cat": "concat",
    "clamp": "clip",
    "concatenate": "concat",
    "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "hstack": "concat",
    "int": "int64",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "long": "int64",
    "mod": "remainder",
    "ndarray": "Array",
    "permute": "permute_dims",
    "power": "pow",
    "rand": "random.uniform",
    "randn": "random.normal",
    "right_shift": "bitwise_right_shift",
    "tensor": "asarray",
    "transpose": "permute_dims",
    "true_divide": "divide",
    "unique": "unique_values",
    "unsqueeze": "expand_dims",
    "view": "reshape",
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
