"""What the functions of dovetail.nn that are written in Python share."""

from __future__ import annotations

from numbers import Integral

from dovetail import _core
from dovetail._array import expect_array, symbolic

TYPE_CHECKING = False  # importing typing would take longer than everything else
if TYPE_CHECKING:
    from typing import Any

    from dovetail._core import Array, Device

op = _core.op_function


def is_integer(n: Any) -> bool:
    """Whether n is an integer, also of NumPy or a size of a traced array; not a bool."""
    return (isinstance(n, Integral) and not isinstance(n, bool)) or (symbolic(n) and not n.is_real)


def each(what: str, name: str, value: Any, n: int) -> tuple[int, ...]:
    """An integer for each of n axes: one for all, or a sequence of n."""
    if is_integer(value):
        return (value,) * n
    if not isinstance(value, (tuple, list)) or not all(map(is_integer, value)):
        raise TypeError(f"[{what}] {name}: got {value!r}, expected an integer or a sequence of {n}")
    if len(value) not in (1, n):
        raise ValueError(f"[{what}] {name}: got {len(value)} integers, expected 1 or {n}")
    return tuple(value) * (n if len(value) == 1 else 1)


def expect_rank(what: str, x: Array, *ranks: int) -> None:
    """Raises TypeError for what is no array, ValueError for one of another number of axes."""
    expect_array(what, x)
    if x.ndim not in ranks:
        raise ValueError(f"[{what}] x: got shape {x.shape}, expected {' or '.join(map(str, ranks))} axes")


def expect_float(what: str, x: Array) -> None:
    if x.dtype.kind != "real floating":
        raise TypeError(f"[{what}] x: got {x.dtype}, expected a real floating-point dtype; astype it")


def one_of(what: str, name: str, value: object, *known: str) -> None:
    """Raises ValueError for an unknown word."""
    if value not in known:
        raise ValueError(
            f"[{what}] {name}: got {value!r}, expected {', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        )


def counting(n: int, dtype: Any, device: Device | None) -> Array:
    """0, 1, ... n - 1."""
    return op("iota")(n, dtype, device=device)


def next_key(x: Array, shape: tuple[int, ...]) -> Array:
    """The key of dovetail.random's next draw, on x's device."""
    from dovetail.random import key

    return key(shape, device=x.device)


def drawn(x: Array, shape: tuple[int, ...], key: Array | None) -> Array:
    """Uniform float32 numbers from 0 to 1, of the key or of dovetail.random's next draw."""
    return op("uniform")(next_key(x, shape) if key is None else key, shape, "float32")


def along(v: Array, axis: int, ndim: int) -> Array:
    """A vector as an array of ndim axes that broadcasts along one of them."""
    shape = [1] * ndim
    shape[axis] = v.shape[0]
    return op("reshape")(v, shape)


def working(x: Array) -> Array:
    """x in the dtype in which sums of it are taken: float32 for float16 and bfloat16."""
    return op("astype")(x, "float32") if x.dtype.name in ("float16", "bfloat16") else x


def rounded(y: Array, x: Array) -> Array:
    """y in x's dtype."""
    return y if y.dtype == x.dtype else op("astype")(y, x.dtype)


def reduced(what: str, losses: Array, reduction: str) -> Array:
    """The losses themselves, their mean or their sum."""
    one_of(what, "reduction", reduction, "none", "mean", "sum")
    return losses if reduction == "none" else op(reduction)(losses)
