"""Functions of the array API that are not ops: views of several arrays, contractions, further arguments."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index

from dovetail import _core
from dovetail._array import as_size, expect_array, expect_axis
from dovetail._core import Array, Device, DType
from dovetail._errors import AxisError

__all__ = [
    "astype", "broadcast_arrays", "broadcast_shapes", "dot", "imag", "inner", "kron", "meshgrid", "pad",
    "real", "reshape", "tensordot", "unstack",
]  # fmt: skip

_op = _core.op_function


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all of these broadcast to. Raises ValueError where there is none."""
    result: list[int] = []
    for shape in shapes:
        try:
            shape = tuple(map(as_size, shape))
        except TypeError:
            raise TypeError(f"[broadcast_shapes] expected tuples of integers, got {shape!r}") from None
        result[:0] = [1] * (len(shape) - len(result))
        for i, n in enumerate(reversed(shape), 1):
            if _is_one(n) or (not _is_one(result[-i]) and (n == result[-i] or n == 1)):
                continue
            if result[-i] != 1:
                got = ", ".join(map(str, shapes))
                raise ValueError(f"[broadcast_shapes] shapes {got} do not match: expected equal sizes or 1")
            result[-i] = n
    return tuple(result)


def _is_one(n: int) -> bool:
    """Whether n is 1 in every call: of a traced size that is not asked, as the answer would be a guard."""
    return type(n) is int and n == 1


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """The arrays as views of the one shape that they broadcast to. Raises ValueError where there is none."""
    for i, x in enumerate(arrays):
        expect_array("broadcast_arrays", x, f"array {i}")
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(_op("broadcast_to")(x, shape) for x in arrays)


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis, as views without it. Raises AxisError for an axis that x has not."""
    expect_array("unstack", x)
    axis = expect_axis("unstack", axis, x.ndim)
    lead = (slice(None),) * axis
    return tuple(x[(*lead, i)] for i in range(x.shape[axis]))


def astype(x: Array, dtype: DType | str, /, *, copy: bool = True, device: Device | str | None = None) -> Array:
    """x in another dtype: floats are truncated towards zero on the way to integers; to bool it is x != 0.

    copy=False: the result may share x's elements where the dtype is the same already. device: where to bring it.
    """
    expect_array("astype", x)
    out = x.astype(dtype, copy=copy)
    return out if device is None else out.to_device(device)


def real(x: Array, /) -> Array:
    """The real part, as a view: of a real array, the array itself."""
    expect_array("real", x)
    return x.real


def imag(x: Array, /) -> Array:
    """The imaginary part, as a view: of a real array, zeros."""
    expect_array("imag", x)
    return x.imag


def rounded(x: Array, decimals: int) -> Array:
    """x rounded to so many decimals, half to even; negative ones round before the point."""
    if not decimals or ("integer" in x.dtype.kind and decimals > 0):
        return _op("round")(x)
    if "floating" not in x.dtype.kind:
        raise TypeError(f"[round] digits: got {decimals} for an array of {x.dtype}, expected 0 or more; astype it")
    scale = 10.0 ** abs(decimals)
    return _op("round")(x * scale) / scale if decimals > 0 else _op("round")(x / scale) * scale


def pad(
    x: Array,
    pad_width: int | Sequence[int] | Sequence[Sequence[int]],
    mode: str = "constant",
    *,
    constant_values: complex = 0,
) -> Array:
    """x with constant_values, or with elements of its own around it.

    pad_width: one number for every side, (before, after) for every axis, a pair for each axis as NumPy has them,
    ((1, 2), (0, 1)), or the same in one flat row. mode, as in NumPy: "constant"; "edge" repeats the last element,
    "reflect" mirrors without it, "symmetric" with it, "wrap" goes on at the other end.
    """
    if mode != "constant":
        return _padded_by_itself(x, pad_width, mode, constant_values)
    return _op("pad")(x, _flat_width(x, pad_width), constant_values=constant_values)


def _flat_width(x: Array, pad_width: int | Sequence[int] | Sequence[Sequence[int]]) -> int | Sequence[int]:
    """pad_width as the op takes it: pairs in one row."""
    if isinstance(pad_width, (list, tuple)) and any(isinstance(pair, (list, tuple)) for pair in pad_width):
        pairs = [tuple(p) if isinstance(p, (list, tuple)) else (p,) for p in pad_width]
        if len(pairs) not in (1, x.ndim) or any(len(p) not in (1, 2) for p in pairs):
            raise ValueError(f"[pad] pad_width: got {pad_width!r}, expected a pair for each of {x.ndim} axes")
        pairs = [p * 2 if len(p) == 1 else p for p in pairs] * (x.ndim if len(pairs) == 1 else 1)
        return tuple(n for pair in pairs for n in pair)
    if hasattr(pad_width, "tolist") and getattr(pad_width, "ndim", 0):
        return _flat_width(x, pad_width.tolist())
    return pad_width


def _padded_by_itself(x: Array, pad_width: int | Sequence, mode: str, constant_values: complex) -> Array:
    from dovetail._nn_padding import MODES, repeated

    expect_array("pad", x)
    if mode not in MODES:
        raise ValueError(f"[pad] mode: got {mode!r}, expected 'constant', {', '.join(map(repr, MODES))}")
    if constant_values != 0:
        raise ValueError(f"[pad] constant_values with mode {mode!r}: expected none; they are for mode 'constant'")
    flat = _flat_width(x, pad_width)
    sides = list(flat) if isinstance(flat, (list, tuple)) else [flat]
    sides *= 2 if len(sides) == 1 else 1
    sides *= x.ndim if len(sides) == 2 else 1
    if len(sides) != 2 * x.ndim:
        raise ValueError(f"[pad] pad_width: got {pad_width!r}, expected a pair for each of {x.ndim} axes")
    return repeated("pad", x, [*zip(sides[::2], sides[1::2], strict=True)], mode)


def reshape(x: Array, /, shape: int | tuple[int, ...], *, copy: bool | None = None) -> Array:
    """The same elements in row-major order in another shape; one size of -1 is found out.

    copy: None shares x's elements where its strides allow; True never does; False raises ValueError where they do
    not allow it, as does a shape of another number of elements.
    """
    if copy:
        x = _op("copy")(x)
    out = _op("reshape")(x, shape)
    if copy is False and type(x) is Array and not _core.same_memory(x, out):
        raise ValueError(
            f"[reshape] strides {x.strides} of shape {x.shape} do not allow {out.shape} without a copy"
        )
    return out


def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """The coordinates of a grid: for each of the 1-D arrays one of the grid's shape, as a view.

    indexing: "xy" puts the second array's axis first, as in pictures; "ij" keeps the order. Raises ValueError where
    an array has more than one axis, TypeError where dtypes differ.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"[meshgrid] indexing: expected 'xy' or 'ij', got {indexing!r}")
    for i, x in enumerate(arrays):
        expect_array("meshgrid", x, f"array {i}")
        if x.ndim > 1:
            raise ValueError(f"[meshgrid] array {i}: expected one axis, got shape {x.shape}")
        if x.dtype != arrays[0].dtype:
            raise TypeError(f"[meshgrid] array {i}: expected {arrays[0].dtype}, as the first has, got {x.dtype}")
    axes = list(range(len(arrays)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = 1, 0
    shape = [1] * len(axes)
    for x, axis in zip(arrays, axes):
        shape[axis] = x.size
    grids = []
    for x, axis in zip(arrays, axes):
        alone = [1] * len(axes)
        alone[axis] = x.size
        grids.append(_op("broadcast_to")(_op("reshape")(x, alone), shape))
    return tuple(grids)


def tensordot(x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """Sums of products over axes of both: the last `axes` of x1 with the first of x2, or pairs of axes.

    The result has the other axes of x1, then those of x2. Raises ValueError where sizes of paired axes differ.
    """
    expect_array("tensordot", x1, "x1")
    expect_array("tensordot", x2, "x2")
    first, second = _contracted(x1, x2, axes)
    for a, b in zip(first, second, strict=True):
        if x1.shape[a] != x2.shape[b]:
            raise ValueError(
                f"[tensordot] shapes {x1.shape} and {x2.shape} do not match: expected x1's axis {a} of size "
                f"{x1.shape[a]} to equal x2's axis {b} of size {x2.shape[b]}"
            )
    left = [a for a in range(x1.ndim) if a not in first]
    right = [b for b in range(x2.ndim) if b not in second]
    left_shape, right_shape = [x1.shape[a] for a in left], [x2.shape[b] for b in right]
    inner = prod(x1.shape[a] for a in first)
    rows = _op("reshape")(_op("permute_dims")(x1, (*left, *first)), (prod(left_shape), inner))
    columns = _op("reshape")(_op("permute_dims")(x2, (*second, *right)), (inner, prod(right_shape)))
    return _op("reshape")(_op("matmul")(rows, columns), (*left_shape, *right_shape))


def _contracted(
    x1: Array, x2: Array, axes: int | tuple[Sequence[int], Sequence[int]]
) -> tuple[list[int], list[int]]:
    if hasattr(type(axes), "__index__"):
        axes = index(axes)
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise ValueError(f"[tensordot] axes: expected 0 to {min(x1.ndim, x2.ndim)}, got {axes}")
        return list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    try:
        pairs = [[index(a)] if hasattr(a, "__index__") else [*map(index, a)] for a in axes]
        fits = len(pairs) == 2 and len(pairs[0]) == len(pairs[1])
    except TypeError:
        fits = False
    if not fits:
        raise ValueError(f"[tensordot] axes: expected a number or two equally long sequences of axes, got {axes!r}")
    for x, name, chosen in zip((x1, x2), ("x1", "x2"), pairs):
        for i, a in enumerate(chosen):
            if not -x.ndim <= a < x.ndim:
                raise AxisError(f"[tensordot] {name} has no axis {a}: expected {-x.ndim} to {x.ndim - 1}")
            chosen[i] = a % x.ndim
        if len(set(chosen)) != len(chosen):
            raise ValueError(f"[tensordot] axes of {name}: expected each axis once, got {axes!r}")
    return pairs[0], pairs[1]


def dot(x1: Array, x2: Array, /) -> Array:
    """The sums of products over the last axis of x1 and the second last (of a vector, the only one) of x2.

    For vectors and matrices it is matmul; for more axes the result has all other axes of x1, then those of x2. An
    operand without axes is multiplied. Raises ValueError where the sizes differ.
    """
    expect_array("dot", x1, "x1")
    expect_array("dot", x2, "x2")
    if not x1.ndim or not x2.ndim:
        return _op("multiply")(x1, x2)
    return _op("matmul")(x1, x2) if x2.ndim <= 2 else tensordot(x1, x2, axes=([x1.ndim - 1], [x2.ndim - 2]))


def inner(x1: Array, x2: Array, /) -> Array:
    """The sums of products over the last axes of both: the other axes of x1, then those of x2.

    An operand without axes is multiplied. Raises ValueError where the sizes differ.
    """
    expect_array("inner", x1, "x1")
    expect_array("inner", x2, "x2")
    if not x1.ndim or not x2.ndim:
        return _op("multiply")(x1, x2)
    return tensordot(x1, x2, axes=([x1.ndim - 1], [x2.ndim - 1]))


def kron(x1: Array, x2: Array, /) -> Array:
    """The Kronecker product: each element of x1 replaced by its product with all of x2.

    The operand with fewer axes gets axes of size 1 in front; sizes multiply.
    """
    expect_array("kron", x1, "x1")
    expect_array("kron", x2, "x2")
    n = max(x1.ndim, x2.ndim)
    a, b = ((1,) * (n - x.ndim) + tuple(x.shape) for x in (x1, x2))
    outer = _op("reshape")(x1, [k for size in a for k in (size, 1)])
    within = _op("reshape")(x2, [k for size in b for k in (1, size)])
    return _op("reshape")(_op("multiply")(outer, within), [p * q for p, q in zip(a, b, strict=True)])
