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
ARRAYS = (1, 2, 3)  # of ops that take several
# Their decompositions differ by axis and have loops: each program is long, and more axes are rare.
FEW_AXES = {"argsort": 4, "prod": 4, "scatter": 4}
PADDED = {"argsort", "prod"}  # to a power of two, unless the size is one

Call = tuple[list[Any], dict[str, Any]]  # (dtype, shape) or None of each operand; attributes


def _shapes(least: int = 0, most: int = MOST_AXES) -> Iterator[tuple[int, ...]]:
    """A shape of each rank; then with each axis, and all, of one element and of none: guards ask for these."""
    for rank in range(least, most + 1):
        whole = SIZES[:rank]
        yield whole
        for n in (1, 0):
            for axis in range(rank):
                yield (*whole[:axis], n, *whole[axis + 1 :])
        if rank > 1:
            yield (1,) * rank


def _powers_of_two(op: Any, most: int) -> Iterator[tuple[int, ...]]:
    if op.name in PADDED:
        yield from ((2,) * rank for rank in range(1, most + 1))


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
        "mode": ("add", "max", "min", "multiply") if op.name == "scatter" else ("largest", "smallest"),
    }
    names = [p.name for p in op.attributes if p.kind == "boolean" or p.name in words]
    choices = [words.get(name, (False, True)) for name in names]
    for chosen in itertools.product(*choices):
        yield dict(zip(names, chosen, strict=True))


def _dtypes_of_results(op: Any, dt: Any) -> Iterator[dict[str, Any]]:
    attribute = next((p for p in op.attributes if p.kind == "dtype"), None)
    if attribute is None or op.spec.shape in ("reduce", "scan"):
        yield {}
        return
    if op.spec.dtype == "quantize":
        yield from ({attribute.name: d} for d in (dt.int8, dt.uint8))
        return
    allowed = [d for d in dt.REAL + dt.BOOL if op.spec.dtype in ("given", "index") or d.kind == "f"]
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
    most = FEW_AXES.get(op.name, MOST_AXES)
    if rule in ("same", "broadcast"):
        yield from (([shape] * n, {}) for shape in _shapes())
    elif rule == "reduce":
        for shape in (*_shapes(most=most), *_powers_of_two(op, most)):
            yield from (([shape], {"axis": axes}) for axes in _axis_sets(len(shape)))
    elif rule == "arg_reduce":
        for shape in _shapes():
            yield from (([shape], {"axis": axis}) for axis in (None, *range(len(shape))))
    elif rule in ("along_axis", "scan"):
        for shape in (*_shapes(1, most), *_powers_of_two(op, most)):
            for axis in range(len(shape)):
                yield [shape], {"axis": axis}
    elif rule == "scatter":
        for rank, places in itertools.product(range(1, most + 1), (2, 0)):
            shape = SIZES[:rank]
            for axis in range(rank):
                region = (*shape[:axis], places, *shape[axis + 1 :])
                yield from (([shape, (places,), updates], {"axis": axis}) for updates in (region, ()))
    elif rule == "top_k":
        for shape in _shapes(1):
            yield from (([shape], {"axis": axis, "k": min(2, shape[axis])}) for axis in range(len(shape)))
    elif rule == "flip":
        for shape in _shapes():
            yield from (([shape], {"axis": axes}) for axes in _axis_sets(len(shape)))
    elif rule == "roll":
        for shape in _shapes():
            for shift in (2, 0):
                yield [shape], {"shift": (shift,), "axis": None}
                yield from (([shape], {"shift": (shift,), "axis": (axis,)}) for axis in range(len(shape)))
    elif rule == "diff":
        for shape in _shapes(1):
            for axis, order in itertools.product(range(len(shape)), (0, 1, 2)):
                yield [shape] * 3, {"axis": axis, "n": order}
    elif rule in ("matrix", "diagonal", "matrix_transpose"):
        yield from (([shape], {}) for shape in _shapes(2))
    elif rule == "take_along_axis":
        for shape in _shapes(1):
            yield from (([shape, shape], {"axis": axis}) for axis in range(len(shape)))
    elif rule in ("concat", "stack"):
        for rank, arrays in itertools.product(range(rule == "concat", 5), ARRAYS):
            shapes = [SIZES[:rank]] * arrays
            yield from ((shapes, {"axis": axis}) for axis in range(rank + (rule == "stack")))
            if rule == "concat":
                yield shapes, {"axis": None}
    elif rule == "dynamic_slice":
        for shape in _shapes(1, 4):
            yield [shape, (len(shape),)], {"sizes": tuple(min(2, n) for n in shape), "axis": None}
            yield from (
                ([shape, at], {"sizes": (min(2, n),), "axis": (a,)})
                for a, n in enumerate(shape)
                for at in ((), (1,))
            )
    elif rule == "dynamic_update_slice":
        for shape in _shapes(1, 4):
            yield [shape, tuple(min(2, n) for n in shape), (len(shape),)], {"axis": None}
            for a, n in enumerate(shape):
                update = (*shape[:a], min(2, n), *shape[a + 1 :])
                yield from (([shape, update, at], {"axis": (a,)}) for at in ((), (1,)))
    elif rule == "repeat":
        for shape in _shapes():
            yield from (([shape], {"repeats": 2, "axis": axis}) for axis in (None, *range(len(shape))))
    elif rule == "tile":
        for rank, more in itertools.product(range(MOST_AXES + 1), (0, 1, 2)):
            yield [SIZES[:rank]], {"repetitions": (2,) * (rank + more)}
    elif rule == "pad":
        yield from (([SIZES[:rank]], {"pad_width": (1, 2) * rank}) for rank in range(MOST_AXES + 1))
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
    elif rule == "batch_norm":
        for rank in range(2, MOST_AXES + 1):
            yield [SIZES[:rank], *[(SIZES[1],)] * (n - 1)], {}
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
        for a in range(2, MOST_AXES + 1):
            for b in range(1, a + 1):
                for pairs in (4, 3):
                    table = (*(1,) * (b - 2), 5, pairs) if b > 1 else (pairs,)
                    yield [(*SIZES[: a - 2], 5, 8), table, table], {}
    elif rule in ("quantize", "dequantize"):
        for shape in _shapes(0, 4):
            yield [shape, (), ()], {"axis": None}
            yield from (([shape, (n,), (n,)], {"axis": axis}) for axis, n in enumerate(shape))
    elif rule == "attention":
        yield from _attention_layouts(op)
    elif rule == "attention_varlen":
        yield [(9, 4, 8), (11, 4, 8), (11, 4, 6), (3,), (3,)], {}
        yield [(9, 4, 8), (11, 2, 8), (11, 2, 6), (3,), (3,)], {}
    elif rule in ("conv", "pool"):
        yield from _window_layouts(op)
    elif rule == "from_shape":
        key = [(4,)] * n
        yield from ((key, {"shape": SIZES[:rank]}) for rank in range(MOST_AXES + 1))
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


