"""dovetail.export: trees, constants, sizes, guards, errors at the user's line, files."""

import inspect
import json
import signal
import subprocess
import sys
import threading
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core

SIM = [d.name for d in dt.devices() if d.name.startswith("sim")]
Pair = namedtuple("Pair", "first second")


@dataclass
class State:
    w: Any
    step: int


def line_of(fn, text):
    """file:line of the only line of the function that has this text."""
    lines, first = inspect.getsourcelines(fn)
    (offset,) = (i for i, line in enumerate(lines) if text in line)
    return f"{inspect.getsourcefile(fn)}:{first + offset}"


def guards(program):
    return json.loads(program.text()).get("guards", [])


def array(*values, dtype="float32"):
    return dt.asarray(list(values), dtype=dtype)


# ---- arguments and results ---------------------------------------------------------------------------------------


def test_trees_of_arguments_and_results():
    def step(pair, tree, state, scale, mode, nothing):
        total = pair.first + pair.second * scale + tree["b"][0] - tree["a"]
        new = State(state.w + total, state.step)
        return {"state": new, "pair": Pair(total, (mode, nothing)), "rest": [state.w, 1.5]}

    args = (
        Pair(array(1, 2), array(3, 4)),
        {"a": array(5, 6), "b": (np.float32([7, 8]),)},
        State(array(1, 1), 3), 2, "mean", None,
    )  # fmt: skip
    program = dt.export(step, *args)
    assert [p.name for p in program.inputs] == [
        "pair.first", "pair.second", "tree['a']", "tree['b'][0]", "state.w",
    ]  # fmt: skip
    out = program(*args)
    assert type(out["pair"]) is Pair and type(out["state"]) is State and out["state"].step == 3
    assert out["pair"].first.tolist() == [9.0, 12.0] and out["pair"].second == ("mean", None)
    assert (
        out["state"].w.tolist() == [10.0, 13.0] and out["rest"][0].tolist() == [1.0, 1.0] and out["rest"][1] == 1.5
    )
    reordered = {"b": args[1]["b"], "a": args[1]["a"]}
    assert program(args[0], reordered, *args[2:])["pair"].first.tolist() == [9.0, 12.0]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"x": {"w": [array(1)]}}, TypeError, "x['w']: got 1, expected 2 parts"),
        ({"x": {"v": [array(1), array(2)]}}, TypeError, "x: got 'v', expected the keys 'w'"),
        ({"x": (array(1), array(2))}, TypeError, "x: got a tuple, expected a dict"),
        ({"x": {"w": [array(1), 2.0]}}, TypeError, "x['w'][1]: got float, expected an array"),
        ({"n": 3}, TypeError, "n: got 3, but the program was made for 2"),
        ({"n": 2.0}, TypeError, "n: got 2.0, but the program was made for 2"),
        ({"x": {"w": [array(1), array(2, dtype="int32")]}}, (TypeError, ValueError), "x['w'][1]"),
        ({"x": {"w": [array(1), dt.ones((1, 1))]}}, ValueError, "x['w'][1]"),
    ],
)
def test_wrong_arguments_are_named(change, error, words):
    program = dt.export(lambda x, n: x["w"][0] * n + x["w"][1], {"w": [array(1), array(2)]}, 2)
    given = {"x": {"w": [array(1), array(2)]}, "n": 2} | change
    with pytest.raises(error) as raised:
        program(given["x"], given["n"])
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: dt.export(lambda x, n: x, x, 2**63), r"n: got an integer of 64 bits"),
        (lambda x: dt.export(lambda x: 2**70, x), r"result: got an integer of 71 bits"),
        (lambda x: dt.export(lambda x, s: x, x, "\ud800"), r"s: got .* without lone surrogates"),
        (lambda x: dt.export(lambda x: {"\udc00": x}, x), r"a key of result: got .* without lone surrogates"),
        (lambda x: dt.export(lambda x: x, x, dynamic={"x": {0: "n", -1: "m"}}), "an axis is there twice"),
        (lambda x: dt.export(lambda: x, dynamic={"x": True}), "there are no arguments"),
        (lambda x: dt.spec((2**63,)), "fits in 64 bits"),
    ],
)
def test_what_no_program_can_hold_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call(array(1, 2))


