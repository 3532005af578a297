"""core/generated/decompositions.json, which the library brings, is what the schema gives, and serves calls."""

import importlib.util
import json
import random
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core
from dovetail.schema import dtypes, registry
from dovetail.schema.traced_calls import calls_of

ROOT = Path(__file__).parents[2]
FILE = ROOT / "core/generated/decompositions.json"


def generator():
    spec = importlib.util.spec_from_file_location("decompositions", ROOT / "core/schema/decompositions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FORMS, *LINES = FILE.read_text().splitlines()[1:-1]
SHARDS = 4


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_file_is_what_the_schema_gives(shard):
    """Run `python core/schema/decompositions.py` after a decomposition was changed."""
    make = generator()
    stale = []
    for line in LINES[shard::SHARDS]:
        name = json.loads(line[: line.index(":")])
        fresh = json.dumps(make.decompositions(registry[name], _core, dtypes), separators=(",", ":"))
        if line[line.index(":") + 1 :].removesuffix(",") != fresh:
            stale.append(name)
    assert not stale


CALLS = 20  # of each op; all are more than a minute's work


def test_it_has_what_the_schema_gives_for_some_calls_of_each_op():
    """Run `python core/schema/decompositions.py` after a decomposition was changed."""
    make = generator()
    stale, compared = [], 0
    for line in LINES:
        name = json.loads(line[: line.index(":")])
        op, kept = registry[name], json.loads(line[line.index(":") + 1 :].removesuffix(","))
        calls = list(calls_of(op, dtypes))
        some = random.Random(20261201).sample(calls, min(CALLS, len(calls)))
        for operands, pattern, text in make.traced_calls(op, _core, some):
            general, dtype = make.apart(op, pattern, operands)
            if op.spec.dtype == "logical" and dtype is dtypes.bool_:
                continue  # one program serves all dtypes: it converts to bool, where a trace of bool has no need to
            names = [n for g in (general, make.without_ranks(general)) for n in (g, pattern_of(g, dtype, make.ANY))]
            places = [place for n in names for place in kept["patterns"].get(n, ())]
            compared += 1
            shipped = [json.dumps(kept["programs"][place]) for place in places]
            shipped = [json.loads(s.replace(f'"{make.ANY}"', f'"{dtype.name}"') if dtype else s) for s in shipped]
            if json.loads(text) not in shipped:
                stale.append(f"{name} {pattern}")
    assert not stale and compared > 10 * len(LINES), compared


def pattern_of(general: str, dtype, any_dtype: str) -> str:
    return general.replace(any_dtype, dtype.brief) if dtype else general


def test_the_forms_are_what_the_schema_gives():
    fresh = json.dumps(generator().forms(dt), separators=(",", ":"))
    assert f'"forms":{fresh},' == FORMS


def test_it_has_every_op_with_a_decomposition():
    own = [o for o in registry.values() if o.__module__.startswith("dovetail.schema.")]
    have = {o.name for o in own if o.decomposition or o.stored_decomposition}
    assert {json.loads(line[: line.index(":")]) for line in LINES} == have


@pytest.fixture
def no_tracing(monkeypatch):
    from dovetail import _trace

    def traced(name, *_):
        raise AssertionError(f"{name} was traced")

    monkeypatch.setattr(_trace, "run_decomposition", traced)


@pytest.mark.usefixtures("no_tracing")
@pytest.mark.parametrize("axis", range(6))
def test_sorts_and_products_along_every_axis_of_six(axis):
    """The sizes along the axis: one, a power of two, and others; the sizes before and behind it differ."""
    rng = np.random.default_rng(20261126)
    for n in (1, 8, 9):
        shape = [2, 1, 3, 1, 2, 3]
        shape[axis] = n
        x = rng.integers(-3, 4, shape)
        a = dt.asarray(x, device="sim")
        order = np.argsort(x, axis, kind="stable")
        np.testing.assert_array_equal(dt.argsort(a, axis=axis).numpy(), order)
        np.testing.assert_array_equal(
            dt.argsort(a, axis=axis, descending=True).numpy(), np.argsort(-x, axis, kind="stable")
        )
        np.testing.assert_array_equal(dt.sort(a, axis=axis).numpy(), np.sort(x, axis))
        values, places = dt.top_k(a, 1, axis=axis, mode="smallest")
        np.testing.assert_array_equal(values.numpy(), x.min(axis, keepdims=True))
        np.testing.assert_array_equal(places.numpy(), order.take([0], axis))
        np.testing.assert_array_equal(dt.prod(a, axis=axis).numpy(), x.prod(axis))


@pytest.mark.usefixtures("no_tracing")
@pytest.mark.parametrize("axes", [(), (0, 5), (1, 2, 3), (0, 2, 4), (5, 3, 0, 1), None])
def test_products_over_several_axes_of_six(axes):
    x = np.random.default_rng(20261127).integers(-2, 3, (2, 3, 1, 4, 2, 3)) * 2 + 1
    a = dt.asarray(x, device="sim")
    for keepdims in (False, True):
        got = dt.prod(a, axis=axes, keepdims=keepdims).numpy()
        np.testing.assert_array_equal(got, x.prod(axes, keepdims=keepdims))


@pytest.mark.usefixtures("no_tracing")
@pytest.mark.parametrize("mode", ["add", "max", "min", "multiply"])
@pytest.mark.parametrize("axis", range(6))
def test_updates_of_every_rank_are_joined(axis, mode):
    """Several updates for one place, none, and none at all."""
    rng = np.random.default_rng(20261128)
    join = {"add": np.add, "max": np.maximum, "min": np.minimum, "multiply": np.multiply}[mode]
    shape = [2, 1, 3, 2, 1, 2]
    shape[axis] = 5
    x = rng.integers(-5, 6, shape)
    for places in ([4, 0, -1, 0], []):
        region = [*shape]
        region[axis] = len(places)
        for rank in range(7):
            updates = rng.integers(-5, 6, region[6 - rank :])
            want = np.moveaxis(x.copy(), axis, 0)
            join.at(want, np.array(places, int), np.moveaxis(np.broadcast_to(updates, region), axis, 0))
            a, u = (dt.asarray(v, device="sim") for v in (x, updates))
            i = dt.asarray(np.array(places, np.int64), device="sim")
            got = _core.op_function("scatter")(a, i, u, axis=axis, mode=mode).numpy()
            np.testing.assert_array_equal(got, np.moveaxis(want, 0, axis))


@pytest.mark.usefixtures("no_tracing")
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_differences_are_taken_any_number_of_times(n):
    x = np.random.default_rng(20261129).integers(-9, 10, (3, 7, 2))
    a = dt.asarray(x, device="sim")
    for axis in range(3):
        np.testing.assert_array_equal(dt.diff(a, axis=axis, n=n).numpy(), np.diff(x, n, axis))
        np.testing.assert_array_equal(dt.diff(a, axis=axis, n=n, append=a).numpy(), np.diff(x, n, axis, append=x))


@pytest.mark.usefixtures("no_tracing")
def test_slices_of_any_axes_in_any_order():
    rng = np.random.default_rng(20261131)
    x = rng.integers(0, 100, (2, 3, 4, 3, 2, 3))
    for n in range(7):
        for _ in range(10):
            axes = rng.permutation(6)[:n].tolist()
            sizes = [int(rng.integers(0, x.shape[a] + 1)) for a in axes]
            starts = rng.integers(-2, 5, n)
            want = [slice(None)] * 6
            for a, size, start in zip(axes, sizes, starts.tolist(), strict=True):
                first = min(max(start, 0), x.shape[a] - size)
                want[a] = slice(first, first + size)
            a, at = (dt.asarray(v, device="sim") for v in (x, starts))
            got = dt.dynamic_slice(a, at, tuple(sizes), axis=tuple(axes)).numpy()
            np.testing.assert_array_equal(got, x[tuple(want)])


@pytest.mark.usefixtures("no_tracing")
@pytest.mark.parametrize("axis", range(6))
def test_eight_arrays_are_joined(axis):
    rng = np.random.default_rng(20261130)
    shape = [2, 1, 2, 1, 2, 3]
    parts = [rng.integers(0, 100, (*shape[:axis], n, *shape[axis + 1 :])) for n in (1, 2, 0, 3, 1, 1, 4, 2)]
    got = dt.concat([dt.asarray(p, device="sim") for p in parts], axis=axis)
    np.testing.assert_array_equal(got.numpy(), np.concatenate(parts, axis))
    row = [p.reshape(-1)[:1] for p in parts if p.size] + [parts[0].reshape(-1)[:1]]
    np.testing.assert_array_equal(
        dt.stack([dt.asarray(r, device="sim") for r in row], axis=1).numpy(), np.stack(row, axis=1)
    )


@pytest.mark.usefixtures("no_tracing")
def test_python_is_not_asked():
    """For sizes, numbers and dtypes that no test uses elsewhere."""
    rng = np.random.default_rng(20261124)
    x = rng.normal(size=(3, 11, 13)).astype(np.float32)
    a = dt.asarray(x, device="sim")
    want = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(dt.nn.softmax(a, axis=1).numpy(), want / want.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(
        dt.nn.leaky_relu(a, 0.37).numpy(), np.where(x < 0, x * np.float32(0.37), x), rtol=1e-6
    )
    np.testing.assert_allclose(dt.var(a, axis=(0, 2), correction=1.5).numpy(), x.var((0, 2)) * 39 / 37.5, rtol=1e-5)
    np.testing.assert_array_equal(dt.concat([a, a], axis=2).numpy(), np.concatenate([x, x], 2))
    np.testing.assert_array_equal(dt.arange(5, 40, 7, device="sim").numpy(), np.arange(5, 40, 7))
    half = dt.astype(a, dt.float16)  # casts around the decomposition
    np.testing.assert_allclose(
        dt.nn.silu(half).numpy().astype(np.float32), x / (1 + np.exp(-x)), rtol=2e-2, atol=1e-3
    )
    image = rng.normal(size=(2, 3, 17, 19)).astype(np.float32)
    pooled = dt.nn.max_pool2d(dt.asarray(image, device="sim"), (4, 3), stride=(3, 2)).numpy()
    windows = np.lib.stride_tricks.sliding_window_view(image, (4, 3), (2, 3))[:, :, ::3, ::2]
    np.testing.assert_array_equal(pooled, windows.max((-1, -2)))
