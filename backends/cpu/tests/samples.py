"""A small call of every op in the kernel table: a smoke test, which can also run on an emulated old processor. Run
as a program it iterates over the table at the level of DOVETAIL_CPU_CAPABILITY and prints how many rows ran.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import harness
import numpy as np
from abi import ANY, OPTIONAL, Kernel
from harness import BOOL, FLOAT8, FLOATS, Session

BY_BITS = {8: "u1", 16: "f2", 32: "f4", 64: "f8", 128: "c16"}
NAMES = {0: "i", 1: "u", 2: "f", 5: "c"}
i64 = np.dtype("i8")


@dataclass
class Sample:
    ins: list[np.ndarray | None]
    shape: tuple | list[tuple]  # of the output; a list has one for each
    attrs: list[object] = field(default_factory=list)


def dtype_of(operand: harness.Operand) -> np.dtype:
    t = operand.dtype
    if t.code == ANY:
        return np.dtype(BY_BITS[t.bits or 32])
    if foreign := [dtype for dtype, code in harness.FOREIGN.items() if code == (t.code, t.bits)]:
        return foreign[0]
    return BOOL if t.code == 6 else np.dtype(f"{NAMES[t.code]}{t.bits // 8}")


def some(dtype: np.dtype, shape: tuple, seed: int = 0) -> np.ndarray:
    """Numbers that every op accepts: in (0, 1] or from 1 to 5; of complex ones both parts."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "c":
        return rng.uniform(0.1, 1, (*shape, 2)).view(np.complex128)[..., 0].astype(dtype)
    x = rng.uniform(0.1, 1, shape) if dtype in FLOATS + FLOAT8 else rng.integers(1, 6, shape)
    return x.astype(dtype)


def elementwise(types: list[np.dtype], attrs: list[object]) -> Iterator[Sample]:
    yield Sample([some(t, (37,), i) for i, t in enumerate(types)], (37,), attrs)
    grid = [some(t, (70, 5), i).T if i else some(t, (5, 70)) for i, t in enumerate(types)]
    yield Sample(grid, (5, 70), attrs)
    rows = [np.broadcast_to(some(t, (70,), i), (5, 70)) if i else some(t, (5, 70)) for i, t in enumerate(types)]
    yield Sample(rows, (5, 70), attrs)


def window(t: list[np.dtype], op: str, axes: int) -> Iterator[Sample]:
    x, out = (2, 4, *(9,) * axes), (2, 4, *(4,) * axes)
    last = [False] if op.startswith("avg") else [(1,) * axes]
    yield Sample([some(t[0], x)], out, [(3,) * axes, (2,) * axes, (0,) * axes, *last])


def convolution(t: list[np.dtype], axes: int) -> Iterator[Sample]:
    attrs = [(1,) * axes, (1,) * axes, (1,) * axes, 2]
    ins = [some(t[0], (2, 4, *(9,) * axes)), some(t[1], (6, 2, *(3,) * axes)), some(t[2], (6,))]
    yield Sample(ins, (2, 6, *(9,) * axes), attrs)


def attention(t: list[np.dtype]) -> Iterator[Sample]:
    q, k, v = (some(t[i], (2, 3, n, 16), i) for i, n in enumerate((7, 11, 11)))
    more = [None] * (len(t) - 4)  # the operands that version 2 has
    yield Sample([q, k, v, None, *more], (2, 3, 7, 16), [True, 0.25, False])
    yield Sample([q, k, v, some(t[3], (7, 11)), *more], (2, 3, 7, 16), [False, 0.25, False])
    if more:
        yield Sample([q, k, v, None, np.array(5)], (2, 3, 7, 16), [False, 0.25, False])


def block_attention(t: list[np.dtype]) -> Iterator[Sample]:
    q, k, v = (some(t[i], (2, 4, n, 16), i) for i, n in enumerate((7, 11, 11)))
    blocks, tiles = np.array([[0, 2, 1], [3, 1, 2]], "i4").reshape(1, 1, 2, 3), some(t[4], (2, 4, 4))
    shapes = [(2, 4, 7, 16), (2, 4, 7)]
    yield Sample([q, k, v, None, None, None], shapes, [0.25, False])
    yield Sample([q, k[:, :2], v[:, :2], blocks, tiles, None], shapes, [-0.25, True])
    yield Sample([q, k, v, blocks, tiles, some(t[5], (2, 4, 7, 11))], shapes, [0.25, False])


