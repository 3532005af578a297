"""The samples of the schema as programs: one node, and the decompositions that the library brings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy_tracer import Traced, dt, dtypes_of, joined, normalise

FILE = Path(__file__).parents[2] / "core/generated/decompositions.json"
SHIPPED = json.loads(FILE.read_text())


# Each call of these is thousands of nodes: of their samples every third will do.
LONG = frozenset(
    """argsort argsort_middle cholesky cumulative_prod cummax eigh lu_factor put_along_axis qr scatter
    scatter_middle solve_triangular svd top_k""".split()
)


def samples_of(op: Any, tested: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """(sample, dtype) of the tested dtypes that the op and the sample have."""
    found = ((s, d) for d in tested for s in op.cases() if d in op.dtypes and (not s.dtypes or d in s.dtypes))
    return islice(found, 0, None, 3 if op.name in LONG else 1)


class Prepared(NamedTuple):
    operands: list[Any]  # in the dtypes that the op computes in; None where one is not given
    attributes: dict[str, Any]
    normalised: list[Any]  # the attributes, as the shape rules make of them
    via: Any  # float32 where the op computes so for narrow floats
    result: Any

    @property
    def given(self) -> list[np.ndarray]:
        return [x for x in self.operands if x is not None]


def prepared(op: Any, args: tuple, kwargs: dict[str, Any]) -> Prepared:
    given = op.bind(*args, **kwargs)
    values = [given[p.name] for p in op.operands if p.kind == "value" and given[p.name] is not None]
    flat = [x for v in values for x in (v if isinstance(v, (list, tuple)) else [v])]
    arrays = [x for x in flat if isinstance(x, np.ndarray)]
    compute, result = dtypes_of(op, joined(arrays, [x for x in flat if not isinstance(x, np.ndarray)]), given)
    via = dt.float32 if op.spec.half_in_f32 and compute in dt.HALVES else compute

    def cast(a: Any, to: Any) -> Any:
        if a is None or isinstance(a, (list, tuple)):
            return None if a is None else [cast(x, to) for x in a]
        with np.errstate(invalid="ignore"):  # NaN as a bool
            return np.asarray(a) if to is None else np.asarray(a).astype(to.numpy)

    to = {"value": via, "index": dt.int64, "mask": dt.bool_, "raw": None}
    operands: list[Any] = []
    normal = dict(given)
    for p in op.operands:
        a = cast(given[p.name], to[p.kind])
        operands += a if isinstance(a, list) else [a]
        if a is not None:
            normal[p.name] = [Traced(None, x) for x in a] if isinstance(a, list) else Traced(None, a)
    normalise(op, normal)
    attributes = {p.name: given[p.name] for p in op.attributes}
    if op.spec.dtype == "matmul" and attributes["dtype"] is compute:
        attributes["dtype"] = None  # the operands' own, which may be float32 in their stead
    return Prepared(operands, attributes, [normal[p.name] for p in op.attributes], via, result)


def _json(kind: str, v: Any) -> Any:
    if isinstance(v, type(dt.int8)):
        return {"dtype": v.name}
    if isinstance(v, (tuple, list)) or (kind == "i64s" and v is not None):
        return [int(x) for x in (v if isinstance(v, (tuple, list)) else [v])]
    if isinstance(v, complex):
        return {"complex": [v.real, v.imag]}
    if isinstance(v, float) or (kind == "f64" and v is not None):
        return float(v) if np.isfinite(v) else str(float(v))
    return int(v) if isinstance(v, np.integer) else v


def one_node(op: Any, call: Prepared) -> dict[str, Any]:
    """The call as a program."""
    n = len(call.given)
    places = iter(range(n))
    node = {
        "op": op.name,
        "v": op.spec.version,
        "in": [None if x is None else next(places) for x in call.operands],
        "at": {p.name: _json(p.kind, call.attributes[p.name]) for p in op.attributes},
    }
    return {"dovetail": 1, "inputs": [{}] * n, "nodes": [node], "outputs": list(range(n, n + op.spec.n_out))}


def decompositions(op: Any, call: Prepared, core: Any) -> list[dict[str, Any]]:
    """The shipped programs of a call, of which the guards choose; and last the one that Python traces for it."""
    described = [None if x is None else (dt.of(x).name, list(x.shape)) for x in call.operands]
    named = {k: getattr(v, "name", v) for k, v in call.attributes.items()}
    pattern, text = core.decomposition_text(op.name, described, named)
    entry = SHIPPED.get(op.name, {"patterns": {}, "programs": []})
    operands, *attributes = pattern.split(";")
    any_rank = ";".join([re.sub(r"\.\d+", "", operands), *attributes])
    places = entry["patterns"].get(pattern, entry["patterns"].get(any_rank, []))
    return [*(entry["programs"][i] for i in places), json.loads(text)]
