"""Fourier transforms: the array API's fft extension, on every device.

A transform of n elements is a chain of products by small matrices of roots of unity where n has small factors
(Cooley and Tukey, An Algorithm for the Machine Calculation of Complex Fourier Series, 1965), and of a large prime
a convolution (Bluestein, A Linear Filtering Approach to the Computation of the Discrete Fourier Transform, 1970).
In a trace, the program holds for the sizes of the transformed axes that it was traced with.

norm="backward" divides the inverse transforms by n, "forward" the others, "ortho" each by sqrt(n).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from operator import index
from typing import Any

from dovetail import _core
from dovetail._array import expect_array, expect_axis, is_complex
from dovetail._core import Array, Device, DType
from dovetail._creation import asarray

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip

_op = _core.op_function
_MOST = 64  # rows of a matrix of roots
_SMALL_PRIME = 256  # up to here its own matrix is faster than a convolution
_NORMS = ("backward", "ortho", "forward")
Sizes = Sequence[int]


# ---- transforms of the last axis ---------------------------------------------------------------------------------


def _roots(n: int, p: int, q: int, sign: int) -> Any:
    """exp(sign 2 pi i j k / n) for j < p and k < q, in NumPy's complex128; the exponent is reduced exactly."""
    import numpy as np

    turns = np.outer(np.arange(p, dtype=np.int64), np.arange(q, dtype=np.int64)) % n
    return np.exp(sign * 2j * np.pi * (turns / n))


def _chirp(n: int, sign: int) -> Any:
    """exp(sign pi i j**2 / n) for j < n."""
    import numpy as np

    j = np.arange(n, dtype=np.int64)
    return np.exp(sign * 1j * np.pi * (j * j % (2 * n) / n))


def _kernel(n: int, m: int, sign: int) -> Any:
    """The transform of the chirp that a transform of n elements is a convolution of m with."""
    import numpy as np

    chirp = np.zeros(m, np.complex128)
    chirp[:n] = _chirp(n, -sign)
    chirp[m - n + 1 :] = chirp[1:n][::-1]
    return np.fft.fft(chirp) / m


@lru_cache(maxsize=128)
def _kept(make: Any, arguments: tuple[int, ...], dtype: str) -> Any:
    return make(*arguments).astype(dtype)


def _constant(make: Any, *arguments: int, like: Array) -> Array:
    """make's array in x's dtype on x's device. The host keeps it: a device may lose its memory."""
    return asarray(_kept(make, arguments, str(like.dtype)), device=like.device)


def _divisor(n: int) -> int:
    return next((p for p in range(min(_MOST, n), 1, -1) if n % p == 0), 1)


def _transform(x: Array, sign: int) -> Array:
    """sum(x[j] exp(sign 2 pi i j k / n)) along the last axis, for complex x with n > 0."""
    n = int(x.shape[-1])
    p = _divisor(n)
    if n <= _MOST or (p == 1 and n <= _SMALL_PRIME):
        return x if n == 1 else _op("matmul")(x, _constant(_roots, n, n, n, sign, like=x))
    if p == 1:
        return _convolved(x, n, sign)
    q, batch = n // p, x.shape[:-1]
    rows = _op("matmul")(_constant(_roots, p, p, p, sign, like=x), _op("reshape")(x, (*batch, p, q)))
    rows = _transform(rows * _constant(_roots, n, p, q, sign, like=x), sign)
    return _op("reshape")(_op("matrix_transpose")(rows), (*batch, n))


def _convolved(x: Array, n: int, sign: int) -> Array:
    m = 1 << (2 * n - 2).bit_length()
    chirp = _constant(_chirp, n, sign, like=x)
    spread = _transform(_padded(x * chirp, m), -1) * _constant(_kernel, n, m, sign, like=x)
    return _transform(spread, 1)[..., :n] * chirp


def _padded(x: Array, n: int) -> Array:
    """The first n elements of the last axis, zeros behind those that there are."""
    have = int(x.shape[-1])
    if have >= n:
        return x if have == n else x[..., :n]
    return _op("pad")(x, (*(0, 0) * (x.ndim - 1), 0, n - have))


# ---- arguments ---------------------------------------------------------------------------------------------------


