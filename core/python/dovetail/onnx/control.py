"""Control flow: If, Loop and Scan.

A branch or a number of rounds that is known is inlined. Otherwise the node becomes dovetail's cond, while_loop or
scan, if its subgraphs keep their shapes; if not, it runs eagerly.
"""

from __future__ import annotations

from typing import Any

import onnx

import dovetail as dt
from dovetail import _core
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.values import (
    Dynamic,
    NeedsValue,
    Sizes,
    dtype_of_number,
    integer,
    is_strings,
    is_traced,
    scalar,
)
from dovetail.schema.number import Number

_MOST_INLINED = 1024  # nodes of all rounds: longer loops stay loops


def _arrays(values: list[Any], why: str) -> tuple[Any, ...]:
    """Values that a control op can carry."""
    made = []
    for v in values:
        if isinstance(v, Sizes):
            v = v.array()
        if v is None or isinstance(v, list) or is_strings(v):
            raise Dynamic(why)
        made.append(v)
    return tuple(made)


def _in_graph(run: Any, *args: Any) -> Any:
    """A control op of dovetail; Dynamic where the functions do not keep shapes and dtypes."""
    try:
        return run(*args)
    except NeedsValue:
        raise Dynamic("a subgraph reads elements") from None
    except TypeError as error:
        raise Dynamic("the results of its subgraphs differ in type or shape") from error


@onnx_op("If", numbers=(0,))
def if_(node: Node, condition: Any) -> Any:
    then, other = node.get("then_branch"), node.get("else_branch")

    def branch(graph: onnx.GraphProto) -> Any:
        return tuple(node.importer.graph(graph, node.scope))

    if not is_traced(condition):
        return branch(then if bool(scalar(condition)) else other)
    why = "its branches have other results than tensors"
    return _in_graph(dt.cond, dt.reshape(condition, ()), lambda: _arrays([*branch(then)], why),
                     lambda: _arrays([*branch(other)], why))  # fmt: skip


# ---- Loop --------------------------------------------------------------------------------------------------------


@onnx_op("Loop", numbers=(0, 1))
def loop(node: Node, trips: Any, condition: Any, *carried: Any) -> Any:
    rounds: Any = None
    if trips is not None:
        rounds = integer(trips) if not is_traced(trips) else trips
    known = not is_traced(condition) and not is_traced(rounds) and not isinstance(rounds, Number)
    if _core.recorder() is None:
        return _unrolled(node, rounds, condition, carried)
    body = node.get("body")
    if known and (rounds is None or rounds * len(body.node) <= _MOST_INLINED or not _keeps(node, carried)):
        return _unrolled(node, rounds, condition, carried)
    start = _arrays(list(carried), "it carries sequences, optionals or strings")
    if not is_traced(rounds) and rounds is not None and not is_traced(condition):
        if condition is not None and not scalar(condition):
            return _unrolled(node, 0, None, carried)
        try:
            return _in_graph(_as_scan, node, rounds, start)
        except _Stops:
            pass
    if len(node.outputs) > len(carried):
        raise Dynamic("the number of its rounds, and so the size of its results, depends on elements")
    return _in_graph(_as_while, node, rounds, condition, start)


def _keeps(node: Node, carried: tuple[Any, ...]) -> bool:
    """Whether the loop can stay one: it carries tensors."""
    return all(v is not None and not isinstance(v, list) and not is_strings(v) for v in carried)


class _Stops(Exception):
    """A loop's body decides whether there is another round."""


def _unrolled(node: Node, rounds: Any, condition: Any, carried: tuple[Any, ...]) -> tuple[Any, ...]:
    body = node.get("body")
    state, n = list(carried), len(carried)
    collected: list[list[Any]] = [[] for _ in body.output[1 + n :]]
    i, goes = 0, condition is None or bool(scalar(condition))
    while goes and (rounds is None or i < rounds):
        made = node.importer.graph(body, node.scope, [dt.asarray(i), dt.asarray(True), *state])
        goes, state = bool(scalar(made[0])), made[1 : 1 + n]
        for column, v in zip(collected, made[1 + n :]):
            column.append(v)
        i += 1
    ports = body.output[1 + n :]
    return (*state, *(_stacked(column, port) for column, port in zip(collected, ports)))


