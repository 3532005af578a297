"""The recorder of a traced function: it takes the thread's ops, operators and indexing, and makes nodes of them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import index as as_integer
from typing import Any

from dovetail import _core
from dovetail._array import recording_on
from dovetail._core import Array
from dovetail._trace import _PLAIN, Graph, NoSize, Tracer, _place, _range, _whole
from dovetail._tracer import ArrayTracer, TraceError, is_basic, is_number_operand, refuse_value
from dovetail.schema import registry
from dovetail.schema.number import Number, value_of

__all__ = ["FunctionGraph", "count_as_own", "user_line"]

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_ARRAYS = (Tracer, Array)  # tracers are found without a look at their __class__
_KINDS = ("bool", "integer", "real floating", "complex floating")
_CONSTANT = "an array that the function captured is a constant of the program: pass it as an argument"


_own_folders = [_PACKAGE]


def count_as_own(folder: str) -> None:
    """Attributes nodes and errors to no file of this folder: it has an importer of another library's graphs."""
    _own_folders.append(os.path.join(folder, ""))
    is_own_file.cache_clear()


@lru_cache(maxsize=4096)
def is_own_file(file: str) -> bool:
    """Whether a file is dovetail's, an importer's or NumPy's."""
    numpy = sys.modules.get("numpy")
    folder = os.path.dirname(numpy.__file__ or "") + os.sep if numpy else _PACKAGE
    return file.startswith((*_own_folders, folder, "<__array_function__"))


def is_internal(file: str) -> bool:
    """Whether errors and nodes are not attributed to a file."""
    return is_own_file(file) or file.startswith("<frozen") or file == contextlib.__file__


user_line = _core.user_line


class _Ended:
    """The builder of a trace that is over."""

    def __init__(self, front: str, name: str):
        self.front, self.name = front, name

    def __getattr__(self, _: str) -> Any:
        raise self.error()

    def error(self) -> TraceError:
        return TraceError(
            f"[{self.front}] a traced value of {self.name} is used at {user_line()}, after its trace: it stands "
            "for a value of the program and has no elements; return it, and use what a call returns"
        )


