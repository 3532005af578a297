"""`dovetail bench --against`: points, figures, load, the plot, and runs next to NumPy."""

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import dovetail
import numpy as np
import psutil
import pytest
from click.testing import CliRunner
from dovetail.cli import output
from dovetail.cli.app import dovetail as command
from dovetail.cli.comparison import ceilings, figures, kinds, load, measure, points
from dovetail.cli.comparison import command as comparison
from dovetail.cli.comparison.ceilings import Ceilings, Probe
from dovetail.cli.comparison.peers import PEERS, Dovetail, NumPy
from dovetail.cli.comparison.points import Point, PointError
from dovetail.cli.comparison.processes import Process, WorkerError
from dovetail.cli.comparison.worker import Worker, sample

EXP = {"op": "exp", "dtype": "float32", "shape": [2, 3]}


def run(*args, code=0):
    result = CliRunner().invoke(command, ["bench", *map(str, args)], prog_name="dovetail")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


# ---- points -----------------------------------------------------------------------------------------------------


def test_a_point_keeps_its_fields():
    given = {"op": "transpose", "dtype": "float32", "shape": [2, 3], "perm": [1, 0]}
    point = points.parse(given, "here")
    assert point.perm == (1, 0) and point.label == "2x3 perm=1,0"
    assert json.loads(json.dumps(point.as_dict())) == given
    assert points.parse({"op": "sum", "dtype": "float32", "shape": [2, 3], "axis": 0}, "").as_dict()["axis"] == 0


def test_the_default_points_are_valid():
    found = points.read(points.DEFAULT)
    assert len(found) == 90 and {"matmul", "sdpa", "normal"} <= {point.op for point in found}
    assert [point.op for point in points.select(found, ("conv2d",))] == ["conv2d"] * 5
    with pytest.raises(PointError, match="no point of 'conv3d', did you mean 'conv2d'"):
        points.select(found, ("conv3d",))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"op": None}, r"point 2 \(None\): op: got null, expected a string"),
        ({"op": "epx"}, r"point 2 \(epx\): there is no benchmark of 'epx', did you mean 'exp'"),
        ({"dtype": "flaot32"}, "there is no dtype 'flaot32', did you mean 'float32'"),
        ({"shape": 4}, r"shape: got 4, expected a list of sizes such as \[4096, 1024\]"),
        ({"shape": [2, -3]}, r"shape: got \[2, -3\]"),
        ({"shpae2": [2]}, "there is no field 'shpae2', did you mean 'shape2'"),
        ({"axis": True}, "axis: got true, expected an integer"),
        ({"op": "sum", "axis": 2}, "axis: got 2, expected -2 to 1 for an array of 2 axes"),
        ({"axis": 1}, "'axis' has no meaning for exp; leave it out"),
        ({"k": 3}, "'k' has no meaning for exp; leave it out"),
        ({"op": "softmax", "causal": True}, "'causal' has no meaning for softmax; leave it out"),
        ({"op": "top_k", "k": 4}, r"k: got 4, expected 0 to the size of the axis, in \[2, 3\]"),
        ({"low": 4, "high": 1}, "low: got 4, expected less than high, 1"),
        ({"op": "conv2d"}, r"shape: got \[2, 3\], expected the 8 sizes N, C, H, W, O, K, stride, groups"),
        ({"op": "conv2d", "shape": [1, 4, 8, 8, 4, 3, 1, 3]}, "groups must divide both"),
        ({"op": "transpose"}, "'perm' is missing; add it to the point"),
        ({"op": "transpose", "perm": [0, 0]}, r"perm: got \[0, 0\], expected every axis of 0 to 1 once"),
        ({"op": "top_k"}, "'k' is missing"),
        ({"op": "astype", "to": "int31"}, "no dtype 'int31'"),
        ({"op": "matmul"}, r"shape2: got \[2, 3\], expected its last axis but one to have the size of the last"),
        ({"op": "add", "shape2": [2]}, r"shape2: got \[2\], expected a shape that broadcasts with \[2, 3\]"),
        ({"shape": [2**40, 2**30]}, r"operand of shape \[1099511627776, 1073741824\] has 4398046511104 GiB"),
        ({"shape": [2**62, 0, 4]}, "more than any array; make it smaller"),
        ({"op": "linear", "shape": [1, 2**31, 2**31]}, r"an operand of shape \[2147483648, 2147483648\] has"),
        ({"op": "embedding", "shape": [2**60, 2, 2]}, r"an operand of shape \[1152921504606846976\] has"),
    ],
)
def test_a_malformed_point_is_named(tmp_path, changes, message):
    file = tmp_path / "points.json"
    file.write_text(json.dumps([EXP, EXP | changes]))
    with pytest.raises(PointError, match=message):
        points.read(file)


