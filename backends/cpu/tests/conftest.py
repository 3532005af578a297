import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import harness


def session_or_skip(level: str) -> harness.Session:
    if reason := harness.absent(level):
        pytest.skip(reason)
    return harness.session(level)


@pytest.fixture(params=harness.LEVELS)
def cpu(request: pytest.FixtureRequest) -> harness.Session:
    """The kernels at each level that is built and that this machine can run."""
    return session_or_skip(request.param)


@pytest.fixture(params=[*harness.LEVELS, "avx512 without AMX"])
def with_and_without_amx(request: pytest.FixtureRequest) -> harness.Session:
    """The kernels at each level, and those that run where AMX is missing."""
    if request.param == "avx512 without AMX":
        return request.getfixturevalue("without_amx")
    return session_or_skip(request.param)


@pytest.fixture
def without_amx() -> harness.Session:
    """The kernels of AVX-512 without AMX, on machines where they use it."""
    session = harness.without_amx()
    if session is None:
        pytest.skip("no kernel uses AMX on this machine")
    return session