def test_text_in_a_signature_is_kept(tmp_path):
    text = 'é\0\u2028\U0001f600"\\'
    program = dt.export(lambda x, s: {text: (x, s)}, array(1), text)
    program.save(tmp_path / "m.dvt")
    for p in (program, dt.load(tmp_path / "m.dvt")):
        assert p(array(1), text)[text][1] == text


def test_number_of_arguments():
    program = dt.export(lambda x, y: x + y, array(1), array(2))
    with pytest.raises(TypeError, match=r"got 1 arguments, expected 2: \(x, y\)"):
        program(array(1))


@pytest.mark.skipif(not SIM, reason="needs a second device")
def test_devices():
    w = array(10, 20)
    program = dt.export(lambda x, y: x * w + y, array(1, 2), array(3, 4))
    on_sim = program(*(dt.asarray(v, device="sim:0") for v in ([1.0, 2.0], [3.0, 4.0])))
    assert on_sim.device == "sim:0" and on_sim.tolist() == [13.0, 44.0]
    assert program(np.float32([1, 2]), np.float32([3, 4]), device="sim:0").device == "sim:0"
    with pytest.raises(ValueError, match="y is on cpu:0, but x is on sim:0"):
        program(dt.asarray([1.0, 2.0], device="sim:0"), array(3, 4))


# ---- arrays of the function --------------------------------------------------------------------------------------


def test_captured_arrays_are_constants_with_their_value_of_then():
    w = array(1, 2, 3)
    owner = State(w, 0)

    def fn(x, default=w):
        return x + w + owner.w * default

    program = dt.export(fn, array(1, 1, 1))
    assert len(json.loads(program.text())["tensors"]) == 1
    w[0] = 100
    owner.w = array(0, 0, 0)
    assert program(array(1, 1, 1)).tolist() == [3.0, 7.0, 13.0]
    with pytest.raises(TypeError, match=r"constant of the program.*pass it as an argument"):
        dt.export(lambda x: w.__iadd__(x), array(1, 1, 1))

    def write(x):
        w[0] = x[0]

    with pytest.raises(TypeError, match="constant of the program"):
        dt.export(write, array(1, 1, 1))


def test_an_argument_keeps_its_value():
    def fn(x):
        x[0] = 9
        return x

    x = array(1, 2)
    program = dt.export(fn, x)
    assert program(x).tolist() == [9.0, 2.0] and x.tolist() == [1.0, 2.0]


# ---- sizes -------------------------------------------------------------------------------------------------------


def sizes_of(program):
    return [p.shape for p in program.inputs]


def test_which_sizes_may_change():
    fn = lambda x, p: (x + p["w"], p["b"])  # noqa: E731
    args = dt.ones((2, 3)), {"w": dt.ones((2, 3)), "b": dt.ones(3)}
    assert sizes_of(dt.export(fn, *args)) == [(None, None), (None, None), (None,)]
    assert sizes_of(dt.export(fn, *args, dynamic=False)) == [(2, 3), (2, 3), (3,)]
    names = {"x": {0: "n", -1: True}, "p": {"w": {0: "n"}}}
    program = dt.export(fn, *args, dynamic=names)
    assert sizes_of(program) == [("n", None), ("n", 3), (3,)]
    assert program(dt.ones((5, 3)), {"w": dt.ones((5, 3)), "b": dt.ones(3)})[0].shape == (5, 3)
    with pytest.raises(ValueError, match=r"p\['w'\].*5.*'n'"):
        program(dt.ones((5, 3)), {"w": dt.ones((1, 3)), "b": dt.ones(3)})
    with pytest.raises(ValueError, match=r"p\['b'\].*4.*expected 3"):
        program(dt.ones((5, 3)), {"w": dt.ones((5, 3)), "b": dt.ones(4)})
    for wrong, words in {
        "y": "no argument 'y'", "x": "the axis 2",
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=words):
            dt.export(fn, *args, dynamic={wrong: {2: "n"}})