def _stacked(column: list[Any], port: onnx.ValueInfoProto, axis: int = 0) -> Any:
    if column:
        return dt.stack([v.array() if isinstance(v, Sizes) else v for v in column], axis=axis)
    tensor = port.type.tensor_type
    return dt.zeros((0, *(d.dim_value for d in tensor.shape.dim)), dtype=dtype_of_number(tensor.elem_type or 1))


def _as_scan(node: Node, rounds: Any, start: tuple[Any, ...]) -> tuple[Any, ...]:
    """A loop that ends after its number of rounds."""
    n = len(start)

    def body(carry: tuple[Any, ...], i: Any) -> tuple[Any, Any]:
        made = node.importer.graph(node.get("body"), node.scope, [i, dt.asarray(True), *carry])
        if is_traced(made[0]) or not scalar(made[0]):
            raise _Stops
        return _arrays(made[1 : 1 + n], "it carries no tensor"), _arrays(made[1 + n :], "it returns no tensor")

    last, columns = dt.scan(body, start, dt.arange(rounds))
    return (*last, *columns)


def _as_while(node: Node, rounds: Any, condition: Any, start: tuple[Any, ...]) -> tuple[Any, ...]:
    n = len(start)

    def body(state: tuple[Any, ...]) -> tuple[Any, ...]:
        i, _, *carry = state
        made = node.importer.graph(node.get("body"), node.scope, [i, dt.asarray(True), *carry])
        goes = made[0].array() if isinstance(made[0], Sizes) else made[0]
        return i + 1, dt.reshape(goes, ()), *_arrays(made[1 : 1 + n], "it carries no tensor")

    def goes(state: tuple[Any, ...]) -> Any:
        if rounds is None:
            return state[1]
        limit = dt.reshape(rounds, ()) if is_traced(rounds) else rounds
        return dt.logical_and(state[1], state[0] < limit)

    first = dt.asarray(True) if condition is None else condition
    first = first.array() if isinstance(first, Sizes) else first
    return tuple(dt.while_loop(goes, body, (dt.asarray(0), dt.reshape(first, ()), *start)))[2:]


# ---- Scan --------------------------------------------------------------------------------------------------------


@onnx_op("Scan", since=9)
def scan(node: Node, *operands: Any) -> Any:
    k = node.get("num_scan_inputs")
    axes, flips = node.get("scan_input_axes") or [0] * k, node.get("scan_input_directions") or [0] * k
    n = len(node.get("body").output) - (len(operands) - k)
    out_axes, out_flips = node.get("scan_output_axes") or [0] * n, node.get("scan_output_directions") or [0] * n
    return _scanned(node, list(operands), k, axes, flips, out_axes, out_flips)


@onnx_op("Scan", since=8)
def scan_of_batch(node: Node, lengths: Any, *operands: Any) -> Any:
    """In opset 8 all operands have a batch axis in front."""
    k = node.get("num_scan_inputs")
    flips = node.get("directions") or [0] * k
    n = len(node.get("body").output) - (len(operands) - k)
    rows = [_scanned(node, [v[i] for v in operands], k, [0] * k, flips, [0] * n, [0] * n)
            for i in range(int(operands[0].shape[0]))]  # fmt: skip
    return tuple(dt.stack(list(column), axis=0) for column in zip(*rows))


def _scanned(
    node: Node, operands: list[Any], k: int, axes: list[int], flips: list[int], out_axes: list[int],
    out_flips: list[int],
) -> tuple[Any, ...]:  # fmt: skip
    m = len(operands) - k
    xs = []
    for x, axis, flip in zip(operands[m:], axes, flips):
        x = dt.moveaxis(x, axis, 0) if axis else x
        xs.append(dt.flip(x, axis=0) if flip else x)

    def body(carry: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, Any]:
        made = node.importer.graph(node.get("body"), node.scope, [*carry, *given])
        return _arrays(made[:m], "it carries no tensor"), _arrays(made[m:], "it returns no tensor")

    start = _arrays(operands[:m], "it carries sequences, optionals or strings")
    run = dt.scan if _core.recorder() is None else lambda *args: _in_graph(dt.scan, *args)
    last, columns = run(body, start, tuple(xs))
    made = []
    for y, axis, flip in zip(columns, out_axes, out_flips):
        y = dt.flip(y, axis=0) if flip else y
        made.append(dt.moveaxis(y, 0, axis) if axis else y)
    return (*last, *made)
