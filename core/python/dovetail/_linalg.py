"""The functions of dovetail.linalg that are compositions of ops.

Matrices are the last two axes; the axes before them are a batch. Nothing but eig and eigvals reads on the host, so
a matrix that is singular, or not positive definite, raises no error: its results have inf or NaN, as documented.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from operator import index
from typing import Any

from dovetail import _core
from dovetail._array import expect_array, expect_axis, expect_elements, is_complex
from dovetail._core import Array, DType
from dovetail._creation import asarray
from dovetail._errors import AxisError, warn
from dovetail._functions import broadcast_arrays

__all__ = [
    "cross", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "trace",
]  # fmt: skip

QR = namedtuple("QR", "Q R")
Eigh = namedtuple("Eigh", "eigenvalues eigenvectors")
SVD = namedtuple("SVD", "U S Vh")
Eig = namedtuple("Eig", "eigenvalues eigenvectors")
Slogdet = namedtuple("Slogdet", "sign logabsdet")
_op = _core.op_function


def _expect_square(op: str, x: Array) -> None:
    expect_array(op, x)
    if x.ndim < 2 or x.shape[-2] != x.shape[-1]:
        raise ValueError(f"[{op}] x: got shape {x.shape}, expected square matrices (..., n, n)")


def _floating(x: Array) -> Array:
    return x if "floating" in x.dtype.kind else _op("astype")(x, "float32")


def _adjoint(x: Array) -> Array:
    x = _op("matrix_transpose")(x)
    return _op("conj")(x) if is_complex(x) else x


# ---- factorizations ----------------------------------------------------------------------------------------------


def qr(x: Array, /, *, mode: str = "reduced") -> QR:
    """x (..., m, n) as Q @ R with orthonormal columns in Q and an upper triangular R, by Householder reflections.

    mode="reduced": Q (..., m, k) and R (..., k, n) with k = min(m, n); "complete": Q (..., m, m) and R (..., m, n).
    Raises ValueError for another mode, or fewer than two axes.
    """
    return QR(*_op("qr")(x, mode=mode))


def eigh(x: Array, /) -> Eigh:
    """(eigenvalues, eigenvectors) of Hermitian matrices: (..., n), ascending, and (..., n, n) as columns.

    Only the lower triangle is read. Vectors have length 1, and their element of largest magnitude is positive.
    """
    return Eigh(*_op("eigh")(x))


def eigvalsh(x: Array, /) -> Array:
    """The eigenvalues of Hermitian matrices, ascending: (..., n) of (..., n, n). See eigh."""
    return _op("eigh")(x)[0]


def _on_host(op: str, x: Array) -> tuple[Any, ...]:
    """NumPy's results of square matrices, complex: rotations, which every device has, do not find them."""
    import numpy as np

    _expect_square(op, x)
    expect_elements(op, x, "compute the eigenvalues outside, and pass them as an argument")
    mode = _core.fallback()
    if x.device.kind != "cpu" and mode != "allow":
        text = f"[linalg.{op}] runs on the host: no device has a kernel for it. "
        if mode == "error":
            raise NotImplementedError(text + "dovetail.fallback('allow') permits this")
        warn(text + "dovetail.fallback('error') forbids this, 'allow' silences it")
    a = x.numpy()
    wide = np.result_type(a if a.dtype.name in ("float64", "complex128") else np.float32, a, np.complex64)
    found = getattr(np.linalg, op)(a.astype(wide))
    return tuple(asarray(r, device=x.device) for r in (found if isinstance(found, tuple) else (found,)))


def eig(x: Array, /) -> Eig:
    """(eigenvalues, eigenvectors) of any square matrices: (..., n) in no order, and (..., n, n) as columns.

    Both are complex; vectors have length 1. By LAPACK on the host: TypeError in a trace, NotImplementedError on
    other devices where dovetail.fallback() forbids it. Of a symmetric or Hermitian matrix eigh is better.
    """
    return Eig(*_on_host("eig", x))


def eigvals(x: Array, /) -> Array:
    """The eigenvalues of any square matrices, complex, in no order: (..., n) of (..., n, n). See eig."""
    return _on_host("eigvals", x)[0]


def svd(x: Array, /, *, full_matrices: bool = True) -> SVD:
    """x (..., m, n) as U @ diag(S) @ Vh with orthonormal columns of U and rows of Vh, and S (..., k) descending.

    k = min(m, n). U is (..., m, m) and Vh (..., n, n), with full_matrices=False (..., m, k) and (..., k, n). The
    element of largest magnitude in each of the first k columns of U is positive.
    """
    return SVD(*_op("svd")(x, full_matrices=full_matrices))


