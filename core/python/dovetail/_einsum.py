"""einsum: sums of products over named axes, as a sequence of products of two arrays."""

from __future__ import annotations

import string
from collections.abc import Sequence
from math import prod
from typing import Any

from dovetail import _core
from dovetail._array import expect_array
from dovetail._core import Array
from dovetail._dtypes import result_type

__all__ = ["einsum"]

_op = _core.op_function
Labels = tuple[str, ...]  # one per axis: a letter, or "...0", "...1" for the axes of an ellipsis, from the right


def einsum(subscripts: str | Array, /, *operands: Any, optimize: bool | str | Sequence[Any] = True) -> Array:
    """The sum of products that the subscripts describe, as numpy.einsum: einsum("bij,bjk->bik", x, y).

    Each operand has a letter per axis, "..." for axes that broadcast; letters that the result lacks are summed
    over. Without "->" the result has the axes of "...", then the letters that occur once, sorted. A letter twice in
    one operand takes the diagonal. The other form is einsum(x, [0, 1], y, [1, 2], [0, 2]).

    optimize: how the order of products is found. True asks the library opt_einsum, where it is installed and there
    are more than two operands; False goes from left to right; a name as "greedy" is a method of opt_einsum, and a
    list of pairs is a path as numpy.einsum_path has it. Raises ValueError where subscripts and shapes do not fit.
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _lettered(subscripts, *operands)
    if not operands:
        raise ValueError("[einsum] expected one array at least, got none")
    for i, x in enumerate(operands):
        expect_array("einsum", x, f"operand {i}")
    terms, out = _parsed(subscripts, operands)
    arrays = list(operands)
    truth = all(x.dtype == "bool" for x in arrays)
    if any(x.dtype == "bool" for x in arrays):  # products of bool are and, their sums are or
        dtype = "float32" if truth else result_type(*arrays)
        arrays = [_op("astype")(x, dtype) if x.dtype == "bool" else x for x in arrays]
    arrays, terms = map(list, zip(*map(_own_diagonals, arrays, terms), strict=True))
    arrays, terms = _without_ones(arrays, terms)
    path = _path(terms, arrays, out, optimize)
    y = _contracted(arrays, terms, out, path)
    return _op("not_equal")(y, 0) if truth else y


# ---- subscripts --------------------------------------------------------------------------------------------------


def _lettered(*given: Any) -> tuple[str, tuple[Any, ...]]:
    """Operands and lists of integers in turn, and the result's list, as subscripts with letters."""

    def letters(labels: Any) -> str:
        try:
            return "".join("..." if k is Ellipsis else string.ascii_letters[k] for k in labels)
        except (TypeError, IndexError):
            raise ValueError(
                f"[einsum] axes {labels!r}: expected a list of integers from 0 to 51 and Ellipsis"
            ) from None

    operands, lists = given[: len(given) // 2 * 2 : 2], given[1::2]
    text = ",".join(map(letters, lists))
    return (text + "->" + letters(given[-1]) if len(given) % 2 else text), operands


def _parsed(subscripts: str, operands: Sequence[Array]) -> tuple[list[Labels], Labels]:
    text = subscripts.replace(" ", "")
    given, arrow, result = text.partition("->")
    parts = given.split(",")
    if len(parts) != len(operands):
        raise ValueError(f"[einsum] subscripts {subscripts!r}: got {len(operands)} arrays, expected {len(parts)}")
    terms = [
        _labels(subscripts, part, x.ndim, f"operand {i} of shape {x.shape}")
        for i, (part, x) in enumerate(zip(parts, operands, strict=True))
    ]
    spread = max((sum(k.startswith(".") for k in term) for term in terms), default=0)
    ellipsis = tuple(f"...{k}" for k in range(spread))[::-1]
    if arrow:
        letters = result.replace("...", "", 1)
        out = _labels(subscripts, result, len(letters) + (spread if "..." in result else 0), "the result")
        if len(set(out)) != len(out):
            raise ValueError(f"[einsum] subscripts {subscripts!r}: expected each letter of the result once")
    else:
        every = [k for term in terms for k in term if not k.startswith(".")]
        out = (*ellipsis, *sorted(k for k in set(every) if every.count(k) == 1))
    if lost := {*out} - {k for term in terms for k in term}:
        raise ValueError(
            f"[einsum] subscripts {subscripts!r}: {', '.join(sorted(lost))} of the result is in no operand"
        )
    return terms, out


def _labels(subscripts: str, part: str, ndim: int, whose: str) -> Labels:
    before, dots, behind = part.partition("...")
    if bad := [c for c in before + behind if c not in string.ascii_letters]:
        raise ValueError(
            f"[einsum] subscripts {subscripts!r}: got {bad[0]!r}, expected letters, '...', ',' and '->'"
        )
    spread = ndim - len(before) - len(behind)
    if spread < 0 or (spread and not dots):
        raise ValueError(f"[einsum] subscripts {subscripts!r}: got {part!r} for {whose}, expected {ndim} letters")
    return (*before, *(f"...{k}" for k in range(spread - 1, -1, -1)), *behind)


# ---- one operand -------------------------------------------------------------------------------------------------


def _own_diagonals(x: Array, term: Labels) -> tuple[Array, Labels]:
    """x with each label once: of a label that is there twice, the diagonal."""
    for label in {*term}:
        while term.count(label) > 1:
            i = term.index(label)
            j = term.index(label, i + 1)
            if x.shape[i] != x.shape[j]:
                raise ValueError(
                    f"[einsum] {label!r} twice in an operand of shape {x.shape}: expected axes of one size"
                )
            x = _op("diagonal")(_op("moveaxis")(x, (i, j), (-2, -1)))
            term = (*(k for a, k in enumerate(term) if a not in (i, j)), label)
    return x, term


def _without_ones(arrays: list[Array], terms: list[Labels]) -> tuple[list[Array], list[Labels]]:
    """The operands without axes of size 1 where others have more: products broadcast along labels they lack."""
    sizes: dict[str, Any] = {}
    for x, term in zip(arrays, terms, strict=True):
        for label, n in zip(term, x.shape, strict=True):
            if label not in sizes or sizes[label] == 1:
                sizes[label] = n
            elif n != sizes[label] and n != 1:
                raise ValueError(f"[einsum] {label!r} stands for sizes {sizes[label]} and {n}: expected one, or 1")
    for i, (x, term) in enumerate(zip(arrays, terms, strict=True)):
        if ones := [a for a, label in enumerate(term) if x.shape[a] != sizes[label]]:
            arrays[i] = _op("squeeze")(x, tuple(ones))
            terms[i] = tuple(k for a, k in enumerate(term) if a not in ones)
    return arrays, terms


def _summed(x: Array, term: Labels, keep: set[str]) -> tuple[Array, Labels]:
    """x summed over the labels that are not kept."""
    gone = tuple(a for a, label in enumerate(term) if label not in keep)
    if not gone:
        return x, term
    return _op("sum")(x, axis=gone, dtype=x.dtype), tuple(k for k in term if k in keep)


def _ordered(x: Array, term: Labels, order: Sequence[str]) -> Array:
    axes = tuple(term.index(k) for k in order)
    return x if axes == tuple(range(x.ndim)) else _op("permute_dims")(x, axes)


# ---- two operands ------------------------------------------------------------------------------------------------


def _path(terms: list[Labels], arrays: list[Array], out: Labels, optimize: Any) -> list[tuple[int, ...]]:
    """Which operands meet, in order; the result of each product goes to the end of the list."""
    n = len(arrays)
    if not isinstance(optimize, (bool, str)):
        path = [tuple(pair) for pair in optimize if not isinstance(pair, str)]
        left = n - sum(len(pair) - 1 for pair in path)
        if left > 1 or any(not 0 <= i < n for pair in path for i in pair):
            raise ValueError(f"[einsum] optimize: {optimize!r} is no path that joins {n} operands")
        return path
    if n > 2 and optimize:
        try:
            import opt_einsum
        except ImportError:
            if isinstance(optimize, str):
                raise ImportError(
                    f"[einsum] optimize={optimize!r} needs opt_einsum: python -m pip install opt_einsum"
                ) from None
        else:
            return _asked(opt_einsum, terms, arrays, out, "auto" if optimize is True else optimize)
    return [(0, 1), *((0, n - k) for k in range(2, n))] if n > 1 else []


def _asked(library: Any, terms: list[Labels], arrays: list[Array], out: Labels, method: str) -> Any:
    """opt_einsum's path. Sizes of a trace count as those of its example: any order is right for any size."""
    from dovetail.schema.number import value_of

    letters: dict[str, str] = {}
    spelled = [
        "".join(letters.setdefault(k, library.get_symbol(len(letters))) for k in term) for term in (*terms, out)
    ]
    shapes = [tuple(value_of(n) for n in x.shape) for x in arrays]
    text = ",".join(spelled[:-1]) + "->" + spelled[-1]
    return library.contract_path(text, *shapes, shapes=True, optimize=method)[0]


def _contracted(arrays: list[Array], terms: list[Labels], out: Labels, path: list[tuple[int, ...]]) -> Array:
    for chosen in path:
        picked = [(arrays.pop(i), terms.pop(i)) for i in sorted(chosen, reverse=True)][::-1]
        x, term = picked[0]
        for i, (y, other) in enumerate(picked[1:], 2):
            keep = {*out}.union(*terms, *(t for _, t in picked[i:]))
            x, term = _product(x, term, y, other, keep)
        arrays.append(x)
        terms.append(term)
    x, term = _summed(arrays[0], terms[0], {*out})
    return _ordered(x, term, out)


def _product(a: Array, left: Labels, b: Array, right: Labels, keep: set[str]) -> tuple[Array, Labels]:
    """The product of two operands, summed over what neither the result nor another operand has."""
    a, left = _summed(a, left, keep | {*right})
    b, right = _summed(b, right, keep | {*left})
    common = [k for k in left if k in right]
    batch, inner = [k for k in common if k in keep], [k for k in common if k not in keep]
    rows, columns = [k for k in left if k not in common], [k for k in right if k not in common]
    result = (*batch, *rows, *columns)
    sizes = dict(zip(left, a.shape, strict=True)) | dict(zip(right, b.shape, strict=True))
    a, b = _ordered(a, left, (*batch, *rows, *inner)), _ordered(b, right, (*batch, *inner, *columns))
    n, m, k = ([sizes[label] for label in labels] for labels in (rows, columns, inner))
    lead = [sizes[label] for label in batch]
    if not inner:
        a = _op("reshape")(a, (*lead, *n, *(1,) * len(m)))
        b = _op("reshape")(b, (*lead, *(1,) * len(n), *m))
        return _op("multiply")(a, b), result
    a, b = _op("reshape")(a, (*lead, prod(n), prod(k))), _op("reshape")(b, (*lead, prod(k), prod(m)))
    return _op("reshape")(_op("matmul")(a, b), (*lead, *n, *m)), result