def samples(op: str, t: list[np.dtype], out: np.dtype) -> Iterator[Sample]:
    """Calls of an op whose inputs have the types t."""
    x = some(t[0], (5, 70)) if t else None
    if op in ("sum", "prod", "cumulative_sum", "cumulative_prod"):
        scan = op.startswith("cum")
        for axis in (0, 1):
            shape = (5, 70) if scan else (70, 5)[axis : axis + 1]
            yield Sample([x], shape, [axis if scan else (axis,), out, False])
    elif op in ("max", "min", "mean", "any", "all", "count_nonzero", "logsumexp"):
        yield Sample([x], (5,), [(1,), False])
        yield Sample([x], (70,), [(0,), False])
        yield Sample([x], (), [(0, 1), False])
    elif op in ("var", "std"):
        yield Sample([x], (5,), [(1,), 0.0, False])
    elif op in ("argmax", "argmin"):
        yield Sample([x], (5,), [1, False])
        yield Sample([x], (), [None, False])
    elif op in ("sort", "argsort"):
        yield Sample([x], (5, 70), [1, False, True])
    elif op == "top_k":
        yield Sample([x], (5, 9), [9, 1, "largest"])
    elif op.endswith("_grad") or op.startswith("conv_grad"):
        yield from gradient(op, t)
    elif op in ("softmax", "log_softmax"):
        yield Sample([x], (5, 70), [1])
    elif op == "layer_norm":
        yield Sample([x, some(t[1], (70,)), some(t[2], (70,))], (5, 70), [(70,), 1e-5])
    elif op == "group_norm":
        vectors = [some(u, (6,)) for u in t[1:3]]
        yield Sample([some(t[0], (2, 6, 5, 7)), *vectors], (2, 6, 5, 7), [3, 1e-5])
    elif op == "batch_norm_train":
        for s in ((3, 11), (2, 5, 4, 7)):
            yield Sample([some(t[0], s), *(some(u, s[1:2]) for u in t[1:])], [s, s[1:2], s[1:2]], [1e-5])
    elif op == "rms_norm":
        yield Sample([x, some(t[1], (70,))], (5, 70), [(70,), 1e-5])
    elif op == "matmul":
        yield Sample([x, some(t[1], (70, 9))], (5, 9))
        yield Sample([some(t[0], (2, 5, 7)), some(t[1], (3, 7)).T], (2, 5, 3))
    elif op == "matmul_integer":
        zeros = [some(t[2], (5,)), some(t[3], ())]
        yield Sample([x, some(t[1], (70, 9)), *zeros], (5, 9))
        yield Sample([x, some(t[1], (9, 70)).T, None, None], (5, 9))
    elif op == "linear":
        yield Sample([x, some(t[1], (9, 70)), some(t[2], (9,))], (5, 9))
    elif op == "scaled_dot_product_attention":
        yield from attention(t)
    elif op == "block_attention":
        yield from block_attention(t)
    elif op == "score_indices":
        shapes = [(2, 1, 1, 1), (4, 1, 1), (7, 1), (11,)]
        yield Sample([some(t[0], (2, 4, 7, 9)), some(t[1], (2, 2, 11, 9))], shapes)
    elif op == "attention_scores":
        yield Sample([some(t[0], (2, 4, 7, 16)), some(t[1], (2, 2, 11, 16), 1)], (2, 4, 7, 11), [0.25, True])
    elif op.startswith("conv"):
        yield from convolution(t, int(op[4]))
    elif "_pool" in op:
        yield from window(t, op, int(op[-2]))
    elif op in ("full", "iota", "random_bits", "normal"):
        yield from created(op, t, out)
    elif op in ("take", "take_along_axis", "scatter", "embedding"):
        yield from indexed(op, t, x)
    elif op in ("dynamic_slice", "dynamic_update_slice"):
        yield from dynamic(op, t, x)
    elif op == "concat":
        yield Sample([x, some(t[0], (5, 3), 1)], (5, 73), [1])
        yield Sample([x, some(t[0], (2, 70), 1)], (7, 70), [0])
    elif op == "stack":
        yield Sample([x, some(t[0], (5, 70), 1)], (5, 2, 70), [1])
    elif op == "rotary_embedding":
        tables = [some(t[i], (5, 16), i) for i in (1, 2)]
        yield from (Sample([x, *tables], (5, 70), [interleaved]) for interleaved in (False, True))
    elif op in LAPACK:
        yield from matrices(op, t)
    elif op == "clip":
        yield from elementwise(t, [])
        yield Sample([x, None, some(t[2], (5, 70))], (5, 70))
    elif op == "gelu":
        yield from elementwise(t, ["none"])
        yield from elementwise(t, ["tanh"])
    elif op == "astype" and {t[0], out} & set(harness.STORED):
        yield Sample([some(t[0], (37,))], (37,), [out])
    elif op == "astype":
        yield from elementwise(t, [out])
    elif op in ELEMENTWISE:
        yield from elementwise(t, [])
    else:
        raise AssertionError(f"no sample of {op}: add one to tests/samples.py")


