"""First tests of the device; `dovetail conform` tests the rest. Add tests of what only your device has."""

import tomllib
from pathlib import Path

import dovetail
import numpy as np
import pytest

PROJECT = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
(NAME,) = PROJECT["entry-points"]["dovetail.backends"]

DEVICES = dovetail.devices()  # without those that other tests make


@pytest.fixture(params=[device.name for device in DEVICES if device.backend == NAME])
def device(request):
    return request.param


def test_the_device_is_found():
    assert f"{NAME}:0" in [device.name for device in dovetail.devices()], "`dovetail devices` shows why"


def test_computing_on_the_device(device):
    x = dovetail.asarray(np.arange(6, dtype="float32").reshape(2, 3), device=device)
    np.testing.assert_allclose((x @ dovetail.matrix_transpose(x)).numpy(), [[5, 14], [14, 50]])
    np.testing.assert_allclose(dovetail.tanh(x).numpy(), np.tanh(np.arange(6.0)).reshape(2, 3), rtol=1e-6)


def test_a_bad_index_is_an_error(device):
    x = dovetail.asarray([1.0, 2.0], device=device)
    with pytest.raises(IndexError, match="7 is out of"):
        dovetail.take(x, dovetail.asarray([7], device=device)).numpy()


def test_random_numbers_are_the_same_on_every_device():
    """A generator's bits depend on its seed, not on the device."""
    drawn = [dovetail.random.Generator(1234).bits((1001,), device=d).numpy() for d in DEVICES]
    for other in drawn[1:]:
        np.testing.assert_array_equal(drawn[0], other)
