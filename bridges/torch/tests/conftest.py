"""Tests run on dovetail:0, the CPU device, and on dovetail:1, the simulated accelerator with memory of its own.
DOVETAIL_TORCH_TEST_DEVICE=xpu:0 makes that device dovetail:2, and the tests of one device run there alone."""

import os

os.environ["DOVETAIL_TORCH_DEVICES"] = ",".join(
    filter(None, ("cpu:0", "sim:0", os.environ.get("DOVETAIL_TORCH_TEST_DEVICE")))
)
os.environ.setdefault("DOVETAIL_TORCH_FALLBACK", "allow")

import dovetail_torch
import pytest
import torch

ANOTHER = os.environ.get("DOVETAIL_TORCH_TEST_DEVICE")

dovetail_torch._autoload()  # `import torch` has, where the wheel is installed
torch.set_num_threads(1)  # as many processes run tests as there are cores


@pytest.fixture(params=[ANOTHER] if ANOTHER else ["cpu:0", "sim:0"])
def device(request) -> torch.device:
    return dovetail_torch.device(request.param)


@pytest.fixture
def no_fallback():
    """Fails where an op ran by torch's kernel for the CPU."""
    dovetail_torch.fallback_report(reset=True)
    yield
    assert dovetail_torch.fallback_report(reset=True) == {}
