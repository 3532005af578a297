"""The ops, by topic. Importing this declares them all."""

from . import primitives  # isort: skip  first: bodies end in them
from . import (
    activation,
    arithmetic,
    attention,
    creation,
    exponential,
    linalg,
    logic,
    movement,
    nn,
    random,
    reduction,
    sorting,
    special,
    trigonometry,
    views,
    window,
)

__all__ = [
    "activation",
    "arithmetic",
    "attention",
    "creation",
    "exponential",
    "linalg",
    "logic",
    "movement",
    "nn",
    "primitives",
    "random",
    "reduction",
    "sorting",
    "special",
    "trigonometry",
    "views",
    "window",
]
