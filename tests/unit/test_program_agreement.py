"""The runtime and the interpreter of dovetail_conformance.interpret agree on programs."""

from __future__ import annotations

import json
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core
from dovetail_conformance.interpret import GuardFailed, check_program, interpret, load_document, seeded_inputs
from dovetail_conformance.interpret.check import run_on
from numpy_tracer import dt as dtypes
from numpy_tracer import oracle, registry, ulps
from program_samples import decompositions, one_node, prepared, samples_of

SEED = 20261125
PROGRAMS = Path(__file__).parents[1] / "fuzz/programs"
OPS = [o for o in registry.values() if o.__module__.startswith("dovetail.schema.")]
TESTED = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.bool_)


def programs_of(op, call):
    """Those that need no number of the traced call's attributes."""
    yield one_node(op, call)
    if not op.decomposition:
        return
    try:
        found = decompositions(op, call, _core)
    except NotImplementedError:  # it has none for these attributes
        return
    for program in found:
        if "attribute" not in json.dumps(program.get("numbers", [])):
            yield program


def assert_near(op, got, want, scale, what):
    assert got.dtype == want.dtype and got.shape == want.shape, what
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, what)
    elif got.size:
        error = ulps(got, want, np.broadcast_to(scale, want.shape), dtypes.of(got))
        assert error.max() <= 2 * op.spec.tol + 1, what  # either may be as far from the oracle as it may


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_ops(op):
    rng = np.random.default_rng(SEED)
    for s, d in samples_of(op, TESTED):
        if s.error is None:
            args, kwargs = s.make(rng, d)
            call = prepared(op, args, kwargs)
            scales = oracle.scale(op, args, kwargs)
            for program in programs_of(op, call):
                what = f"{s.id} {d} seed={SEED} {json.dumps(program)[:300]}"
                try:
                    want = interpret(program, call.given)
                except GuardFailed:
                    with pytest.raises(ValueError, match=r"\[program\]"):
                        run_on("sim:0", program, call.given)
                    continue
                got = run_on("sim:0", program, call.given)
                for g, w, scale in zip(got, want, scales if op.spec.n_out > 1 else [scales], strict=True):
                    assert_near(op, g, w, scale, what)


def either(run):
    """The results, or the exception's type."""
    try:
        return [(x.dtype, x.shape, x.tolist()) for x in run()]
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError


@pytest.mark.parametrize("device", ["cpu:0", "sim:0"])
def test_errors_of_ops(device):
    """Where an op refuses a dtype or has nothing to choose from."""
    bools = np.array([True, False])
    cases = [(op, bools, {}) for op in ("positive", "negative", "logical_not", "max", "any")]
    for shape, axis in [
        ((0, 3), 0),
        ((0, 3), 1),
        ((3, 0), 0),
        ((0, 0), 0),
        ((0, 0), 1),
        ((2, 0, 0), 2),
        ((0, 0), None),
    ]:
        for op in ("max", "min", "any", "sum", "argmax", "argmin"):
            listed = axis if axis is None or op.startswith("arg") else [axis]
            cases.append((op, np.zeros(shape, np.float32), {} if axis is None else {"axis": listed}))
    refused = 0
    for op, x, at in cases:
        node = {"op": op, "in": [0], "at": at}
        program = {"dovetail": 1, "inputs": [{}], "nodes": [node], "outputs": [1]}
        want = either(lambda: interpret(program, [x]))  # noqa: B023
        assert either(lambda: run_on(device, program, [x])) == want, (op, x.shape, at)  # noqa: B023
        refused += isinstance(want, type)
    assert refused == 2 + 4 * 5  # negative and positive; the extrema along an axis of size 0


@pytest.mark.parametrize("seed", range(4))
def test_named_sizes(seed):
    program = (PROGRAMS / "named_sizes.json").read_text()
    inputs = seeded_inputs(program, seed, {"batch": 4, "tokens": 2 * seed + 2})  # indices are below 4
    for output in check_program(program, inputs, "sim:0"):
        assert output.ok, output


