"""The table of lowerings: an overload of aten -> the function that computes it with functions of dovetail.

A lowering takes the Call and the arguments of the overload. Tensors are arrays, in a trace those that record it;
an integer may be a number of the trace. It returns an array for each result, or one array. It raises Unsupported
for arguments that it cannot serve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dovetail as dt
import torch
from dovetail._core import op_function

if TYPE_CHECKING:
    from dovetail_torch.compile.graph import Lowering

__all__ = [
    "Call", "Unsupported", "axes_of", "axis_of", "cast", "dtype_name", "find", "is_array", "lower", "number_axes",
    "op_function", "pair", "truth",
]  # fmt: skip

Lowered = Callable[..., Any]
_TABLE: dict[Any, Lowered] = {}


class Unsupported(NotImplementedError):
    """A node of a graph that no program can hold; the text is the reason."""


def lower(*overloads: str, of: Any = torch.ops.aten) -> Callable[[Lowered], Lowered]:
    """Registers a lowering of overloads, such as "add.Tensor", of a namespace of torch.ops."""

    def put(fn: Lowered) -> Lowered:
        for name in overloads:
            packet, _, overload = name.partition(".")
            _TABLE[getattr(getattr(of, packet), overload or "default")] = fn
        return fn

    return put


def find(overload: Any) -> Lowered | None:
    """The lowering of an overload, or None."""
    return _TABLE.get(overload)


def overloads() -> list[Any]:
    """The overloads that have a lowering."""
    return [*_TABLE]


@dataclass(frozen=True, slots=True)
class Call:
    """A node of a torch graph that is being lowered."""

    node: torch.fx.Node
    lowering: Lowering

    @property
    def value(self) -> Any:
        """The fake tensor of the result, or of the first one."""
        value = self.node.meta["val"]
        return value[0] if isinstance(value, (tuple, list)) else value

    @property
    def dtype(self) -> str:
        """dovetail's name of the result's dtype."""
        return dtype_name(self.value.dtype)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The result's sizes: integers, and numbers of the trace."""
        return tuple(map(self.lowering.number, self.value.shape))

    def common_dtype(self) -> str:
        """The dtype to which torch promotes the node's positional operands."""
        from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

        given = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in self.node.args]
        operands = [a for a in given if isinstance(a, (torch.Tensor, bool, int, float, complex))]
        kind = ELEMENTWISE_TYPE_PROMOTION_KIND.NO_OPMATH
        return dtype_name(elementwise_dtypes(*operands, type_promotion_kind=kind)[1])

    def uses(self, place: int) -> bool:
        """Whether a node uses the result at this place among several."""
        return any(user.args[1] == place for user in self.node.users)


def dtype_name(dtype: torch.dtype) -> str:
    """dovetail's name of a dtype of torch. Raises Unsupported for one that dovetail does not have."""
    name = str(dtype).removeprefix("torch.")
    if name not in dt._core.dtypes:
        raise Unsupported(f"tensors of {dtype}: dovetail has no such dtype")
    return name


def is_array(x: Any) -> bool:
    return isinstance(x, dt.Array)


def cast(x: Any, dtype: str) -> Any:
    """An array in another dtype; a number as it is."""
    return dt.astype(x, dtype) if is_array(x) and x.dtype != dtype else x


def truth(x: Any) -> Any:
    """An array of bool: where x is not 0."""
    return x if x.dtype == "bool" else dt.not_equal(x, 0)


def axis_of(axis: int, ndim: int) -> int:
    """An axis counted from the front."""
    return axis % ndim if ndim else 0


def axes_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a reduction: all for None and for an empty list."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return tuple(range(ndim))
    return number_axes([dim] if isinstance(dim, int) else dim, ndim)


def number_axes(dims: Any, ndim: int) -> tuple[int, ...]:
    return tuple(axis_of(d, ndim) for d in dims) if ndim else ()


def pair(value: Any, n: int) -> list[Any]:
    """A size for each of n axes, of which torch gives one or all."""
    values = [value] if not isinstance(value, (list, tuple)) else list(value)
    return values * n if len(values) == 1 else values
