"""Writes core/generated/decompositions.json, which the library brings: python core/schema/decompositions.py

Needs a built runtime, since the rules of the core follow every shape: `make install` or `make dev` first.
Each op is traced for the dtypes, ranks and attributes of `calls_of`; a program serves all sizes for which its
guards hold. What the file lacks is traced when it is needed, in a process that has Python.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GENERATED = Path(__file__).resolve().parent.parent / "generated" / "decompositions.json"
MOST_AXES = 6
SIZES = (3, 5, 7, 4, 6, 8)  # of the axes of a trace: different, so that no two are equal by chance
ARRAYS = range(1, 9)  # of ops that take several

Call = tuple[list[Any], dict[str, Any]]  # (dtype, shape) or None of each operand; attributes


def _shapes(least: int = 0) -> Iterator[tuple[int, ...]]:
    """A shape of each rank; then with each axis, and all, of one element and of none: guards ask for these."""
    for rank in range(least, MOST_AXES + 1):
        whole = SIZES[:rank]
        yield whole
        for n in (1, 0):
            for axis in range(rank):
                yield (*whole[:axis], n, *whole[axis + 1 :])
        if rank > 1:
            yield (1,) * rank


def _of_every_rank(least: int = 0) -> Iterator[tuple[int, ...]]:
    """One shape each, for decompositions that compare no sizes."""
    yield from (SIZES[:rank] for rank in range(least, MOST_AXES + 1))


def _axis_sets(rank: int) -> Iterator[tuple[int, ...]]:
    for n in range(rank + 1):
        yield from itertools.combinations(range(rank), n)


def _floats(op: Any) -> Iterator[dict[str, float]]:
    """Values of real attributes on either side of what decompositions compare them with."""
    values = {
        "ord": (2.0, 1.0, 3.0, 0.0, float("inf"), float("-inf"), -2.0),
        "beta": (1.0, 2.0, -1.0),
        "alpha": (1.0, 2.0),
        "correction": (0.0, 1.0, 1e9),
        "label_smoothing": (0.0, 0.125),
        "dropout_p": (0.0, 0.25, 1.0),
        "p": (0.25, 0.0, 1.0),
        "threshold": (0.5,),
        "value": (2.0,),
    }
    given = [p.name for p in op.attributes if p.kind == "f64" and p.name in values]
    for chosen in itertools.product(*(values[name] for name in given)):
        yield dict(zip(given, chosen, strict=True))


def _flags(op: Any) -> Iterator[dict[str, Any]]:
    """Every choice of bool and str attributes."""
    words = {
        "approximate": ("none", "tanh"),
        "reduction": ("mean", "sum", "none"),
        "activation": ("relu", "gelu", "gelu_tanh"),
        "mode": {"top_k": ("largest", "smallest"), "qr": ("reduced", "complete")}.get(
            op.name, (*(("set",) if op.name == "put_along_axis" else ()), "add", "max", "min", "multiply")
        ),
    }
    names = [p.name for p in op.attributes if p.kind == "boolean" or p.name in words]
    choices = [words.get(name, (False, True)) for name in names]
    for chosen in itertools.product(*choices):
        yield dict(zip(names, chosen, strict=True))


def _dtypes_of_results(op: Any, operands: list[Any], dt: Any) -> Iterator[dict[str, Any]]:
    attribute = next((p for p in op.attributes if p.kind == "dtype"), None)
    if attribute is None:
        yield {}
        return
    if op.spec.dtype == "accum":  # operands are cast to the result's dtype first
        yield from ({}, {attribute.name: operands[0]})
        return
    if op.spec.dtype == "quantize":
        yield from ({attribute.name: d} for d in (dt.int8, dt.uint8))
        return
    of_rule = {"given": op.dtypes, "index": dt.NOT_COMPLEX}.get(op.spec.dtype, dt.FLOATS)
    allowed = [d for d in dt.REAL + dt.BOOL if d in of_rule]
    yield from ({attribute.name: d} for d in (*([None] if attribute.default is None else []), *allowed))


def _optional(op: Any, operands: list[Any]) -> Iterator[list[Any]]:
    """The operands with and without each optional one."""
    optional = [i for i, p in enumerate(op.operands) if p.optional and i < len(operands)]
    for absent in itertools.product((False, True), repeat=len(optional)):
        left = dict(zip(optional, absent, strict=True))
        yield [None if left.get(i) else x for i, x in enumerate(operands)]


def _layouts(op: Any) -> Iterator[tuple[list[tuple[int, ...]], dict[str, Any]]]:
    """Shapes of the operands, and the attributes that go with them."""
    rule, n = op.spec.shape, len(op.operands)
    if rule in ("same", "broadcast"):
        yield from (([shape] * n, {}) for shape in _shapes())
    elif rule == "reduce":
        for shape in _shapes():
            yield from (([shape], {"axis": axes}) for axes in _axis_sets(len(shape)))
    elif rule == "arg_reduce":
        for shape in _shapes():
            yield from (([shape], {"axis": axis}) for axis in (None, *range(len(shape))))
    elif rule in ("along_axis", "scan"):
        for shape in _shapes(1):
            for axis in range(len(shape)):
                yield [shape], {"axis": axis}
    elif rule in ("middle", "reduce_middle"):
        yield from (([(3, n, 7)], {}) for n in (5, 4, 1, 0))  # they pad to a power of two
    elif rule == "scatter":
        for rank, places in itertools.product(range(1, MOST_AXES + 1), (2, 0)):
            shape = SIZES[:rank]
            for axis in range(rank):
                region = (*shape[:axis], places, *shape[axis + 1 :])
                yield from (([shape, (places,), region[k:]], {"axis": axis}) for k in range(rank + 1))
    elif rule == "put_along_axis":
        for shape in _of_every_rank(1):
            for axis, few in itertools.product(range(len(shape)), (shape, ())):
                yield [shape, shape, few], {"axis": axis}
    elif rule == "scatter_middle":
        for region in ((3, 2, 7), (3, 0, 7)):
            yield from (([(3, 5, 7), region[1:2], region[k:]], {}) for k in range(4))
    elif rule == "top_k":
        for shape in _shapes(1):
            yield from (([shape], {"axis": axis, "k": min(2, shape[axis])}) for axis in range(len(shape)))
    elif rule == "flip":
        for shape in _shapes():
            yield from (([shape], {"axis": axes}) for axes in _axis_sets(len(shape)))
    elif rule == "roll":
        for shape in _of_every_rank():
            yield [shape], {"shift": (2,), "axis": None}
            for several in range(3):
                for axes in itertools.product(range(len(shape)), repeat=several):
                    yield [shape], {"shift": (2,) * several, "axis": axes}
    elif rule == "diff":
        yield from _diff_layouts()
    elif rule in ("matrix", "diagonal", "matrix_transpose"):
        yield from (([shape], {}) for shape in _shapes(2))
    elif rule == "take_along_axis":
        for shape in _shapes(1):
            yield from (([shape, shape], {"axis": axis}) for axis in range(len(shape)))
    elif rule in ("square", "lu", "qr"):
        yield from (([(*SIZES[: rank - 2], 5, 5)], {}) for rank in range(2, MOST_AXES + 1))
        if rule == "qr":
            yield from (([shape], {}) for shape in ((7, 5), (5, 7), (2, 5, 7), (2, 7, 5)))
    elif rule in ("eigh", "svd"):
        for rank, n in itertools.product(range(2, MOST_AXES + 1), (5, 7) if rule == "svd" else (5,)):
            yield [(*SIZES[: rank - 2], 5, n)], {}
    elif rule == "solve":
        for rank in range(2, MOST_AXES + 1):  # matrices for each of the right-hand sides, or one for all
            yield from (([(*SIZES[:k], 5, 5), (*SIZES[: rank - 2], 5, 3)], {}) for k in {0, rank - 2})
    elif rule in ("concat", "stack"):
        most = MOST_AXES + (rule == "concat")  # the stacked ones have one axis more
        for rank, arrays in itertools.product(range(rule == "concat", most), ARRAYS):
            shapes = [SIZES[:rank]] * arrays
            yield from ((shapes, {"axis": axis}) for axis in range(rank + (rule == "stack")))
            if rule == "concat":
                yield shapes, {"axis": None}
    elif rule == "dynamic_slice":
        for shape in _of_every_rank():
            for n in range(len(shape) + 1):
                how = {"sizes": (2,) * n, "axis": tuple(range(n))}
                yield from (([shape, at], how) for at in ((n,), *[()] * (n == 1)))
    elif rule == "dynamic_slice_axis":
        for shape in _of_every_rank(1):
            for axis, n in enumerate(shape):
                yield from (([shape, (1,)], {"size": size, "axis": axis}) for size in (2, n))
    elif rule == "dynamic_update_slice":
        for shape, axes, region, at in _regions():
            yield [shape, region, at], {"axis": axes}
    elif rule == "repeat":
        for shape in _shapes():
            yield from (([shape], {"repeats": 2, "axis": axis}) for axis in (None, *range(len(shape))))
    elif rule == "tile":
        for rank, more in itertools.product(range(MOST_AXES + 1), range(5)):
            yield [SIZES[:rank]], {"repetitions": (2,) * (rank + more)}
    elif rule == "pad":
        for shape, value in itertools.product(_of_every_rank(), (0, 1, 0.5, False, True)):
            yield [shape], {"pad_width": (1, 2) * len(shape), "constant_values": value}
    elif rule == "segment_sum":
        yield from (([shape, shape[:1]], {"num_segments": 4}) for shape in _of_every_rank(1))
    elif rule == "embedding":
        yield from (([SIZES[:rank], (9, 4)], {}) for rank in range(MOST_AXES + 1))
    elif rule == "one_hot":
        yield from (([SIZES[:rank]], {"num_classes": 5}) for rank in range(MOST_AXES + 1))
    elif rule == "linear":
        for rank in range(1, MOST_AXES + 1):
            yield [(*SIZES[: rank - 1], 9), (10, 9), (10,)], {}
    elif rule == "scaled_linear":
        for rank, one_x, one_w in itertools.product(range(1, MOST_AXES + 1), (True, False), (True, False)):
            rows = SIZES[: rank - 1]
            yield [(*rows, 9), (10, 9), () if one_x else rows, () if one_w else (10,), (10,)], {}
    elif rule == "layer_norm":
        for shape in _shapes(1):
            for last in range(1, len(shape) + 1):
                yield [shape, *[shape[-last:]] * (n - 1)], {"normalized_shape": shape[-last:]}
    elif rule in ("batch_norm", "batch_norm_train"):
        yield from (([SIZES[:rank], *[(SIZES[1],)] * (n - 1)], {}) for rank in range(2, MOST_AXES + 1))
    elif rule == "group_norm":
        shapes = [(3, 8, *SIZES[2:rank]) for rank in range(2, MOST_AXES + 1)]
        yield from (([shape, *[(8,)] * (n - 1)], {"num_groups": 4}) for shape in shapes)
    elif rule == "dropout":
        yield from (([shape, (4,)], {}) for shape in _of_every_rank())
    elif rule == "cross_entropy":
        yield [(5,), ()], {}
        for rank in range(2, MOST_AXES + 1):
            yield [SIZES[:rank], (SIZES[0], *SIZES[2:rank])], {}
    elif rule == "vecdot":
        for a, b in itertools.product(range(1, MOST_AXES + 1), repeat=2):
            for back in range(1, min(a, b) + 1):
                yield [(3,) * a, (3,) * b], {"axis": max(a, b) - back}
    elif rule == "outer":
        yield [(3,), (5,)], {}
    elif rule == "rotary_embedding":
        yield from (([(8,), (pairs,), (pairs,)], {}) for pairs in (4, 3))
        for a in range(2, MOST_AXES + 1):
            for b in range(1, a + 1):
                for pairs in (4, 3):
                    table = (*(1,) * (b - 2), 5, pairs) if b > 1 else (pairs,)
                    yield [(*SIZES[: a - 2], 5, 8), table, table], {}
    elif rule in ("quantize", "dequantize"):
        for shape in _of_every_rank():
            yield [shape, (), ()], {"axis": None}
            for axis, n, of_zero in itertools.product(range(len(shape)), (9, 1), (0, 1)):
                yield [(*shape[:axis], n, *shape[axis + 1 :]), (n,), (n,) * of_zero], {"axis": axis}
    elif rule == "attention":
        yield from _attention_layouts(op)
    elif rule == "attention_varlen":
        yield [(9, 4, 8), (11, 4, 8), (11, 4, 6), (3,), (3,)], {}
        yield [(9, 4, 8), (11, 2, 8), (11, 2, 6), (3,), (3,)], {}
    elif rule in ("conv", "pool"):
        yield from _window_layouts(op)
    elif rule == "conv_transpose":
        yield from _transposed_layouts(int(op.name[-2]))
    elif rule == "from_shape":
        key = [(4,)] * n
        more = {"integers": [{"low": low, "high": 10} for low in (0, 3)]}.get(op.name, [{}])
        most = MOST_AXES + (op.name == "random_bits")  # normal draws one axis more
        yield from ((key, {"shape": (*SIZES, 9)[:rank], **m}) for rank in range(most + 1) for m in more)
    elif rule == "arange":
        yield from (([], {"start": a, "stop": b, "step": c}) for a, b, c in _ranges())
    elif rule == "linspace":
        yield from (([], {"start": 0.5, "stop": 2.5, "num": num}) for num in (5, 1, 0))
    elif rule == "eye":
        yield from (([], {"n_rows": 3, "n_cols": columns, "k": k}) for columns in (None, 5) for k in (0, 1))


def _ranges() -> Iterator[tuple[Any, Any, Any]]:
    for start, stop, step in ((0, 5, 1), (2, 9, 3), (9, 2, -3), (0, 9, 3), (2, 9, 1)):
        yield start, stop, step
        yield float(start), float(stop), float(step)
    yield from ((5, None, 1), (5.0, None, 1))


def _diff_layouts() -> Iterator[tuple[list[tuple[int, ...]], dict[str, Any]]]:
    """No difference and some, what is joined to x with its axes or without any."""
    for shape in _of_every_rank(1):
        for joined in itertools.product((shape, ()), repeat=2):
            yield [shape, *joined], {"axis": 0, "n": 0}
            yield from (([shape, *joined], {"axis": axis, "n": 1}) for axis in range(len(shape)))


def _regions() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Shape, axes, the region's shape, that of its starts: with some axes and all, in any order where they are few,
    each whole or in part."""
    for shape in _of_every_rank():
        rank = len(shape)
        for n in range(rank + 1):
            if rank > 3 and n not in (1, 2, rank):
                continue
            orders = [tuple(range(rank))] if rank > 3 and n == rank else itertools.permutations(range(rank), n)
            for axes in orders:
                for whole in itertools.product((False, True), repeat=n):
                    cut = {a for a, all_of in zip(axes, whole, strict=True) if not all_of}
                    region = tuple(2 if a in cut else size for a, size in enumerate(shape))
                    yield from ((shape, axes, region, at) for at in ((n,), *[()] * (n == 1)))


