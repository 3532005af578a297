"""A part of a torch graph as programs that take and return tensors, in the memory where they are."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import dovetail as dt
import torch

from dovetail_torch.compile.arrays import Place

__all__ = ["Runner", "order_of"]


BROKEN_GUARD = "it was made for"  # in what a program raises for sizes that break its guards
MOST_PROGRAMS = 8


class Runner(torch.nn.Module):
    """Runs a part of a graph on tensors.

    trace: makes the program, for any sizes, or for the sizes of arrays where these break its guards. places: of the
    program's inputs among the arguments. static: which of these are buffers of the model; their arrays are kept, as
    those of parameters. orders: of each result the order of its axes in memory, None for row-major. home: of all
    tensors.
    """

    def __init__(
        self,
        trace: Callable[[Any], Any],
        places: Sequence[int],
        static: Sequence[bool],
        orders: Sequence[Any],
        home: Place,
    ):
        super().__init__()
        self._trace = trace
        self._programs = [dt.compile(trace(None))]  # the one that served last is the first
        self._places, self._static, self._orders = tuple(places), tuple(static), tuple(orders)
        self._kept: list[Any] = [None] * len(self._places)  # (weak reference to the tensor, address, array)
        self._device, self._as_array, self._as_tensor = home

    def forward(self, *args: Any) -> Any:
        if dt.default_device() is self._device:
            return self._results(args)
        with self._device:
            return self._results(args)

    def _results(self, args: tuple[Any, ...]) -> Any:
        addresses = set()
        arrays = []
        for i, place in enumerate(self._places):
            tensor = args[place]
            address = tensor.data_ptr()
            addresses.add(address)
            kept = self._kept[i]
            if kept is not None and kept[0]() is tensor and kept[1] == address:
                arrays.append(kept[2])
                continue
            array = self._as_array(tensor)
            arrays.append(array)
            if self._static[i] or isinstance(tensor, torch.nn.Parameter):
                self._keep(i, tensor, address, array)
        made = [self._tensor(x, order, addresses) for x, order in zip(self._run(arrays), self._orders, strict=True)]
        return made[0] if len(made) == 1 else tuple(made)

    def _run(self, arrays: list[Any]) -> Any:
        for i, program in enumerate(self._programs):
            try:
                made = program(*arrays)
            except ValueError as error:
                if BROKEN_GUARD not in str(error):
                    raise
                continue
            if i:
                self._programs.insert(0, self._programs.pop(i))
            return made
        if len(self._programs) == MOST_PROGRAMS:
            warnings.warn(
                f"[dovetail] {self._programs[0].__qualname__} looks at sizes that differ from call to call, and is "
                f"traced again for the {MOST_PROGRAMS + 1}th time; torch.compile(dynamic=False) compiles each size",
                stacklevel=2,
            )
        self._programs = [dt.compile(self._trace(arrays)), *self._programs[: MOST_PROGRAMS - 1]]
        return self._programs[0](*arrays)

    def _keep(self, i: int, tensor: torch.Tensor, address: int, array: Any) -> None:
        kept = self._kept

        def forget(reference: Any) -> None:
            if kept[i] is not None and kept[i][0] is reference:
                kept[i] = None

        kept[i] = weakref.ref(tensor, forget), address, array

    def _tensor(self, x: Any, order: Any, addresses: set[int]) -> torch.Tensor:
        """A result as torch's graph has planned it: memory of its own, with these strides."""
        tensor = self._as_tensor(x)
        shared = tensor.data_ptr() in addresses
        if order is not None:
            back = [order.index(axis) for axis in range(len(order))]
            planned = tensor.permute(order)
            if shared or not planned.is_contiguous():
                tensor = planned.clone(memory_format=torch.contiguous_format).permute(back)
        elif shared or not tensor.is_contiguous():
            tensor = tensor.clone(memory_format=torch.contiguous_format)
        addresses.add(tensor.data_ptr())
        return tensor


def order_of(value: torch.Tensor) -> list[int] | None:
    """The axes of a fake tensor by their strides, the largest first; None for a row-major one."""
    strides = [_hint(n) for n in value.stride()]
    expected, row_major = 1, True
    for n, stride in zip(reversed(value.shape), reversed(strides)):
        row_major &= _hint(n) == 1 or stride == expected
        expected *= _hint(n)
    if row_major or expected == 0:
        return None
    return sorted(range(value.ndim), key=lambda axis: -strides[axis])


def _hint(n: Any) -> int:
    return n if isinstance(n, int) else int(n.node.expr.xreplace(n.node.shape_env.backed_var_to_val))
