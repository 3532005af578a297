"""The interpreter of programs, dovetail_conformance.interpret, agrees with the oracle of every op."""

from __future__ import annotations

import json

import numpy as np
import pytest
from dovetail import _core
from dovetail_conformance.interpret import BadProgram, GuardFailed, interpret
from dovetail_conformance.interpret.dtype_rules import cast
from numpy_tracer import check_output, dt, oracle, registry, schema
from program_samples import decompositions, one_node, prepared, samples_of

SEED = 20261125
TESTED = (dt.float32, dt.float64, dt.int32, dt.uint8, dt.bool_, dt.float16, dt.bfloat16)
OPS = [o for o in registry.values() if o.__module__.startswith("dovetail.schema.")]


def calls(op):
    rng = np.random.default_rng(SEED)
    for s, d in samples_of(op, TESTED):
        if s.error is None:
            yield f"{s.id} {d} seed={SEED}", *s.make(rng, d)


def judge(op, call, args, kwargs, got, what):
    wide = np.longdouble if call.result is dt.float64 else np.float64
    want, scale = (fn(op, args, kwargs, wide=wide) for fn in (oracle.expected, oracle.scale))
    if call.result in dt.HALVES:  # a decomposition computes in float32: the cast around it is dispatch's
        got = [cast(got[0], call.result), *got[1:]]
    for output in zip(got, *((want, scale) if op.spec.n_out > 1 else ((want,), (scale,))), strict=True):
        check_output(op, args, *output, what)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_one_node(op):
    for what, args, kwargs in calls(op):
        call = prepared(op, args, kwargs)
        judge(op, call, args, kwargs, interpret(one_node(op, call), call.given), what)


@pytest.mark.parametrize("op", [o for o in OPS if o.decomposition], ids=lambda op: op.name)
def test_decompositions(op):
    """Every program whose guards hold gives the op's result."""
    for what, args, kwargs in calls(op):
        call = prepared(op, args, kwargs)
        try:
            programs = decompositions(op, call, _core)
        except (NotImplementedError, schema.Unsupported):
            continue  # without a decomposition for this dtype, the op needs a kernel
        held = 0
        for program in programs:
            try:
                got = interpret(program, call.given, attributes=call.normalised)
            except GuardFailed:
                continue
            held += 1
            judge(op, call, args, kwargs, got, what)
        assert held, f"[{op.name}] {what}: no program holds"


def program(*nodes, inputs=1, outputs=None, **more):
    n = inputs + sum(node.get("out", 1) for node in nodes)
    return {
        "dovetail": 1,
        "inputs": [{"dtype": "float32", "shape": [None]}] * inputs,
        "nodes": list(nodes),
        "outputs": [n - 1] if outputs is None else outputs,
        **more,
    }


def node(op, *operands, **at):
    out = {"out": at.pop("out")} if "out" in at else {}
    return {"op": op, "in": list(operands), **out, **({"at": at} if at else {})}


X = np.array([1, 2, 3], np.float32)


def f32(value):
    return {"n": value, "dtype": "float32"}


def test_numbers_are_pythons():
    table = [["size", 0, 0], -2, ["floor_divide", 1, 0], ["modulo", 1, 0], 0.1, 1.0, ["floor_divide", 5, 4]]
    table += [["bit_length", 0], ["shift_left", 0, 7], ["divide", 0, 1], ["ceil", 9], 2**62, ["add", 11, 11]]
    operands = [{"number": k, "dtype": "float64"} for k in range(11)]
    (got,) = interpret(program(node("stack", *operands, axis=0), numbers=table), [X])
    assert got.tolist() == [3, -2, -1, 1, 0.1, 1.0, 9.0, 2, 12, -1.5, -1]
    with pytest.raises(GuardFailed, match="number 12: add leaves 64 bits"):
        interpret(program(node("add", 0, {"number": 12, "dtype": "float32"}), numbers=table), [X])


def test_guards_and_named_sizes():
    two = program(node("add", 0, 1), inputs=2, numbers=[["size", 0, 0], 3], guards=[["less", 0, 1, 1]])
    with pytest.raises(GuardFailed, match="3 less 3 does not hold"):
        interpret(two, [X, X])
    two["inputs"] = [{"dtype": "float32", "shape": ["n"], "name": name} for name in "ab"]
    with pytest.raises(GuardFailed, match="b: axis 0 has size 1: expected 3"):
        interpret(two, [X, X[:1]])


def test_control_flow():
    """A loop whose carry grows, a while_loop of no rounds, a scan, and a cond within it."""
    double = program(node("concat", 0, 0, axis=0), inputs=1)
    double["inputs"] = [{}]
    more = program(node("less", 0, f32(100.0)))
    more["inputs"] = [{}]
    choose = node("cond", 3, 2, 1, then={"program": 0}, **{"else": {"program": 1}}, out=1)
    add_x = program(node("add", 0, 1), node("less", 2, f32(3.0)), choose)
    add_x["inputs"], add_x["outputs"] = [{}, {}], [2, 4]
    add_x["programs"] = [{"dovetail": 1, "inputs": [{}, {}], "nodes": [], "outputs": [k]} for k in (0, 1)]
    body = program(node("add", 0, {"number": 0, "dtype": "float32"}), numbers=[["attribute", 0]])
    body["inputs"] = [{}]
    main = program(
        node("loop", 0, count={"number": 0}, numbers=[], body={"program": 0}, out=1),
        node("loop", f32(0.0), count=4, numbers=[5], body={"program": 3}, out=1),
        node("while_loop", f32(200.0), cond={"program": 1}, body={"program": 3}, out=1),
        node("scan", f32(0.0), 0, n_carry=1, length={"number": 0}, body={"program": 2}, out=2),
        numbers=[["size", 0, 0]],
        programs=[double, more, add_x, body],
        outputs=[1, 2, 3, 4, 5],
    )
    grown, rounds, same, total, ys = interpret(main, [X])
    assert grown.shape == (24,) and rounds == 6 and same == 200 and total == 6
    assert ys.tolist() == [1, 2, 3]


def test_rounding():
    small = program(node("add", 0, f32(1e-9)), node("subtract", 1, f32(1.0)))
    assert interpret(small, [X[:1]])[0] == 0
    assert interpret(small, [X[:1]], rounding="last")[0] == pytest.approx(1e-9, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dovetail": 2}, "a program of format 2: expected 1; pip install -U"),
        ({"nodes": [node("add", 0, 7)]}, "node 0: there is no value 7 yet"),
        ({"nodes": [node("no.op", 0)]}, "node 0: needs the op 'no.op'"),
        ({"nodes": [{**node("add", 0, 0), "v": 9}]}, "node 0: needs add version 9"),
        ({"nodes": [node("add", 0)]}, r"node 0: \[add\] x2 is missing"),
        ({"nodes": [node("add", 0, 0, axis=0)]}, r"node 0: \[add\] has no attribute \['axis'\]"),
    ],
)
def test_unsound_programs(change, message):
    with pytest.raises(BadProgram, match=message):
        interpret(json.dumps({**program(node("add", 0, 0)), **change}), [X])
