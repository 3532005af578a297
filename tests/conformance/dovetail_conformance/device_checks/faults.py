"""Faults found on the device, perhaps later: the next wait for that stream raises each once, with the op's name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np

from . import Declined, Failed, check, expect
from .memory import works

FINDS = {  # a wait for a result raises the error behind it
    "reading the result": lambda t, stream, event, y: t.numpy(y),
    "waiting for the stream": lambda t, stream, event, y: stream.synchronize(),
    "waiting for an event": lambda t, stream, event, y: (event.record(stream), event.synchronize()),
    "waiting for the device": lambda t, stream, event, y: t.synchronize(),
}


def bad_take(t, rng):
    """A call with an index that the device finds to be out of range."""
    x = t.asarray(rng.standard_normal(7).astype(t.float))
    return t.function("take")(x, t.asarray(np.array([0, 7, 1], np.int64)))


def fault_of(work: Callable[[], object]) -> Exception | None:
    try:
        work()
    except IndexError as error:
        return error
    return None


@check
def told_once(t, rng):
    """Raised at the first wait of any kind, and never again; the stream still works."""
    for name, wait in FINDS.items():
        stream, event = t.api.Stream(t.device), t.api.Event(t.device)
        with stream:
            error = fault_of(lambda: wait(t, stream, event, bad_take(t, rng)))  # noqa: B023  at once
            expect(error, f"an index out of range was not found by {name}")
            expect(
                "[take]" in str(error) and len(str(error).split()) >= 3,
                f"{name}: the error does not name the op, or not why: {error}",
            )
            again = fault_of(lambda: (stream.synchronize(), t.synchronize()))  # noqa: B023
            expect(not again, f"an index out of range was raised by {name}, and then a second time: {again}")
            works(t)


@check
def several_of_one_stream(t, rng):
    """Three calls fail before any wait: the first wait raises, and the next one does not."""
    errors = [fault_of(lambda: bad_take(t, rng)) for _ in range(3)]
    errors.append(fault_of(t.synchronize))
    expect(any(errors), "three indices out of range were not found by waiting for the device")
    again = fault_of(t.synchronize)
    expect(not again, f"faults were raised, and one more at the next wait: {again}")
    works(t)


@check
def nobody_waits(t, rng):
    """The result is dropped, other calls follow: they are right, and the next wait raises the fault."""
    add = t.function("add")
    x = t.asarray(np.arange(5, dtype=t.float))
    raised = fault_of(lambda: bad_take(t, rng))
    y = x
    for _ in range(50):
        y = add(y, 1.0)
    found = fault_of(t.synchronize)
    expect(raised or found, "an index out of range whose result was dropped was never raised")
    expect(t.numpy(y).tolist() == [50, 51, 52, 53, 54], "calls behind one that went wrong gave other values")
    expect(not fault_of(t.synchronize), "a fault was raised twice")


@check
def only_on_its_stream(t, rng):
    """A wait for another stream raises nothing."""
    one, two = t.api.Stream(t.device), t.api.Stream(t.device)
    if one.is_default:
        raise Declined("the device declares that it has no streams")
    if t.api._core.stream_handle(one) == t.api._core.stream_handle(two):
        raise Declined("the device has one stream besides the default one: the host shares it")
    add = t.function("add")
    x = t.asarray(np.arange(5, dtype=t.float))
    with one:
        raised = fault_of(lambda: bad_take(t, rng))
    with two:
        y = add(x, x)
        error = fault_of(lambda: (two.synchronize(), t.numpy(y)))
        expect(not error, f"waiting for one stream raised the fault of another: {error}")
    expect(raised or fault_of(one.synchronize), "an index out of range was not found by waiting for its stream")
    works(t)


# ---- a device that is lost --------------------------------------------------------------------------------------

_LOSE = """
import json, sys
import dovetail as dt
try:
    x = dt.asarray([1.0, 2.0, 3.0], device=sys.argv[1])
except (ValueError, RuntimeError):
    sys.exit(77)
def error_of(work):
    try:
        work()
    except dt.DeviceLostError as error:
        return str(error)
    except Exception as error:
        return f"!{type(error).__name__}: {error}"
    return ""
def lose():
    for _ in range(20):
        (x + 1.0).numpy()
upload = lambda: dt.asarray([1.0], device=sys.argv[1])
printed = [error_of(lose), error_of(lambda: x + 1.0), error_of(upload), error_of(x.device.synchronize)]
def reset():
    x.device.reset()
    y = dt.asarray([1.0, 2.0], device=sys.argv[1])
    assert (y + y).numpy().tolist() == [2.0, 4.0], "1 + 1 is wrong after a reset"
printed.append(error_of(reset))
print(json.dumps(printed))
"""


@check(slow=True)
def lost(t, rng):
    """Every call reports the loss until the device is reset; then it works again. In a process of its own.

    Devices that come from the template lose themselves where DOVETAIL_<NAME>_FAULT asks for it.
    """
    variable = f"DOVETAIL_{t.device.backend.upper()}_FAULT"
    run = subprocess.run(
        [sys.executable, "-c", _LOSE, t.name],
        env=os.environ | {variable: f"lost:5@{t.device.index}"},
        capture_output=True,
        text=True,
        timeout=50,
    )
    if run.returncode == 77:
        raise Declined("a second process cannot open the device")
    if run.returncode:
        raise Failed(f"a process whose device is lost ended with {run.returncode}: {run.stderr.strip()[-300:]}")
    first, *later, after = json.loads(run.stdout.splitlines()[-1])
    if not first:
        raise Declined(f"the device does not lose itself on demand ({variable}=lost:5 changes nothing)")
    for what, error in zip(("the kernel", "a call", "an upload", "a wait"), (first, *later)):
        expect(
            error and not error.startswith("!"),
            f"a lost device: {what} gave {error or 'no error'}, expected DeviceLostError",
        )
        expect(len(error.split()) >= 3, f"a lost device: {what} raised without saying why: {error!r}")
    expect(not after, f"a device that was lost and reset does not work: {after}")
