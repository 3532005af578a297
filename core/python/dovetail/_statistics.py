"""Covariances, histograms and interpolation. All but bincount work in traces: nothing is read on the host."""

from __future__ import annotations

from dovetail import _core
from dovetail._array import PART, expect_array, expect_elements, symbolic
from dovetail._core import Array
from dovetail._dtypes import result_type
from dovetail._nan import is_float
from dovetail._searching import searchsorted

__all__ = ["bincount", "corrcoef", "cov", "digitize", "histogram", "interp"]

_op = _core.op_function


def _floating(x: Array) -> Array:
    return x if is_float(x) else _op("astype")(x, "float32")


def _part(x: Array) -> str:
    """The dtype of the parts of x, its own where it is real."""
    return PART.get(x.dtype.name, x.dtype.name)


def _adjoint(x: Array) -> Array:
    return _op("matrix_transpose")(_op("conj")(x) if "complex" in x.dtype.kind else x)


def _expect_vector(op: str, x: Array, name: str) -> None:
    expect_array(op, x, name)
    if x.ndim != 1:
        raise ValueError(f"[{op}] {name}: got shape {x.shape}, expected one axis")


# ---- covariances -------------------------------------------------------------------------------------------------


def cov(
    x: Array, /, *, correction: float = 1.0, fweights: Array | None = None, aweights: Array | None = None
) -> Array:
    """The covariances of the rows of x: (n, n) of x (n, observations), () of a vector; at least float32.

    correction: what is taken from the number of observations, 1 for the unbiased estimate; a number of
    observations that is not greater gives inf or NaN. fweights: how often each observation occurs; aweights: its
    relative weight. As numpy.cov with ddof=correction.
    """
    expect_array("cov", x)
    if x.ndim not in (1, 2):
        raise ValueError(f"[cov] x: got shape {x.shape}, expected (variables, observations) or one axis")
    rows = _floating(x if x.ndim == 2 else x[None, :])
    n = rows.shape[1]
    weights = _weights(rows, fweights, aweights)
    if weights is None:
        away = rows - _op("mean")(rows, axis=1, keepdims=True)
        products = _op("matmul")(away, _adjoint(away))
        out = products / _at_least_zero(_op("full")((), n, dtype=_part(rows), device=x.device) - correction)
    else:
        total = _op("sum")(weights)
        away = rows - _op("sum")(rows * weights, axis=1, keepdims=True) / total
        factor = total
        if aweights is None:
            factor = total - correction
        elif correction:
            factor = total - correction * _op("sum")(weights * _in(aweights, rows)) / total
        products = _op("matmul")(away * weights, _adjoint(away))
        out = products / _at_least_zero(factor)
    return out if x.ndim == 2 else _op("reshape")(out, ())


def _at_least_zero(x: Array) -> Array:
    return _op("maximum")(x, 0.0)


def _in(weights: Array, like: Array) -> Array:
    return _op("astype")(weights, _part(like))


def _weights(rows: Array, fweights: Array | None, aweights: Array | None) -> Array | None:
    product = None
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        _expect_vector("cov", weights, name)
        if weights.shape[0] != rows.shape[1]:
            raise ValueError(f"[cov] {name}: got {weights.shape[0]}, expected one for each of {rows.shape[1]}")
        weights = _in(weights, rows)
        product = weights if product is None else product * weights
    return product


def corrcoef(x: Array, /) -> Array:
    """The correlations of the rows of x: (n, n) of x (n, observations), () of a vector; within [-1, 1], of complex
    x both parts.

    A row that does not vary gives NaN.
    """
    c = cov(x)
    if c.ndim == 0:
        return c / c
    is_complex = "complex" in c.dtype.kind
    spread = _op("sqrt")(_op("diagonal")(c.real if is_complex else c))
    ratio = c / spread[:, None] / spread[None, :]
    if not is_complex:
        return _op("clip")(ratio, -1.0, 1.0)
    return _op("clip")(ratio.real, -1.0, 1.0) + _op("clip")(ratio.imag, -1.0, 1.0) * 1j


# ---- counts ------------------------------------------------------------------------------------------------------


def bincount(x: Array, /, *, weights: Array | None = None, minlength: int = 0) -> Array:
    """How often each of 0, 1, ... occurs in the vector x of integers: int64; with weights, the sums of these.

    The result has max(x) + 1 elements, minlength at least; the largest value is read on the host, so in a trace
    this raises TypeError. Raises ValueError for a negative value.
    """
    _expect_vector("bincount", x, "x")
    if "integer" not in x.dtype.kind:
        raise TypeError(f"[bincount] x: got {x.dtype}, expected integers")
    expect_elements("bincount", x, "use dovetail.segment_sum(weights, x, num_segments), whose length is given")
    n = minlength
    if x.size:
        least, most = int(x.min()), int(x.max())
        if least < 0:
            raise ValueError(f"[bincount] x: got {least}, expected no negative values")
        n = max(n, most + 1)
    if weights is None:
        weights = _op("full")(x.shape, 1, dtype="int64", device=x.device)
    elif weights.shape != x.shape:
        raise ValueError(f"[bincount] weights: got shape {weights.shape}, expected x's {x.shape}")
    return _op("segment_sum")(weights, x, n)