class FunctionGraph(Graph):
    """The recorder of one trace. Arrays that are no tracers become constants of the program: one for each Array."""

    front = "export"
    dtypes = _core.dtypes

    def __init__(self, builder: Any, name: str, device: Any):
        Graph.__init__(self, builder, name)
        self.device = device
        self.fixed: set[tuple[int, int]] = set()  # (value, axis) of inputs whose size is always the same
        self._captured: dict[int, tuple[Array, ArrayTracer]] = {}
        self.constant_names: dict[int, str] = {}  # by the id of an array: its name in the program's file
        self._all: list[FunctionGraph] = [self]  # with the nested ones, which share the list
        self.numbers_of_call: list[Number] = []  # those that each call gives
        self.texts: set[str] = set()  # of tracers; shared as _all is

    def end(self) -> None:
        """The trace is over: whatever still uses its values gets an error."""
        for graph in self._all:
            graph.builder = _Ended(self.front, self.name)

    def expect_no_text(self, x: str, path: str) -> None:
        """Raises TraceError for a result that has the text of a traced array in it."""
        if any(text in x for text in self.texts):
            raise TraceError(
                f"[{self.front}] {path}: got the text {x!r}, which stands for an array whose elements are known "
                "only when the program runs; return the array, and make text of it outside"
            )

    def is_of_trace(self, graph: Any) -> bool:
        """Whether a graph is this one or nested in it."""
        return any(graph is known for known in self._all)

    def tracer(self, value: int) -> ArrayTracer:
        return ArrayTracer(self, value)

    def find_shape(self, x: Tracer) -> None:
        open_ = [x]
        while open_:  # a long chain of operands is no deep recursion
            y = open_[-1]
            unknown = [z for z in y._joins if z._shape is None]
            open_ += unknown
            if unknown:
                continue
            open_.pop()
            if y._shape is None:
                Graph.find_shape(y._graph, y)
                y._shape = _joined_shape(y._joins, y._shape) if y._joins else y._shape
                y._joins = ()

    def size(self, value: int, axis: int, n: int) -> Any:
        return n if (value, axis) in self.fixed else Graph.size(self, value, axis, n)

    def guard(self, comparison: str, a: int, b: int, note: str = "") -> None:
        self.builder.at(f"{user_line()}, {note}" if note else user_line())
        self.builder.guard(comparison, a, b)

    def refused(self) -> None:
        outermost, note = self._all[0], "where a call raises an error"
        outermost.builder.at(f"{user_line()}, {note}")
        outermost.builder.fix_sizes()
        for number in outermost.numbers_of_call:
            number.pin(note)

    def expect_value(self, entry: int) -> None:
        self.guard("same", entry, entry)  # also where nothing uses the entry: the function may handle the error

    def expect_device(self, op: str, device: Any) -> None:
        if device is not None and device != self.device:
            raise TraceError(
                f"[{op}] device {device} at {user_line()}: a program runs on the device of its arguments, in this "
                f"trace {self.device}; leave device= out, or use x.device"
            )

    # ---- functions of control ops --------------------------------------------------------------------------------

    def nested(self) -> FunctionGraph:
        inner = Graph.nested(self)
        inner.fixed, inner._captured = set(), {}
        self._all.append(inner)
        return inner

    def like_type(self, dtype: str, shape: tuple[Any, ...]) -> ArrayTracer:
        value = self.builder.operand(dtype, list(map(value_of, shape)))
        self.fixed |= {(value, axis) for axis, n in enumerate(shape) if not isinstance(n, Number)}
        return self.tracer(value)

    def _entry_of_outer(self, entry: int, value: Any) -> int:
        try:
            return Graph._entry_of_outer(self, entry, value)
        except NoSize:  # a number among the arguments: a constant of the node's program
            assert self.outer is not None
            Number(self.outer, entry, value).pin("in a function of cond, while_loop or scan")
            return self.literal(value)

    def run(self, function: Callable, *args: Any) -> Any:
        with recording_on(self):
            return function(*args)

    def record_control(self, name: str, operands: list[Tracer], **attributes: Any) -> list[Tracer]:
        self.builder.at(user_line())
        return Graph.record_control(self, name, operands, **attributes)

    def inline(self, program: Any, operands: list[Any]) -> list[Tracer]:
        self.builder.at(user_line())
        return self.recorded(Graph.inline, program, operands)

    # ---- values --------------------------------------------------------------------------------------------------

    def arrays_of(self, program: Any) -> list[Tracer]:
        if self.outer is not None:
            return self.outer.arrays_of(program)
        values = self.builder.arrays_of(program)
        self.fixed |= {(v, axis) for v in values for axis in range(len(self.builder.shape(v)))}
        return [self.tracer(v) for v in values]

    def value(self, x: Any) -> ArrayTracer:
        """The tracer of an array: its own, or that of a constant."""
        if self.outer is not None and (not isinstance(x, Tracer) or x._graph is not self):
            return self.adopt_value(x if isinstance(x, Tracer) else self.outer.value(x))  # type: ignore[return-value]
        if not isinstance(x, Tracer):
            found = self._captured.get(id(x))
            if found is None:
                found = self._captured[id(x)] = x, self.capture(x)  # keeps x, and so its id
            return found[1]
        if x._graph is not self:
            if isinstance(x._graph.builder, _Ended):
                raise x._graph.builder.error()
            raise TraceError(
                f"[{self.front}] a traced array of {x._graph.name} is used in the trace of {self.name} at "
                f"{user_line()}: pass it as an argument"
            )
        return x  # type: ignore[return-value]

    def capture(self, x: Array) -> ArrayTracer:
        """The value of an array that is no tracer, when the function first uses it."""
        return self.constant(x)

    def constant(self, x: Array) -> ArrayTracer:
        """A value that is a part of the program."""
        value = self.builder.array_constant(x, self.constant_names.get(id(x), ""))
        self.fixed |= {(value, axis) for axis in range(x.ndim)}
        return self.tracer(value)

    def made(self, x: Array) -> None:
        """The function has made an array of numbers or of another library's array."""

    def share(self, x: Array) -> ArrayTracer:
        return self.tracer(self.value(x)._id)

    def read(self, x: Array, what: str) -> None:
        """The function reads elements of an array that is no tracer, as of a constant."""

    def draw_key(self, generator: Any, words: Any, device: Any) -> ArrayTracer:
        """The key of a draw from a generator that is not the function's own."""
        raise TypeError(
            "[random] a draw in a traced function, of a generator that is not its own: every call of the "
            "program would give the same numbers; pass a key as an argument, dovetail.random.key(shape), or "
            "make a dovetail.random.Generator(seed) in the function"
        )

    # ---- calls ---------------------------------------------------------------------------------------------------

    def __dovetail_op__(self, op: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        op = registry[getattr(op, "name", None) or op.__name__]
        if device is not None and op.operands:
            raise TypeError(f"[{op.name}] takes no device: it runs where its arrays are")
        self.expect_device(op.name, device)
        return self.record(op, args, kwargs)

    def record(self, op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if not kwargs:
            made = _core.record_plain(self, op.name, args)
            if made is not None:
                return made
        given = op.bind(*args, **kwargs)
        operands = []
        for param in op.operands:
            if param.variadic:
                given[param.name] = self._spread(op.name, given[param.name])
                operands += [self._checked(op.name, x, False) for x in given[param.name]]
            else:
                operands.append(self._checked(op.name, given[param.name], param.optional))
        arrays = [x for x in operands if isinstance(x, _ARRAYS)]
        if operands and not arrays:
            raise TypeError(f"[{op.name}] expected at least one array: dovetail.asarray() makes one of a number")
        if _core.autocast_used() and op.spec.autocast != "widest":
            operands = self._autocast(op, given)
            arrays = [x for x in operands if isinstance(x, _ARRAYS)]
        if "integer_exponent" in op.spec.traits:
            _check_exponent(op.name, *operands)
        self.builder.at(user_line())
        made = self.record_bound(op, given)
        if op.spec.shape in ("same", "broadcast") and isinstance(made, Tracer):
            made._joins = [self.value(x) for x in (arrays if op.spec.shape == "broadcast" else arrays[:1])]
        return made

    def record_bound(self, op: Any, given: dict[str, Any]) -> Any:
        try:
            return Graph.record_bound(self, op, given)
        except TypeError:  # of dtypes and numbers of axes, which are guards
            raise
        except Exception:
            self.refused()
            raise

    def _autocast(self, op: Any, given: dict[str, Any]) -> list[Any]:
        """The operands of a call, cast as dovetail.autocast() wants it."""
        names = [param.name for param in op.operands]
        dtypes = [given[name].dtype.name if isinstance(given[name], Array) else None for name in names]
        for name, dtype in zip(names, _core.autocast_casts(op.name, self.device, dtypes), strict=True):
            if dtype is not None:
                given[name] = self.record(registry["astype"], (given[name], dtype), {})
        return [given[name] for name in names]

    def _spread(self, op: str, values: Any) -> tuple[Any, ...]:
        if not hasattr(type(values), "__iter__"):
            raise TypeError(f"[{op}] expected a sequence of arrays, got {type(values).__name__}")
        values = tuple(values)
        if not values:
            raise ValueError(f"[{op}] expected at least one array, got an empty sequence")
        return values

    def _checked(self, op: str, x: Any, optional: bool) -> Any:
        if isinstance(x, _ARRAYS):
            return x
        if x is None:
            if not optional:
                raise TypeError(f"[{op}] expected an array, got None")
        elif not is_number_operand(x):
            raise TypeError(
                f"[{op}] expected dovetail arrays or Python numbers, got {type(x).__name__}: dovetail.asarray() "
                "makes an array"
            )
        return x

    def _operand(self, x: Any) -> Any:
        return self.value(x)._id if isinstance(x, _ARRAYS) else Graph._operand(self, x)

    def _attribute(self, name: str, value: Any, slots: list[tuple[str, int, int]]) -> Any:
        if type(value) in _PLAIN:
            return value
        for x in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(x, Tracer):
                raise refuse_value(f"an array as {name}=", "pass a Python number, which the program keeps")
        return Graph._attribute(self, name, value, slots)

    # ---- operators -----------------------------------------------------------------------------------------------

    def operator(self, op: Any, operands: tuple[Any, ...], in_place: bool) -> Any:
        name, target = op.__name__, operands[0]
        if not in_place:
            made = _core.record_plain(self, name, operands)
            if made is not None:
                return made
        if in_place and not isinstance(target, Tracer) and not self.may_write(target):
            raise TraceError(f"[{name}] an in-place operation at {user_line()}: {_CONSTANT}, or write x = x + y")
        values = []
        for x in operands:
            if isinstance(x, (list, tuple)) and name != "multiply":  # [0] * n repeats a list
                self._checked(name, x, False)
            numpy = sys.modules.get("numpy")
            if numpy is not None and type(x) is numpy.ndarray:
                from dovetail._creation import asarray

                x = asarray(x, device=self.device)
            if not isinstance(x, _ARRAYS) and not is_number_operand(x):
                return NotImplemented  # Python then tries the reflected operator
            values.append(x)
        result = self.record(registry[name], tuple(values), {})
        if not in_place:
            return result
        self._store(name, target if isinstance(target, Tracer) else self.value(target), values[1:], result)
        return target

    def may_write(self, x: Array) -> bool:
        """Whether the program can write to an array that is no tracer."""
        return False

    def _expect_own(self, name: str, target: ArrayTracer) -> None:
        if target._graph is not self:
            raise TraceError(
                f"[{name}] a write at {user_line()} to an array from outside of the function that a control op "
                "traces: return the new array, or pass it as an operand"
            )

    def _store(self, name: str, target: ArrayTracer, others: list[Any], result: ArrayTracer) -> ArrayTracer:
        """x op= y: x takes the result, in its own dtype and shape."""
        self._expect_own(name, target)
        wide = any(isinstance(x, _ARRAYS) and x.ndim for x in others)
        if wide and (result.ndim != target.ndim or any(a != b for a, b in zip(result.shape, target.shape))):
            raise ValueError(
                f"[{name}] an in-place operation keeps the shape: got a result of {result.shape}, expected "
                f"{target.shape}; write x = x + y"
            )
        if result.dtype != target.dtype:
            if _breadth(result.dtype) > _breadth(target.dtype):
                raise TypeError(
                    f"[{name}] an in-place operation keeps the dtype: got a result of {result.dtype}, expected one "
                    f'that {target.dtype} can hold; write x = x + y, or first x = x.astype("{result.dtype}")'
                )
            result = self.record(registry["astype"], (result, target.dtype.name), {})
        return target.take_value(result)

    # ---- indexing ------------------------------------------------------------------------------------------------

    def get_item(self, x: Any, key: Any) -> ArrayTracer:
        x, key = self.value(x), self._key(key)
        if is_basic(key):
            return self.index(x, key)
        self._refuse_masks(key)
        from dovetail._indexing import getitem

        return getitem(x, key)  # type: ignore[return-value]

    def set_item(self, x: Any, key: Any, value: Any) -> None:
        if not isinstance(x, Tracer):
            if not self.may_write(x):
                raise TraceError(f"[setitem] a write at {user_line()}: {_CONSTANT}")
            x = self.value(x)
        self._expect_own("setitem", x)
        key = self._key(key)
        if isinstance(value, _ARRAYS):
            value = self.value(value)
        if is_basic(key):
            self._set_region(x, key, value)
            return
        from dovetail._indexing import setitem

        setitem(x, key, value)

    def _key(self, key: Any) -> tuple[Any, ...]:
        """The key with its arrays as tracers and its other integers as Python's."""
        return tuple(map(self._key_item, key if isinstance(key, tuple) else (key,)))

    def _key_item(self, k: Any) -> Any:
        if isinstance(k, _ARRAYS):
            return self.value(k)
        if isinstance(k, slice):
            start, stop, step = map(_bound, (k.start, k.stop, k.step))
            if step is not None and not step > 0 and step == 0:
                raise ValueError("slice step cannot be zero")
            return slice(start, stop, step)
        if isinstance(k, Number):
            return k.plain()
        if k is None or k is Ellipsis or isinstance(k, (bool, list, tuple)) or getattr(k, "shape", ()):
            return k
        return as_integer(k) if hasattr(type(k), "__index__") else k

    def _refuse_masks(self, key: tuple[Any, ...]) -> None:
        for k in key:
            if isinstance(k, bool) or (getattr(k, "dtype", None) == "bool"):
                raise refuse_value(
                    "a boolean index, whose result has a size that depends on elements,",
                    "use dovetail.where(mask, x, other) and keep the shape",
                )

    def index(self, x: Any, key: tuple[Any, ...]) -> Any:
        """x[key] of a basic key."""
        region, sizes, axes = self._region(x, key)
        out = x
        if not all(_whole(r, n) for r, n in zip(region, x.shape, strict=True)):
            out = self.record(registry["slice"], (out, *map(tuple, zip(*region, strict=True))), {})
        dropped = tuple(axis for axis, kept in enumerate(sizes) if not kept)
        if dropped:
            out = self.record(registry["squeeze"], (out, dropped), {})
        if new := tuple(i for i, axis in enumerate(axes) if axis is None):
            out = self.record(registry["expand_dims"], (out,), {"axis": new})
        return self.tracer(out._id) if out is x else out

    def _region(
        self, x: Any, key: tuple[Any, ...]
    ) -> tuple[list[tuple[Any, Any, Any]], list[bool], list[int | None]]:
        """(start, stop, step) of each axis, whether the result keeps it, and the result's axes: None is new."""
        given = [k for k in key if k is not Ellipsis]
        if len(key) - len(given) > 1:
            raise IndexError("[index] an index can have only one Ellipsis ('...')")
        used = sum(k is not None for k in given)
        if used > x.ndim:
            raise IndexError(f"[index] too many indices: the array has {x.ndim} axes, but {used} were indexed")
        at = next((i for i, k in enumerate(key) if k is Ellipsis), len(key))
        filled = (*key[:at], *(slice(None),) * (x.ndim - used), *key[at + 1 :])
        region: list[tuple[Any, Any, Any]] = []
        kept: list[bool] = []
        axes: list[int | None] = []
        for k in filled:
            if k is None:
                axes.append(None)
                continue
            axis, n = len(region), x.shape[len(region)]
            if isinstance(k, slice):
                axes.append(axis)
                region.append(_range(k, n))
            else:
                low, high = -value_of(n), value_of(n) - 1
                if not low <= value_of(k) <= high:
                    self.refused()
                    expected = f"expected {low} to {high}" if high >= 0 else "it has no elements"
                    raise IndexError(f"[index] index {k} is out of range for axis {axis} of size {n}: {expected}")
                region.append(_place(k, n, axis))
            kept.append(isinstance(k, slice))
        return region, kept, axes

    def _set_region(self, x: ArrayTracer, key: tuple[Any, ...], value: Any) -> None:
        region, kept, axes = self._region(x, key)
        if isinstance(value, (bool, int, float, complex)) or is_number_operand(value):
            kind = 0 if isinstance(value, bool) else 3 if isinstance(value, complex) else 1
            if (kind == 1 and not hasattr(type(value), "__index__")) or getattr(value, "is_real", False):
                kind = 2
            if kind > _breadth(x.dtype, merged=True):
                raise TypeError(
                    f"[setitem] cannot store a {type(value_of(value)).__name__} in an array of {x.dtype}: use "
                    ".astype() on one of them"
                )
        else:
            from dovetail._indexing import stored

            if isinstance(value, _ARRAYS) and _breadth(value.dtype, merged=True) > _breadth(x.dtype, merged=True):
                raise TypeError(
                    f"[setitem] cannot store {value.dtype} in an array of {x.dtype}: use .astype() on one of them"
                )
            value = self._over_region(stored(x, value), kept, axes)
            whole = all(_whole(r, n) for r, n in zip(region, x.shape, strict=True))
            if whole and value.dtype == x.dtype and _same_sizes(value.shape, x.shape):
                x.take_value(self.value(value))  # nothing of the old value is left
                return
        names = ("start", "stop", "step")
        bounds = (
            dict(zip(names, map(tuple, zip(*region, strict=True)), strict=True))
            if region
            else dict.fromkeys(names, ())
        )
        x.take_value(self.record(registry["set_slice"], (x, value), bounds))

    def _over_region(self, value: Any, kept: list[bool], axes: list[int | None]) -> Any:
        """The value with an axis for each of the array's: of size 1 where the key has an integer."""
        sizes = list(value.shape)
        while len(sizes) > len(axes):
            if sizes[0] != 1:
                raise ValueError(
                    f"[setitem] a value of shape {value.shape} does not broadcast to a selection of "
                    f"{len(axes)} axes"
                )
            sizes.pop(0)
        given = dict(zip(reversed(axes), reversed(sizes)))
        for axis, n in zip(reversed(axes), reversed(sizes)):
            if axis is None and n != 1:
                raise ValueError(
                    f"[setitem] a value of shape {value.shape} does not broadcast to the selection's new axis"
                )
        shape = tuple(given.get(axis, 1) if keep else 1 for axis, keep in enumerate(kept))
        while shape and isinstance(shape[0], int) and shape[0] == 1:
            shape = shape[1:]
        same = len(shape) == value.ndim and all(a is b for a, b in zip(shape, value.shape))
        return value if same else self.record(registry["reshape"], (value, shape), {})


def _same_sizes(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two shapes are equal for all sizes of the inputs, which leaves no guard."""

    def same(m: Any, n: Any) -> bool:
        if isinstance(m, Number) and isinstance(n, Number):
            return m.table is n.table and m.entry == n.entry
        return not isinstance(m, Number) and not isinstance(n, Number) and m == n

    return len(a) == len(b) and all(map(same, a, b))


def _check_exponent(op: str, base: Any, exponent: Any) -> None:
    """2 ** -1 is no integer. Of an exponent that is an array, nothing is known."""
    integer = not isinstance(base, _ARRAYS) or "integer" in base.dtype.kind
    if isinstance(exponent, _ARRAYS) or getattr(exponent, "is_real", False):
        return
    if integer and hasattr(type(exponent), "__index__") and exponent < 0:
        raise ValueError(
            f"[{op}] integers to negative integer powers are not allowed: got a negative exponent, expected 0 or "
            "more; astype one operand to a float"
        )


def _joined_shape(arrays: Sequence[Tracer], shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape with the sizes of the operands where they are certain, so that comparing them leaves no guard."""
    sizes = list(shape)
    for i in range(1, len(sizes) + 1):
        there = [x.shape[-i] for x in arrays if x.ndim >= i]
        there = [n for n in there if isinstance(n, Number) or n != 1]  # an integer is the same in every call
        fixed = [n for n in there if not isinstance(n, Number)]
        if fixed or not there:
            sizes[-i] = fixed[0] if fixed else 1
        elif all(n.entry == there[0].entry for n in there):
            sizes[-i] = there[0]
    return tuple(sizes)


def _bound(end: Any) -> Any:
    if end is None or isinstance(end, Number):
        return end if end is None else end.plain()
    if isinstance(end, Tracer):
        raise refuse_value(
            "an array as the end of a slice", "use dovetail.dynamic_slice, which reads its start on the device"
        )
    return as_integer(end)


def _breadth(dtype: Any, merged: bool = False) -> int:
    """By NumPy's rule same_kind a value is cast in place to a dtype of the same or a greater breadth."""
    if merged:
        return next(i for i, kind in enumerate(_KINDS) if kind in dtype.kind)
    kinds = ("bool", "unsigned integer", "signed integer", "real floating", "complex floating")
    return kinds.index(dtype.kind)


class TypesGraph(FunctionGraph):
    """Records a function for the types of its results alone: arrays that it uses are no constants, only types."""

    def value(self, x: Any) -> ArrayTracer:
        if isinstance(x, Tracer) or self.outer is not None:
            return FunctionGraph.value(self, x)
        found = self._captured.get(id(x))
        if found is None:
            found = self._captured[id(x)] = x, self.like_type(x.dtype.name, x.shape)
        return found[1]