def _floating(op: str, x: Array, real: bool = False) -> Array:
    expect_array(op, x)
    if real and is_complex(x):
        cure = f"fft.{op.replace('rfft', 'fft')} takes complex ones" if "rfft" in op else "take its real part"
        raise TypeError(f"[{op}] x: got {x.dtype}, expected real numbers; {cure}")
    wide = "float64" if x.dtype in ("float64", "complex128") else "float32"
    wanted = wide if real else {"float32": "complex64", "float64": "complex128"}[wide]
    return x if x.dtype == wanted else _op("astype")(x, wanted)


def _length(op: str, n: int | None, otherwise: Any) -> int:
    n = int(otherwise) if n is None else index(n)
    if n < 1:
        raise ValueError(f"[{op}] n: got {n} elements to transform, expected at least 1")
    return n


def _scale(op: str, norm: str, n: int, inverse: bool) -> float:
    if norm not in _NORMS:
        raise ValueError(f"[{op}] norm: got {norm!r}, expected 'backward', 'ortho' or 'forward'")
    if norm == "ortho":
        return 1 / sqrt(n)
    return 1 / n if (norm == "backward") == inverse else 1.0


def _scaled(x: Array, scale: float) -> Array:
    return x if scale == 1 else x * scale


def _last(op: str, x: Array, axis: int) -> tuple[Array, int]:
    axis = expect_axis(op, axis, x.ndim)
    return _op("moveaxis")(x, axis, -1), axis


def _back(x: Array, axis: int) -> Array:
    return _op("moveaxis")(x, -1, axis)


def _sizes(op: str, x: Array, s: Sizes | None, axes: Sizes | None) -> list[tuple[int, int]]:
    """(axis, size) of each transform, in the order of the axes."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = [expect_axis(op, a, x.ndim) for a in axes]
    if len(set(axes)) < len(axes):
        raise ValueError(f"[{op}] axes: got {axes}, expected each axis once")
    if s is not None and len(s) != len(axes):
        raise ValueError(f"[{op}] s: got {len(s)} sizes for {len(axes)} axes")
    return [(a, _length(op, None if s is None else s[i], x.shape[a])) for i, a in enumerate(axes)]


# ---- of complex arrays -------------------------------------------------------------------------------------------


def _along(op: str, x: Array, n: int | None, axis: int, norm: str, inverse: bool) -> Array:
    x, axis = _last(op, _floating(op, x), axis)
    n = _length(op, n, x.shape[-1])
    out = _transform(_padded(x, n), 1 if inverse else -1)
    return _back(_scaled(out, _scale(op, norm, n, inverse)), axis)


def fft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The discrete Fourier transform along axis; x is cut off or filled with zeros to n elements.

    complex64, or complex128 of float64 and complex128. Raises ValueError for n < 1 and an unknown norm.
    """
    return _along("fft", x, n, axis, norm, False)


