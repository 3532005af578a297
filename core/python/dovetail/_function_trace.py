"""What dovetail.export and dovetail.compile share: arguments, sizes that may differ, the user's traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from itertools import count
from types import TracebackType
from typing import Any

from dovetail import _core
from dovetail import _pytree as pytree
from dovetail._array import recording_on
from dovetail._attributes import is_heap_type
from dovetail._core import Array, DType
from dovetail._record import is_internal

__all__ = [
    "Spec", "device_of", "expect_that_a_call_runs", "leaves_of", "marks_of_arguments", "run_recorded", "size_mark",
    "spec", "trace_sizes",
]  # fmt: skip

Size = int | str | None
Dynamic = Any  # None, bool, a dict by argument's name, or a tuple by position; see export()


class Spec:
    """The shape and dtype of an array that need not exist: dovetail.spec() makes one."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[Size, ...], dtype: DType):
        self.shape, self.dtype = shape, dtype

    def __repr__(self) -> str:
        return f"spec({self.shape}, {self.dtype})"


def spec(shape: int | Sequence[Size], dtype: DType | str = "float32") -> Spec:
    """Stands for an array of this shape and dtype among the arguments of dovetail.export; nothing is allocated.

    A size is an integer, None for any size, or a name: sizes of one name are equal. Integers are fixed, unless
    `dynamic` of export names them.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if isinstance(n, bool) or not (n is None or (isinstance(n, str) and n) or (isinstance(n, int) and n >= 0)):
            raise ValueError(f"[spec] shape: expected integers of at least 0, None or names, got {shape!r}")
        if isinstance(n, int) and n >= 2**63:
            raise ValueError(f"[spec] shape: got the size {n}, expected one that fits in 64 bits")
    return Spec(sizes, _core.to_dtype(dtype))


# ---- the function ------------------------------------------------------------------------------------------------


def run_recorded(graph: Any, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """fn(*args, **kwargs) with `graph` as the recorder. A traceback has only the frames of the user's code."""
    with recording_on(graph):
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            error.__traceback__ = _users(error.__traceback__)
            raise


def expect_that_a_call_runs(fn: Callable[..., Any], front: str) -> None:
    """Refuses classes whose instances are no results, and what runs when the result is iterated over or awaited."""
    if isinstance(fn, type) and is_heap_type(fn) and not (is_dataclass(fn) or issubclass(fn, (tuple, list, dict))):
        raise TypeError(
            f"[{front}] expected a function, got the class {fn.__name__}: pass its method or an instance"
        )
    from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

    called = getattr(type(fn), "__call__", None)  # noqa: B004 - of an object that is called as a function
    if any(of(x) for of in (isgeneratorfunction, iscoroutinefunction, isasyncgenfunction) for x in (fn, called)):
        raise TypeError(
            f"[{front}] {getattr(fn, '__name__', 'the function')} is async or a generator, so a call does not run "
            "it: expected a function that returns its arrays; collect what it yields in a list and return that"
        )


def _users(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback with the frames of the user's code, which the tracer's would hide."""
    frames = []
    while traceback is not None:
        if not is_internal(traceback.tb_frame.f_code.co_filename):
            frames.append(traceback)
        traceback = traceback.tb_next
    rest: TracebackType | None = None
    for t in reversed(frames):
        rest = TracebackType(rest, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return rest


def leaves_of(x: Any) -> Iterator[Any]:
    found = pytree.children(x, "")
    if found is None:
        yield x
    else:
        for _, _, part in found[1]:
            yield from leaves_of(part)


def device_of(leaves: Iterable[Any], front: str) -> Any:
    """The device of the arrays among the leaves, or the default one. Raises ValueError for several."""
    from dovetail import _devices

    homes = {x.device.name: x.device for x in leaves if type(x) is Array}
    if len(homes) > 1:
        raise ValueError(
            f"[{front}] arguments on {' and '.join(homes)}: expected arrays of one device; .to_device() brings "
            "them over"
        )
    return next(iter(homes.values()), None) or _devices.device(None)


# ---- sizes -------------------------------------------------------------------------------------------------------


def size_mark(mark: Any, axis: int, n: Size, is_spec: bool) -> Size:
    """The size of an input as its program declares it: an integer, a name, or None."""
    if not isinstance(n, int):
        own: Size = n
    elif mark is True or (mark is None and not is_spec):
        return None
    else:
        own = n
    chosen = mark.get(axis, False) if isinstance(mark, dict) else False
    if isinstance(chosen, str):
        return chosen
    return None if chosen and isinstance(own, int) else own


def trace_sizes() -> Iterator[int]:
    """Sizes for the trace: 24 times the primes from 5."""
    return (24 * n for n in count(5, 2) if all(n % k for k in range(3, n, 2)))


def marks_of_arguments(
    dynamic: Dynamic,
    names: Sequence[str],
    args: Sequence[Any],
    front: str,
    children: Callable[[Any, str], Any] = pytree.children,
) -> dict[str, Any]:
    """By the path of each leaf: None for the default, True, False, or {axis: name or True}."""
    marks: dict[str, Any] = {}
    if dynamic is None or dynamic is True:
        return marks
    if dynamic is False:
        dynamic = {}
    if not isinstance(dynamic, dict):
        raise TypeError(
            f"[{front}] dynamic: got {dynamic!r}, expected None, False, or a dict by the arguments' names, as "
            f"{{{names[0] if names else 'x'!r}: {{0: 'batch'}}}}"
        )
    for key in dynamic:
        if key not in names:
            expected = f"some of {', '.join(names)}" if names else "none, as there are no arguments"
            raise ValueError(f"[{front}] dynamic: there is no argument {key!r}: expected {expected}")
    for x, path in zip(args, names, strict=True):
        _mark(dynamic.get(path, False), x, path, marks, front, children)
    return marks


def _mark(
    given: Any, x: Any, path: str, marks: dict[str, Any], front: str, children: Callable[[Any, str], Any]
) -> None:
    found = children(x, path)
    if found is None:
        rank = len(getattr(x, "shape", ()))
        if isinstance(given, dict):
            for axis, name in given.items():
                if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
                    raise ValueError(f"[{front}] dynamic: {path} has {rank} axes, got the axis {axis!r}")
                if name is not True and not (isinstance(name, str) and name):
                    raise ValueError(
                        f"[{front}] dynamic: {path}, axis {axis}: expected True or a name, got {name!r}"
                    )
            if len({axis % rank for axis in given}) < len(given):
                raise ValueError(f"[{front}] dynamic: {path}: an axis is there twice: got {given}")
            given = {axis % rank: name for axis, name in given.items()}
        elif given is not None and not isinstance(given, bool):
            raise TypeError(
                f"[{front}] dynamic: {path}: expected {{axis: name or True}}, True or False, got {given!r}"
            )
        marks[path] = bool(given) if given is None or isinstance(given, bool) else given
        return
    keys = [key for key, _, _ in found[1]]
    if isinstance(given, (list, tuple)) and len(given) == len(keys):
        given = dict(zip(keys, given))
    if isinstance(given, dict):
        if unknown := [key for key in given if key not in keys]:
            raise ValueError(f"[{front}] dynamic: {path} has no {unknown[0]!r}: expected some of {keys}")
    elif given is not None and not isinstance(given, bool):
        raise TypeError(f"[{front}] dynamic: {path} is a {found[0]}: expected a {found[0]} or dict, got {given!r}")
    for key, where, part in found[1]:
        own = given.get(key, False) if isinstance(given, dict) else given
        _mark(own, part, where, marks, front, children)
