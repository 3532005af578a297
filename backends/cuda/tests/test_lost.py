"""A driver that refuses work: an error of the right kind at the right call, and what works afterwards."""

from __future__ import annotations

import pytest
from cuda_programs import EMULATED, python
from device_programs import prelude

PRELUDE = """
x = dv.asarray(np.float32([1, 2, 3]))
(x + 1.0).numpy()  # kernels are loaded when they are first used

def error_of(work):
    try:
        work()
    except Exception as error:
        return error

"""


@pytest.fixture
def failing():
    """failing("cuLaunchKernel=2@5", code): code, behind the prelude, on a driver that fails so."""
    return lambda failures, code: python(
        prelude("cuda") + PRELUDE + code, **EMULATED, DOVETAIL_CUDA_EMULATED_FAILURES=failures
    )


def test_memory_that_is_not_there_is_a_memory_error_and_no_more(failing):
    """Pool and device give back what they hold and try again before they say so."""
    failing(
        "cuMemAllocAsync=2@3-5",
        """
kept = dv.zeros((1 << 20,))
error = error_of(lambda: dv.zeros((1 << 24,)))
assert isinstance(error, MemoryError), error
assert dv.zeros((1 << 24,)).shape == (1 << 24,) and float(dv.sum(kept)) == 0
""",
    )


@pytest.mark.parametrize(
    ("result", "kind"), [(701, "MemoryError"), (1, "RuntimeError"), (999, "RuntimeError")], ids=str
)
def test_a_refused_launch_is_told_by_its_call(failing, result, kind):
    failing(
        f"cuLaunchKernel={result}@2",
        f"""
error = error_of(lambda: x + 1.0)
assert isinstance(error, {kind}) and not isinstance(error, dv.DeviceLostError), error
assert "cuLaunchKernel" in str(error) and "CUDA_ERROR" in str(error), error
device.synchronize()
assert (x + 1.0).tolist() == [2, 3, 4]
""",
    )


@pytest.mark.parametrize("result", [700, 716, 719, 214], ids=str)
def test_a_kernel_that_fails_loses_the_device_for_good(failing, result):
    """As CUDA has it: every call of the context answers the same from then on. Other devices go on."""
    failing(
        f"cuStreamSynchronize={result}@4+",
        """
stream = dv.Stream(device)
with stream:
    y = x + 1.0
for _ in range(20):
    if isinstance(error := error_of(stream.synchronize), dv.DeviceLostError):
        break
assert "cuda:0" in str(error) or "CUDA_ERROR" in str(error), error
del y  # given back while it is lost
for work in (lambda: x + 1.0, device.synchronize, stream.synchronize, lambda: dv.asarray([1.0])):
    assert isinstance(error_of(work), dv.DeviceLostError), work
error = error_of(device.reset)
assert isinstance(error, NotImplementedError) and "start the process again" in str(error), error
assert (dv.asarray([1.0], device="cpu") + 1.0).tolist() == [2.0]
""",
    )


def test_a_module_that_does_not_load_is_told_and_tried_again(failing):
    failing(
        "cuLibraryLoadData=209@3",
        """
error = error_of(lambda: dv.sort(x))
works = error is None or ("no kernel image" in str(error) or "CUDA_ERROR_NO_BINARY_FOR_GPU" in str(error))
assert works, error
assert dv.sort(-x).tolist() == [-3, -2, -1]
""",
    )