def test_a_file(tmp_path):
    """Written by the runtime, read by the interpreter's own reader of safetensors."""
    rng = np.random.default_rng(SEED)
    arrays = {
        "w": rng.normal(size=(4, 3)).astype(np.float32),
        "half": rng.normal(size=(3,)).astype(np.float16),
        "flags": np.array([True, False, True]),
        "empty": np.empty((0, 2), np.int8),
    }
    b = _core.ProgramBuilder()
    x = b.input("float32", ["n", 4], "x", [5, 4])
    held = [b.array_constant(dt.asarray(a, device="sim"), name) for name, a in arrays.items()]
    product = b.call("matmul", [x, held[0]], {}, [])
    path = tmp_path / "m.dvt"
    b.finish([product, *held[1:]]).save(path)
    loaded = load_document(path)
    for name, a in arrays.items():
        np.testing.assert_array_equal(loaded.tensors[name], a)
    for output in check_program(path, seeded_inputs(loaded.document, SEED), "sim:0"):
        assert output.ok, output


WEIGHTS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def dense(x):
    """A captured array, named sizes in a shape, and a view that begins where a size says."""
    b, t, _ = x.shape
    y = dt.nn.relu(x @ dt.asarray(WEIGHTS, device=x.device))
    y[:, 0] = 1.0
    return dt.reshape(y, (b * t, -1)) + dt.arange(b * t)[:, None], y[:, t // 2 :]


def recurrent(x):
    """The last state and those of all steps, in containers."""
    w = dt.asarray(WEIGHTS[:, :2], device=x.device)

    def step(state, row):
        state = {"h": dt.tanh(state["h"] / 2 + row @ w)}
        return state, dt.sum(state["h"], axis=-1)

    start = {"h": dt.zeros((x.shape[0], 2), device=x.device)}
    return dt.scan(step, start, dt.permute_dims(x, (1, 0, 2)))


def chosen(x):
    """A choice around a loop, with an array from outside of both."""
    w = dt.asarray(WEIGHTS[0, 0], device=x.device)

    def halved(x):
        return dt.while_loop(lambda v: dt.max(dt.abs(v)) > 0.5, lambda v: v / 2 + w / 8, x)

    return dt.cond(dt.sum(x) > 0, halved, lambda x: x - w, x)


def sorted_rows(x):
    """What has rounds that follow from sizes on a device without kernels."""
    order = dt.argsort(x, axis=1)
    return dt.cumulative_sum(dt.take_along_axis(x, order, axis=1), axis=1), order


@pytest.mark.parametrize("function", [dense, recurrent, chosen, sorted_rows], ids=lambda f: f.__name__)
def test_exported_functions(function, tmp_path):
    """At sizes that the trace did not have, on both devices, from the file."""
    file = tmp_path / "m.dvt"
    dt.export(function, dt.spec(("b", "t", 4), "float32")).save(file)
    rng = np.random.default_rng(SEED)
    for shape in [(2, 3, 4), (1, 1, 4), (5, 8, 4)]:
        for sign in (1, -1):
            x = (rng.random(shape) * sign).astype(np.float32)
            for device in ("cpu:0", "sim:0"):
                for output in check_program(file, [x], device):
                    assert output.ok, (SEED, shape, sign, device, output)


def test_an_exported_function(tmp_path):
    """With guards, which have the user's line, and functions of control ops that use sizes."""

    def fn(x, y):
        z = x[: x.shape[0] // 2] if x.shape[0] > 2 else x
        return dt.scan(lambda c, v: (c + v * z.shape[0], v + y.shape[0]), dt.sum(y), z)

    path = tmp_path / "m.dvt"
    dt.export(fn, dt.spec(("n",)), dt.spec((None,))).save(path)
    for n in (3, 8):
        inputs = [np.arange(n, dtype=np.float32), np.ones(n + 1, np.float32)]
        for output in check_program(path, inputs, "sim:0"):
            assert output.ok, output
    with pytest.raises(GuardFailed):
        check_program(path, [np.ones(2, np.float32)] * 2, "sim:0")