def histogram(
    x: Array,
    /,
    bins: int | Array = 10,
    *,
    range: tuple[float, float] | None = None,
    weights: Array | None = None,
    density: bool = False,
) -> tuple[Array, Array]:
    """How many elements of x lie in each bin, and the bins' edges: (counts, edges), as numpy.histogram.

    bins: a number of bins of one width from range[0] to range[1] (None: from x's least element to its largest), or
    a vector of ascending edges. A bin has its left edge and not its right one, but for the last. Elements outside
    of all bins, and NaN, are left out. counts: int64, sums of weights where they are given, or, with density, such
    that the integral over all bins is 1. edges: one more than bins, in x's dtype, float32 of integers. Raises
    ValueError for a number of bins below 1, an empty range, or weights of another shape.
    """
    expect_array("histogram", x)
    if weights is not None and weights.shape != x.shape:
        raise ValueError(f"[histogram] weights: got shape {weights.shape}, expected x's {x.shape}")
    values = _op("reshape")(_floating(x), (-1,))
    if isinstance(bins, Array):
        _expect_vector("histogram", bins, "bins")
        edges = bins
        values = _op("astype")(values, result_type(values, edges)) if is_float(edges) else values
    else:
        edges = _even_edges(values, bins, range)
    n = edges.shape[0] - 1
    place = searchsorted(edges, values, side="right") - 1
    place = _op("where")(_op("equal")(values, _op("astype")(edges[-1], values.dtype)), n - 1, place)
    if weights is None:
        counts = _op("segment_sum")(_op("full")(values.shape, 1, dtype="int64", device=x.device), place, n)
    else:
        counts = _op("segment_sum")(_op("reshape")(weights, (-1,)), place, n)
    if density:
        counts = _op("astype")(counts, result_type(_floating(edges), _floating(counts)))
        counts = counts / _op("sum")(counts) / _op("diff")(edges)
    return counts, edges


def _even_edges(values: Array, bins: int, range: tuple[float, float] | None) -> Array:
    if not symbolic(bins) and bins < 1:
        raise ValueError(f"[histogram] bins: got {bins}, expected 1 or more, or a vector of edges")
    dtype, device = values.dtype, values.device
    if range is None:
        if not symbolic(values.shape[0]) and values.shape[0] == 0:
            range = (0.0, 1.0)
        else:
            low, high = _op("min")(values), _op("max")(values)
    if range is not None:
        if not range[0] <= range[1]:
            raise ValueError(f"[histogram] range: got {range!r}, expected two numbers, the smaller one first")
        low, high = (_op("full")((), end, dtype=dtype, device=device) for end in range)
    one = _op("equal")(low, high)  # as NumPy has it, a range of width 1 around the only value
    low, high = _op("where")(one, low - 0.5, low), _op("where")(one, high + 0.5, high)
    steps = _op("astype")(_op("iota")(bins, "int64", device=device), dtype) / float(bins)
    inner = low + (high - low) * steps
    return _op("concat")([inner, _op("reshape")(high, (1,))])


def digitize(x: Array | float, bins: Array, /, *, right: bool = False) -> Array:
    """The index of the bin that each element of x belongs to: int64, of x's shape, as numpy.digitize.

    bins: a vector that ascends or descends. i stands for bins[i-1] <= x < bins[i], with right for
    bins[i-1] < x <= bins[i]; where bins descend the comparisons turn around. 0 and len(bins) are beyond.
    """
    _expect_vector("digitize", bins, "bins")
    n = bins.shape[0]
    if not symbolic(n) and n == 0:
        return searchsorted(bins, x)
    descends = _op("less")(bins[-1], bins[0])
    place = searchsorted(_op("where")(descends, _op("flip")(bins), bins), x, side="left" if right else "right")
    return _op("where")(descends, n - place, place)


# ---- interpolation -----------------------------------------------------------------------------------------------


def interp(
    x: Array | float, xp: Array, fp: Array, /, *, left: float | None = None, right: float | None = None
) -> Array:
    """The piecewise linear function through the points (xp[i], fp[i]) at x: of x's shape.

    xp ascends. left, right: the values below xp[0] and above xp[-1]; None: fp[0] and fp[-1]. Integers give float32.
    Raises ValueError where xp and fp are not vectors of one length, of one point at least.
    """
    _expect_vector("interp", xp, "xp")
    _expect_vector("interp", fp, "fp")
    n = xp.shape[0]
    if fp.shape[0] != n or (not symbolic(n) and n == 0):
        raise ValueError(f"[interp] fp: got {fp.shape[0]} points, expected xp's {n}, and one at least")
    xp, fp = _floating(xp), _floating(fp)
    dtype = result_type(x, xp, fp) if isinstance(x, Array) else result_type(xp, fp)
    fp = _op("astype")(fp, dtype)
    dtype = _part(fp)
    if not isinstance(x, Array):
        x = _op("full")((), x, dtype=dtype, device=xp.device)
    x, xp = (_op("astype")(v, dtype) for v in (x, xp))
    low = _op("clip")(searchsorted(xp, x, side="right") - 1, 0, n - 1)
    high = _op("minimum")(low + 1, n - 1)
    x0, x1, y0, y1 = (_op("take")(v, i, axis=0) for v in (xp, fp) for i in (low, high))
    y = _op("where")(x0 < x, y0 + (y1 - y0) * ((x - x0) / (x1 - x0)), y0)
    y = _op("where")(x < xp[0], fp[0] if left is None else left, y)
    y = _op("where")(xp[-1] < x, fp[-1] if right is None else right, y)
    return _op("where")(_op("isnan")(x), x, y)