def test_a_malformed_list(tmp_path):
    file = tmp_path / "points.json"
    for text, message in (("[1", "is not JSON"), ("{}", "got dict, expected a list"), ("[7]", "point 1: got 7")):
        file.write_text(text)
        with pytest.raises(PointError, match=message):
            points.read(file)
    file.write_text("[]")
    assert "has no points" in run("--against", "numpy", "--points", file, code=2)
    file.write_text('[{"op": "exp", "shape": [1]}]')
    assert "point 1: 'dtype' is missing; add it" in run("--against", "numpy", "--points", file, code=2)
    assert "cannot be read" in run("--against", "numpy", "--points", tmp_path / "none.json", code=2)


# ---- what a point costs, and what must agree ---------------------------------------------------------------------


def flops(op, *shape, **more):
    return kinds.kind(op).flops(Point(op, "float32", shape, **more))


def test_flops():
    assert flops("matmul", 5, 2, 3, shape2=(3, 4)) == 5 * 2 * 2 * 3 * 4
    assert flops("matmul", 3, shape2=(3,)) == 6
    assert flops("linear", 2, 3, 4) == 48
    assert flops("sdpa", 1, 2, 4, 4, 8) == 4 * 2 * 16 * 8
    assert flops("sdpa", 1, 2, 4, 4, 8, causal=True) == 4 * 2 * 10 * 8
    assert flops("conv2d", 1, 4, 8, 8, 6, 3, 2, 2) == 2 * 6 * 4 * 4 * 2 * 9
    assert kinds.kind("exp").flops is None and kinds.kind("scatter") is None


def test_operands_are_the_same_in_every_process():
    point = Point("log", "bfloat16", (50, 20), low=1, high=2)
    first, again = (kinds.kind("log").operands(point, kinds.Values(point))[0] for _ in range(2))
    assert first.dtype.name == "bfloat16" and (first == again).all()
    assert first.min() >= 1 and first.max() <= 2


def test_only_the_rows_taken_are_read():
    point = Point("embedding", "float32", (4, 1000, 8))
    kind = kinds.kind("embedding")
    assert kind.read(point, kind.operands(point, kinds.Values(point))) == 4 * 8 + 4 * 8 * 4


def prepared(of, **fields):
    answer = Worker(of).prepare(Point(**fields), 0.0)
    assert "error" not in answer, answer
    return answer


SMALL = {"embedding": (9, 30, 8), "linear": (5, 8, 6), "sdpa": (1, 2, 8, 8, 4), "conv2d": (1, 4, 8, 8, 6, 3, 1, 2)}


def small_points():
    """The default points at sizes that take no time, so that every entry of the tables is called."""
    for point in points.read(points.DEFAULT):
        shape2 = tuple(min(n, 12) for n in point.shape2) if point.shape2 else None
        yield replace(point, shape=SMALL.get(point.op, tuple(min(n, 12) for n in point.shape)), shape2=shape2)


