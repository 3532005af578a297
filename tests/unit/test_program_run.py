"""Programs run from Python: sizes, devices, arrays that are given away, threads."""

import gc
import json
import os
import threading

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core

SEED = int(os.environ.get("DOVETAIL_SEED", "20261125"))
print(f"DOVETAIL_SEED={SEED}")
ROWS, WIDTH = 512, 256


def update_program() -> _core.Program:
    """A static cache: rows are written at a position that is an operand."""
    b = _core.ProgramBuilder()
    cache, row = b.input("float32", [ROWS, WIDTH], "cache"), b.input("float32", [1, WIDTH], "row")
    at = b.input("int64", [1], "at")
    return b.finish([b.call("dynamic_update_slice", [cache, row, at], {"axis": (0,)}, [])])


def scale_program(weights: dt.Array) -> _core.Program:
    b = _core.ProgramBuilder()
    x = b.input("float32", ["n", WIDTH], "x")
    return b.finish([b.call("multiply", [x, b.array_constant(weights)], {}, [])])


def peak_of(device: str, run) -> int:
    """The bytes that a run takes beyond what was in use before it."""
    dt.memory.empty_cache(device)
    dt.memory.reset_peak(device)
    before = dt.memory.stats(device)["in_use"]
    run()
    return dt.memory.stats(device)["peak"] - before


@pytest.mark.parametrize("device", ["cpu:0", "sim:0"])
def test_a_donated_cache_is_written_in_place(device):
    """By a kernel of the op; on sim, which has none, by the last node of its decomposition."""
    program = update_program()
    row = dt.ones((1, WIDTH), device=device)
    at = dt.asarray(np.array([7]), device=device)
    cache = dt.zeros((ROWS, WIDTH), device=device)
    out = program.run(None, [cache, row, at])[0]
    assert np.asarray(cache).max() == 0 and np.asarray(out)[7].min() == 1
    del out
    visible = device == "cpu:0"
    memory = np.from_dlpack(cache).ctypes.data if visible else None
    results = []
    peak = peak_of(device, lambda: results.extend(program.run(None, [cache, row, at], donate=[0])))
    assert cache.shape == (0,) and row.shape == (1, WIDTH)
    expected = np.zeros((ROWS, WIDTH), np.float32)
    expected[7] = 1
    assert np.array_equal(np.asarray(results[0]), expected)
    assert peak < ROWS * WIDTH  # a quarter of the cache
    if visible:
        assert np.from_dlpack(results[0]).ctypes.data == memory


@pytest.mark.parametrize("device", ["cpu:0", "sim:0"])
def test_a_cache_is_written_in_place_round_after_round(device):
    """In loops, at two places of one program, and along two axes; where the cache is used again, it is copied."""

    def fill(cache, row):
        return dt.scan(
            lambda s, _: ((dt.dynamic_update_slice(s[0], row * s[1], s[1], axis=0), s[1] + 1), None),
            (cache, dt.asarray(0)),
            length=ROWS,
        )[0][0]

    def twice(cache, row):
        corner = dt.dynamic_update_slice(cache, row[:, :3], dt.asarray([7, 2]))
        return dt.dynamic_update_slice(corner, row, dt.asarray(9), axis=0)

    def kept(cache, row):
        return dt.dynamic_update_slice(cache, row, dt.asarray(9), axis=0) + cache

    row = dt.ones((1, WIDTH), device=device)
    expected = [np.zeros((ROWS, WIDTH), np.float32) for _ in range(3)]
    expected[0][:] = np.arange(ROWS, dtype=np.float32)[:, None]
    expected[1][7, 2:5] = expected[1][9] = expected[2][9] = 1
    for fn, want, most in zip((fill, twice, kept), expected, (0.25, 0.25, 2.5), strict=True):
        program = dt.export(fn, dt.zeros((ROWS, WIDTH), device=device), row)._core
        for donate in ([], [0]):
            cache = dt.zeros((ROWS, WIDTH), device=device)
            copies = [] if donate else [cache]
            results = []
            peak = peak_of(device, lambda: results.extend(program.run(None, [cache, row], donate=donate)))  # noqa: B023
            np.testing.assert_array_equal(np.asarray(results[0]), want)
            assert all(np.asarray(c).max() == 0 for c in copies)
            limit = most + len(copies)
            assert peak <= limit * ROWS * WIDTH * 4, (fn.__name__, donate, peak)


@pytest.mark.parametrize("device", ["cpu:0", "sim:0"])
def test_an_array_that_is_there_twice_is_not_taken(device):
    b = _core.ProgramBuilder()
    x, at = b.input("float32", [4, 4], "x"), b.input("int64", [], "at")
    program = b.finish([b.call("dynamic_update_slice", [x, x, at], {"axis": (0,)}, [])])
    given = np.arange(16, dtype=np.float32).reshape(4, 4)
    out = program.run(None, [dt.asarray(given, device=device), dt.asarray(0, device=device)], donate=[0])[0]
    np.testing.assert_array_equal(np.asarray(out), given)