def _attention_layouts(op: Any) -> Iterator[tuple[list[tuple[int, ...]], dict[str, Any]]]:
    for rank, keys in itertools.product(range(2, 5), (7, 0)):
        batch = SIZES[: rank - 2]
        for mask_rank in range(rank + 1):
            mask = (*batch, 5, keys)[rank - mask_rank :]
            for heads in {batch[-1:], (1,) * len(batch[-1:])}:
                kv = (*batch[:-1], *heads)
                shapes = [(*batch, 5, 8), (*kv, keys, 8), (*kv, keys, 6), mask]
                if len(op.operands) == 4:
                    yield shapes, {}
                elif op.operands[4].name == "kv_length":
                    yield from (([*shapes, length], {}) for length in ((), (batch or (1,))[:1]))
                else:
                    yield [*shapes, (4,)], {}


def _window_layouts(op: Any) -> Iterator[tuple[list[tuple[int, ...]], dict[str, Any]]]:
    n = 1 if op.name.endswith("1d") else 2
    for kernel in ((1,) * n, (3, 2)[:n]):
        for padding in ((0,) * n, (1,) * n):
            if op.spec.shape == "pool" and any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
                continue
            image = (2, 4, *(16 + i for i in range(n)))
            attributes: dict[str, Any] = {"stride": (2,) * n, "padding": padding}
            if op.spec.shape == "pool":
                yield [image], {**attributes, "kernel_size": kernel}
                continue
            yield [image, (6, 2, *kernel), (6,)], {**attributes, "groups": 2}


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
            operands = list(zip(dtypes, shapes, strict=False))
            choices = itertools.product(
                _optional(op, operands), _flags(op), _floats(op), _dtypes_of_results(op, dt)
            )
            for given, flags, floats, result in choices:
                known = {p.name for p in op.attributes}
                chosen = {k: v for k, v in {**attributes, **flags, **floats, **result}.items() if k in known}
                if ("dropout_p" in chosen) and (chosen["dropout_p"] > 0) != (given[-1] is not None):
                    continue  # a key without dropout, or dropout without a key
                yield given, chosen


def decompositions(op: Any, core: Any, dt: Any) -> dict[str, Any]:
    """{"patterns": {pattern: [places among programs]}, "programs": [...]} of one op."""
    patterns: dict[str, list[int]] = {}
    places: dict[str, int] = {}
    for operands, attributes in calls_of(op, dt):
        given = [None if x is None else (x[0].name, list(x[1])) for x in operands]
        named = {k: getattr(v, "name", v) for k, v in attributes.items()}
        try:
            pattern, text = core.decomposition_text(op.name, given, named)
        except (TypeError, ValueError, IndexError, NotImplementedError):
            continue  # a call that the op refuses
        place = places.setdefault(text, len(places))
        if place not in (known := patterns.setdefault(pattern, [])):
            known.append(place)
    if op.spec.shape in ("same", "broadcast"):
        patterns = _without_ranks(patterns) or patterns
    return {"patterns": patterns, "programs": [json.loads(text) for text in places]}


def _without_ranks(patterns: dict[str, list[int]]) -> dict[str, list[int]]:
    """The patterns of an elementwise op, whatever the ranks; {} where its decomposition looks at them."""
    found: dict[str, list[int]] = {}
    for pattern, programs in patterns.items():
        operands, *attributes = pattern.split(";")
        short = ";".join([re.sub(r"\.\d+", "", operands), *attributes])
        if found.setdefault(short, programs) != programs:
            return {}
    return found


def text_of(names: list[str] | None = None) -> str:
    from dovetail import _core as core
    from dovetail.schema import dtypes as dt
    from dovetail.schema import registry

    own = sorted(
        o.name for o in registry.values() if o.decomposition and o.__module__.startswith("dovetail.schema")
    )
    lines = []
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