@pytest.mark.parametrize("name", PEERS)
def test_peers_do_the_same_work(name):
    """Those that are installed. A wrong entry of a table would give ratios of other work."""
    for module in PEERS[name]:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    ours, peer = Worker(Dovetail(1, "cpu")), Process(name, 1, None)
    compared, wrong = set(), []
    try:
        for point in small_points():
            mine, theirs = ours.prepare(point, 0.0), peer.ask(prepare=point.as_dict(), seconds=0.0)
            if not theirs.get("kernel", True):
                continue
            compared.add(point.op)
            same = "sample" in theirs and figures.agrees(mine["sample"], theirs["sample"], point.to or point.dtype)
            if not same or mine["read"] != theirs["read"]:
                wrong.append((point, theirs.get("error")))
    finally:
        peer.close()
    assert not wrong
    assert {"exp", "matmul", "linear", "sum", "transpose", "astype", "embedding", "concat", "normal"} <= compared


def test_costs_are_the_bytes_of_operands_and_result():
    answer = prepared(Dovetail(1, "cpu"), op="sum", dtype="bfloat16", shape=(8, 4), axis=1)
    assert (answer["read"], answer["written"]) == (64, 16)


def test_no_kernel_and_an_error_are_different():
    assert Worker(NumPy(1, None)).prepare(Point("softmax", "float32", (2, 2)), 0) == {"kernel": False}
    answer = Worker(NumPy(1, None)).prepare(Point("add", "float32", (2, 2), axis=0), 0)
    assert answer["error"].startswith("TypeError")


# ---- figures ----------------------------------------------------------------------------------------------------


def times(**seconds):
    return {name: {"min": value, "median": 2 * value} for name, value in seconds.items()}


def test_ratio_is_to_the_best_peer():
    measured = times(dovetail=2.0, torch=3.0, numpy=1.0)
    assert figures.ratio(measured) == 0.5 and figures.best_peer(measured) == "numpy"
    assert figures.ratio(measured, differs=["numpy"]) == 1.5
    assert figures.ratio(times(dovetail=2.0)) is None and figures.ratio(times(torch=2.0)) is None
    assert figures.times([3.0, 1.0, 2.0]) == {"min": 1.0, "median": 2.0}


def test_summary_caps_ratios():
    rows = [{"ratio": r, "loaded": r == 0.5} for r in (0.5, 8.0, 100.0)] + [{"ratio": None, "loaded": False}]
    found = figures.summary(rows)
    assert found["geometric_mean"] == pytest.approx(2.0) and found["behind"] == 1 and found["worst"] == 0.5
    assert (found["points"], found["compared"], found["loaded"]) == (4, 3, 1)
    assert figures.summary([])["geometric_mean"] is None


def test_what_agrees():
    x = np.linspace(-1, 1, 10000, dtype=np.float32)
    assert figures.agrees(sample(x), sample(x * np.float32(1.0001)), "float32")
    assert not figures.agrees(sample(x), sample(x * np.float32(1.01)), "float32")
    assert figures.agrees(sample(x), sample(x * np.float32(1.01)), "bfloat16")
    assert not figures.agrees(sample(x), sample(x[::-1]), "bfloat16")
    assert not figures.agrees(sample(x), sample(x.reshape(100, 100)), "float32")
    assert figures.agrees(sample(np.array([np.nan, np.inf])), sample(np.array([np.nan, np.inf])), "float32")


def test_indices_agree_if_they_choose_equal_values():
    point, x = Point("argsort", "float32", (1, 3), axis=1), np.array([[1, 0, 0]], np.float32)
    first, other = (kinds.kind("argsort").seen(point, [x], [np.array([at])]) for at in ([1, 2, 0], [2, 1, 0]))
    assert (first == other).all()
    point = Point("argmax", "float32", (1, 3), axis=1)
    assert kinds.kind("argmax").seen(point, [x], [np.array([0])]) == [[1]]


def test_moments_of_normal_numbers():
    seen, point = kinds.kind("normal").seen, Point("normal", "float32", (10000,))
    x = np.random.default_rng(0).standard_normal(10000)
    assert seen(point, [], [x]).all()
    assert list(seen(point, [], [x + 1])) == [False, True] and list(seen(point, [], [2 * x])) == [True, False]


