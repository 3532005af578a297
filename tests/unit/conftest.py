import ctypes
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def functions(tmp_path_factory) -> ctypes.CDLL:
    """math_functions.cpp, compiled from the public headers alone."""
    built = tmp_path_factory.mktemp("functions") / "functions.so"
    options = ["-std=c++17", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]
    source = HERE / "math_functions.cpp"
    compiler = os.environ.get("CXX", "c++")
    command = [compiler, *options, f"-I{HERE.parents[1] / 'core/include'}", source, "-o", built]
    subprocess.run(command, check=True, timeout=300)
    return ctypes.CDLL(str(built))


@pytest.fixture(params=["cpu:0", "sim:0"])
def home(request):
    """The name of the default device: each of these in turn."""
    import dovetail as dt

    before = dt.default_device()
    dt.set_default_device(request.param)
    yield request.param
    dt.set_default_device(before)


@pytest.fixture
def now():
    """A device whose behaviour the test can replace; now.device is it."""
    import dovetail as dt
    from python_devices import Changing

    before = dt.fallback("error")
    (device,) = dt.load_backend(Changing)
    dt.memory.empty_cache(device)
    Changing.now = SimpleNamespace(device=device)
    yield Changing.now
    Changing.now = SimpleNamespace()
    dt.fallback(before)


@pytest.fixture
def leave_the_schema_as_it_was():
    """Unregister the test's ops at the end."""
    from dovetail.schema import registry

    before = dict(registry)
    yield
    for name in registry.keys() - before.keys():
        del registry[name]
