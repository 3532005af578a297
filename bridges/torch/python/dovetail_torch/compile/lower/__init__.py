"""The lowerings of aten's overloads, by family; importing this package fills the table."""

from dovetail_torch.compile.lower import (  # noqa: F401 - they register their functions
    creation,
    elementwise,
    gradients,
    index,
    movement,
    normalization,
    products,
    reduction,
    scatter,
    windows,
)