# ---- ceilings ---------------------------------------------------------------------------------------------------


def test_share_of_the_ceiling():
    limits = Ceilings()
    vector = Point("copy", "float32", (1,))
    limits.add(Probe("L2", 1 << 18, vector), 100.0, 0, 1.0)
    limits.add(Probe("L2", 1 << 18, vector), 50.0, 0, 1.0)
    limits.add(Probe("memory", 1 << 27, vector), 10.0, 0, 1.0)
    limits.add(Probe("memory", 1 << 27, Point("sum", "float32", (1,))), 20.0, 0, 1.0)
    limits.add(Probe("", 0, Point("matmul", "float32", (2, 2))), 0, 1000.0, 0.5)
    assert limits.floor("float32", 600, 400, 0) == 10.0  # in L2
    assert limits.floor("float32", 1e8, 1e8, 0) == 2e7
    assert limits.floor("float32", 2e8, 0, 0) == 1e7  # reads only
    assert limits.floor("float32", 600, 400, 1e6) == 500.0
    assert limits.floor("float64", 600, 400, 1e6) == 10.0  # of a dtype without a product
    limits.add_product("float32", 4000.0, 1.0)
    assert limits.floor("float32", 0, 0, 1e6) == 250.0
    assert ceilings.percent(250.0, 1000.0) == 25.0 and ceilings.percent(None, 1.0) is None
    assert limits.as_dict()["memory"]["memory"] == {"bytes": 1 << 27, "copy_gb_per_s": 1e-8, "read_gb_per_s": 2e-8}


def test_more_threads_have_at_least_the_ceilings_of_fewer():
    one, two = Ceilings(), Ceilings()
    vector = Point("copy", "float32", (1,))
    one.add(Probe("L2", 1024, vector), 70.0, 0, 1.0)
    one.add_product("float32", 5.0, 1.0)
    two.add(Probe("L2", 2048, vector), 50.0, 0, 1.0)
    two.add(Probe("L2", 2048, Point("sum", "float32", (1,))), 90.0, 0, 1.0)
    one.add(Probe("5 MiB", 5 << 20, vector), 40.0, 0, 1.0)  # of another size than any of two threads
    two.raise_to(one)
    assert two.memory == {"L2": (2048, 70.0, 90.0)} and two.flops == {"float32": 5.0}


@pytest.mark.parametrize(
    ("l2", "l3", "names"),
    [
        (2 << 20, 64 << 20, ["L2", "5.7 MiB", "L3", "64 MiB", "memory"]),
        (1 << 20, 4 << 20, ["L2", "L3", "5.7 MiB", "memory"]),
        (1 << 20, 1 << 40, ["L2", "4 MiB", "16 MiB", "64 MiB", "256 MiB", "L3", "memory"]),  # no larger than memory
    ],
)
def test_sizes_between_levels_are_measured_too(monkeypatch, l2, l3, names):
    monkeypatch.setattr(ceilings, "caches", lambda: {2: l2, 3: l3})
    monkeypatch.setattr(os, "sysconf", lambda name: 1 << 20)  # pages of a megabyte, a million of them
    assert [*ceilings.working_sets(2)] == names
    sizes = [p.working_set for p in ceilings.probes(2, []) if p.level]
    assert sizes == sorted(sizes) and len(sizes) == 3 * len(names)


def test_caches_are_read_from_the_system(tmp_path):
    for index, (level, size) in enumerate([("1", "32K"), ("2", "1024K"), ("3", "?")]):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(f"{size}\n")
    assert ceilings.caches(tmp_path) == {2: 1 << 20, 3: 32 << 20}
    assert ceilings.caches(tmp_path / "none") == {2: 512 << 10, 3: 32 << 20}


def test_probes_have_the_dtypes_of_products():
    found = ceilings.probes(2, [Point("linear", "float64", (1, 2, 3)), Point("exp", "float16", (1,))])
    assert {p.point.dtype for p in found if not p.level} == {*ceilings.DTYPES, "float64"}
    assert {p.level for p in found} == {*ceilings.working_sets(2), ""} > {"L2", "L3", "memory"}


