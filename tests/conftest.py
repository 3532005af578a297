"""For every test: no leftovers, and reproducible failures."""

import os
import shutil
import signal
import tempfile

import pytest

try:
    import hypothesis
except ImportError:
    pass
else:
    # The examples depend on the test's name only, so a failure recurs; no database is written.
    hypothesis.settings.register_profile("dovetail", deadline=None, derandomize=True, database=None)
    hypothesis.settings.load_profile("dovetail")


def pytest_configure(config: pytest.Config) -> None:
    """The loader's cache goes to a folder of this run, which all workers share."""
    if not hasattr(config, "workerinput"):
        config.dovetail_cache = tempfile.mkdtemp(prefix="dovetail-tests-")
        os.environ["XDG_CACHE_HOME"] = config.dovetail_cache
        # A script's background jobs ignore SIGINT, and the programs that tests interrupt would inherit that.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(getattr(config, "dovetail_cache", ""), ignore_errors=True)