@pytest.mark.parametrize("device", ["cpu:0", "sim:0"])
def test_memory_that_somebody_else_holds_is_not_taken(device):
    program = update_program()
    cache = dt.zeros((ROWS, WIDTH), device=device)
    view = dt.reshape(cache, (WIDTH, ROWS))
    operands = [cache, dt.ones((1, WIDTH), device=device), dt.asarray(np.array([7]), device=device)]
    out = program.run(None, operands, donate=[0])[0]
    assert np.asarray(out)[7].min() == 1 and np.asarray(view).max() == 0


def test_what_an_array_becomes_later_is_not_the_programs():
    weights = dt.ones((WIDTH,), device="cpu:0")
    program = scale_program(weights)
    weights += 1
    weights[0] = 9
    got = np.asarray(program.run(None, [dt.ones((2, WIDTH), device="cpu:0")])[0])
    assert np.array_equal(got, np.ones((2, WIDTH), np.float32))
    borrowed = np.ones(WIDTH, np.float32)  # NumPy's memory, which NumPy may write
    program = scale_program(dt.from_dlpack(borrowed))
    borrowed[:] = 5
    assert np.asarray(program.run(None, [dt.ones((1, WIDTH), device="cpu:0")])[0]).max() == 1


def test_the_programs_arrays_are_on_a_device_once_and_leave_with_it():
    weights = np.random.default_rng(SEED).random(WIDTH, np.float32)
    program = scale_program(dt.asarray(weights, device="cpu:0"))
    device = "sim:0"
    x = {n: dt.ones((n, WIDTH), device=device) for n in (1, 2, 5, 9)}
    gc.collect()
    before = dt.memory.stats(device)["in_use"]
    for n in (1, 2, 5, 9, 1):
        got = program.run(None, [x[n]])[0]
        assert np.array_equal(np.asarray(got), np.broadcast_to(weights, (n, WIDTH)))
        del got
    assert dt.memory.stats(device)["in_use"] - before == WIDTH * 4
    del program
    gc.collect()
    assert dt.memory.stats(device)["in_use"] == before


def test_the_programs_arrays_are_made_again_after_a_reset():
    weights = np.random.default_rng(SEED).random(WIDTH, np.float32)
    program = scale_program(dt.asarray(weights, device="cpu:0"))
    device = dt.device("sim:1")
    for n in (1, 1, 3):  # sizes that were bound before the reset, and others
        got = program.run(None, [dt.ones((n, WIDTH), device=device)])[0]
        assert np.array_equal(np.asarray(got), np.broadcast_to(weights, (n, WIDTH)))
        device.reset()  # sim overwrites its memory


def test_a_guard_that_fails_names_the_input_the_size_and_the_line():
    b = _core.ProgramBuilder()
    x = b.input("float32", [None, 3], "x", sizes=[4, 3])
    size = b.number("size", False, x, 0, None)
    half = b.number("floor_divide", False, size, b.number("integer", False, -1, -1, 2), None)
    b.at("user.py:12")
    b.guard("equal", half, b.number("integer", False, -1, -1, 2))
    program = b.finish([b.call("negative", [x], {}, [])])
    assert program.run(None, [dt.ones((5, 3), device="cpu:0")])[0].shape == (5, 3)
    for wrong, text in [
        ((7, 3), r"\[program\] it was made for x.shape\[0\] // 2 \(here 3\) == 2, at user.py:12"),
        ((4, 2), r"\[program\] x has size 2 on axis 1: expected 3"),
        ((4,), r"\[program\] x has shape \(4,\): expected 2 axes"),
    ]:
        with pytest.raises(ValueError, match=text):
            program.run(None, [dt.ones(wrong, device="cpu:0")])
    with pytest.raises(TypeError, match=r"\[program\] x has dtype int32: expected float32"):
        program.run(None, [dt.ones((4, 3), dtype="int32", device="cpu:0")])
    with pytest.raises(TypeError, match=r"\[program\] 2 operands: expected 1"):
        program.run(None, [dt.ones((4, 3)), dt.ones((4, 3))])


def test_threads_share_a_program():
    program = scale_program(dt.ones((WIDTH,), device="cpu:0") * 3)
    failures = []

    def work(number: int) -> None:
        for i in range(40):
            n = 1 + (i + number) % 5
            x = dt.ones((n, WIDTH), device=f"sim:{number % 2}") * number
            got = np.asarray(program.run(None, [x])[0])
            if got.shape != (n, WIDTH) or not (got == 3 * number).all():
                failures.append((number, i))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_missing_attribute_is_named_alike_by_the_builder_and_the_reader():
    text = json.dumps({"dovetail": 1, "inputs": [], "nodes": [{"op": "iota", "in": []}], "outputs": [0]})
    with pytest.raises(TypeError, match=r"^\[iota\] misses the attribute 'size'$"):
        _core.ProgramBuilder().call("iota", [], {}, [])
    with pytest.raises(ValueError, match=r"^node 0: \[iota\] misses the attribute 'size'$"):
        _core.program_from_text(text)