# ---- load -------------------------------------------------------------------------------------------------------


def test_what_others_took():
    """Of two processors for two seconds, of which the measurement needs one or both."""
    spent = load.Reading(wall=2.0, busy=3.0, own=1.5)
    assert load.others(spent, threads=2, cores=2) == 0.75
    assert load.others(spent, threads=1, cores=2) == 0.0  # another processor was free for it
    assert load.others(spent._replace(busy=4.0), threads=1, cores=2) == 0.25
    assert load.others(spent._replace(busy=1.51), threads=2, cores=2) == 0.0  # the counters are not finer


def tried(*loads):
    readings, found, slept = iter(loads), iter("abc"), []
    result = load.least_loaded(lambda: next(found), lambda: lambda: next(readings), slept.append)
    return result, len(slept)


def test_times_under_load_are_discarded():
    assert tried(0.05) == (("a", 0.05), 1)
    assert tried(None) == (("a", None), 1)
    assert tried(0.5, 0.3, 0.0) == (("c", 0.0), 3)
    assert tried(0.5, 0.3, 0.4) == (("b", 0.3), 3)  # none without load: the least


def test_readings_of_the_system(tmp_path, monkeypatch):
    (tmp_path / "7").mkdir()
    (tmp_path / "stat").write_text(
        "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 10 20 999 999 1 2 3 50 0\ncpu1 7 7 7 7 7 7 7 7 7 7\n"
    )
    (tmp_path / "7/stat").write_text("7 (a ) b) S 1 7 7 0 -1 4194304 1 2 3 4 30 6 0 0 20 0 1 0 5 6 7\n")
    monkeypatch.setattr(load, "_PROC", tmp_path)
    monkeypatch.setattr(load, "processors", lambda: {0})
    monkeypatch.setattr(load.os, "sysconf", lambda name: 100)
    reading = load.read([7])
    assert (reading.busy, reading.own) == pytest.approx((1.36, 0.36))
    assert load.read([8]) is None


# ---- whole runs --------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Ceilings that take no time, and a list of points."""
    monkeypatch.setattr(ceilings, "PRODUCTS", (8,))
    monkeypatch.setattr(ceilings, "working_sets", lambda threads: {"L2": 4096})
    monkeypatch.setattr(measure, "_PAUSE", 0.0)
    monkeypatch.setattr(load, "_PAUSES", (0.0,))
    monkeypatch.setattr(output, "LINE_SECONDS", math.inf)  # no line among printed JSON on a slow machine
    file = tmp_path / "points.json"
    listed = [
        EXP,
        {"op": "matmul", "dtype": "float32", "shape": [4, 5], "shape2": [5, 6]},
        {"op": "softmax", "dtype": "bfloat16", "shape": [4, 5]},
    ]
    file.write_text(json.dumps(listed))
    return file


def test_next_to_numpy(small, tmp_path):
    found, drawn = tmp_path / "found.json", tmp_path / "found.svg"
    options = ["--against", "numpy", "--points", small, "--seconds", "0"]
    text = run(*options, "--threads", "1", "--threads", "2", "--json", found, "--svg", drawn)
    assert "4x5 5x6" in text and "geometric mean" in text and "ceilings, threads 2" in text
    report = json.loads(found.read_text())
    assert report["complete"] and report["contenders"]["numpy"] == np.__version__
    assert report["contenders"]["dovetail"] == dovetail.__version__
    rows = report["points"]
    assert [(row["op"], row["threads"]) for row in rows] == [
        (op, n) for op in ("exp", "matmul", "softmax") for n in (1, 2)
    ]
    assert rows[0].items() >= EXP.items()
    for row in rows[:4]:
        assert row["times"].keys() == {"dovetail", "numpy"} and row["best_peer"] == "numpy"
        for taken in row["times"].values():
            assert 0 < taken["min"] <= taken["median"]
        assert row["ratio"] > 0 and row["ceiling_percent"] > 0 and not row["errors"] and not row["differs"]
    assert rows[4]["ratio"] is None and rows[4]["times"].keys() == {"dovetail"}
    assert (rows[2]["flops"], rows[2]["bytes"]) == (240, 4 * (20 + 30 + 24))
    assert report["summary"]["1"]["compared"] == 2 and report["summary"]["all"]["points"] == 6
    assert report["ceilings"]["2"]["memory"]["L2"]["bytes"] == 4096
    ElementTree.fromstring(drawn.read_text())