def _attention_layouts(op: Any) -> Iterator[tuple[list[tuple[int, ...]], dict[str, Any]]]:
    for rank, keys in itertools.product(range(2, 5), (7, 0)):
        batch, heads = SIZES[: max(0, rank - 3)], ((4, 4), (4, 1), (1, 1), (4, 2)) if rank > 2 else (((), ()),)
        for (ours, theirs), mask_rank in itertools.product(heads, range(rank + 1)):
            q, kv = ((*batch, n) if rank > 2 else () for n in (ours, theirs))
            mask = (*q, 5, keys)[rank - mask_rank :]
            shapes = [(*q, 5, 8), (*kv, keys, 8), (*kv, keys, 6), mask]
            if len(op.operands) == 4:
                yield shapes, {}
            elif op.operands[4].name == "kv_length":
                yield from (([*shapes, length], {}) for length in ((), (q or (1,))[:1]))
            else:
                yield [*shapes, (4,)], {}


def _window_layouts(op: Any) -> Iterator[tuple[list[tuple[int, ...]], dict[str, Any]]]:
    n = int(op.name[-2])
    for kernel in ((1,) * n, (3, 2, 2)[:n]):
        for padding in ((0,) * n, (1,) * n, (0,) * (n - 1) + (1,)):
            if op.spec.shape == "pool" and any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
                continue
            image = (2, 4, *(16 + i for i in range(n)))
            attributes: dict[str, Any] = {"stride": (2,) * n, "padding": padding}
            if op.spec.shape == "pool":
                yield [image], {**attributes, "kernel_size": kernel}
                continue
            yield [image, (6, 2, *kernel), (6,)], {**attributes, "groups": 2}


