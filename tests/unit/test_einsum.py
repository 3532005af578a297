"""einsum against NumPy's."""

import sys

import dovetail as dt
import numpy as np
import pytest

rng = np.random.default_rng(0)
CASES = (
    ("ij,jk", (3, 4), (4, 5)),
    ("ij,jk->ki", (3, 4), (4, 5)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("iij->j", (3, 3, 4)),
    ("iii->i", (3, 3, 3)),
    ("ijk->", (3, 4, 5)),
    ("ba", (3, 4)),
    ("i,i", (3,), (3,)),
    ("i,j->ij", (3,), (4,)),
    ("ij,ij->i", (3, 4), (3, 4)),
    ("ij,k->k", (3, 4), (5,)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 5)),
    ("i...,...i->...", (3, 4), (4, 3)),
    ("...,...", (2, 3), (3,)),
    ("...i->...", (2, 3, 4)),
    (",ij", (), (3, 4)),
    ("ij,jk", (3, 1), (4, 5)),
    ("ij,jk", (3, 0), (0, 5)),
    ("aab,bcc->ac", (2, 2, 3), (3, 4, 4)),
    ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5)),
    ("ab,bc,cd,da", (2, 3), (3, 4), (4, 5), (5, 2)),
    ("abc,acd,ab->bd", (2, 3, 4), (2, 4, 5), (2, 3)),
    ("ijk,ljm,nkm->iln", (2, 3, 4), (5, 3, 6), (7, 4, 6)),
)


def values(shape, dtype):
    return (rng.normal(size=shape) * 3).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_as_numpy(case, dtype):
    text, *shapes = case
    host = [values(shape, dtype) for shape in shapes]
    want = np.einsum(text, *host)
    paths = [True, False] + ([np.einsum_path(text, *host)[0]] if len(host) > 2 else [])
    for optimize in paths:
        got = dt.einsum(text, *map(dt.asarray, host), optimize=optimize)
        assert got.shape == want.shape and got.dtype == dtype
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)


def test_lists_of_axes_and_bool():
    a, b = values((3, 4), "float32"), values((4, 5), "float32")
    x, y = dt.asarray(a), dt.asarray(b)
    np.testing.assert_allclose(dt.einsum(x, [0, 1], y, [1, 2], [2, 0]).numpy(), (a @ b).T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(dt.einsum(x, [0, 1], y, [1, 2]).numpy(), a @ b, rtol=1e-5, atol=1e-5)
    assert np.array_equal(dt.einsum(x, [Ellipsis, 1]).numpy(), a)
    got = dt.einsum("ij,jk", x > 0, y > 0)
    assert got.dtype == "bool" and np.array_equal(got.numpy(), np.einsum("ij,jk", a > 0, b > 0))


def test_mistakes_are_explained():
    x = dt.zeros((3, 4))
    for text, count, match in (
        ("ij,jk", 2, "'j' stands for sizes 4 and 3"),
        ("ij", 2, "got 2 arrays, expected 1"),
        ("i", 1, r"got 'i' for operand 0 of shape \(3, 4\), expected 2 letters"),
        ("i1", 1, "got '1', expected letters"),
        ("ij->ii", 1, "each letter of the result once"),
        ("ij->k", 1, "k of the result is in no operand"),
        ("ii", 1, "expected axes of one size"),
        ("", 0, "one array at least"),
    ):
        with pytest.raises(ValueError, match=match):
            dt.einsum(text, *[x] * count)
    with pytest.raises(ValueError, match="no path that joins 3 operands"):
        dt.einsum("ij,ij,ij", x, x, x, optimize=[(0, 1)])


def test_opt_einsum_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "opt_einsum", None)
    x = dt.asarray(values((3, 3), "float32"))
    assert dt.einsum("ij,jk,kl", x, x, x).shape == (3, 3)
    with pytest.raises(ImportError, match="pip install opt_einsum"):
        dt.einsum("ij,jk,kl", x, x, x, optimize="greedy")


def test_opt_einsum_finds_the_order(monkeypatch):
    library = pytest.importorskip("opt_einsum")
    found = []
    ask = library.contract_path
    monkeypatch.setattr(library, "contract_path", lambda *a, **k: found.append(ask(*a, **k)) or found[-1])
    host = [values(shape, "float32") for shape in ((50, 2), (2, 50), (50, 1))]
    got = dt.einsum("ab,bc,cd->ad", *map(dt.asarray, host))
    np.testing.assert_allclose(got.numpy(), host[0] @ host[1] @ host[2], rtol=1e-4, atol=1e-4)
    assert found[0][0] == [(1, 2), (0, 1)]
