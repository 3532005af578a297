import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import harness


@pytest.fixture(params=harness.LEVELS)
def cpu(request: pytest.FixtureRequest) -> harness.Session:
    """The kernels at each level that is built and that this machine can run."""
    if reason := harness.absent(request.param):
        pytest.skip(reason)
    return harness.session(request.param)


@pytest.fixture
def without_amx() -> harness.Session:
    """The kernels of AVX-512 without AMX, on machines where they use it."""
    session = harness.without_amx()
    if session is None:
        pytest.skip("no kernel uses AMX on this machine")
    return session
