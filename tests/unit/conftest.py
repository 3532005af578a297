from types import SimpleNamespace

import pytest


@pytest.fixture
def now():
    """What the device changing does now; now.device is it."""
    import dovetail as dt
    from python_devices import Changing

    before = dt.fallback("error")
    (device,) = dt.load_backend(Changing)
    dt.memory.empty_cache(device)
    Changing.now = SimpleNamespace(device=device)
    yield Changing.now
    Changing.now = SimpleNamespace()
    dt.fallback(before)