def gradient(op: str, t: list[np.dtype]) -> Iterator[Sample]:
    def drawn(*shapes: tuple) -> list[np.ndarray]:
        return [some(t[i], shape, i) for i, shape in enumerate(shapes)]

    if op == "silu_grad":
        yield from elementwise(t, [])
    elif op == "gelu_grad":
        yield from elementwise(t, ["none"])
        yield from elementwise(t, ["tanh"])
    elif op in ("softmax_grad", "log_softmax_grad"):
        yield Sample(drawn((5, 70), (5, 70)), (5, 70), [1])
        yield Sample(drawn((5, 70), (5, 70)), (5, 70), [0])
    elif op in ("layer_norm_grad", "rms_norm_grad"):
        shapes = [(5, 70), (70,), (70,)][: 3 if op == "layer_norm_grad" else 2]
        yield Sample(drawn((5, 70), (5, 70), (70,)), shapes, [(70,), 1e-5])
    elif op == "batch_norm_train_grad":
        for x in ((3, 11), (2, 5, 4, 7)):
            values, grad, weight = drawn(x, x, x[1:2])  # of the same sign on the whole: sums do not cancel
            yield Sample([values * t[0].type(4), grad + values, weight], [x, x[1:2], x[1:2]], [1e-5])
    elif op == "cross_entropy_grad":
        for smoothing in (0.0, 0.125):
            yield Sample([some(t[0], (5, 70)), np.arange(5), some(t[2], ())], (5, 70), [-100, "mean", smoothing])
    elif op == "max_pool_grad":
        yield Sample(drawn((2, 4, 9, 9), (2, 4, 5, 5)), (2, 4, 9, 9), [(3, 3), (2, 2), (1, 1), (1, 1)])
    elif op == "avg_pool_grad":
        x = (2, 4, 9, 9)
        for counted in (False, True):
            yield Sample(drawn((2, 4, 5, 5)), x, [x, (3, 3), (2, 2), (1, 1), counted])
    elif op.startswith("conv_grad"):
        x, weight, y, how = (2, 4, 9, 9), (6, 2, 3, 3), (2, 6, 5, 5), [(2, 2), (1, 1), (1, 1), 2]
        given, made = (weight, x) if op == "conv_grad_input" else (x, weight)
        yield Sample(drawn(given, y), made, [made, *how])
    else:
        q, kv, of_rows = (2, 3, 7, 16), (2, 3, 11, 16), (2, 3, 7)
        operands = [*drawn(q, kv, kv, q, of_rows, q), None, None]
        operands[4] = operands[4] + t[4].type(8)
        yield Sample(operands, [q, kv, kv], [True, 0.25, False, 0.0])


def created(op: str, t: list[np.dtype], out: np.dtype) -> Iterator[Sample]:
    if op == "full":
        yield Sample([], (70,), [(70,), 1, out])
    elif op == "iota":
        yield Sample([], (70,), [70, out])
    else:
        yield Sample([some(t[0], (4,))], (70,), [(70,)])


