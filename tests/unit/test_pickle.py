"""Pickles of arrays with buffers out of band, and copies. test_array.py has the other protocols."""

import copy
import os
import pickle
import subprocess
import sys

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core

DTYPES = [
    "bool",
    "int8",
    "uint16",
    "int64",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float32",
    "float64",
    "complex64",
]


def same(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and x.device == y.device and x.tobytes() == y.tobytes()


@pytest.mark.parametrize("device", ["cpu:0", "sim:0"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_buffers_are_out_of_band(dtype, device):
    bits = dt.asarray(np.arange(2000).reshape(20, 100) % 2, device=device)
    x = dt.asarray(bits.numpy().astype(dtype), device=device) if dtype == "complex64" else bits.astype(dtype)
    for y in (x, x.T, x[:, ::3], x[3, 5], x[:0]):
        buffers = []
        data = pickle.dumps(y, 5, buffer_callback=buffers.append)
        assert len(data) < 200 and len(buffers) == 1 and buffers[0].raw().nbytes == y.nbytes
        assert same(pickle.loads(data, buffers=buffers), y)
        assert same(pickle.loads(data, buffers=[b.raw().tobytes() for b in buffers]), y)
        assert same(pickle.loads(pickle.dumps(y, 5)), y)


def test_the_buffer_is_the_memory_of_the_array():
    x = dt.arange(1000, device="cpu:0")
    buffers = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    at = np.frombuffer(buffers[0], np.uint8).ctypes.data
    assert at == np.asarray(_core.elements(x)).ctypes.data and buffers[0].raw().readonly
    x += 1
    y = pickle.loads(data, buffers=buffers)
    assert y.tolist() == list(range(1000))
    y += 1  # a copy of the buffer
    assert pickle.loads(data, buffers=buffers).tolist() == list(range(1000))


def test_a_device_that_is_not_there():
    x = dt.asarray([1, 2], device="sim:1")
    data = pickle.dumps(x, 5)
    assert same(pickle.loads(data), x)
    code = f"""
import pickle, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = pickle.loads({data!r})
print(x.device, x.tolist(), *(w.message for w in caught))
"""
    env = os.environ | {"DOVETAIL_BACKENDS": "cpu"}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("cpu:0 [1, 2] an array pickled on sim:1 goes to cpu:0:")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("device", ["cpu:0", "sim:0"])
def test_copies_are_values(device, again):
    x = dt.arange(4, device=device)
    y = again(x)
    assert same(y, x)
    y += 1
    y[0] = 9
    assert x.tolist() == [0, 1, 2, 3] and y.tolist() == [9, 2, 3, 4]
    assert same(copy.deepcopy({"x": [x]})["x"][0], x)