def svdvals(x: Array, /) -> Array:
    """The singular values of matrices, descending: (..., min(m, n)) of (..., m, n)."""
    return _op("svd")(x, full_matrices=False)[1]


def _cutoff(s: Array, rtol: float | Array | None, shape: tuple[int, ...]) -> Array:
    """What a singular value must be above to count, with an axis to compare: rtol times the largest."""
    from dovetail._dtypes import finfo

    if rtol is None:
        rtol = max(shape[-2:]) * float(finfo(s.dtype).eps)
    if isinstance(rtol, Array):
        rtol = _op("expand_dims")(rtol, axis=rtol.ndim)
    return s[..., :1] * rtol


def matrix_rank(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """How many singular values are above rtol times the largest: int64, (...) of (..., m, n).

    rtol: a number, or one for each matrix; None: max(m, n) times the epsilon of the dtype.
    """
    s = svdvals(x)
    return _op("count_nonzero")(s > _cutoff(s, rtol, x.shape), axis=-1)


def pinv(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """The pseudo-inverses of matrices, (..., n, m) of (..., m, n).

    Singular values that are not above rtol times the largest count as 0; None: max(m, n) times the epsilon.
    """
    u, s, vh = svd(x, full_matrices=False)
    counts = s > _cutoff(s, rtol, x.shape)
    inverse = _op("where")(counts, 1.0 / _op("where")(counts, s, 1.0), 0.0)
    return _op("matmul")(_adjoint(vh) * inverse[..., None, :], _adjoint(u))


def det(x: Array, /) -> Array:
    """The determinants of square matrices, (...) of (..., n, n); 1 for n = 0, and 0 of a singular matrix."""
    _expect_square("det", x)
    lu, _, sign = _op("lu_factor")(_floating(x))
    diagonal = _op("diagonal")(lu)
    return _op("prod")(diagonal, axis=-1) * _op("astype")(sign, lu.dtype)


def slogdet(x: Array, /) -> Slogdet:
    """(sign, logabsdet) of the determinants: sign * exp(logabsdet), which neither overflows nor underflows.

    Of a singular matrix 0 and -inf.
    """
    _expect_square("slogdet", x)
    lu, _, sign = _op("lu_factor")(_floating(x))
    diagonal = _op("diagonal")(lu)
    sign = _op("prod")(_op("sign")(diagonal), axis=-1) * _op("astype")(sign, lu.dtype)
    return Slogdet(sign, _op("sum")(_op("log")(_op("abs")(diagonal)), axis=-1))


def solve(x1: Array, x2: Array, /) -> Array:
    """The X of x1 @ X = x2 for square matrices x1 (..., n, n): of x2's shape, with the leading axes broadcast.

    x2 is one vector (n,) for all, or matrices (..., n, k). By LU factors with partial pivoting. A singular x1 gives
    inf or NaN, where NumPy raises: its elements are on the device. Raises ValueError for shapes that do not fit.
    """
    _expect_square("solve", x1)
    expect_array("solve", x2, "x2")
    if x2.ndim == 0 or x2.shape[max(x2.ndim - 2, 0)] != x1.shape[-1]:
        raise ValueError(f"[solve] shapes {x1.shape} and {x2.shape} do not match: expected x2 (n,) or (..., n, k)")
    lu, order, _ = _op("lu_factor")(_floating(x1))
    right = x2[:, None] if x2.ndim == 1 else x2
    lead = (1,) * max(lu.ndim - right.ndim, 0)
    right = _op("reshape")(right, (*lead, *right.shape))  # rows are taken from arrays of as many axes
    order = _op("reshape")(order, (*(1,) * (right.ndim - lu.ndim), *order.shape, 1))
    right = _op("take_along_axis")(_floating(right), order, axis=-2)
    right = _op("solve_triangular")(lu, right, upper=False, unitriangular=True)
    out = _op("solve_triangular")(lu, right, upper=True)
    return out[..., 0] if x2.ndim == 1 else out


def inv(x: Array, /) -> Array:
    """The inverses of square matrices. A singular matrix gives inf or NaN, where NumPy raises."""
    _expect_square("inv", x)
    return solve(x, _op("eye")(x.shape[-1], dtype=_floating(x).dtype, device=x.device))


def matrix_power(x: Array, n: int, /) -> Array:
    """x @ x @ ... n times, for square matrices; for n = 0 the unit matrix, for n < 0 of the inverse."""
    _expect_square("matrix_power", x)
    n = index(n)
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        unit = _op("eye")(x.shape[-1], dtype=x.dtype, device=x.device)
        return _op("copy")(_op("broadcast_to")(unit, x.shape))
    out = None
    while n:  # by the binary digits of n
        if n & 1:
            out = x if out is None else _op("matmul")(out, x)
        n >>= 1
        x = _op("matmul")(x, x) if n else x
    return out.__copy__()


# ---- products, diagonals, norms ----------------------------------------------------------------------------------


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The cross products of the vectors of three elements along axis; the other axes broadcast.

    axis counts from the end of both. Raises ValueError where an axis has not three elements.
    """
    expect_array("cross", x1, "x1")
    expect_array("cross", x2, "x2")
    for name, x in (("x1", x1), ("x2", x2)):
        if not -x.ndim <= axis < x.ndim:
            raise AxisError(f"[cross] {name} has no axis {axis}: expected {-x.ndim} to {x.ndim - 1}")
        if x.shape[axis] != 3:
            raise ValueError(f"[cross] {name}: got {x.shape[axis]} elements along axis {axis}, expected 3")
    x1, x2 = broadcast_arrays(x1, x2)
    axis = expect_axis("cross", axis, x1.ndim)
    lead = (slice(None),) * axis
    a, b = ([x[(*lead, i)] for i in range(3)] for x in (x1, x2))
    pairs = ((1, 2), (2, 0), (0, 1))
    return _op("stack")([a[i] * b[j] - a[j] * b[i] for i, j in pairs], axis=axis)


def trace(x: Array, /, *, offset: int = 0, dtype: DType | str | None = None) -> Array:
    """The sums along diagonals, (...) of matrices (..., n, m). offset: which diagonal; dtype: as sum has it."""
    return _op("sum")(_op("diagonal")(x, offset=offset), axis=-1, dtype=dtype)


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: float | str = "fro") -> Array:
    """The norms of matrices: "fro" the root of the sum of squares, 1 (-1) the largest (smallest) sum of magnitudes
    of a column, inf (-inf) of a row, 2 (-2) the largest (smallest) singular value, "nuc" the sum of them.

    Raises ValueError for any other.
    """
    expect_array("matrix_norm", x)
    if x.ndim < 2:
        raise ValueError(f"[matrix_norm] x: got shape {x.shape}, expected (..., m, n)")
    if ord == "fro" or (ord in (1, 2, float("inf")) and not x.size):  # of matrices without elements all are 0
        return _op("vector_norm")(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        out = _op({2: "max", -2: "min", "nuc": "sum"}[ord])(svdvals(x), axis=-1)
        return _op("reshape")(out, (*out.shape, 1, 1)) if keepdims else out
    if ord not in (1, -1, float("inf"), float("-inf")):
        raise ValueError(f"[matrix_norm] ord: got {ord!r}, expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    axis = -2 if ord in (1, -1) else -1
    sums = _op("sum")(_op("abs")(_floating(x)), axis=axis, keepdims=True)
    return _op("max" if ord > 0 else "min")(sums, axis=(-2, -1), keepdims=keepdims)


def multi_dot(arrays: Sequence[Array], /) -> Array:
    """The product of two matrices or more, in the order that takes the fewest multiplications.

    The first and the last may be vectors. In a trace, the order is that for the sizes of the example. Raises
    ValueError for fewer than two, for other numbers of axes, or sizes that do not fit.
    """
    arrays = list(arrays)
    n = len(arrays)
    if n < 2:
        raise ValueError(f"[multi_dot] arrays: got {n}, expected two or more")
    for i, x in enumerate(arrays):
        expect_array("multi_dot", x, f"arrays[{i}]")
        if x.ndim != 2 and (x.ndim != 1 or 0 < i < n - 1):
            raise ValueError(f"[multi_dot] arrays[{i}]: got shape {x.shape}, expected a matrix")
    cut = _cheapest_cuts(arrays)

    def product(i: int, j: int) -> Array:
        if i == j:
            return arrays[i]
        k = cut[i, j]
        return _op("matmul")(product(i, k), product(k + 1, j))

    return product(0, n - 1)


def _cheapest_cuts(arrays: list[Array]) -> dict[tuple[int, int], int]:
    """Behind which matrix to cut the product of those from i to j, by the sizes of each."""
    from dovetail.schema.number import value_of

    n = len(arrays)
    sizes = [value_of(x.shape[0]) if x.ndim == 2 or i else 1 for i, x in enumerate(arrays)]
    sizes.append(value_of(arrays[-1].shape[1]) if arrays[-1].ndim == 2 else 1)
    cost, cut = {(i, i): 0 for i in range(n)}, {}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            costs = {k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
            cut[i, j] = min(costs, key=lambda k: costs[k])
            cost[i, j] = costs[cut[i, j]]
    return cut
