"""cond, while_loop and scan: control flow over arrays, which a traced function keeps as nodes of its program."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

from dovetail import _core
from dovetail import _pytree as pytree
from dovetail._core import Array
from dovetail._trace import Graph, Tracer, recording_graph
from dovetail.schema import registry
from dovetail.schema.number import Number, value_of

__all__ = ["cond", "scan", "while_loop"]


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], /, *operands: Any) -> Any:
    """What true_fn(*operands) returns where pred is true, or else what false_fn(*operands) does.

    pred is a bool array without axes. Both functions return arrays in the same containers, of the same shapes and
    dtypes. In a traced function both are traced, and pred is read when the program runs.
    """
    given = _Trees("cond", operands, "operands")
    pred = _Trees("cond", pred, "pred")
    graph = recording_graph([*given.leaves, *pred.leaves])
    if graph is not None:
        return graph.recorded(_record_cond, pred, given, true_fn, false_fn)
    device = _device_of([*given.leaves, *pred.leaves])
    arrays = given.arrays(device)
    truth = _truth("cond", pred.value(pred.arrays(device)), "pred")
    taken, other = (true_fn, false_fn) if truth else (false_fn, true_fn)
    made = _Trees("cond", taken(*given.value(arrays)), "result")
    results = made.arrays(device)
    names = ("true_fn", "false_fn") if truth else ("false_fn", "true_fn")
    expected = _types_of("cond", device, other, arrays, lambda values: given.value(values))
    _expect_same("cond", (made, list(map(_type, results))), expected, *names)
    return made.value(results)


def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any, /) -> Any:
    """The value after value = body_fn(value), beginning with init, while cond_fn(value) is true.

    A value is an array or a container of arrays. body_fn returns what it is given: the same containers, shapes and
    dtypes. cond_fn returns a bool array without axes, which is read in every round.
    """
    start = _Trees("while_loop", init, "init")
    graph = recording_graph(start.leaves)
    if graph is not None:
        return graph.recorded(_record_while, cond_fn, body_fn, start)
    device = _device_of(start.leaves)
    carry = start.arrays(device)
    types = start, list(map(_type, carry))
    while _truth("while_loop", cond_fn(start.value([x.__copy__() for x in carry])), "cond_fn's result"):
        made = _Trees("while_loop", body_fn(start.value(carry)), "body_fn's result")
        carry = made.arrays(device)
        _expect_same("while_loop", (made, list(map(_type, carry))), types, "body_fn", "init")
        del made  # the next round writes to arrays of which it has the only handle in place
    return start.value(carry)


def scan(f: Callable[[Any, Any], Any], init: Any, xs: Any = None, length: int | None = None) -> tuple[Any, Any]:
    """(carry, ys) after carry, y = f(carry, x) for each x along the first axis of xs, beginning with init.

    carry, x and y are arrays or containers of arrays; ys has the y's stacked. f keeps the carry's containers,
    shapes and dtypes. Without xs (None) f gets None, `length` times.
    """
    start, given = _Trees("scan", init, "init"), _Trees("scan", xs, "xs")
    graph = recording_graph([*start.leaves, *given.leaves])
    if graph is not None:
        return graph.recorded(_record_scan, f, start, given, length)
    device = _device_of([*start.leaves, *given.leaves])
    carry, arrays = start.arrays(device), given.arrays(device)
    rounds = _length(given, arrays, length)
    types = start, list(map(_type, carry))
    ys: list[list[Array]] = []
    tree: _Trees | None = None
    for i in range(rounds):
        made, y = _pair(f(start.value(carry), given.value([x[i] for x in arrays])))
        carry = made.arrays(device)
        _expect_same("scan", (made, list(map(_type, carry))), types, "f's carry", "init")
        found = y.arrays(device)
        if tree is not None:
            first = tree, list(map(_type, ys[0]))
            _expect_same("scan", (y, list(map(_type, found))), first, f"f's y of round {i}", "its first y")
        tree = tree or y
        ys.append(found)
        del made, y  # the next round writes to arrays of which it has the only handle in place
    if tree is None:
        return start.value(carry), _no_results(device, f, start, carry, given, arrays)
    stack = registry["stack"]
    return start.value(carry), tree.value([stack(list(column), axis=0) for column in zip(*ys, strict=True)])


# ---- trees -------------------------------------------------------------------------------------------------------


class _Trees:
    """A value of arrays in containers: its leaves, and what makes such a value of others."""

    def __init__(self, op: str, value: Any, what: str):
        self.op, self.what = op, what
        self.leaves: list[Any] = []
        self.paths: list[str] = []
        self.tree = pytree.flatten(value, what, self._leaf)

    def _leaf(self, x: Any, path: str) -> pytree.Tree:
        if x is None:
            return pytree.Constant(None)
        if not isinstance(x, (Tracer, Array, Number, bool, int, float, complex)) and not hasattr(x, "__array__"):
            raise TypeError(
                f"[{self.op}] {path}: got {type(x).__name__}, expected arrays, numbers or None in containers; "
                "close over other values instead"
            )
        self.leaves.append(x)
        self.paths.append(path)
        return pytree.Leaf(len(self.leaves) - 1)

    def value(self, leaves: Any) -> Any:
        return pytree.rebuilt(self.tree, leaves)

    def arrays(self, device: Any) -> list[Array]:
        """The leaves as arrays of their own, which functions may write to as traced ones may."""
        from dovetail._creation import asarray

        return [x.__copy__() if isinstance(x, Array) else asarray(x, device=device) for x in self.leaves]

    def values(self, graph: Graph) -> list[Tracer]:
        """The leaves as values of the graph."""
        return [_value(graph, x) for x in self.leaves]


def _value(graph: Graph, x: Any) -> Tracer:
    if isinstance(x, (Tracer, Array)):
        return graph.value(x)
    number = value_of(x)
    if not isinstance(number, (bool, int, float, complex)):
        from dovetail._creation import asarray

        return graph.value(asarray(x, device=graph.device))
    dtype = {bool: "bool", int: "int64", float: "float32"}.get(type(number), "complex64")
    return graph.run(graph.record, registry["full"], ((), x), {"dtype": _dtype(dtype)})


def _dtype(name: str) -> Any:
    from dovetail.schema.dtypes import by_name

    return by_name[name]


def _type(x: Any) -> tuple[str, tuple[int, ...]]:
    return x.dtype.name, tuple(map(value_of, x.shape))


Types = tuple[_Trees, list[tuple[str, tuple[int, ...]]]]


def _expect_same(op: str, got: Types, expected: Types, name: str, other: str) -> None:
    if not _alike(got[0].tree, expected[0].tree):
        raise TypeError(
            f"[{op}] {name} gives other containers than {other}: got {_shown(got[0].tree)}, expected "
            f"{_shown(expected[0].tree)}"
        )
    for path, mine, theirs in zip(got[0].paths, got[1], expected[1], strict=True):
        if mine != theirs:
            raise TypeError(
                f"[{op}] {path} of {name} is {mine[0]} of shape {mine[1]}, expected {theirs[0]} of shape "
                f"{theirs[1]} as {other} has it; astype or reshape it"
            )


def _alike(a: pytree.Tree, b: pytree.Tree) -> bool:
    if isinstance(a, pytree.Node) and isinstance(b, pytree.Node):
        same = (a.kind, a.keys) == (b.kind, b.keys)
        return same and all(map(_alike, a.parts, b.parts))
    return type(a) is type(b)


def _shown(tree: pytree.Tree) -> str:
    if isinstance(tree, pytree.Leaf):
        return "*"
    if isinstance(tree, pytree.Constant):
        return repr(tree.value)
    parts = [_shown(part) for part in tree.parts]
    if tree.kind == "dict":
        return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(tree.keys, parts, strict=True)) + "}"
    return ("[{}]" if tree.kind == "list" else "({})").format(", ".join(parts))


def _pair(result: Any) -> tuple[_Trees, _Trees]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"[scan] f returned {type(result).__name__}, expected a tuple (carry, y)")
    return _Trees("scan", result[0], "carry"), _Trees("scan", result[1], "y")


def _truth(op: str, x: Any, what: str) -> bool:
    if isinstance(x, bool):
        return x
    if getattr(x, "shape", None) != () or x.dtype.name != "bool":
        shown = f"{x.dtype} of shape {x.shape}" if hasattr(x, "shape") else type(x).__name__
        raise TypeError(
            f"[{op}] {what} is {shown}, expected a bool array without axes; compare, or use dovetail.any"
        )
    return bool(x)


def _length(given: _Trees, arrays: list[Any], length: int | None) -> Any:
    rounds: Any = _as_length(length)
    for path, x in zip(given.paths, arrays, strict=True):
        if not x.ndim:
            raise ValueError(f"[scan] {path} has no axes, expected arrays with the elements along their first axis")
        if rounds is not None and value_of(x.shape[0]) != value_of(rounds):
            other = f"length={length}" if length is not None else f"{value_of(rounds)} of {given.paths[0]}"
            raise ValueError(f"[scan] {path} has {value_of(x.shape[0])} elements, expected as many as {other}")
        rounds = x.shape[0] if rounds is None else rounds
    if rounds is None:
        raise ValueError("[scan] got neither xs nor length=, expected one of them to give the number of rounds")
    if value_of(rounds) < 0:
        raise ValueError(f"[scan] length={length}, expected at least 0")
    return rounds


def _as_length(length: Any) -> Any:
    if length is None or isinstance(length, Number):
        return length
    if not hasattr(type(length), "__index__"):
        raise TypeError(f"[scan] length: got {type(length).__name__}, expected an integer")
    return index(length)


def _device_of(leaves: list[Any]) -> Any:
    homes = {x.device.name: x.device for x in leaves if isinstance(x, Array)}
    if len(homes) > 1:
        raise ValueError(
            f"[control flow] arrays on {' and '.join(homes)}: expected one device; .to_device() brings them over"
        )
    return next(iter(homes.values()), None)


# ---- types of functions that do not run --------------------------------------------------------------------------


def _scratch(device: Any) -> Any:
    """A graph that is recorded for the types of its results; its program is dropped."""
    from dovetail._record import TypesGraph

    return TypesGraph(_core.ProgramBuilder(), "control flow", device)


def _types_of(op: str, device: Any, fn: Callable[..., Any], arrays: list[Array], given: Callable) -> Types:
    graph = _scratch(device)
    made = _Trees(op, graph.run(fn, *given([graph.value(x) for x in arrays])), "result")
    return made, [_type(x) for x in made.values(graph)]


def _no_results(device: Any, f: Any, start: _Trees, carry: list[Array], given: _Trees, arrays: list[Array]) -> Any:
    """The ys of no rounds: f shows their types."""
    from dovetail._creation import empty

    graph = _scratch(device)
    shown = [graph.like_type(x.dtype.name, x.shape[1:]) for x in arrays]
    _, y = _pair(graph.run(f, start.value([graph.value(c) for c in carry]), given.value(shown)))
    types = [_type(x) for x in y.values(graph)]
    return y.value([empty((0, *shape), dtype=_core.dtypes[dtype], device=device) for dtype, shape in types])


# ---- recording ---------------------------------------------------------------------------------------------------


class _Part:
    """A function as a program that a node of `graph` holds."""

    def __init__(
        self, op: str, graph: Graph, fn: Callable[..., Any], operands: list[tuple[str, tuple]], given: Any
    ):
        self.graph = graph.nested()
        inputs = [self.graph.like_type(dtype, shape) for dtype, shape in operands]
        self.inputs = [self.graph.tracer(x._id) for x in inputs]  # fn may give its own other values
        self.result = self.graph.run(fn, *given(inputs))

    def close(self, results: list[Tracer], captured: list[Tracer], n_first: int, passes: bool) -> Any:
        """`captured`, outer values, are inputs after the first ones, and among the results too where it passes."""
        inner = [self.graph.adopt_value(x) for x in captured]
        inputs = [*self.inputs[:n_first], *inner, *self.inputs[n_first:]]
        outputs = [*results[:n_first], *inner, *results[n_first:]] if passes else results
        return self.graph.builder.close([x._id for x in outputs], [x._id for x in inputs])


def _captured(*parts: _Part) -> list[Tracer]:
    """The outer values that any of the functions uses."""
    found = {outer._id: outer for part in parts for outer, _ in part.graph.adopted_values}
    return list(found.values())


def _types(values: list[Tracer]) -> list[tuple[str, tuple]]:
    return list(map(_type, values))


def _operands(values: list[Tracer]) -> list[tuple[str, tuple]]:
    """The dtypes and shapes of inputs of a part; sizes that may differ from call to call stay symbolic there."""
    return [(x.dtype.name, x.shape) for x in values]


def _record_cond(graph: Graph, pred: _Trees, given: _Trees, true_fn: Any, false_fn: Any) -> Any:
    truth, operands = pred.values(graph), given.values(graph)
    if len(truth) != 1 or _type(truth[0]) != ("bool", ()):
        raise TypeError(f"[cond] pred is {_types(truth)}, expected a bool array without axes; compare, or use any")
    parts = [_Part("cond", graph, fn, _operands(operands), given.value) for fn in (true_fn, false_fn)]
    made = [_Trees("cond", part.result, "result") for part in parts]
    results = [m.values(part.graph) for m, part in zip(made, parts, strict=True)]
    then, other = ((m, _types(r)) for m, r in zip(made, results, strict=True))
    _expect_same("cond", other, then, "false_fn", "true_fn")
    captured = _captured(*parts)
    programs = [p.close(r, captured, len(operands), False) for p, r in zip(parts, results, strict=True)]
    out = graph.record_control(
        "cond", [*truth, *operands, *captured], **dict(zip(("then", "else"), programs, strict=True))
    )
    return made[0].value(out)


def _record_while(graph: Graph, cond_fn: Any, body_fn: Any, start: _Trees) -> Any:
    carry = start.values(graph)

    def given(values: list[Tracer]) -> tuple[Any]:
        return (start.value(values),)

    test = _Part("while_loop", graph, cond_fn, _operands(carry), given)
    body = _Part("while_loop", graph, body_fn, _operands(carry), given)
    truth = _Trees("while_loop", test.result, "cond_fn's result").values(test.graph)
    if len(truth) != 1 or _type(truth[0]) != ("bool", ()):
        raise TypeError(f"[while_loop] cond_fn's result is {_types(truth)}, expected a bool array without axes")
    made = _Trees("while_loop", body.result, "body_fn's result")
    results = made.values(body.graph)
    _expect_same("while_loop", (made, _types(results)), (start, _types(carry)), "body_fn", "init")
    captured = _captured(test, body)
    out = graph.record_control(
        "while_loop",
        [*carry, *captured],
        cond=test.close(truth, captured, len(carry), False),
        body=body.close(results, captured, len(carry), True),
    )
    return start.value(out[: len(carry)])


def _record_scan(graph: Graph, f: Any, start: _Trees, given: _Trees, length: int | None) -> tuple[Any, Any]:
    carry, arrays = start.values(graph), given.values(graph)
    rounds = _length(given, arrays, length)
    n = len(carry)
    elements = [(dtype, shape[1:]) for dtype, shape in _operands(arrays)]
    part = _Part(
        "scan",
        graph,
        f,
        [*_operands(carry), *elements],
        lambda values: (start.value(values[:n]), given.value(values[n:])),
    )
    made, y = _pair(part.result)
    results, ys = made.values(part.graph), y.values(part.graph)
    _expect_same("scan", (made, _types(results)), (start, _types(carry)), "f's carry", "init")
    captured = _captured(part)
    body = part.close([*results, *ys], captured, n, True)
    kept = n + len(captured)
    out = graph.record_control("scan", [*carry, *captured, *arrays], n_carry=kept, length=rounds, body=body)
    return start.value(out[:n]), y.value(out[kept:])
