"""A driver that refuses work: an error of the right kind at the right call, and what works afterwards."""

from __future__ import annotations

import sys

import pytest
from cuda_programs import EMULATED, python, run
from device_programs import prelude

PRELUDE = """
import os
driver = ctypes.CDLL(os.environ["DOVETAIL_CUDA_DRIVER"])

def fail(failures):
    '''"cuLaunchKernel=2@1": from now on the driver answers so, counted from here.'''
    assert driver.dovetail_cuda_emulator(failures.encode()) == 0

def error_of(work):
    try:
        work()
    except Exception as error:
        return error

x = dv.asarray(np.float32([1, 2, 3]))
(x + 1.0).numpy()  # kernels are loaded when they are first used
"""


def program(code: str) -> None:
    python(prelude("cuda") + PRELUDE + code, **EMULATED)


def test_memory_that_is_not_there_is_a_memory_error_and_no_more():
    """Pool and device free their cached memory and try again before they raise."""
    program("""
kept = dv.ones((1 << 20,))
fail("cuMemAllocAsync=2@1-99")
error = error_of(lambda: dv.zeros((1 << 24,)))
assert isinstance(error, MemoryError), error
fail("")
assert dv.zeros((1 << 24,)).shape == (1 << 24,) and kept[7].item() == 1
fail("cuMemAllocAsync=2@1")
assert dv.zeros((1 << 25,)).shape == (1 << 25,), "a second try would have found memory"
""")


@pytest.mark.parametrize(
    ("result", "kind"), [(701, "MemoryError"), (1, "RuntimeError"), (999, "RuntimeError")], ids=str
)
def test_a_refused_launch_is_raised_by_its_call(result, kind):
    program(f"""
fail("cuLaunchKernel={result}@1")
error = error_of(lambda: x + 1.0)
assert isinstance(error, {kind}) and not isinstance(error, dv.DeviceLostError), error
assert "cuLaunchKernel" in str(error) and "CUDA_ERROR" in str(error), error
device.synchronize()
assert (x + 1.0).tolist() == [2, 3, 4]
""")


@pytest.mark.parametrize("result", [700, 716, 719, 214], ids=str)
def test_a_kernel_that_fails_loses_the_device_for_good(result):
    """After a sticky error every call of the CUDA context returns it. Other devices go on."""
    program(f"""
stream = dv.Stream(device)
fail("cuEventQuery={result}@1+,cuEventSynchronize={result}@1+,cuStreamSynchronize={result}@1+")
with stream:
    y = x + 1.0
error = error_of(stream.synchronize)
assert isinstance(error, dv.DeviceLostError) and "CUDA_ERROR" in str(error), error
del y  # given back while it is lost
for work in (lambda: x + 1.0, device.synchronize, stream.synchronize, lambda: dv.asarray([1.0])):
    assert isinstance(error_of(work), dv.DeviceLostError), work
error = error_of(device.reset)
assert isinstance(error, NotImplementedError) and "start the process again" in str(error), error
assert (dv.asarray([1.0], device="cpu") + 1.0).tolist() == [2.0]
""")


def test_a_module_that_does_not_load_raises_and_is_tried_again():
    program("""
fail("cuLibraryLoadData=209@1")
error = error_of(lambda: dv.sort(x))
assert isinstance(error, RuntimeError) and "CUDA_ERROR_NO_BINARY_FOR_GPU" in str(error), error
assert dv.sort(-x).tolist() == [-3, -2, -1]
""")


def test_a_fault_that_no_call_waits_for_is_reported_at_the_end():
    """Before the driver ends: handlers that it registers when it starts are those that run first."""
    code = "import dovetail as dv; x = dv.zeros(3, device='cuda'); dv.take(x, dv.asarray([7], device='cuda'))"
    printed = run(sys.executable, "-c", code, **EMULATED).stderr
    assert (
        "a fault that no call had waited for" in printed and "[take] index 7" in printed and "cuCtx" not in printed
    ), printed


def test_a_failed_copy_keeps_nothing():
    """Not the pinned memory that it passed through, whichever of its calls fails."""
    program("""
import psutil
x = np.ones(1 << 14, "float32")
def tries(times):
    for _ in range(times):
        error = error_of(lambda: dv.asarray(x, device="cuda"))
        assert isinstance(error, MemoryError), error
for call in "cuMemcpyAsync", "cuEventRecord":
    fail(f"{call}=2@1-600")
    tries(100)
    before = psutil.Process().memory_info().rss
    tries(500)  # of 256 KiB each
    assert psutil.Process().memory_info().rss - before < 20 << 20
    fail("")
np.testing.assert_array_equal(dv.asarray(x, device="cuda").numpy(), x)
""")
