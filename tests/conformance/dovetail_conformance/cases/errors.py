"""Calls that must be refused, made of a legal sample by one mistake: where the op's own samples have it not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dovetail.schema import Op
from dovetail.schema import dtypes as dt
from dovetail.schema.declare import REQUIRED, Param
from dovetail.schema.dtypes import DType
from dovetail.schema.rules import FLOATING
from dovetail.schema.samples import Draw, Sample

from . import Case
from .samples import sample_case

MOST_AXES = 16
FAR = 99  # no axis, and no number of axes
# The number of axes that an operand must have, by shape rule; the next smaller and larger numbers are refused.
AXES = {
    ("outer", "x1"): (1, 1),
    ("outer", "x2"): (1, 1),
    ("matmul", "x1"): (1, MOST_AXES),
    ("matmul", "x2"): (1, MOST_AXES),
    ("matmul_integer", "x1"): (1, MOST_AXES),
    ("matmul_integer", "x2"): (1, MOST_AXES),
    ("linear", "x"): (1, MOST_AXES),
    ("linear", "weight"): (2, 2),
    ("scaled_linear", "x"): (1, MOST_AXES),
    ("scaled_linear", "weight"): (2, 2),
    ("embedding", "weight"): (2, 2),
    ("scatter", "indices"): (1, 1),
    ("diagonal", "x"): (2, MOST_AXES),
    ("eigh", "x"): (2, MOST_AXES),
    ("lu", "x"): (2, MOST_AXES),
    ("matrix", "x"): (2, MOST_AXES),
    ("matrix_transpose", "x"): (2, MOST_AXES),
    ("batch_norm", "x"): (2, MOST_AXES),
    ("batch_norm", "running_mean"): (1, 1),
    ("cross_entropy", "x"): (1, MOST_AXES),
    ("attention", "query"): (2, MOST_AXES),
    ("attention_varlen", "query"): (3, 3),
    ("qr", "x"): (2, MOST_AXES),
    ("rotary_embedding", "x"): (1, MOST_AXES),
    ("solve", "x1"): (2, MOST_AXES),
    ("solve", "x2"): (2, MOST_AXES),
    ("square", "x"): (2, MOST_AXES),
    ("svd", "x"): (2, MOST_AXES),
    ("concat", "arrays"): (1, MOST_AXES),
}
# By dtype rule, a dtype that it refuses for a value operand.
REFUSED = {"numeric": dt.bool_, "matmul": dt.bool_, "integer": dt.float32, "bit": dt.float32, "same_real": dt.bool_}
LOGICAL_FOR_BOOL = ("add", "multiply")  # for two bools they are logical_or and logical_and, as in NumPy
# Rules that look for a common dtype.
ONE_FOR_ALL = ("promote", "numeric", "matmul", "compare", "integer", "bit", *FLOATING, "quantize")


class _Legal:
    """A legal call by parameter names, to be spoiled in one place."""

    def __init__(self, op: Op, sample: Sample):
        self.op, self.given = op, op.bind(*sample.args, **sample.kwargs)

    def but(self, id: str, error: type[Exception], **changed: Any) -> Sample:
        given = self.given | changed
        args = tuple(given[p.name] for p in self.op.params if not p.keyword_only)
        return Sample(id, args, {p.name: given[p.name] for p in self.op.params if p.keyword_only}, error)

    def rank(self, name: str) -> int:
        a = self.given[name]
        return len((a[0] if isinstance(a, list) else a).shape)


def _operand_mistakes(legal: _Legal, p: Param) -> Iterator[Sample]:
    a = legal.given[p.name]
    if a is None:
        return
    if not p.optional:
        yield legal.but(f"none_{p.name}", TypeError, **{p.name: None})
    yield legal.but(f"text_{p.name}", TypeError, **{p.name: "text"})
    if p.variadic:
        yield legal.but(f"no_{p.name}", ValueError, **{p.name: []})
        a = a[0]
    wrong = {"mask": dt.int32, "index": dt.float32, "value": REFUSED.get(legal.op.spec.dtype)}.get(p.kind)
    if wrong and not (wrong is dt.bool_ and legal.op.name in LOGICAL_FOR_BOOL):
        values = [q.name for q in legal.op.operands if q.kind == p.kind]
        spoiled = {n: legal.given[n]._replace(dtype=wrong) for n in values if isinstance(legal.given[n], Draw)}
        yield legal.but(f"dtype_{p.name}", TypeError, **spoiled)
    least, most = AXES.get((legal.op.spec.shape, p.name), (0, MOST_AXES))
    for id, rank in (("few_axes", least - 1), ("many_axes", most + 1)):
        if 0 <= rank <= MOST_AXES:
            odd = a._replace(shape=(2,) * rank, values=None)
            yield legal.but(f"{id}_{p.name}", ValueError, **{p.name: [odd, odd] if p.variadic else odd})


def _dtype_mistakes(legal: _Legal) -> Iterator[Sample]:
    """Two integers that no dtype holds both of."""
    values = [p.name for p in legal.op.operands if p.kind == "value" and isinstance(legal.given[p.name], Draw)]
    if legal.op.spec.dtype in ONE_FOR_ALL and len(values) > 1:
        pair = {n: legal.given[n]._replace(dtype=d) for n, d in zip(values, (dt.uint64, dt.int8), strict=False)}
        yield legal.but("no_promotion", TypeError, **pair)


def _attribute_mistakes(legal: _Legal, p: Param) -> Iterator[Sample]:
    if p.kind != "str":
        yield legal.but(f"text_{p.name}", TypeError, **{p.name: "text"})
    if p.default is REQUIRED:
        yield legal.but(f"none_{p.name}", TypeError, **{p.name: None})
    if p.name == "axis" and p.kind in ("i64", "i64s"):
        yield legal.but("bad_axis", ValueError, axis=FAR)
        yield legal.but("axis_below", ValueError, axis=-FAR)
        if p.kind == "i64s" and legal.op.spec.shape != "roll":
            yield legal.but("axis_twice", ValueError, axis=(0, 0))
    if p.name == "shape" and legal.op.spec.shape != "slice":
        yield legal.but("too_many_axes", ValueError, shape=(1,) * (MOST_AXES + 1))


def _index_mistakes(legal: _Legal) -> Iterator[Sample]:
    """Indices just below the lowest, for ops that look elements up."""
    looked_up = {"take": "x", "scatter": "x", "embedding": "weight", "take_along_axis": "x", "put_along_axis": "x"}
    shape = legal.op.spec.shape
    if shape in looked_up:
        x = legal.given[looked_up[shape]]
        n = x.shape[0 if shape == "embedding" else legal.given["axis"] or 0]
        name = next(p.name for p in legal.op.operands if p.kind == "index")
        indices = legal.given[name]
        yield legal.but("before", IndexError, **{name: indices._replace(low=-n - 1, high=-n - 1, values=None)})
        yield legal.but("beyond", IndexError, **{name: indices._replace(low=n, high=n, values=None)})


def mistakes(op: Op) -> Iterator[Sample]:
    sample = next((s for s in op.cases() if s.error is None and not s.dtypes), None)
    if sample is None:
        return
    legal = _Legal(op, sample)
    for p in op.params:
        yield from _operand_mistakes(legal, p) if p.is_operand else _attribute_mistakes(legal, p)
    yield from _dtype_mistakes(legal)
    yield from _index_mistakes(legal)
    yield Sample("too_many_arguments", (*sample.args, *(None,) * len(op.params)), {}, TypeError)
    yield Sample("unknown_argument", sample.args, sample.kwargs | {"no_such_argument": 1}, TypeError)
    if any(p.default is REQUIRED for p in op.params):
        yield Sample("no_arguments", (), {}, TypeError)


def _dtype(op: Op) -> DType:
    """The core refuses such calls before it looks at the device: one dtype is enough."""
    return next((d for d in (dt.float32, dt.int32) if d in op.dtypes), op.dtypes[0])


def cases(op: Op) -> Iterator[Case]:
    if op.reference is None:
        return
    d = _dtype(op)
    own = {s.id for s in op.cases()}
    for sample in mistakes(op):
        if sample.id not in own:
            yield sample_case(op, d, sample)
