"""Exported functions against the same functions run eagerly: other sizes than those of the trace, every device."""

import json
import operator

import dovetail as dt
import numpy as np
import pytest
from compiled_calls import leaves
from test_indexing import KEYS, ours

DEVICES = [d.name for d in dt.devices() if d.index == 0]
rng = np.random.default_rng(20260)  # printed by the ids of no test: the arrays are the same in every run


def draw(*shape, dtype="float32"):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    return (rng.standard_normal(shape) * 4).astype(dtype)


def eager(fn, *args):
    """The function's results as NumPy arrays, on copies of the arguments."""
    return [x.numpy() for x in leaves(fn(*(x.copy() if isinstance(x, dt.Array) else x for x in args)))]


def same(got, expected):
    for a, b in zip([x.numpy() for x in leaves(got)], expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert a.tobytes() == b.tobytes()


def guards(program):
    return json.loads(program.text()).get("guards", [])


W = draw(5, 5)


def shapes(x):
    b, n = x.shape
    y = dt.reshape(x, (b, n, 1)) + dt.zeros((1, n, 2 * b), dtype=x.dtype)
    return y.reshape(-1, y.shape[-1]), dt.broadcast_to(x[:, :1], (b, n + 1)), x.size * dt.ones_like(x)


def made(x):
    n = x.shape[0]
    grid = dt.meshgrid(dt.arange(n), dt.arange(n + 1, dtype="float32").astype("int64"), indexing="ij")
    return (
        dt.arange(1, 2 * n, 2),
        dt.eye(n, k=1),
        dt.full((n, 2), n),
        dt.linspace(0.0, 1.0, n),
        *grid,
        dt.asarray(n),
    )


def like(x):
    return (
        dt.zeros_like(x),
        dt.ones_like(x, dtype="int32"),
        dt.full_like(x, 3),
        dt.astype(x, "float64", device=x.device),
    )


def methods(x):
    return (
        x.T, x.mT, x.real, x.imag, x.copy(), x.astype("int32"), x.astype(x.dtype), x.sum(0), x.mean(axis=1),
        x.max(), x.min(1, keepdims=True), x.argmax(1), x.std(0), x.var(), (x > 0).all(0), (x > 0).any(),
        x.prod(1), round(x, 1), abs(x), -x, +x, x.to_device(x.device), *divmod(x, 2.0),
    )  # fmt: skip


def operators(x):
    i, m = dt.astype(x, "int32"), x > 0
    return (
        x + 1, 1 - x, x * x, x / 2, 2.0 / (x * x + 1), x // 2, x % 3, (x * x) ** 0.5, 2.0 ** x, x @ x.T, i & 3,
        i | 1,
        i ^ 2, i << 1, i >> 1, ~i, m & m, m | ~m, m ^ m, m + m, m * m, x < 1, x <= x, x == x, x != 0, x > 1, x >= 0,
        np.float32(2) * x, x + np.ones(5, np.float32), np.ones(5, np.float32) - x,
    )  # fmt: skip


def in_place(x):
    y, z = x, x[:1]
    x += 1
    y *= x
    x -= dt.astype(x, "int32")
    i = dt.astype(x, "int32")
    i //= 2
    return x, y, z, i


def writes(x):
    before = x[:, 0]
    x[0] = 1.5
    x[1:, -1] = x[0, 0]
    x[..., ::2] = x[..., ::2] * 2
    x[None, 2] = dt.arange(x.shape[1], dtype="float32")
    x[dt.asarray([0, 1])] = 7
    x[dt.asarray([0, 1]), dt.asarray([1, 0])] = dt.asarray([1.0, 2.0])
    x[::-1, 1] = x[:, 0]
    x[x > 3] = 0.0
    return x, before


def traced_index(x):
    at = dt.argmax(x, axis=1)
    first = at[0] % x.shape[0]
    y = x.copy()
    y[first] = 0
    return x[first], x[first, 1:], x[:, at[1] % 2], dt.take(x, at % x.shape[0], axis=0), x[at % x.shape[0], at], y


def slices(x):
    n = x.shape[0]
    return x[: n // 2], x[n // 2 :], x[-2:], x[:-1], x[::2], x[::-1], x[n - 2 :: -1], x[:, ::-2], x[1 : n - 1, 1]


def joined(x):
    return dt.concat([x, x[:1]]), dt.stack([x, x + 1], axis=1), dt.roll(x, 1, axis=0), dt.tile(x, (1, 2))


def numpys(x):
    return (
        np.exp(-np.abs(x)), np.maximum(x, 0), np.sum(x, axis=0), np.concatenate([x, x]), np.transpose(x),
        np.mean(x),
        np.add.reduce(x), np.where(x > 0, x, -x), np.clip(x, -1, 1), np.ravel(x), np.swapaxes(x, 0, 1),
        *np.split(x, [1, 3], axis=1),
        *np.array_split(x, 2),
        np.stack([x, x]), np.outer(x[0], x[1]), np.expand_dims(x, 0),
    )  # fmt: skip


def contracted(x):
    w = dt.asarray(W, device=x.device)
    return (
        x @ w, dt.linalg.vecdot(x, x), dt.tensordot(x, w, axes=1), dt.nn.linear(x, w), dt.nn.softmax(x),
        dt.nn.layer_norm(x, (x.shape[-1],)), dt.linalg.vector_norm(x, axis=1), dt.sort(x, axis=0),
        dt.cumulative_sum(x, axis=1),
    )  # fmt: skip


def random_numbers(x):
    generator = dt.random.Generator(7)
    first = generator.normal(x.shape, device=x.device)
    return (
        first,
        generator.uniform((x.shape[0], 3), device=x.device),
        generator.integers(9, shape=4, device=x.device),
    )


SYMBOLIC = [
    shapes, made, like, methods, operators, in_place, writes, traced_index, joined, random_numbers,
]  # fmt: skip
GUARDED = [slices, numpys, contracted]  # slices ask whether an end counts from behind, tensordot for equal sizes


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fn", SYMBOLIC + GUARDED, ids=operator.attrgetter("__name__"))
def test_every_size_gives_the_eager_bits(fn, device):
    arrays = [dt.asarray(draw(n, 5), device=device) for n in (4, 7, 3)]
    with dt.device(device):
        program = dt.export(fn, arrays[0])
        if fn in SYMBOLIC:
            assert guards(program) == []
        for x in arrays:
            same(program(x.copy()), eager(fn, x))


def has_mask(key):
    return any(np.asarray(k).dtype == bool for k in (key if isinstance(key, tuple) else (key,)) if k is not None)


@pytest.mark.parametrize("key", [name for name, key in KEYS.items() if not has_mask(key)])
def test_keys_select_as_in_arrays(key):
    key = KEYS[key]
    x = dt.asarray(np.arange(60).reshape(3, 4, 5))
    fn = lambda x: x[ours(key)]  # noqa: E731
    same(dt.export(fn, x)(x), eager(fn, x))

    def write(x):
        x[ours(key)] = 100
        return x

    same(dt.export(write, x)(x.copy()), eager(write, x))


def test_keys_of_symbolic_sizes_follow_them():
    fn = lambda x: (x[[0, 1], ::-1], x[1:, [0, 2]], x[..., None, [1, 0]], x[-1:, :2])  # noqa: E731
    program = dt.export(fn, dt.asarray(draw(3, 4)))
    for shape in ((2, 3), (6, 9)):
        x = dt.asarray(draw(*shape))
        same(program(x), eager(fn, x))


@pytest.mark.parametrize("part", [dt.real, dt.imag, lambda x: x.real, lambda x: x.imag])
def test_parts_of_complex_arrays(part):
    x = dt.asarray([1 + 2j, 3j])
    for traced in (dt.export(part, x)(x), dt.compile(part)(x), dt.compile(lambda: part(x))()):
        same(traced, eager(part, x))
    assert part(x).dtype == "float32"
