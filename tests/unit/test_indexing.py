"""x[key] and x[key] = value against NumPy."""

import dovetail as dt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

SHAPE = (3, 4, 5)
N = np.arange(60).reshape(SHAPE)
MASK = N % 7 == 0


def ours(key):
    """Convert a NumPy key's arrays into ours."""
    if isinstance(key, tuple):
        return tuple(map(ours, key))
    return dt.asarray(key) if isinstance(key, np.ndarray) else key


KEYS = {
    "backward": np.s_[::-1],
    "backward part": np.s_[1, 3:0:-2, ::-1],
    "backward empty": np.s_[0:2:-1],
    "list": [2, 0, 2],
    "negative list": [-1, 0],
    "nested list": [[0, 1], [2, 0]],
    "list behind": np.s_[:, [3, 0]],
    "list last": np.s_[..., [4, 4, 0]],
    "list and int": np.s_[1, [0, 3]],
    "int, slice, list": np.s_[1, :, [0, 3]],
    "list, slice, int": np.s_[[0, 2], 1:, 2],
    "two lists": np.s_[[0, 1, 2], [3, 2, 1]],
    "two lists apart": np.s_[[0, 1], :, [4, 3]],
    "two lists last": np.s_[:, [0, 1], [4, 3]],
    "three lists": np.s_[[0, 1], [1, 2], [2, 3]],
    "broadcast": (np.array([[0], [2]]), np.array([1, 3, 0])),
    "broadcast behind": (slice(None), np.array([[0], [2]]), np.array([1, 3, 0])),
    "new axis": np.s_[None, [0, 1]],
    "new axis between": np.s_[[0, 1], None, [1, 2]],
    "new axis behind": np.s_[[0, 1], [1, 2], None],
    "0-d index": np.array(2),
    "0-d index and list": (np.array(1), [0, 1]),
    "list and backward": np.s_[[0, 2], ::-1],
    "list and step": np.s_[1:, [0, 2], ::2],
    "empty list": [],
    "empty index": np.zeros((0, 2), dtype=int),
    "small dtype": np.array([0, 2], dtype=np.uint8),
    "mask": MASK,
    "mask of rows": np.array([True, False, True]),
    "mask of rows as list": [True, False, True],
    "mask of planes": MASK[:, :, 0],
    "mask behind": (slice(None), np.array([True, False, False, True])),
    "mask and list": (np.array([True, False, True]), [1, 3]),
    "mask and int": (np.array([True, False, True]), 1),
    "mask of two axes behind": (1, MASK[0]),
    "mask of none": np.zeros(3, dtype=bool),
    "mask of size 0": np.zeros(0, dtype=bool),
    "mask of sizes 3 and 0": np.zeros((3, 0), dtype=bool),
    "mask of size 0 behind": (slice(None), np.zeros(0, dtype=bool)),
    "true": True,
    "false": False,
}


@pytest.mark.parametrize("name", KEYS)
def test_get(name):
    key = KEYS[name]
    for n, x in ((N, dt.asarray(N)), (N.T, dt.asarray(N.T)), (N[:, ::2], dt.asarray(N)[:, ::2])):
        try:
            expected = n[key]
        except IndexError:
            with pytest.raises(IndexError):
                x[ours(key)].numpy()
            continue
        got = x[ours(key)]
        assert got.shape == expected.shape and got.dtype == "int64"
        np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("value", ["number", "array", "row"])
def test_set(name, value):
    key = KEYS[name]
    n, x = N.copy(), dt.asarray(N)
    view = x[:]
    shape = n[key].shape
    v = {"number": 1000, "array": np.arange(1000, 1000 + np.prod(shape, dtype=int)).reshape(shape),
         "row": np.arange(1000, 1000 + (shape[-1] if shape else 1))[: None if shape else 1]}[value]  # fmt: skip
    if value == "row" and not shape:
        v = v[0]
    repeated = name in ("list", "nested list", "list last")  # any of the writes wins
    n[key] = v
    x[ours(key)] = v if value == "number" else dt.asarray(v)
    if repeated and value == "array":
        assert ((x.numpy() == N) == (n == N)).all()
    else:
        np.testing.assert_array_equal(x.numpy(), n)
    np.testing.assert_array_equal(view.numpy(), N)


@st.composite
def keys(draw):
    items = []
    for size in SHAPE:
        start, stop = (st.integers(-size - 1, size + 1) for _ in range(2))
        items.append(
            draw(
                st.one_of(
                    st.integers(-size, size - 1),
                    st.builds(slice, st.none() | start, st.none() | stop, st.sampled_from([None, 1, 2, -1, -2])),
                    st.lists(st.integers(-size, size - 1), min_size=2, max_size=2).map(np.array),
                    st.lists(st.booleans(), min_size=size, max_size=size)
                    .filter(lambda mask: sum(mask) == 2)
                    .map(np.array),
                )
            )
        )
    items = items[: draw(st.integers(1, 3))]
    for _ in range(draw(st.integers(0, 1))):
        items.insert(draw(st.integers(0, len(items))), draw(st.sampled_from([None, Ellipsis])))
    return tuple(items)