def indexed(op: str, t: list[np.dtype], x: np.ndarray) -> Iterator[Sample]:
    k = np.array([4, 0, -1])
    if op == "take":
        yield Sample([x, k], (3, 70), [0])
        yield Sample([x, k], (5, 3), [1])
    elif op == "take_along_axis":
        yield Sample([x, np.broadcast_to(k, (5, 3))], (5, 3), [1])
    elif op == "embedding":
        yield Sample([np.array([4, 0, 1]), some(t[1], (5, 70))], (3, 70))
    else:
        for mode in ("set", "add", "max"):
            yield Sample([x, k, some(t[2], (3, 70))], (5, 70), [0, mode])
            yield Sample([x, k, some(t[2], (5, 1))], (5, 70), [1, mode])


def dynamic(op: str, t: list[np.dtype], x: np.ndarray) -> Iterator[Sample]:
    starts = np.array([2, 60])
    if op == "dynamic_slice":
        yield Sample([x, starts], (2, 20), [(2, 20), (0, 1)])
    else:
        yield Sample([x, some(t[1], (2, 20), 1), starts], (5, 70), [(0, 1)])


LAPACK = ("cholesky", "lu_factor", "qr", "solve_triangular", "eigh", "svd")


def matrices(op: str, t: list[np.dtype]) -> Iterator[Sample]:
    for n in (5, 20):
        positive = some(t[0], (n, n)) + n * np.eye(n, dtype=t[0])
        tall = some(t[0], (n + 2, n))
        if op == "cholesky":
            hermitian = positive @ positive.T.conj()
            yield from (Sample([hermitian], (n, n), [upper]) for upper in (False, True))
        elif op == "lu_factor":
            yield Sample([positive], [(n, n), (n,), ()])
        elif op == "qr":
            yield Sample([tall], [(n + 2, n), (n, n)], ["reduced"])
            yield Sample([tall], [(n + 2, n + 2), (n + 2, n)], ["complete"])
        elif op == "solve_triangular":
            yield from (Sample([positive, some(t[1], (n, 3))], (n, 3), [upper, False]) for upper in (False, True))
        elif op == "eigh":
            yield Sample([positive + positive.T.conj()], [(n,), (n, n)])
        else:
            yield Sample([tall], [(n + 2, n), (n,), (n, n)], [False])
            yield Sample([tall], [(n + 2, n + 2), (n,), (n, n)], [True])


ELEMENTWISE = set(
    """add subtract multiply divide quotient floor_divide remainder pow atan2 maximum minimum equal not_equal less
    less_equal greater greater_equal logical_and logical_or logical_xor logical_not bitwise_and bitwise_or
    bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift where copy negative abs conj square sign
    reciprocal relu floor ceil trunc round sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan
    sinh cosh tanh asinh acosh atanh erf erfc sigmoid silu isnan isinf isfinite signbit copysign hypot
    logaddexp""".split()
)


def run_row(session: Session, row: Kernel) -> list[np.ndarray]:
    """Run all samples of a row; return their results."""
    op = row.op.decode().removeprefix("dvt.")
    operands = [row.operands[i] for i in range(row.n_in + row.n_out)]
    types = [dtype_of(o) for o in operands]
    results = []
    outs = types[row.n_in :]
    for s in samples(op, types[: row.n_in], outs[0]):
        if any(a is None and not operands[i].flags & OPTIONAL for i, a in enumerate(s.ins)):
            continue
        shape = s.shape if len(outs) == 1 or isinstance(s.shape, list) else [s.shape] * len(outs)
        out = outs[0] if len(outs) == 1 else outs
        try:
            made = session.run(op, *s.ins, out=out, shape=shape, attrs=s.attrs, row=row)
        except harness.KernelError as refused:
            if "OpenBLAS" not in str(refused):
                raise
            continue  # it is missing, or wrong on this processor
        results += made if len(outs) > 1 else [made]
    return results


if __name__ == "__main__":
    whole = Session(harness.library_path(), os.environ.get("DOVETAIL_CPU_CAPABILITY"))
    if whole.device_count() != 1:
        sys.exit("no device")
    calls = sum(len(run_row(whole, row)) for row in whole.rows)
    print(f"{len(whole.rows)} rows, {calls} calls; {whole.table.build_info.decode()}")