def test_sizes_of_a_trace_do_not_run_out_and_may_be_0():
    many = dt.export(lambda *xs: xs[0], *[dt.spec((None, None)) for _ in range(20)])
    assert sizes_of(many) == [(None, None)] * 20
    program = dt.export(lambda x, y: x + y, dt.ones((0,)), dt.spec(("n",)), dynamic={"x": {0: "n"}, "y": True})
    assert program(dt.ones((2,)), dt.ones((2,))).numpy().tolist() == [2, 2]


def test_a_spec_stands_for_an_array():
    def fn(ids, w):
        return dt.nn.embedding(ids, w)[:, : ids.shape[1] // 2]

    program = dt.export(fn, dt.spec(("b", "t"), "int64"), dt.spec((9, None)))
    assert sizes_of(program) == [("b", "t"), (9, None)] and guards(program) == []
    out = program(dt.zeros((2, 6), dtype="int64"), dt.ones((9, 4)))
    assert out.shape == (2, 3, 4)
    assert sizes_of(dt.export(fn, dt.spec((2, 6), "int64"), dt.spec((9, 4)), dynamic={"ids": {0: "b"}})) == [
        ("b", 6), (9, 4),
    ]  # fmt: skip


def test_broadcasting_is_decided_at_the_call():
    program = dt.export(lambda x, y: x + y, dt.ones((1, 3)), dt.ones((4, 3)))
    assert program(dt.ones((4, 3)), dt.ones((4, 3))).shape == (4, 3)
    assert program(dt.ones((0, 1)), dt.ones((1, 7))).shape == (0, 7)
    with pytest.raises(ValueError, match=r"\[add\]"):
        program(dt.ones((2, 3)), dt.ones((4, 3)))


def test_sizes_that_follow_from_constants_leave_no_guard():
    w = dt.ones(3)
    fn = lambda x: [x * i for i in range((x + w).shape[1])]  # noqa: E731
    program = dt.export(fn, dt.ones((2, 1)))
    assert guards(program) == [] and len(program(dt.ones((4, 3)))) == 3


def test_a_guard_names_its_line():
    def fn(x):
        out = x
        for i in range(x.shape[0]):  # looks at the size
            out = out + i
        return out

    program = dt.export(fn, dt.ones((3, 2)))
    assert program(dt.ones((3, 5))).tolist()[0][0] == 4.0
    with pytest.raises(ValueError) as raised:
        program(dt.ones((4, 5)))
    assert "x.shape[0] (here 4) == 3" in str(raised.value)
    assert line_of(fn, "looks at the size") in str(raised.value)


def test_an_error_that_the_function_handles_leaves_a_guard():
    def f(x, y):
        try:
            return x @ y
        except ValueError:
            return -x

    program = dt.export(f, dt.ones((2, 3)), dt.ones((4, 5)))
    assert program(dt.ones((2, 3)), dt.ones((4, 5))).shape == (2, 3)
    with pytest.raises(ValueError, match=rf"{line_of(f, 'x @ y')}, where a call raises an error; export"):
        program(dt.ones((2, 3)), dt.ones((3, 5)))


# ---- errors ------------------------------------------------------------------------------------------------------

READS = {
    "if": lambda x: x if x[0] > 0 else -x,
    "int": lambda x: dt.zeros(int(x[0])),
    "float": lambda x: float(x[0]),
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "asarray": lambda x: np.asarray(x),
    "in": lambda x: 3 in x,
    "range": lambda x: list(range(x[0])),
    "nonzero": lambda x: dt.nonzero(x),
    "unique": lambda x: dt.unique_values(x),
    "mask": lambda x: x[x > 0],
    "mask of rows": lambda x: x[x[:2] > 0],
    "where of one": lambda x: np.where(x > 0),
    "repeat": lambda x: dt.repeat(x, x.astype("int64")),
    "attribute": lambda x: dt.roll(x, x[0].astype("int64")),
    "slice": lambda x: x[: x[0].astype("int64")],
    "text": lambda x: f"{x[0]:.2f}",
}


@pytest.mark.parametrize("name", READS)
def test_value_reads_name_the_users_line(name):
    fn = READS[name]
    with pytest.raises(TypeError, match="known only when the program runs") as raised:
        dt.export(fn, array(1, 2, 3))
    assert f"{__file__}:{fn.__code__.co_firstlineno}" in str(raised.value)


FAILS = {
    "shapes": lambda x: x + dt.ones((2, 5)),
    "dtype": lambda x: dt.bitwise_and(x, x),
    "no array": lambda x: dt.add(1, 2),
    "not an array": lambda x: dt.add(x, "a"),
    "list": lambda x: x + [1, 2, 3],
    "none": lambda x: dt.add(x, None),
    "empty": lambda x: dt.concat([]),
    "no sequence": lambda x: dt.concat(3),
    "name": lambda x: dt.sum(x, axes=0),
    "missing": lambda x: dt.add(x),
    "axis": lambda x: dt.sum(x, axis=3),
    "index": lambda x: x[5],
    "indices": lambda x: x[0, 0, 0],
    "device of an op with operands": lambda x: dt.exp(x, device="cpu:0"),
    "transpose": lambda x: x[0].T,
    "dtype of a write": lambda x: dt.astype(x, "int32").__setitem__(0, 1.5),
    "array of a wide dtype": lambda x: dt.astype(x, "int32").__setitem__(0, x[0]),
    "in-place shape": lambda x: x[:1].__iadd__(dt.ones((4, 3))),
    "in-place dtype": lambda x: dt.astype(x, "int32").__iadd__(x),
    "numpy": lambda x: np.interp(x, x, x),
    "exponent": lambda x: dt.astype(x, "int32") ** -1,
}


@pytest.mark.parametrize("name", FAILS)
def test_errors_are_those_of_eager_calls(name):
    fn, x = FAILS[name], dt.ones((2, 3))
    with pytest.raises(Exception) as expected:
        fn(x.copy())
    with pytest.raises(Exception) as raised:
        dt.export(fn, x)
    assert type(raised.value) is type(expected.value) and str(raised.value) == str(expected.value)
    frames = [t.path.name for t in raised.traceback]
    assert frames[-1] == "test_export.py"  # no frames of the tracer below the user's


def test_where_things_may_not_run():
    with pytest.raises(TypeError, match="Generator\\(seed\\)"):
        dt.export(lambda x: x + dt.random.normal(x.shape), array(1))
    generator = dt.random.Generator(3)
    with pytest.raises(TypeError, match="Generator\\(seed\\)"):
        dt.export(lambda x: x + generator.uniform(x.shape), array(1))
    assert generator.state == (3, 0)
    key, q = dt.random.key((1, 1, 4, 4)), dt.random.normal((1, 1, 4, 8))
    attend = lambda q, key: dt.nn.scaled_dot_product_attention_with_logsumexp(  # noqa: E731
        q, q, q, dropout_p=0.5, dropout_key=key
    )
    assert dt.export(attend, q, key)(q, key)[0].tolist() == attend(q, key)[0].tolist()
    if SIM:
        with pytest.raises(TypeError, match="runs on the device of its arguments"):
            dt.export(lambda x: dt.zeros(3, device="sim:0"), array(1))
    with pytest.raises(TypeError, match="used in the trace of"):
        dt.export(lambda x: dt.export(lambda y: x + y, array(1)), array(1))
    kept = []
    dt.export(lambda x: kept.append(x) or x, array(1))
    with pytest.raises(TypeError, match=r"is used at .*test_export.py:\d+, after its trace"):
        kept[0] + 1

    def rows(x):
        yield x

    async def later(x):
        return x

    for fn in (rows, later):
        with pytest.raises(TypeError, match="is async or a generator"):
            dt.export(fn, array(1))
    with pytest.raises(TypeError, match=r"x: got object"):
        dt.export(lambda x: x, object())
    assert _core.recorder() is None


def test_an_interrupted_trace_records_nothing_more():
    def branch(x):
        signal.raise_signal(signal.SIGINT)
        return x + 1

    for fn in (branch, lambda x: dt.cond(dt.sum(x) > 0, lambda x: x, branch, x)):
        with pytest.raises(KeyboardInterrupt):
            dt.export(fn, array(1))
        assert _core.recorder() is None and (array(1) + 1).tolist() == [2.0]
    with pytest.raises(KeyboardInterrupt):
        dt.cond(dt.asarray(True), lambda x: x, branch, array(1))  # the function that does not run is traced
    assert _core.recorder() is None and (array(1) + 1).tolist() == [2.0]


def test_what_else_runs_during_a_trace():
    """Arrays of the function print and are read, other threads compute."""
    large = dt.asarray(np.arange(4000.0).reshape(2, 2000), dtype="bfloat16")
    seen = []

    def fn(x):
        other = threading.Thread(target=lambda: seen.append((dt.ones(2) + 1).tolist()))
        other.start()
        other.join()
        seen.append((repr(large), large.tolist()[0][:2]))
        return x

    program = dt.export(fn, array(1))
    assert seen == [[2.0, 2.0], (repr(large), [0.0, 1.0])]
    assert json.loads(program.text())["nodes"] == []


def test_isinstance_and_text_of_a_tracer():
    seen = []

    def fn(x):
        seen.append((isinstance(x, dt.Array), repr(x), f"{x.shape}", len(x)))
        return x

    dt.export(fn, dt.ones((2, 3)))
    is_array, text, shape, n = seen[0]
    assert is_array and "float32[2, 3]" in text and shape == "(2, 3)" and n == 2


# ---- files and text ----------------------------------------------------------------------------------------------

LOAD = """
import sys, dovetail as dt
program = dt.load(sys.argv[1])
out = program(dt.ones((4, 3)), {"y": dt.ones(3)}, "relu")
print(type(out).__name__, out[0].tolist(), out[1])
print(program)
"""


def test_a_file_keeps_program_signature_and_constants(tmp_path):
    w = dt.asarray([[1.0, 2.0, 3.0]])

    def fn(x, tree, mode):
        assert mode == "relu"
        return dt.nn.relu(x * w - tree["y"]), "done"

    program = dt.export(fn, dt.ones((2, 3)), {"y": dt.ones(3)}, "relu", dynamic={"x": {0: "rows"}})
    path = tmp_path / "m.dvt"
    program.save(path)
    loaded = dt.load(path)
    assert json.loads(loaded.text()) == json.loads(program.text())
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(path)], check=True, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.startswith("tuple [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0]] done")
    assert "x: float32[rows, 3]" in done.stdout
    with pytest.raises(TypeError, match="made for 'relu'"):
        loaded(dt.ones((4, 3)), {"y": dt.ones(3)}, "gelu")


def test_the_listing_has_a_line_for_each_node():
    def fn(x):
        y = dt.reshape(x, (-1,))  # a line
        return dt.concat([y, y]) + x.shape[0]

    text = repr(dt.export(fn, dt.spec(("a", "b"))))
    lines = text.splitlines()
    assert "x: float32[a, b]" in lines[0]
    assert "reshape(x" in text and "float32[a*b]" in text and "float32[2*a*b]" in text
    where = line_of(fn, "# a line").rpartition("/")[2]
    assert any(line.endswith(where) for line in lines)