@settings(max_examples=150, deadline=None)
@given(keys())
def test_any_key(key):
    x, n = dt.asarray(N), N.copy()
    expected = n[key]
    got = x[ours(key)]
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.numpy(), expected)
    unique = len(set(expected.ravel().tolist())) == expected.size
    value = -1 - np.arange(expected.size).reshape(expected.shape) if unique else -1
    n[key] = value
    x[ours(key)] = dt.asarray(value)
    np.testing.assert_array_equal(x.numpy(), n)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "float32", "float64"])
def test_dtypes(dtype):
    x = dt.asarray([[0, 1, 1], [1, 1, 0]]).astype(dtype)
    assert x[:, [2, 0]].astype("int64").tolist() == [[1, 0], [0, 1]]
    assert x[x == 0].astype("int64").tolist() == [0, 0]
    x[:, [0]] = False
    x[x != 0] = True
    x[::-1, 2] = dt.asarray([1, 0]).astype(dtype)
    assert x.astype("int64").tolist() == [[0, 1, 0], [0, 1, 1]]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (np.s_[[0, 3]], "index 3 .*axis 0 of size 3"),
        (np.s_[:, [0, -5]], "index -5 .*axis 1 of size 4"),
        (np.s_[[0, 1], [0, 4]], "index 4 .*axis 1 of size 4"),
        (np.s_[[0, 1], :, [0, 5]], "index 5 .*axis 2 of size 5"),
        (np.s_[[0, 1], [0, 1, 2]], "broadcast"),
        (np.s_[[0], 1, 2, 3], "too many indices"),
        (np.s_[..., [0], ...], "Ellipsis"),
        (np.array([0.5]), "float"),
        ("name", "str"),
        (np.zeros(4, dtype=bool), "mask of size 4 .*axis 0 of size 3"),
        (np.zeros((3, 3), dtype=bool), "mask of size 3 .*axis 1 of size 4"),
        (np.s_[3], "index 3 .*axis 0 of size 3"),
    ],
)
def test_bad_keys(key, message):
    x = dt.asarray(N)
    with pytest.raises(IndexError, match=message):
        x[ours(key)]
    with pytest.raises(IndexError, match=message):
        x[ours(key)] = 0
    np.testing.assert_array_equal(x.numpy(), N)


def test_bad_values():
    x = dt.asarray(N)
    with pytest.raises(ValueError, match="broadcast"):
        x[[0, 1]] = dt.zeros(3, dtype="int64")
    with pytest.raises(ValueError, match="broadcast"):
        x[::-1] = dt.zeros((4, 4, 5), dtype="int64")
    with pytest.raises(TypeError, match=r"a float .*int64"):
        x[[0, 1]] = 0.5
    with pytest.raises(TypeError, match=r"float32.*int64"):
        x[x > 3] = dt.asarray([0.5])
    np.testing.assert_array_equal(x.numpy(), N)
    x[[0]] = True
    assert x[0, 0, 0] == 1


WIDE = {"float64": 0.1, "complex128": 0.1 + 0.3j, "uint64": 2**63 + 5, "int64": 2**62 + 1}
SELECTIONS = {
    "one": lambda a: 1,
    "slice": lambda a: slice(1, 3),
    "mask": lambda a: a([False, True, True]),
    "places": lambda a: a([2, 1]),
}


@pytest.mark.parametrize("form", [lambda v: v, lambda v: [v, v]], ids=["number", "list"])
@pytest.mark.parametrize("key", SELECTIONS)
@pytest.mark.parametrize("dtype", WIDE)
def test_pythons_numbers_are_written_in_the_arrays_dtype(dtype, key, form):
    """Not rounded to the default dtype on the way, in a compiled function neither."""
    if (key == "one") == (form(0) != 0) or (dtype == "uint64" and form(0) != 0):
        pytest.skip("a list for one place, and a list of numbers beyond int64")

    def write(x, value):
        x[SELECTIONS[key](dt.asarray)] = form(value)
        return x

    expected = np.zeros(3, dtype)
    expected[SELECTIONS[key](np.asarray)] = form(WIDE[dtype])
    np.testing.assert_array_equal(write(dt.zeros((3,), dtype=dtype), WIDE[dtype]).numpy(), expected)
    if key != "mask" and dtype != "uint64":
        np.testing.assert_array_equal(dt.compile(write)(dt.zeros((3,), dtype=dtype), WIDE[dtype]).numpy(), expected)


def test_nothing_to_take():
    x = dt.zeros((0, 3))
    assert x[[]].shape == (0, 3) and x[dt.zeros(0, dtype="bool")].shape == (0, 3) and x[::-1].shape == (0, 3)
    with pytest.raises(IndexError, match="size 0"):
        x[[0]]
