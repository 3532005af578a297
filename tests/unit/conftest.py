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


@pytest.fixture
def leave_the_schema_as_it_was():
    """Ops that the test registers are gone after it."""
    from dovetail.schema import registry

    before = dict(registry)
    yield
    for name in registry.keys() - before.keys():
        del registry[name]
