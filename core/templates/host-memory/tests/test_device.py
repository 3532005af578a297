"""What only this device can say of itself; `dovetail conform` tests the rest."""

import dovetail
import numpy as np
import pytest

NAME = "@{name}@"


def test_it_is_found():
    (device,) = (d for d in dovetail.devices() if d.backend == NAME)
    assert device.name == f"{NAME}:0" and device.properties["mem_total"] > 0


def test_it_computes():
    x = dovetail.asarray(np.arange(6, dtype="float32").reshape(2, 3), device=NAME)
    np.testing.assert_allclose((x @ dovetail.matrix_transpose(x)).numpy(), [[5, 14], [14, 50]])
    np.testing.assert_allclose(dovetail.tanh(x).numpy(), np.tanh(np.arange(6.0)).reshape(2, 3), rtol=1e-6)


def test_a_bad_index_is_an_error():
    x = dovetail.asarray([1.0, 2.0], device=NAME)
    with pytest.raises(IndexError, match="index 7 is out of range"):
        dovetail.take(x, dovetail.asarray([7], device=NAME)).numpy()
