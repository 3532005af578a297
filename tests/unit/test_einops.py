"""Unchanged programs of einops on arrays, eager and traced."""

import subprocess
import sys

import dovetail as dt
import numpy as np
import pytest

einops = pytest.importorskip("einops", reason="einops is not installed")
X = np.arange(48, dtype=np.float32).reshape(2, 3, 8) / 7
REDUCTIONS = ("sum", "mean", "max", "min", "prod")
PROGRAMS = {
    "transpose": lambda x: einops.rearrange(x, "a b c -> c a b"),
    "merge": lambda x: einops.rearrange(x, "a b c -> (a b) c"),
    "split": lambda x: einops.rearrange(x, "a b (h w) -> a h (b w)", h=2),
    "ellipsis": lambda x: einops.rearrange(x, "a ... -> ... a"),
    "new axis": lambda x: einops.rearrange(x, "a b c -> a 1 b c"),
    "repeat": lambda x: einops.repeat(x, "a b c -> a (b 2) r c", r=3),
    "repeat at the end": lambda x: einops.repeat(x, "a b c -> a b c r s", r=3, s=2),
    "stack": lambda x: einops.rearrange([x, x + 1], "n a b c -> a (n b) c"),
    "pack": lambda x: einops.pack([x, x[:, 0]], "a * c")[0],
    "unpack": lambda x: einops.unpack(x, [(1,), (2,)], "a * c")[1],
} | {op: lambda x, op=op: einops.reduce(x, "a b (h k) -> b h", op, k=4) for op in REDUCTIONS}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("device", ["cpu:0", "sim:0"])
def test_programs(name, device):
    expected = PROGRAMS[name](X)
    got = PROGRAMS[name](dt.asarray(X, device=device))
    assert type(got) is dt.Array and got.device == dt.device(device)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_traced_programs(name):
    for x in (X, X[:1]):
        got = dt.compile(PROGRAMS[name])(dt.asarray(x))
        np.testing.assert_allclose(got.numpy(), PROGRAMS[name](x), rtol=1e-6)


def test_any_and_all():
    x = X > 3
    for op in ("any", "all"):
        got = einops.reduce(dt.asarray(x), "a b c -> b", op)
        assert got.tolist() == einops.reduce(x, "a b c -> b", op).tolist()


@pytest.mark.skipif(not hasattr(dt, "einsum"), reason="dovetail.einsum is not here yet")
def test_einsum():
    a, b = X[0], X[1].T
    got = einops.einsum(dt.asarray(a), dt.asarray(b), "i j, j k -> k i")
    np.testing.assert_allclose(got.numpy(), einops.einsum(a, b, "i j, j k -> k i"), rtol=1e-6)


def test_integers_have_no_mean():
    with pytest.raises(NotImplementedError, match="reduce_mean is not available"):
        einops.reduce(dt.arange(4), "a -> ", "mean")


@pytest.mark.parametrize("first", ["dovetail", "einops"])
def test_either_package_may_be_imported_first(first):
    second = {"dovetail": "einops", "einops": "dovetail"}[first]
    code = f"""
import sys
import {first}
assert {second!r} not in sys.modules
import {second}
assert einops.rearrange(dovetail.zeros((2, 3)), "a b -> b a").shape == (3, 2)
assert "torch" not in sys.modules
print(sum("dovetail" in str(finder) for finder in sys.meta_path))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "0\n"  # nothing waits any longer
