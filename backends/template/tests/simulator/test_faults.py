"""Faults on demand: each becomes an exception with its cause, and the process goes on."""

import pytest


def test_out_of_memory(python):
    """The host tries an allocation four times; then the exception has the requested size and the memory in use."""
    python(
        """
held = [dt.asarray(np.full(100_000 * (i + 1), i, np.uint8)) for i in range(4)]
printed = raises(MemoryError, lambda: dt.zeros((1 << 20,)))
assert "cannot allocate" in printed and NAME + ":0" in printed and "in use by arrays" in printed, printed
equal(held[3], np.full(400_000, 3))
equal(dt.zeros((1 << 20,))[:2], [0, 0])
equal(dt.ones((5,), device=second), np.ones(5))
""",
        FAULT="oom:5:4",
    )


def test_permanent_out_of_memory(python):
    """Existing arrays can still be used, and their memory reused."""
    python(
        """
x, y = dt.asarray(np.ones(1000, np.float32)), dt.asarray(np.ones(1000, np.float32))
raises(MemoryError, lambda: x + y)
raises(MemoryError, lambda: x + y)
x += y
equal(x, np.full(1000, 2))
del y
equal(x + 1, np.full(1000, 3))
""",
        FAULT="oom:3",
    )


def test_a_lost_device(python):
    """Every call on it raises from then on, until it is reset; other devices' arrays and results are right."""
    python(
        """
x, z = dt.ones((100,)), dt.ones((100,), device=second)
first.synchronize()

def work():
    y = x
    for _ in range(20):
        y = y + 1
    y.numpy()

printed = raises(dt.DeviceLostError, work)
assert "lost at its kernel 10" in printed and printed.startswith("[add]"), printed
for attempt in (lambda: x + 1, x.numpy, first.synchronize, lambda: dt.zeros((3,)), lambda: dt.Stream(first),
                lambda: x.to_device(second), lambda: z.to_device(first)):
    printed = raises(dt.DeviceLostError, attempt)
    assert NAME + ":0" in printed and "reset" in printed, printed
equal(z + 1, np.full(100, 2))
first.reset()
equal(dt.ones((100,)) + 1, np.full(100, 2))
""",
        FAULT="lost:10",
    )


def test_a_lost_peer_does_not_affect_other_devices(python):
    """Memory that the lost device should have read can be written, freed and reused."""
    python(
        """
x = dt.ones((1 << 18,), device=second)
y = x.to_device(first)
def until_lost():  # if the worker is fast enough, a launch already reports the loss
    z = y
    for _ in range(10):
        z = z + 1
    z.numpy()
raises(dt.DeviceLostError, until_lost)
x += 1
equal(x[:3], [2, 2, 2])
reserved = memory.stats(second)["reserved"]
del x
second.synchronize()
memory.empty_cache(second)
assert memory.stats(second)["reserved"] < reserved
with dt.device(second):
    equal(dt.ones((1 << 18,))[:3], [1, 1, 1])
    free = second.properties["mem_free"]
    assert free >= second.properties["mem_total"] - (4 << 20), free
""",
        FAULT="lost:5",
    )


def test_a_bad_index_is_reported_at_the_next_wait(python, tmp_path):
    gate = tmp_path / "gate"
    python(
        f"""
x, i = dt.arange(5.0), dt.asarray(np.array([0, 7, 1]))
first.synchronize()
open({str(gate)!r}, "w").close()
y = dt.take(x, i) + 1
os.unlink({str(gate)!r})
printed = raises(IndexError, y.numpy)
assert printed.startswith("[take]") and "index 7" in printed and "5 elements" in printed, printed
equal(x + 1, np.arange(1, 6))
z = dt.zeros(4)
z[i] = 3.0
assert "[scatter]" in raises(IndexError, first.synchronize)
first.synchronize()
""",
        FAULT=f"hold:0:{gate}",
    )


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("FAULT", "oom"),
        ("FAULT", "oom:0"),
        ("FAULT", "delay:1"),
        ("FAULT", "delay:1:5 minutes"),
        ("FAULT", "lost:5,melt:1"),
        ("MEMORY", "lots"),
        ("MEMORY", "5"),
        ("DEVICES", "0"),
        ("DEVICES", "9"),
        ("LATENCY_US", "-1"),
        ("BANDWIDTH_GBS", "0"),
    ],
)
def test_an_invalid_setting_is_refused(python, name, setting, value):
    refused = python("", check=False, **{setting: value})
    variable = f"DOVETAIL_{name.upper()}_{setting}"
    assert refused.returncode == 1 and f"{variable}: expected" in refused.stderr, refused.stderr
    assert f'got "{value}"; correct or unset it' in refused.stderr
