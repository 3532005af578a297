"""Arrays of a function that is being traced: they behave as Array, and record what is done with them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from dovetail import _array, _core
from dovetail._core import Array
from dovetail._trace import Tracer
from dovetail.schema.number import Number, is_natural, is_number, largest, smallest, value_of

__all__ = ["ArrayTracer", "TraceError", "is_number_operand", "refuse_value"]


class TraceError(TypeError):
    """A traced function needs what a program has only when it runs: the elements of an array."""


def refuse_value(what: str, cure: str = "") -> TraceError:
    """The error for code that reads the elements of a traced array."""
    from dovetail._record import user_line

    cure = cure or "use dovetail.where(condition, a, b), or return the array and read it outside of the program"
    return TraceError(
        f"[{_front()}] {what} at {user_line()} needs the elements of a traced array, which are known only when the "
        f"program runs; {cure}"
    )


def _front() -> str:
    """The function that traces, for messages."""
    return getattr(_core.recorder(), "front", "export")


def is_number_operand(x: Any) -> bool:
    """Whether an op takes x as a number: of Python, of NumPy, or of the trace."""
    if is_number(x) or isinstance(x, complex):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, (numpy.number, numpy.bool_))


class ArrayTracer(Tracer):
    """A value of the program that is being traced. isinstance(x, dovetail.Array) is True for it.

    Its shape has the sizes of this trace as numbers that stay symbolic. `x[key] = v` and `x += y` give it a new
    value; other tracers keep theirs.
    """

    __slots__ = ()
    __class__ = property(lambda self: Array)  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    # ---- what arrays have -----------------------------------------------------------------------------------

    device = property(lambda self: self._graph.device)
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: -(-self.size * self.dtype.bits // 8))

    @property
    def size(self) -> Any:
        size: Any = 1
        for n in self.shape:
            size = size * n
        return size

    @property
    def strides(self) -> Any:
        raise TraceError(
            f"[{_front()}] strides at {_line()}: a traced array has no place in memory yet; expected code "
            "that looks at its shape"
        )

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("[len] an array without axes has no length: x.size is 1")
        return int(self.shape[0])

    def __copy__(self) -> ArrayTracer:
        graph = _recording(self._graph)
        return graph.tracer(graph.value(self)._id)

    def __deepcopy__(self, memo: Any) -> ArrayTracer:
        return self.__copy__()

    def __repr__(self) -> str:
        try:
            sizes = ", ".join(
                repr(value_of(n)) for n in self.shape
            )  # no guards: printing an array is for debugging
        except TraceError:
            return f"<traced value of {self._graph.name}, whose trace is over>"
        text = f"<traced {self.dtype}[{sizes}] of {self._graph.name}>"
        self._graph.texts.add(text)
        return text

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        if spec:
            raise refuse_value(f"format {spec!r}")
        return repr(self)

    def to_device(self, device: Any, /, *, stream: Any = None) -> ArrayTracer:
        self._graph.expect_device("to_device", device)
        if stream is not None:
            raise TraceError(
                f"[to_device] stream at {_line()}: a program runs on the stream of its call; expected none"
            )
        return self.__copy__()

    # ---- elements -------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> ArrayTracer:
        return _recording(self._graph).get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _recording(self._graph).set_item(self, key, value)

    def __delitem__(self, key: Any) -> None:
        raise TypeError("[setitem] elements of an array cannot be deleted: select those to keep, x[mask]")

    def take_value(self, value: Tracer) -> ArrayTracer:
        """This array has another value of the same shape and dtype from now on."""
        if self._shape is None:
            self._graph.find_shape(self)  # its sizes stay those of the first value
        self._id = value._id
        return self


def _recording(graph: Any) -> Any:
    """`graph`, or the graph of the control op's function within it that is being traced."""
    found = _core.recorder()
    return found if getattr(found, "depth", 0) > graph.depth else graph


def _line() -> str:
    from dovetail._record import user_line

    return user_line()


