"""How programs with control ops run: interrupts, results in place, guards of the functions that they hold."""

import json
import re
import subprocess
import sys

import dovetail as dt
import numpy as np
import pytest
from compiled_calls import leaves
from trace_events import names

DEVICES = [d.name for d in dt.devices() if d.index == 0]
on_devices = pytest.mark.parametrize("device", DEVICES)
SEED = 20261125


INTERRUPTED = """
import os, signal, threading
import dovetail as dt

x = dt.asarray(1.0, device={device!r})

def endless(x):
    return dt.while_loop(lambda x: x > 0, lambda x: x * 1.0, x)

run = endless if {eager} else dt.export(endless, x)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    run(x)
except KeyboardInterrupt:
    print("interrupted", (x + 1).tolist())
"""


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "exported"])
@on_devices
def test_an_endless_loop_can_be_interrupted(device, eager):
    program = INTERRUPTED.format(device=device, eager=eager)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "interrupted 2.0\n", done.stderr


IN_PLACE = {
    "apart": (lambda c, v: (c * 0.5 + v, c + v), 0),
    "carry": (lambda c, v: (c + v,) * 2, 1),  # the last one gets memory of its own
    "twice": (lambda c, v: (c + v, (v * 2,) * 2), 5),  # written to one place, copied to the other
    "operand": (lambda c, v: (c + v, v), 5),
    "earlier carry": (lambda c, v: (v, c), 5),
    "decomposed": (lambda c, v: (c + v, dt.nn.softplus(v)), None),
}


@on_devices
@pytest.mark.parametrize("name", IN_PLACE)
def test_the_results_of_a_scan_are_computed_in_their_places(name, device, tmp_path):
    f, copies = IN_PLACE[name]
    rng = np.random.default_rng(SEED)
    x = dt.asarray(rng.standard_normal((5, 64), np.float32), device=device)
    program = dt.export(lambda x: dt.scan(f, x[0] * 1, x), x)
    for _ in range(2):  # the second run has memory that was used before
        carry, ys = program(x)
        wanted = [leaf.numpy().tobytes() for leaf in leaves(dt.scan(f, x[0] * 1, x))]
        assert [leaf.numpy().tobytes() for leaf in leaves((carry, ys))] == wanted
    before = dt.memory.stats(device)["in_use"]
    size = sum(leaf.nbytes for leaf in leaves(ys))
    del ys
    assert before - dt.memory.stats(device)["in_use"] >= size  # the carry holds none of it
    with dt.profile(tmp_path / "t.json"):
        program(x)
        dt.device(device).synchronize()
    made = names(json.loads((tmp_path / "t.json").read_text())["traceEvents"], "kernel").count("copy")
    assert made == copies or copies is None


def looks_at_the_size(v):
    return v * 2 if v.shape[0] == 3 else v + 1


GUARDED = {
    "then of cond": lambda x: dt.cond(dt.sum(x) > 0, looks_at_the_size, lambda v: v, x[0]),
    "else of cond": lambda x: dt.cond(dt.sum(x) > 0, lambda v: v, looks_at_the_size, x[0]),
    "cond of while_loop": lambda x: dt.while_loop(
        lambda v: dt.sum(looks_at_the_size(v)) < 50, lambda v: v + 1, x[0]
    ),
    "body of while_loop": lambda x: dt.while_loop(lambda v: dt.sum(v) < 10, looks_at_the_size, x[0]),
    "body of scan": lambda x: dt.scan(lambda c, v: (c, looks_at_the_size(v)), x[0], x),
}


@pytest.mark.parametrize("where", GUARDED)
def test_a_guard_in_a_function_of_a_control_op_names_both_lines(where):
    fn = GUARDED[where]
    program = dt.export(fn, dt.ones((2, 3)))
    program(dt.ones((5, 3)))
    lines = [
        f"{__file__}:{line}" for line in (fn.__code__.co_firstlineno, looks_at_the_size.__code__.co_firstlineno + 1)
    ]
    message = f"[program] {where} ({lines[0]}): it was made for input "
    for call in (program, lambda x: dt.export(program, x)):  # run, and inlined
        with pytest.raises(ValueError, match=re.escape(message)) as raised:
            call(dt.ones((2, 4)))
        assert f".shape[0] (here 4) == 3, at {lines[1]}; " in str(raised.value)


def test_the_innermost_guard_is_named_within_all_around_it():
    def fn(x):
        def step(c, v):
            return c, dt.cond(c > 0, looks_at_the_size, lambda v: v, v)

        return dt.scan(step, dt.sum(x), x)

    program = dt.export(fn, dt.ones((2, 3)))
    with pytest.raises(ValueError, match=r"\[program\] body of scan \(.*\): then of cond \(.*\): it was made for"):
        program(dt.ones((2, 4)))
