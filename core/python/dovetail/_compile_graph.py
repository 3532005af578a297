"""The recorder of dovetail.compile: what a traced function reads, makes and draws besides its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail import _core
from dovetail._core import Array, recording_on
from dovetail._devices import device as to_device
from dovetail._record import FunctionGraph, user_line
from dovetail._tracer import ArrayTracer, TraceError, refuse_value
from dovetail.schema import registry
from dovetail.schema.number import Number, value_of

__all__ = ["CompileGraph", "RunsEagerly"]


class RunsEagerly(Exception):
    """No program does what the function does for these arguments."""


class CompileGraph(FunctionGraph):
    """The recorder of a compiled function: arrays that it captures are inputs, and may be written."""

    front = "compile"

    def __init__(self, builder: Any, name: str, device: Any):
        FunctionGraph.__init__(self, builder, name, device)
        self.inputs: list[tuple[Any, int, str]] = []  # (array or None, value, name), in the program's order
        self.sizes: list[list[int]] = []  # of these, while tracing
        self.draws: dict[int, list[Any]] = {}  # by generator: it, the blocks drawn, [(input, blocks before)]
        self._n_captured = 0
        self._made: dict[int, int] = {}  # of arrays made while tracing, by id: the first value
        self.device_is_open = False  # the default one, unless the function captures an array
        self.uses_default_device = False
        self.eager_because = ""  # what the program would do on another device than the function
        self.is_pinned = False  # for these sizes and numbers alone

    def add_input(self, x: Any, dtype: str, shape: Sequence[Any], sizes: Sequence[int], name: str) -> ArrayTracer:
        value = self.builder.input(dtype, list(shape), name, list(sizes))
        self.fixed |= {(value, axis) for axis, n in enumerate(shape) if isinstance(n, int)}
        self.inputs.append((x, value, name))
        self.sizes.append(list(sizes))
        return self.tracer(value)

    def nested(self) -> FunctionGraph:
        inner = FunctionGraph.nested(self)
        inner.__class__ = _NestedGraph
        return inner

    # ---- where arrays are made

    def __dovetail_op__(self, op: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        name = getattr(op, "name", None) or op.__name__
        if device is None and not registry[name].operands:
            self.expect_default_device(f"{name}()")
        return FunctionGraph.__dovetail_op__(self, op, *args, device=device, **kwargs)

    def expect_default_device(self, what: str) -> None:
        """The function makes an array on the default device, where the program would make it on its own."""
        default = to_device(None)
        if default == self.device:
            self.uses_default_device = True
        elif not self.eager_because:
            self.eager_because = (
                f"{what} at {user_line()} makes an array on {default}, and the arguments are on {self.device}; "
                "pass device=x.device"
            )

    # ---- arrays that are no arguments

    def capture(self, x: Array) -> ArrayTracer:
        if self.device_is_open:
            default, self.device, self.device_is_open = self.device, x.device, False
            if self.uses_default_device and default != self.device:
                self.eager_because = f"{user_line()} uses an array on {self.device}, after others on {default}"
        if x.device != self.device:
            raise TraceError(
                f"[compile] the function uses an array on {x.device} at {user_line()}, but runs on {self.device}: "
                "expected arrays of one device; .to_device() brings them over"
            )
        with recording_on(None):
            sizes = x.shape
        name = f"captured[{self._n_captured}]"
        self._n_captured += 1
        return self.add_input(x, x.dtype.name, list(sizes) if self.is_pinned else [None] * x.ndim, sizes, name)

    def made(self, x: Array) -> None:
        if x.device == to_device(None) or x.device != self.device:
            self.expect_default_device("asarray()")
        tracer = self.constant(x)
        self._made[id(x)] = tracer._id
        self._captured[id(x)] = x, tracer

    def may_write(self, x: Array) -> bool:
        return isinstance(x, Array)

    def about(self, x: Array, name: str) -> Any:
        """Sizes of a captured array are numbers of the program, as those of an argument."""
        return None if self._is_constant(x) else getattr(self.value(x), name)

    def read(self, x: Array, what: str) -> None:
        if not self._is_constant(x):
            raise refuse_value(what, "pass what is read as a Python number, or compute with the array")

    def share(self, x: Array) -> Any:
        if not self._is_constant(x):
            return FunctionGraph.share(self, x)
        with recording_on(None):
            shared = _core.share(x)
        self.made(shared)
        return shared

    def _is_constant(self, x: Array) -> bool:
        """Whether x was made in this trace, and not written since."""
        return id(x) in self._made and self._captured[id(x)][1]._id == self._made[id(x)]

    def draw_key(self, generator: Any, words: Any, device: Any) -> ArrayTracer:
        if device is None:
            self.expect_default_device("a draw of random numbers")
        else:
            self.expect_device("random", to_device(device))
        draws = self.draws.setdefault(id(generator), [generator, 0, []])
        key = self.add_input(None, "uint32", [4], [4], "a random key")
        draws[2].append((len(self.inputs) - 1, draws[1]))
        draws[1] = draws[1] - (-words // 4)
        return key

    def draw_as_eager(self) -> None:
        """The draws until the function raised."""
        for generator, total, _ in self.draws.values():
            generator._core.draw(4 * value_of(total))

    # ---- what the caller sees

    def entry_of(self, n: Any) -> int:
        return self.adopt(n).entry if isinstance(n, Number) else self.literal(n)

    def number_value(self, n: Any) -> int:
        """A constant of the program from which a call reads a number of its trace."""
        return self.builder.number_constant(self.entry_of(n), isinstance(n, Number) and n.is_real)


class _NestedGraph(CompileGraph):
    """Of a function that a control op traces."""

    def may_write(self, x: Array) -> bool:
        return False

    def about(self, x: Array, name: str) -> Any:
        return self.outer.about(x, name)  # type: ignore[union-attr]

    def _is_constant(self, x: Array) -> bool:
        return self.outer._is_constant(x)  # type: ignore[union-attr]

    def capture(self, x: Array) -> ArrayTracer:  # value() asks the outer graph first
        raise AssertionError

    def made(self, x: Array) -> None:
        assert self.outer is not None
        self.outer.made(x)  # type: ignore[attr-defined]

    def expect_default_device(self, what: str) -> None:
        assert self.outer is not None
        self.outer.expect_default_device(what)  # type: ignore[attr-defined]

    def draw_key(self, generator: Any, words: Any, device: Any) -> ArrayTracer:
        raise TraceError(
            f"[random] a draw at {user_line()} in a function of cond, while_loop or scan: each round would draw "
            "the same numbers; draw before, and pass the numbers or dovetail.random.key(shape) as operands"
        )
