"""The ops, by topic. Importing this declares them all."""

from . import primitives  # isort: skip  first: bodies end in them
from . import activation, arithmetic, creation, exponential, linalg, logic, movement, nn, random, reduction, special
from . import trigonometry, window

__all__ = [
    "activation",
    "arithmetic",
    "creation",
    "exponential",
    "linalg",
    "logic",
    "movement",
    "nn",
    "primitives",
    "random",
    "reduction",
    "special",
    "trigonometry",
    "window",
]
