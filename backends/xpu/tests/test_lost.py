"""A driver that refuses work: an error of the right kind at the right call, and what works again afterwards."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from programs import ON_CPU, built, python, run

DRIVER = Path(__file__).with_name("refusing_driver.c")
PRELUDE = """
import ctypes, os, threading, types
import dovetail as dv, numpy as np
from dovetail_conformance.device_checks.table import HOST_FN, Table

kept = []
NOT_AVAILABLE, NO_RESOURCES, UNKNOWN = -2, -5, -9999  # CL_...
refuse = ctypes.CDLL(os.environ["LD_PRELOAD"]).refuse
device = dv.device("xpu")
dv.set_default_device(device)
own = Table(types.SimpleNamespace(api=dv, device=device))
x = dv.asarray(np.float32([1, 2, 3]))
(x + 1.0).numpy()  # kernels are compiled when they are first used

def error_of(work):
    try:
        work()
    except Exception as error:
        return type(error)

def fail_later(stream, answer):
    '''The driver refuses a kernel that SYCL gives it after the call has returned. An event behind it.'''
    held, handle = threading.Event(), dv._core.stream_handle(stream)
    function = HOST_FN(lambda _: held.wait(20) and None)
    with stream:
        y = x + 1.0
        stream.synchronize()
        own.call("host_fn", handle, function, None)
        y = x + 2.0
    event = dv.Event(device)
    event.record(stream)
    refuse(answer)
    held.set()
    kept.append(function)
    return event

def expect_usable(*streams):
    for stream in streams:
        with stream:
            assert (x.__class__ is dv.Array) and (dv.asarray(np.float32([1, 2])) + 1.0).tolist() == [2, 3]
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("driver") / "librefusing.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", DRIVER, "-o", library], check=True)
    return library


@pytest.fixture
def program(driver):
    return lambda code: python(PRELUDE + code, LD_PRELOAD=str(driver), **ON_CPU)


def test_results_of_unified_runtime_become_statuses(tmp_path):
    """The CPU device's driver never returns most of these."""
    expected = {
        "UR_RESULT_ERROR_DEVICE_LOST": 4,
        "UR_RESULT_ERROR_DEVICE_REQUIRES_RESET": 4,
        "UR_RESULT_ERROR_DEVICE_NOT_AVAILABLE": 4,
        "UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY": 3,
        "UR_RESULT_ERROR_OUT_OF_HOST_MEMORY": 3,
        "UR_RESULT_ERROR_OUT_OF_RESOURCES": 3,
        "UR_RESULT_ERROR_INVALID_KERNEL_ARGS": 5,
        "UR_RESULT_ERROR_UNKNOWN": 5,
    }
    words = [f"level_zero backend failed with error: 1 ({name})" for name in expected]
    program = built(tmp_path / "statuses", "device/errors.cpp")
    assert run(program, *words).stdout.split() == [str(status) for status in expected.values()]


def test_a_refused_launch_is_raised_by_its_call(program):
    program("""
for answer, kind in ((NO_RESOURCES, MemoryError), (UNKNOWN, RuntimeError)):
    refuse(answer)
    assert error_of(lambda: x + 1.0) is kind, kind
    refuse(0)
    device.synchronize()
    assert (x + 1.0).tolist() == [2, 3, 4]
""")


def test_a_lost_device_raises_until_it_is_reset(program):
    program("""
stream = dv.Stream(device)
with stream:
    y = x + 1.0
    refuse(NOT_AVAILABLE)
    assert error_of(lambda: x + 1.0) is dv.DeviceLostError
    del y  # given back while it is lost
refuse(0)
for work in (lambda: x + 1.0, device.synchronize, stream.synchronize, lambda: dv.asarray([1.0])):
    assert error_of(work) is dv.DeviceLostError, work
device.reset()
expect_usable(stream, dv.Stream(device))
device.synchronize()
""")


def test_an_asynchronous_error_is_raised_once_by_the_next_wait(program):
    program("""
for answer, kind in ((NO_RESOURCES, MemoryError), (UNKNOWN, RuntimeError)):
    for whole in (True, False):
        stream, other = dv.Stream(device), dv.Stream(device)
        event = fail_later(stream, answer)
        assert error_of(stream.synchronize if whole else event.synchronize) is kind, (whole, answer)
        refuse(0)
        other.synchronize()
        stream.synchronize()
        expect_usable(stream, other)
""")


def test_a_device_lost_asynchronously(program):
    program("""
stream = dv.Stream(device)
event = fail_later(stream, NOT_AVAILABLE)
assert error_of(stream.synchronize) is dv.DeviceLostError
refuse(0)
assert error_of(lambda: x + 1.0) is dv.DeviceLostError
device.reset()
expect_usable(stream, dv.Stream(device))
device.synchronize()
""")