def ifft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of fft."""
    return _along("ifft", x, n, axis, norm, True)


def _along_each(op: str, transform: Any, x: Array, s: Sizes | None, axes: Sizes | None, norm: str) -> Array:
    expect_array(op, x)
    for axis, n in _sizes(op, x, s, axes):
        x = transform(x, n=n, axis=axis, norm=norm)
    return _floating(op, x)  # where there is no axis, too


def fftn(x: Array, /, *, s: Sizes | None = None, axes: Sizes | None = None, norm: str = "backward") -> Array:
    """fft along each of the axes, by default all; s: their sizes, as n of fft."""
    return _along_each("fftn", fft, x, s, axes, norm)


def ifftn(x: Array, /, *, s: Sizes | None = None, axes: Sizes | None = None, norm: str = "backward") -> Array:
    """The inverse of fftn."""
    return _along_each("ifftn", ifft, x, s, axes, norm)


# ---- of real arrays ----------------------------------------------------------------------------------------------


def rfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The first n // 2 + 1 elements of the transform of a real x, which the others mirror. Raises as fft does."""
    x, axis = _last("rfft", _floating("rfft", x, real=True), axis)
    n = _length("rfft", n, x.shape[-1])
    out = _transform(_floating("rfft", _padded(x, n)), -1)[..., : n // 2 + 1]
    return _back(_scaled(out, _scale("rfft", norm, n, False)), axis)


def irfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of rfft, a real array of n elements along axis: by default 2 * (m - 1) of m."""
    x, axis = _last("irfft", _floating("irfft", x), axis)
    n = _length("irfft", n, 2 * (x.shape[-1] - 1))
    half = _padded(x, n // 2 + 1)
    mirrored = _op("conj")(_op("flip")(half[..., 1 : (n + 1) // 2], axis=-1))
    out = _transform(_op("concat")([half, mirrored], axis=-1), 1).real
    return _back(_scaled(out, _scale("irfft", norm, n, True)), axis)


def rfftn(x: Array, /, *, s: Sizes | None = None, axes: Sizes | None = None, norm: str = "backward") -> Array:
    """rfft along the last of the axes, fft along the others."""
    expect_array("rfftn", x)
    *others, (axis, n) = _sizes("rfftn", x, s, axes) or [(expect_axis("rfftn", -1, x.ndim), 0)]
    x = rfft(x, n=n, axis=axis, norm=norm)
    for axis, n in others:
        x = fft(x, n=n, axis=axis, norm=norm)
    return x


def irfftn(x: Array, /, *, s: Sizes | None = None, axes: Sizes | None = None, norm: str = "backward") -> Array:
    """The inverse of rfftn; of the last axis 2 * (m - 1) elements by default."""
    expect_array("irfftn", x)
    *others, (axis, n) = _sizes("irfftn", x, s, axes) or [(expect_axis("irfftn", -1, x.ndim), 0)]
    for other, size in others:
        x = ifft(x, n=size, axis=other, norm=norm)
    return irfft(x, n=n if s is not None else None, axis=axis, norm=norm)


def hfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The transform, which is real, of a signal of n elements, 2 * (m - 1) by default, of which x has the first m.

    The others are their conjugates, mirrored.
    """
    x = _floating("hfft", x)
    n = _length("hfft", n, 2 * (x.shape[expect_axis("hfft", axis, x.ndim)] - 1))
    out = irfft(_op("conj")(x), n=n, axis=axis, norm="forward")
    return _scaled(out, _scale("hfft", norm, n, False))


def ihfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of hfft: the first n // 2 + 1 elements."""
    x = _floating("ihfft", x, real=True)
    n = _length("ihfft", n, x.shape[expect_axis("ihfft", axis, x.ndim)])
    out = _op("conj")(rfft(x, n=n, axis=axis))
    return _scaled(out, _scale("ihfft", norm, n, True))


# ---- frequencies -------------------------------------------------------------------------------------------------


def _frequencies(op: str, n: int, d: float, k: Any, dtype: Any, device: Any) -> Array:
    dtype = "float32" if dtype is None else dtype
    if _core.to_dtype(dtype).kind != "real floating":
        raise TypeError(f"[{op}] dtype: got {dtype}, expected a real floating one")
    return asarray(k / (n * d), dtype=dtype, device=device)


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | str | None = None, device: Device | str | None = None
) -> Array:
    """The frequencies of fft's elements, (n,), for samples at a distance of d; behind the middle negative ones."""
    import numpy as np

    n = _length("fftfreq", n, n)
    k = np.arange(n)
    return _frequencies("fftfreq", n, d, np.where(k < (n + 1) // 2, k, k - n), dtype, device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | str | None = None, device: Device | str | None = None
) -> Array:
    """The frequencies of rfft's elements, (n // 2 + 1,), for samples at a distance of d."""
    import numpy as np

    n = _length("rfftfreq", n, n)
    return _frequencies("rfftfreq", n, d, np.arange(n // 2 + 1), dtype, device)


def _shifted(op: str, x: Array, axes: int | Sizes | None, back: bool) -> Array:
    expect_array(op, x)
    axes = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    axes = tuple(expect_axis(op, a, x.ndim) for a in axes)
    shift = tuple(-(x.shape[a] // 2) if back else x.shape[a] // 2 for a in axes)
    return _op("roll")(x, shift, axis=axes) if axes else x.__copy__()


def fftshift(x: Array, /, *, axes: int | Sizes | None = None) -> Array:
    """x with frequency 0 in the middle of the axes, by default of all."""
    return _shifted("fftshift", x, axes, False)


def ifftshift(x: Array, /, *, axes: int | Sizes | None = None) -> Array:
    """The inverse of fftshift, for odd sizes too."""
    return _shifted("ifftshift", x, axes, True)
