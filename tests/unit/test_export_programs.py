"""Programs that are called in a function that is being traced: their nodes become nodes of its program."""

import json

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core
from dovetail.schema import op

DEVICES = [d.name for d in dt.devices() if d.index == 0]
on_devices = pytest.mark.parametrize("device", DEVICES)
SEED = 20261125


@pytest.fixture
def rng():
    print("seed", SEED)
    return np.random.default_rng(SEED)


def bits(x):
    return [leaf.numpy().tobytes() for leaf in (x if isinstance(x, (tuple, list)) else [x])]


def nodes(program):
    return json.loads(program.text())["nodes"]


def same_everywhere(fn, *args, tmp_path):
    """fn's export gives the bits of its eager call; so does its file. Returns the program."""
    program = dt.export(fn, *args)
    program.save(tmp_path / "p.dvt")
    for p in (program, dt.load(tmp_path / "p.dvt")):
        assert bits(p(*args)) == bits(fn(*args))
    return program


@on_devices
def test_a_program_is_a_part_of_the_program_that_calls_it(device, rng, tmp_path):
    weights = dt.asarray(rng.random((3, 3), np.float32), device=device)
    x = dt.asarray(rng.random((4, 3), np.float32), device=device)

    def layer(x, scale):
        return {"out": dt.matmul(x, weights) * scale, "rows": x[: x.shape[0] // 2], "same": x}

    inner = dt.export(layer, x, 2.0)

    def fn(x):
        y = inner(x + 1, 2.0)
        z = inner(y["out"], 2.0)
        return y["out"], z["out"], z["rows"], y["same"]

    program = same_everywhere(fn, x, tmp_path=tmp_path)
    assert "programs" not in json.loads(program.text())  # its nodes are in this one
    assert len(json.loads(program.text())["tensors"]) == 1  # of both calls
    for n in (1, 2, 7, 0):
        other = dt.asarray(rng.random((n, 3), np.float32), device=device)
        assert bits(program(other)) == bits(fn(other))


@on_devices
def test_numpy_arrays_and_constants_are_operands(device, rng, tmp_path):
    x = dt.asarray(rng.random(5, np.float32), device=device)
    inner = dt.export(dt.add, x, x)
    captured = rng.random(5, np.float32)
    same_everywhere(lambda x: inner(x, captured), x, tmp_path=tmp_path)
    same_everywhere(
        lambda x: inner(dt.ones(5, device=device), dt.asarray(captured, device=device)) * x, x, tmp_path=tmp_path
    )


def test_nodes_keep_their_lines_and_guards_fail_with_them(rng):
    def looks(x):
        if x.shape[0] > 2:  # the guard
            return x.sum(axis=0)  # the node
        return x

    first = looks.__code__.co_firstlineno
    inner = dt.export(looks, dt.ones((4, 3)))

    def fn(x):
        return inner(x * 2) + 1

    program = dt.export(fn, dt.ones((4, 3)))
    lines = [int(n["where"].rpartition(":")[2]) for n in nodes(program)]
    here = fn.__code__.co_firstlineno + 1
    assert lines == [here, first + 2, here]
    assert program(dt.ones((3, 3))).tolist() == [7, 7, 7]
    with pytest.raises(ValueError, match=rf"\[program\] it was made for .*test_export_programs.py:{first + 1}"):
        program(dt.ones((2, 3)))


def test_sizes_that_the_program_declares_are_those_of_the_caller():
    pairs = dt.export(lambda x, y: x + y, dt.spec(("n", 4)), dt.spec(("n", 4)))

    def fn(x, y):
        return pairs(x, y)

    program = dt.export(fn, dt.ones((3, 4)), dt.ones((3, 4)))
    assert program(dt.ones((5, 4)), dt.ones((5, 4))).shape == (5, 4)
    here = f"test_export_programs.py:{fn.__code__.co_firstlineno + 1}"
    for x, y in [((5, 4), (1, 4)), ((5, 1), (5, 4))]:  # which would broadcast
        with pytest.raises(ValueError, match=here):
            program(dt.ones(x), dt.ones(y))
    with pytest.raises(ValueError, match=r"\[program\] y has size 2 on axis 0: expected 3, the size 'n' of x"):
        dt.export(lambda x, y: pairs(x, y[:2]), dt.ones((3, 4)), dt.ones((3, 4)))
    with pytest.raises(TypeError, match=r"\[program\] x has dtype int32: expected float32"):
        dt.export(lambda x, y: pairs(dt.astype(x, dt.int32), y), dt.ones((3, 4)), dt.ones((3, 4)))
    fixed = dt.export(fn, dt.ones((3, 4)), dt.ones((3, 4)), dynamic=False)
    assert "guards" not in json.loads(fixed.text())  # all is known


@on_devices
def test_programs_hold_programs_and_are_called_in_their_functions(device, rng, tmp_path):
    weights = dt.asarray(rng.random(3, np.float32), device=device)

    def halves(x):
        return dt.while_loop(lambda s: dt.max(s) > 1, lambda s: s / 2 + weights * 0, x)

    inner = dt.export(halves, dt.ones(3, device=device))

    def fn(x):
        y = inner(x)
        return dt.cond(dt.sum(y) > 2, lambda v: inner(v * 8), lambda v: v - 1, y)

    x = dt.asarray(np.float32([3, 5, 0.5]), device=device)
    program = same_everywhere(fn, x, tmp_path=tmp_path)
    assert [n["op"] for n in nodes(program)].count("while_loop") == 1
    assert list(json.loads(program.text())["tensors"]) == ["w0"]
    small = dt.asarray(np.float32([0.1, 0.2, 0.3]), device=device)
    assert bits(program(small)) == bits(fn(small))


def registered(name, body):
    """A new op with this decomposition."""
    body.__annotations__ = {"x": "Tensor", "return": "Tensor"}
    body.__doc__ = "For this test."
    return dt.register_op(op(name=name, shape="same", dtype="same", reference=np.positive)(body))


def test_a_program_in_an_eager_cond_and_in_a_decomposition(leave_the_schema_as_it_was):
    double = dt.export(lambda x: x * 2, dt.ones(3))
    x = dt.asarray([1.0, 2.0, 3.0])
    assert dt.cond(dt.asarray(True), double, lambda v: v, x).tolist() == [2, 4, 6]
    assert dt.cond(dt.asarray(False), double, lambda v: v, x).tolist() == [1, 2, 3]
    assert registered("programs.inside", lambda x: double(x) + 1.0)(x).tolist() == [3, 5, 7]
    with pytest.raises(TypeError, match=r"device .* in a decomposition"):
        registered("programs.elsewhere", lambda x: double(x, device="cpu:0"))(x)
    constant = dt.export(lambda x: x * dt.asarray([1.0, 2.0, 3.0]), dt.ones(3))
    with pytest.raises(TypeError, match="calls a program with constant arrays"):
        registered("programs.constant", lambda x: constant(x))(x)


def test_what_is_refused_is_refused_in_a_trace_too():
    inner = dt.export(lambda x: x * 2, dt.ones(3))
    with pytest.raises(TypeError, match="got 2 arguments, expected 1"):
        dt.export(lambda x: inner(x, x), dt.ones(3))
    with pytest.raises(TypeError, match="x: got float, expected an array"):
        dt.export(lambda x: inner(1.5), dt.ones(3))
    if "sim:0" in DEVICES:
        with pytest.raises(TypeError, match="runs on the device of its arguments"):
            dt.export(lambda x: inner(x, device="sim:0"), dt.ones(3, device="cpu:0"))
    assert _core.recorder() is None
