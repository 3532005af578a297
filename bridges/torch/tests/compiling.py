"""What the tests of torch.compile(backend="dovetail") share, on torch's CPU and on Dovetail's devices."""

import pytest
import torch
from dovetail_torch.compile import Report, backend, report


@pytest.fixture(autouse=True)
def fresh():
    """Nothing is compiled or counted yet, and torch's random numbers are those of one seed."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    report(reset=True)


def compiled(fn, **how):
    return torch.compile(fn, backend=backend, **how)


def expect_programs(graphs: int, programs: int) -> Report:
    """Checks the counts since the test began, and returns all of them."""
    made = report()
    assert (made.graphs, made.programs) == (graphs, programs), str(made)
    return made
