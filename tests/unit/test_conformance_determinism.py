"""Determinism cases on the fake device: varying results are found, undeclared determinism is not tested."""

from pathlib import Path

import numpy as np
import pytest
from dovetail_conformance.cases import find
from dovetail_conformance.cases.determinism import _first_difference
from dovetail_conformance.results import Status
from dovetail_conformance.running.target import Target

FAKE = Path(__file__).parent / "conformance_fake"


@pytest.fixture
def ask(monkeypatch):
    monkeypatch.syspath_prepend(FAKE)
    import fake_dovetail

    def asked(fault, id):
        monkeypatch.setattr(fake_dovetail, "_fault", fault)
        monkeypatch.setattr(fake_dovetail, "_culprit", id.partition("[")[0])
        monkeypatch.setattr(fake_dovetail, "_calls", [0, 0])
        outcome = find(id).run(Target("fake", "fake_dovetail"), 0)
        assert fake_dovetail._threads == [2]
        return outcome

    return asked


def test_a_steady_device_passes(ask):
    assert ask("", "multiply[f32,determinism]") == (Status.PASS, "", {})


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("unsteady", "when it was called again"),
        ("threads", "on 1 of the host"),
        ("together", "calls were under way"),
    ],
)
def test_a_nondeterministic_device_is_found(ask, fault, expected):
    status, message, _ = ask(fault, "multiply[f32,determinism]")
    assert status is Status.FAIL and expected in message and "1 of 65536 elements; at (65535,)" in message


def test_undeclared_determinism_is_not_tested(ask):
    for id in ("matmul[f32,determinism]", "multiply[f64,determinism]"):
        assert ask("unsteady", id) == (Status.PASS, "not declared deterministic", {})


def test_the_first_difference_is_of_bits():
    a = np.array([[0.0, 1.0], [np.nan, 2.0]], np.float32)
    assert _first_difference([a], [a.copy()]) == ""
    b = a.copy()
    b[0, 0] = -0.0
    assert _first_difference([a], [b]) == "1 of 4 elements; at (0, 0): 0.0, then -0.0"
    assert "float64" in _first_difference([a], [a.astype(np.float64)])
    assert (
        _first_difference([np.float32(1)[()].reshape(())], [np.array(2, np.float32)])
        == "1 of 1 elements; 1.0, then 2.0"
    )