def _transposed_layouts(n: int) -> Iterator[tuple[list[tuple[int, ...]], dict[str, Any]]]:
    """Axes with taps that overlap and that do not, with and without dilation; of three axes not every mixture."""
    kinds = ((3, 1), (2, 1), (3, 2), (1, 2))  # taps, dilation; the stride is 2
    mixtures = itertools.product(kinds, repeat=n) if n < 3 else itertools.product(kinds[:2], repeat=n)
    for axes in dict.fromkeys((*mixtures, *((kind,) * n for kind in kinds))):
        kernel, dilation = zip(*axes, strict=True)
        attributes = {"stride": (2,) * n, "padding": (1,) * n, "dilation": dilation, "groups": 2}
        yield [(2, 4, *(16 + i for i in range(n))), (4, 3, *kernel), (6,)], attributes


def _operand_dtypes(op: Any, dt: Any) -> Iterator[list[Any]]:
    """The dtype of each operand: value operands have one in common, narrow floats are computed in float32."""
    narrow = dt.HALVES + dt.FLOAT8
    values = [d for d in op.dtypes if d.kind != "c"]
    if op.spec.half_in_f32:
        values = [d for d in values if d not in narrow]
    if op.spec.dtype == "accum":  # small integers are cast before
        values = [d for d in values if d.kind == "f" or d.itemsize == 8]
    raw = {
        "key": (dt.uint32,),
        "dropout_key": (dt.uint32,),
        "kv_length": (dt.int32, dt.int64),
        "cu_seq_q": (dt.int32, dt.int64),
        "cu_seq_k": (dt.int32, dt.int64),
        "x": (dt.int8, dt.uint8, *(dt.FLOAT8 if op.name == "scaled_linear" else ())),
        "weight": (dt.int8, *dt.FLOAT8),
    }
    kinds = []
    for p in op.operands:
        if p.kind == "raw":
            kinds.append(raw.get(p.name, dt.FLOATS if p.name == "bias" else (dt.bool_, *dt.FLOATS)))
    for d in values if any(p.kind == "value" for p in op.operands) else [None]:
        for chosen in itertools.product(*kinds):
            if len(set(chosen)) > 1 and {"cu_seq_q"} & {p.name for p in op.operands}:
                continue
            of_raw = iter(chosen)
            fixed = {"value": d, "mask": dt.bool_, "index": dt.int64}
            yield [next(of_raw) if p.kind == "raw" else fixed[p.kind] for p in op.operands]


