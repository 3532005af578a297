"""The calls that decompositions are traced for when the library is built: dtypes, ranks and attributes by rule."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

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
        yield from ({attribute.name: d} for d in _quantized(dt))
        return
    if op.spec.dtype == "matmul":
        yield {attribute.name: dt.int32}
        return
    of_rule = {"given": op.dtypes, "index": dt.NOT_COMPLEX}.get(op.spec.dtype, dt.FLOATS)
    allowed = [d for d in dt.REAL + dt.BOOL if d in of_rule]
    yield from ({attribute.name: d} for d in (*([None] if attribute.default is None else []), *allowed))


def _quantized(dt: Any) -> tuple[Any, ...]:
    return (dt.int8, dt.uint8, *(d for d in dt.PACKED if d.kind != "f"))


def _stored_calls(op: Any, dt: Any) -> Iterator[Call]:
    """What has a decomposition for dtypes that are only stored."""
    shapes, others = list(_shapes()), (*dt.BOOL, *dt.REAL)
    for d in dt.STORED:
        for shape in shapes:
            if op.name == "full":
                yield [], {"shape": shape, "fill_value": 2, "dtype": d}
                yield [], {"shape": shape, "fill_value": 2.5, "dtype": d}
            elif op.name == "copy" and d in dt.PACKED:
                yield [(d, shape)], {}
            elif op.name == "astype":
                yield from (([(d, shape)], {"dtype": other}) for other in others)
                yield from (([(other, shape)], {"dtype": d}) for other in others)


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
                yield [shape] * n, {"axis": axis}
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
    elif rule in ("matmul", "matmul_integer"):
        yield from _product_layouts(rule)
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
    elif rule == "layer_norm_grad":
        for shape in _shapes(1):
            for last in range(1, len(shape) + 1):
                yield [shape, shape, shape[-last:]], {"normalized_shape": shape[-last:]}
    elif rule == "batch_norm_train_grad":
        yield from (([SIZES[:rank], SIZES[:rank], (SIZES[1],)], {}) for rank in range(2, MOST_AXES + 1))
    elif rule in ("batch_norm", "batch_norm_train"):
        yield from (([SIZES[:rank], *[(SIZES[1],)] * (n - 1)], {}) for rank in range(2, MOST_AXES + 1))
    elif rule == "group_norm":
        shapes = [(3, 8, *SIZES[2:rank]) for rank in range(2, MOST_AXES + 1)]
        yield from (([shape, *[(8,)] * (n - 1)], {"num_groups": 4}) for shape in shapes)
    elif rule == "dropout":
        yield from (([shape, (4,)], {}) for shape in _of_every_rank())
    elif rule in ("cross_entropy", "cross_entropy_grad"):
        yield [(5,), *[()] * (n - 1)], {}
        for rank in range(2, MOST_AXES + 1):
            of_losses = (SIZES[0], *SIZES[2:rank])
            yield from (([SIZES[:rank], of_losses, of_grad][:n], {}) for of_grad in (of_losses, ())[: n - 1])
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
    elif rule in ("attention", "attention_grad"):
        yield from _attention_layouts(op)
    elif rule == "attention_varlen":
        yield [(9, 4, 8), (11, 4, 8), (11, 4, 6), (3,), (3,)], {}
        yield [(9, 4, 8), (11, 2, 8), (11, 2, 6), (3,), (3,)], {}
    elif rule == "score_indices":
        yield [(3, 4, 5, 8), (3, 2, 7, 8)], {}
    elif rule in ("attention_scores", "block_attention"):
        yield from _block_attention_layouts(rule)
    elif rule in ("conv", "pool"):
        yield from _window_layouts(op)
    elif rule == "conv_transpose":
        yield from _transposed_layouts(int(op.name[-2]))
    elif rule in ("conv_grad_input", "conv_grad_weight", "max_pool_grad", "avg_pool_grad"):
        yield from _window_grad_layouts(rule)
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


def _product_layouts(rule: str) -> Iterator[tuple[list[tuple[int, ...]], dict[str, Any]]]:
    """Vectors, matrices and batches of equal trailing axes; zero points of one value and of several."""
    batch, rows, inner, columns = SIZES[2:], 3, 5, 7
    for a, b in itertools.product(range(1, MOST_AXES + 1), repeat=2):
        x1 = (*batch[len(batch) - a + 2 :], rows, inner) if a > 1 else (inner,)
        x2 = (*batch[len(batch) - b + 2 :], inner, columns) if b > 1 else (inner,)
        if rule == "matmul":
            yield [x1, x2], {}
            continue
        of_rows, of_columns = ((), x1[-2:-1] or (1,)), ((), x2[-1:] if b > 1 else (1,))
        yield from (([x1, x2, *zero_points], {}) for zero_points in itertools.product(of_rows, of_columns))


def _attention_layouts(op: Any) -> Iterator[tuple[list[tuple[int, ...]], dict[str, Any]]]:
    for rank, keys in itertools.product(range(2, 5), (7, 0)):
        batch, heads = SIZES[: max(0, rank - 3)], ((4, 4), (4, 1), (1, 1), (4, 2)) if rank > 2 else (((), ()),)
        for (ours, theirs), mask_rank in itertools.product(heads, range(rank + 1)):
            q, kv = ((*batch, n) if rank > 2 else () for n in (ours, theirs))
            mask = (*q, 5, keys)[rank - mask_rank :]
            shapes = [(*q, 5, 8), (*kv, keys, 8), (*kv, keys, 6), mask]
            if op.spec.shape == "attention_grad":
                yield [*shapes[:3], (*q, 5, 6), (*q, 5), (*q, 5, 6), mask, (4,)], {}
            elif len(op.operands) == 4:
                yield shapes, {}
            elif op.operands[4].name == "kv_length":
                yield from (([*shapes, length], {}) for length in ((), (q or (1,))[:1]))
            else:
                yield [*shapes, (4,)], {}


def _block_attention_layouts(rule: str) -> Iterator[tuple[list[tuple[int, ...]], dict[str, Any]]]:
    for keys, (heads, key_heads) in itertools.product((7, 0), ((4, 4), (4, 1), (1, 1), (4, 2))):
        q, k, v = (3, heads, 5, 8), (3, key_heads, keys, 8), (3, key_heads, keys, 6)
        if rule == "attention_scores":
            yield [q, k], {}
            continue
        n = -(-keys // 4)
        for of in ((1, 1), (3, heads)):
            yield [q, k, v, (*of, 2, n), (2, 4, 4), (3, heads, 5, keys)], {}


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


def _window_grad_layouts(rule: str) -> Iterator[tuple[list[tuple[int, ...]], dict[str, Any]]]:
    """Of one to three spatial axes, all alike: taps that overlap and that do not, with and without padding."""
    of_pool = "pool" in rule
    for n in (1, 2, 3):
        for taps, stride, padding, dilation in itertools.product((3, 2, 1), (1, 2), (0, 1), (1, 2)):
            if of_pool and 2 * padding > taps:
                continue
            spatial = tuple(16 + i for i in range(n))
            places = tuple((size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1 for size in spatial)
            x, kernel, how = (2, 4, *spatial), (taps,) * n, {"stride": (stride,) * n, "padding": (padding,) * n}
            of_dilation = {"dilation": (dilation,) * n}
            if of_pool:
                grad, given = (2, 4, *places), {"kernel_size": kernel, **how}
                if rule == "max_pool_grad":
                    yield [x, grad], given | of_dilation
                elif dilation == 1:
                    yield [grad], given | {"input_size": x}
                continue
            weight, grad, given = (6, 2, *kernel), (2, 6, *places), {**how, **of_dilation, "groups": 2}
            if rule == "conv_grad_input":
                yield [weight, grad], given | {"input_size": x}
            else:
                yield [x, grad], given | {"weight_size": weight}


def _operand_dtypes(op: Any, dt: Any) -> Iterator[list[Any]]:
    """The dtype of each operand: value operands have one in common, narrow floats are computed in float32."""
    narrow = dt.HALVES + dt.FLOAT8
    values = [d for d in op.dtypes if d.kind != "c"]
    if op.spec.dtype == "matmul":  # what has a wider result; narrow floats are computed in float32
        values = [dt.int8, dt.uint8, dt.int16]
    if op.spec.half_in_f32:
        values = [d for d in values if d not in narrow]
    if op.spec.dtype == "accum":  # small integers are cast before
        values = [d for d in values if d.kind == "f" or d.itemsize == 8]
    raw = {
        "key": (dt.uint32,),
        "dropout_key": (dt.uint32,),
        "logsumexp": (dt.float32, dt.float64),
        "kv_length": (dt.int32, dt.int64),
        "cu_seq_q": (dt.int32, dt.int64),
        "cu_seq_k": (dt.int32, dt.int64),
        "blocks": (dt.int32,),
        "tiles": (dt.bool_,),
        "scores": (dt.float32, dt.float64),
        "x": (dt.int8, dt.uint8, *dt.FLOAT8) if op.name == "scaled_linear" else _quantized(dt),
        "weight": (dt.int8, *dt.FLOAT8),
        **dict.fromkeys(("x1", "x2", "x1_zero_point", "x2_zero_point"), (dt.int8, dt.uint8)),
    }
    kinds = []
    for p in op.operands:
        if p.kind == "raw":
            kinds.append(raw.get(p.name, dt.FLOATS if p.name == "bias" else (dt.bool_, *dt.FLOATS)))
    for d in values if any(p.kind == "value" for p in op.operands) else [None]:
        for chosen in itertools.product(*kinds):
            if len(set(chosen)) > 1 and {"cu_seq_q"} & {p.name for p in op.operands}:
                continue
            if op.spec.shape == "matmul_integer" and chosen[:2] != chosen[2:]:  # zero points have their operand's
                continue
            of_raw = iter(chosen)
            fixed = {"value": d, "mask": dt.bool_, "index": dt.int64}
            yield [next(of_raw) if p.kind == "raw" else fixed[p.kind] for p in op.operands]


def calls_of(op: Any, dt: Any) -> Iterator[Call]:
    """The calls that an op's decomposition is traced for."""
    if op.stored_decomposition:
        yield from _stored_calls(op, dt)
        return
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