def _add_methods() -> None:
    """The methods of Array that are written in Python, but for those that need elements or memory."""
    own = {name for name in vars(ArrayTracer) if name != "__class__"} - {"__hash__"}
    for name, value in _array._METHODS:
        if name not in own:
            setattr(ArrayTracer, name, value)
    for name, what in {
        "__bool__": "the truth of an array (if, while, and, or, not)",
        "__int__": "int()",
        "__float__": "float()",
        "__complex__": "complex()",
        "__index__": "an array as an index, count or size",
        "__contains__": "`in`",
        "item": "item()",
        "tolist": "tolist()",
        "tobytes": "tobytes()",
        "__bytes__": "bytes()",
        "numpy": "numpy()",
        "__array__": "numpy.asarray() or a function of NumPy",
        "__dlpack__": "DLPack",
        "__dlpack_device__": "DLPack",
        "__reduce__": "pickle",
        "__reduce_ex__": "pickle",
    }.items():
        setattr(ArrayTracer, name, _refusing(what, _CURES.get(name, "")))


_CURES = {
    "__bool__": "use dovetail.where(condition, a, b) to choose values, or dovetail.cond to choose what runs",
    "__index__": "index with the array itself (x[i]), or pass the number as a Python int, which the program keeps",
    "__array__": "use a function of dovetail, or one of NumPy that dovetail has",
}


def _refusing(what: str, cure: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise refuse_value(what, cure)

    return method


def _add_operators() -> None:
    binary = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
        "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
        "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
    }  # fmt: skip
    compared = {
        "lt": "less", "le": "less_equal", "eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal"
    }  # fmt: skip

    def apply(name: str, swapped: bool = False, in_place: bool = False) -> Callable[..., Any]:
        op = _core.op_function(name)

        def method(self: Any, *others: Any) -> Any:
            operands = (*others, self) if swapped else (self, *others)
            return _recording(self._graph).operator(op, operands, in_place)

        return method

    for method, op in binary.items():
        setattr(ArrayTracer, f"__{method}__", apply(op))
        setattr(ArrayTracer, f"__r{method}__", apply(op, swapped=True))
        setattr(ArrayTracer, f"__i{method}__", apply(op, in_place=True))
    for method, op in compared.items():
        setattr(ArrayTracer, f"__{method}__", apply(op))
    for method, op in {"neg": "negative", "pos": "positive", "invert": "bitwise_invert", "abs": "abs"}.items():
        setattr(ArrayTracer, f"__{method}__", apply(op))


_add_methods()
_add_operators()
ArrayTracer.__name__ = f"{Array.__module__}.{Array.__name__}"  # in messages of Python


# ---- sizes of slices ---------------------------------------------------------------------------------------------


def slice_span(item: slice, size: Any) -> tuple[Any, Any, Any]:
    """(start, count, step) of a slice of an axis, as range(*item.indices(size)) has them, of numbers of a trace."""
    step = 1 if item.step is None else item.step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step > 0:
        start, stop = _clamped(item.start, size, 0, 0, size), _clamped(item.stop, size, size, 0, size)
        return start, largest(0, -((start - stop) // step)), step
    start = size - 1 if item.start is None else _clamped(item.start, size, 0, -1, size - 1)
    stop = -1 if item.stop is None else _clamped(item.stop, size, 0, -1, size - 1)
    return start, largest(0, -((stop - start) // -step)), step


def _clamped(k: Any, size: Any, default: Any, low: Any, high: Any) -> Any:
    if k is None:
        return default
    if not is_natural(k) and k < 0:
        k = k + size
    return largest(low, smallest(k, high))


def forward(item: slice, size: Any) -> slice:
    """The elements of a backward slice, in forward order."""
    if item.start is None and item.stop is None and item.step == -1:
        return slice(None)
    start, count, step = slice_span(item, size)
    last = start + (count - 1) * step
    return slice(largest(last, 0), largest(start + 1, 0), -step)


def is_basic(key: tuple[Any, ...]) -> bool:
    """Whether a key has only integers, forward slices, None and Ellipsis."""
    for k in key:
        if k is None or k is Ellipsis or isinstance(k, Number) or (isinstance(k, int) and not isinstance(k, bool)):
            continue
        if isinstance(k, slice) and (k.step is None or k.step > 0):
            continue
        return False
    return True