def calls_of(op: Any, dt: Any) -> Iterator[Call]:
    """The calls that an op's decomposition is traced for."""
    for shapes, attributes in _layouts(op):
        for dtypes in _operand_dtypes(op, dt):
            if op.operands and op.operands[-1].variadic:
                dtypes = dtypes * len(shapes)
            operands: list[Any] = list(zip(dtypes, shapes, strict=False))
            operands += [None] * (len(op.operands) - len(operands))  # optional ones
            choices = itertools.product(
                _optional(op, operands), _flags(op), _floats(op), _dtypes_of_results(op, dtypes, dt)
            )
            for given, flags, floats, result in choices:
                known = {p.name for p in op.attributes}
                chosen = {k: v for k, v in {**attributes, **flags, **floats, **result}.items() if k in known}
                if ("dropout_p" in chosen) and (chosen["dropout_p"] > 0) != (given[-1] is not None):
                    continue  # a key without dropout, or dropout without a key
                yield given, chosen


ANY = "*"  # in patterns and programs: the dtype of the value operands


def decompositions(op: Any, core: Any, dt: Any) -> dict[str, Any]:
    """{"any": [dtypes], "patterns": {pattern: [places among programs]}, "programs": [...]} of one op."""
    traced: dict[str, dict[Any, list[str]]] = {}  # by pattern and dtype of the value operands
    for operands, attributes in calls_of(op, dt):
        given = [None if x is None else (x[0].name, list(x[1])) for x in operands]
        named = {k: getattr(v, "name", v) for k, v in attributes.items()}
        try:
            pattern, text = core.decomposition_text(op.name, given, named)
        except (TypeError, ValueError, IndexError, NotImplementedError):
            continue  # a call that the op refuses
        pattern, dtype = _apart(op, pattern, operands)
        if text not in (known := traced.setdefault(pattern, {}).setdefault(dtype, [])):
            known.append(text)
    every = {dtype for of in traced.values() for dtype in of}
    texts: dict[str, list[str]] = {}
    for pattern, of in traced.items():
        shared, dtypes = _shared(of) if of.keys() == every and None not in every else ([], set())
        if dtypes:
            texts[pattern] = shared
        texts |= {pattern.replace(ANY, d.brief) if d else pattern: of[d] for d in of if d not in dtypes}
    if op.spec.shape in ("same", "broadcast"):
        texts = _without_ranks(texts)
    places: dict[str, int] = {}
    patterns = {
        pattern: [places.setdefault(text, len(places)) for text in programs] for pattern, programs in texts.items()
    }
    return {
        "any": sorted(d.brief for d in every if d) if any(ANY in p for p in patterns) else [],
        "patterns": patterns,
        "programs": [json.loads(text) for text in places],
    }