def test_json_is_printed_without_a_file(small):
    report = json.loads(
        run("exp", "--against", "numpy", "--points", small, "--seconds", "0", "--threads", "1", "--json")
    )
    assert [row["op"] for row in report["points"]] == ["exp"]
    rows = json.loads(run("--json", "add", "--size", "1K", "--seconds", "0"))["results"]
    assert [row["op"] for row in rows] == ["add"]  # without --against, a flag


def test_ctrl_c_keeps_what_was_measured(small, monkeypatch):
    def interrupted(self, point, seconds):
        if point.op == "softmax":
            raise KeyboardInterrupt
        return measured(self, point, seconds)

    measured = measure.Contest.measure
    monkeypatch.setattr(measure.Contest, "measure", interrupted)
    text = run("--against", "numpy", "--points", small, "--seconds", "0", "--threads", "1", code=130)
    assert "4x5 5x6" in text and "stopped by Ctrl-C after 2 of 3 points" in text


def test_progress_without_a_terminal(small, monkeypatch):
    options = ["--against", "numpy", "--points", small, "--seconds", "0", "--threads", "1"]
    assert "measured, now" not in run(*options)
    monkeypatch.setattr(output, "LINE_SECONDS", 0)
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr(output, "monotonic", lambda: next(clock))
    text = run(*options)
    total = measure.Comparison(points.read(small), ["numpy"], None, 0).steps([1])
    assert f"0 of {total} measured, now the machine's ceilings, 1 thread\n" in text
    assert re.search(rf"{total - 1} of {total} measured, \d+ s left, now softmax bfloat16 4x5, 1 thread\n", text)


def test_more_threads_than_processors_are_warned_of(small, monkeypatch):
    options = ["--against", "numpy", "--points", small, "--seconds", "0", "exp"]
    monkeypatch.setattr(load, "processors", lambda: {3})
    assert "take turns" not in run(*options, "--threads", "1")
    text = run(*options, "--threads", "1,2")
    assert "warning: 2 threads take turns on 1 processor; --threads 1 has one for each\n" in text


def test_nothing_measured_leaves_files_alone(small, monkeypatch, tmp_path):
    def ended(self, point, seconds):
        os.kill(os.getpid(), signal.SIGTERM)

    figures, drawn = tmp_path / "figures.json", tmp_path / "figures.svg"
    figures.write_text("before"), drawn.write_text("before")
    monkeypatch.setattr(measure.Contest, "measure", ended)
    files = ["--json", str(figures), "--svg", str(drawn)]
    text = run("--against", "numpy", "--points", small, "--seconds", "0", "--threads", "1", *files, code=130)
    assert "stopped by SIGTERM after 0 of 3 points: nothing is written" in text and "next to" not in text
    assert figures.read_text() == drawn.read_text() == "before"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--against", "trch"], "there is no peer 'trch', did you mean 'torch'?"),
        (["--against", "numpy", "--threads", "none"], "as 1 or 1,2, got 'none'"),
        (["--against", "numpy", "--threads", "0"], "expected numbers of threads"),
        (["--against", "numpy", "--size", "4K"], "--size has no meaning for --against; leave it out"),
        (["--points", "x.json"], "--points has no meaning for measurements without --against; leave it out"),
        (["epx", "--against", "numpy"], "no point of 'epx', did you mean 'exp'?"),
        (["--against", "numpy", "--threads", "1,1025"], "expected numbers of threads from 1 to 1024, as 1 or 1,2"),
        (
            ["--against", "numpy", "--json", "exp"],
            "--json takes a FILE here, and exp is an op: name ops before --json",
        ),
        (["--against", ","], "expected names with commas between them, got ','"),
        (["--against", "numpy", "--seconds", "inf"], "expected a finite number of seconds, such as 0.2, got 'inf'"),
    ],
)
def test_usage_errors(args, message):
    assert message in " ".join(run(*args, code=2).split())


