"""Arrays as dvr_tensors by address: what dovetail-torch takes and gives memory by."""

import ctypes
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core

release = ctypes.CDLL(str(Path(dt.__file__).parent / "libdovetail.so")).dvr_tensor_release
release.argtypes = [ctypes.c_void_p]


@pytest.fixture(params=["cpu:0", "sim:0"])
def device(request):
    return dt.device(request.param)


def elements() -> np.ndarray:
    return np.arange(6, dtype="float32").reshape(2, 3)


def test_memory_that_an_array_alone_holds_goes_out_as_it_is(device):
    x = dt.asarray(elements(), device=device)
    address = _core.owned_at(x)
    y = _core.array_at(address)
    assert _core.same_memory(x, y) and y.device == device
    del x
    release(address)
    assert np.array_equal(np.asarray(y.to_device("cpu:0")), elements())  # y has a share of its own


@pytest.mark.parametrize("holder", [lambda x: x, lambda x: x[1:], lambda x: x.T], ids=["same", "part", "transpose"])
def test_memory_that_others_hold_is_copied(holder, device):
    x = dt.asarray(elements(), device=device)
    other = _core.share(x) if holder(x) is x else holder(x)
    address = _core.owned_at(other)
    y = _core.array_at(address)
    assert not _core.same_memory(x, y)
    assert np.array_equal(np.asarray(y.to_device("cpu:0")), np.asarray(other.to_device("cpu:0")))
    release(address)


def test_strides_go_both_ways(device):
    x = dt.asarray(elements(), device=device).T
    expected = np.asarray(dt.copy(x).to_device("cpu:0"))
    address = _core.owned_at(x)  # the array of which it is a view is gone
    y = _core.array_at(address)
    assert _core.same_memory(x, y)
    assert np.array_equal(np.asarray(y.to_device("cpu:0")), expected)
    release(address)
