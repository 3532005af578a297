"""The points of a comparison: an op, a dtype and shapes, read from JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from dovetail.entry_points.backend import did_you_mean

DEFAULT = Path(__file__).with_name("points.json")
Shape = tuple[int, ...]


class PointError(ValueError):
    """A list of points that cannot be measured. The message names the point and the cure."""


@dataclass(frozen=True)
class Point:
    op: str
    dtype: str
    shape: Shape
    shape2: Shape | None = None  # of the second operand, where it is not that of the first
    axis: int | None = None
    perm: Shape | None = None  # of transpose
    to: str | None = None  # of astype: the dtype of the result
    k: int | None = None  # of top_k
    causal: bool = False  # of sdpa
    low: float | None = None  # values are uniform between low and high, or else standard normal
    high: float | None = None

    @property
    def along(self) -> int:
        """The axis of an op that has the last one as its default."""
        return -1 if self.axis is None else self.axis

    @property
    def label(self) -> str:
        """The shapes, and what else distinguishes this point from others of the same op and dtype."""
        text = " ".join("x".join(map(str, shape)) for shape in (self.shape, self.shape2) if shape is not None)
        more = [f"{name}={getattr(self, name)}" for name in ("axis", "to", "k") if getattr(self, name) is not None]
        more += ["perm=" + ",".join(map(str, self.perm))] if self.perm else []
        return " ".join([text or "scalar", *more, *(["causal"] if self.causal else [])])

    def as_dict(self) -> dict[str, Any]:
        """As in the file: without the fields that have their default."""
        default = Point("", "", ())
        required = ("op", "dtype", "shape")
        return {k: v for k, v in asdict(self).items() if k in required or v != getattr(default, k)}


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(_is_integer(n) and n >= 0 for n in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_integer(value)


class _Form:
    """What a field may contain, and how an error calls it."""

    def __init__(self, holds: Callable[[Any], bool], expected: str):
        self.holds, self.expected = holds, expected


_TEXT = _Form(lambda v: isinstance(v, str), "a string")
_SHAPE = _Form(_is_shape, "a list of sizes such as [4096, 1024]")
_INTEGER = _Form(_is_integer, "an integer")
_NUMBER = _Form(_is_number, "a number")
_FORMS = {
    "op": _TEXT, "dtype": _TEXT, "shape": _SHAPE, "shape2": _SHAPE, "axis": _INTEGER, "perm": _SHAPE, "to": _TEXT,
    "k": _INTEGER, "causal": _Form(lambda v: isinstance(v, bool), "true or false"), "low": _NUMBER, "high": _NUMBER,
}  # fmt: skip


def read(path: Path) -> list[Point]:
    """The points of a file. Raises PointError, which names the point."""
    try:
        found = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise PointError(f"{path} cannot be read: {error.strerror}; name a file of points") from error
    except UnicodeDecodeError as error:
        raise PointError(f"{path} is not text in UTF-8: {error.reason}; write [{_EXAMPLE}, ...] so") from error
    except json.JSONDecodeError as error:
        raise PointError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, list):
        raise PointError(f"{path}: got {type(found).__name__}, expected a list of points: [{_EXAMPLE}, ...]")
    if not found:
        raise PointError(f"{path} has no points; add some: [{_EXAMPLE}, ...]")
    return [parse(given, f"{path}, point {number}") for number, given in enumerate(found, 1)]


_EXAMPLE = '{"op": "exp", "dtype": "float32", "shape": [4096, 1024]}'


def parse(given: Any, where: str) -> Point:
    """A point from its JSON; `where` begins the message of an error."""
    from dovetail.cli.comparison import kinds

    if not isinstance(given, dict):
        raise PointError(f"{where}: got {json.dumps(given)}, expected an object such as {_EXAMPLE}")
    known = [field.name for field in fields(Point)]
    for name in ("op", "dtype", "shape"):
        if name not in given:
            raise PointError(f"{where}: {name!r} is missing; add it, as in {_EXAMPLE}")
    where = f"{where} ({given['op']})"
    for name, value in given.items():
        if name not in known:
            raise PointError(f"{where}: there is no field {name!r}{did_you_mean(name, known)}")
        if not _FORMS[name].holds(value):
            raise PointError(f"{where}: {name}: got {json.dumps(value)}, expected {_FORMS[name].expected}")
    point = Point(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
    for dtype in (point.dtype, *([point.to] if point.to else [])):
        _expect_dtype(dtype, where)
    if (message := kinds.complaint(point)) is not None:
        raise PointError(f"{where}: {message}")
    return point


def _expect_dtype(name: str, where: str) -> None:
    from dovetail.schema.dtypes import ALL

    names = [d.name for d in ALL]
    if name not in names:
        raise PointError(f"{where}: there is no dtype {name!r}{did_you_mean(name, names)}")


def select(points: Iterable[Point], ops: tuple[str, ...]) -> list[Point]:
    """The points of these ops, or all. Raises PointError for an op without a point."""
    points = list(points)
    known = sorted({point.op for point in points})
    for op in ops:
        if op not in known:
            raise PointError(f"there is no point of {op!r}{did_you_mean(op, known)}")
    return [point for point in points if not ops or point.op in ops]