@pytest.mark.parametrize("option", ["--json", "--svg"])
def test_a_file_that_cannot_be_written_is_refused_before_all_is_measured(small, monkeypatch, tmp_path, option):
    monkeypatch.setattr(measure.Comparison, "run", lambda self, threads, step: pytest.fail("it was measured"))
    missing, options = tmp_path / "none" / "x", ["--against", "numpy", "--points", small]
    text = "".join(run(*options, option, missing, code=2).split())
    assert f"{option}:{missing}cannotbewritten:thereisnofolder{missing.parent}" in text
    text = "".join(run(*options, option, tmp_path, code=2).split())
    assert f"{option}:{tmp_path}cannotbewritten:itisafolder" in text
    monkeypatch.setattr(comparison.os, "access", lambda path, mode: mode != os.W_OK)
    assert "nopermission" in "".join(run(*options, option, small, code=2).split())
    assert "nopermission" in "".join(run(*options, option, tmp_path / "new", code=2).split())


def test_the_table_is_printed_even_if_the_file_fails_at_last(small, monkeypatch):
    monkeypatch.setattr(comparison, "_expect_writable", lambda option, file: None)
    options = ["--against", "numpy", "--points", small, "--seconds", "0", "--threads", "1", "exp"]
    text = run(*options, "--json", small.parent / "none" / "x.json", code=1)
    assert "next to numpy" in text and "cannot be written: No such file or directory" in text


def test_a_peer_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(comparison.importlib.util, "find_spec", lambda name: None)
    text = " ".join(run("--against", "onnxruntime", code=2).split())
    assert "onnxruntime and onnx cannot be imported" in text and "pip install 'dovetail-runtime[bench]'" in text


def test_a_worker_that_ends_is_started_again():
    worker = Process("numpy", 1, None)
    try:
        first = worker.pid
        worker._process.kill()
        with pytest.raises(WorkerError, match="the process of numpy ended with status -9"):
            worker.ask(time=0.0)
        assert worker.pid != first
        assert worker.ask(prepare=EXP, seconds=0.0)["read"] == 24
        assert worker.ask(time=0.0)["seconds"] > 0
    finally:
        worker.close()
    assert worker._process.poll() is not None


def test_a_worker_is_stopped_between_its_answers():
    """Its threads may spin after a call, on the processors of the next one."""
    worker = Process("numpy", 1, None)
    try:
        worker.ask(prepare=EXP, seconds=0.0)
        end = time.monotonic() + 10
        while (state := Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[0]) != "T":
            assert time.monotonic() < end, state
            time.sleep(0.001)
        assert worker.ask(time=0.0)["seconds"] > 0
    finally:
        worker.close()


def test_a_stopped_worker_ends_with_a_parent_that_is_killed():
    program = """
import time
from dovetail.cli.comparison.processes import Process
worker = Process("numpy", 1, None)
print(worker.pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        worker = int(parent.stdout.readline())
        parent.terminate()
    end = time.monotonic() + 10
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(worker).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end, worker
            time.sleep(0.01)


def test_a_device_that_is_missing_ends_the_worker():
    with pytest.raises(WorkerError, match=r"dovetail cannot be used: .*nowhere"):
        Process("dovetail", 1, "nowhere")


def test_the_points_file_is_next_to_the_code():
    assert points.DEFAULT.parent == Path(points.__file__).parent and points.DEFAULT.is_file()
