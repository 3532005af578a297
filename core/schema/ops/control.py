"""Control ops: nodes of programs that hold programs. dovetail.cond, while_loop and scan record them; decompositions
record loops through dovetail.schema.loop."""

from __future__ import annotations

from collections.abc import Sequence

from .. import dtypes as dt
from ..declare import Ints, Mask, Program, Tensor, op

CONTROL = {"shape": "control", "dtype": "control", "dtypes": dt.ALL, "core": True, "private": True}


@op(**CONTROL, traits=("loop",))
def loop(carries: Sequence[Tensor], /, *, count: int, numbers: Ints = (), body: Program) -> Tensor:
    """The carries after `count` rounds, each of which replaces them by what `body` gives for them.

    In `body` the number ["attribute", 0] is the round, counted from 0, and ["attribute", 1, k] is element k of
    `numbers`. `count` and `numbers` follow from sizes and attributes, so that nothing is read from the device. The
    carries' shapes and dtypes may change from round to round.
    """


@op(**CONTROL, traits=("branch",))
def cond(pred: Mask, operands: Sequence[Tensor], /, *, then: Program, else_: Program) -> Tensor:
    """What `then` gives for the operands where pred is true, or else what `else` gives.

    pred is a bool array without axes, which is read when the node runs. Both programs give results of equal types.
    """


@op(**CONTROL, traits=("while",))
def while_loop(carries: Sequence[Tensor], /, *, cond: Program, body: Program) -> Tensor:
    """The carries after rounds of `body`, one after another while `cond` gives true for them.

    `cond` gives a bool array without axes, which is read in every round. `body` keeps the carries' types.
    """


@op(**CONTROL, traits=("scan",))
def scan(arrays: Sequence[Tensor], /, *, n_carry: int, length: int, body: Program) -> Tensor:
    """The final carries, then the stacked results of `length` rounds over slices of arrays.

    The first `n_carry` arrays are the carries; round i gives `body` these and element i along the first axis of
    each other array. Its results are the carries of the next round, of equal types, and elements i of the results.
    """
