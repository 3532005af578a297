"""For every test: nothing is left behind, and a failure can be repeated."""

import os
import shutil
import tempfile

import pytest

try:
    import hypothesis
except ImportError:
    pass
else:
    # The examples come from the test's own name, so a failure fails again; no database is written.
    hypothesis.settings.register_profile("dovetail", deadline=None, derandomize=True, database=None)
    hypothesis.settings.load_profile("dovetail")


def pytest_configure(config: pytest.Config) -> None:
    """What the loader remembers of libraries goes to a folder of this run, which all workers share."""
    if not hasattr(config, "workerinput"):
        config.dovetail_cache = tempfile.mkdtemp(prefix="dovetail-tests-")
        os.environ["XDG_CACHE_HOME"] = config.dovetail_cache


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(getattr(config, "dovetail_cache", ""), ignore_errors=True)