def _apart(op: Any, pattern: str, operands: list[Any]) -> tuple[str, Any]:
    """A pattern with ANY for the dtype of value operands, and this dtype; as it is where they have none."""
    names, attributes = (part.split(",") for part in (pattern + ";").split(";")[:2])
    dtype = None
    for i, x in enumerate(operands):
        if x is not None and op.operands[min(i, len(op.operands) - 1)].kind == "value":
            names[i], dtype = names[i].replace(x[0].brief, ANY, 1), x[0]
    for i, p in enumerate(op.attributes):
        if dtype and p.kind == "dtype" and attributes[i] == dtype.brief:
            attributes[i] = ANY
    return ";".join([",".join(names), *([",".join(attributes)] if op.attributes else [])]), dtype


def _shared(of: dict[Any, list[str]]) -> tuple[list[str], set[Any]]:
    """Programs with ANY for the dtype, and the dtypes for which they give the right ones: as many as possible, or
    none where no two have programs in common."""
    shared: list[str] = []
    served: set[Any] = set()
    for base, programs in of.items():
        made = [text.replace(f'"dtype":"{base.name}"', f'"dtype":"{ANY}"') for text in programs]
        alike = {d for d in of if [t.replace(f'"dtype":"{ANY}"', f'"dtype":"{d.name}"') for t in made] == of[d]}
        if len(alike) > max(1, len(served)):
            shared, served = made, alike
    return shared, served


