import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import harness


@pytest.fixture(params=harness.LEVELS)
def cpu(request: pytest.FixtureRequest) -> harness.Session:
    """The kernels at each level that this machine has."""
    if not harness.available(request.param):
        pytest.skip(f"this processor lacks {request.param}")
    return harness.session(request.param)