def _without_ranks(texts: dict[str, list[str]]) -> dict[str, list[str]]:
    """One pattern for all ranks of an elementwise op where its programs do not depend on them."""
    by_short: dict[str, dict[str, list[str]]] = {}
    for pattern, programs in texts.items():
        operands, *attributes = pattern.split(";")
        short = ";".join([re.sub(r"\.\d+", "", operands), *attributes])
        by_short.setdefault(short, {})[pattern] = programs
    found: dict[str, list[str]] = {}
    for short, of in by_short.items():
        programs = next(iter(of.values()))
        found |= {short: programs} if all(p == programs for p in of.values()) else of
    return found


FORMS = "forms"  # the name of their line, which no op has


def forms(runtime: Any) -> list[dict[str, Any]]:
    """[{"marks": constants that stand for any, "shapes", "written": program, "op": program}] of schema/forms.py."""
    from dovetail.schema.forms import EPS, FORMS, SCALE

    def traced(function: Any, shapes: Any) -> dict[str, Any]:
        sizes = [[1 if n == 1 else f"n{n}" for n in shape] for shape in shapes]  # equal ones stay equal
        program = json.loads(runtime.export(function, *(runtime.spec(s, "float32") for s in sizes)).text())
        for left_out in ("signature", "guards"):
            program.pop(left_out, None)
        for node in program["nodes"]:
            node.pop("where", None)
        for given in program["inputs"]:
            given.pop("name", None)
            given["shape"] = [n if isinstance(n, int) else None for n in given["shape"]]
        return json.loads(json.dumps(program).replace('"dtype": "float32"', f'"dtype": "{ANY}"'))

    found = []
    for form in FORMS:
        for shapes in form.shapes:
            written, op = traced(form.written, shapes), traced(form.op, shapes)
            found.append({"marks": [EPS, SCALE], "shapes": shapes, "written": written, "op": op})
    return found


def text_of(names: list[str] | None = None) -> str:
    from dovetail import _core as core
    from dovetail.schema import dtypes as dt
    from dovetail.schema import registry

    own = sorted(
        o.name for o in registry.values() if o.decomposition and o.__module__.startswith("dovetail.schema")
    )
    lines = []
    if not names:
        import dovetail

        lines.append(f"{json.dumps(FORMS)}:{json.dumps(forms(dovetail), separators=(',', ':'))}")
    for name in names or own:
        made = decompositions(registry[name], core, dt)
        lines.append(f"{json.dumps(name)}:{json.dumps(made, separators=(',', ':'))}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="decompositions.py", description=__doc__.split("\n")[0])
    parser.add_argument("ops", nargs="*", help="print the decompositions of these ops, and write nothing")
    options = parser.parse_args(argv)
    text = text_of(options.ops)
    if options.ops:
        sys.stdout.write(text)
    else:
        GENERATED.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
