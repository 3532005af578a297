"""The table of torch's names: its right side exists, and with torch installed its left side leaves no name out."""

from __future__ import annotations

import re
from pathlib import Path

import dovetail as dt
import pytest

PAGE = Path(__file__).parents[2] / "docs/torch_names.md"
ROWS = [re.split(r" \| ", line.strip("| ")) for line in PAGE.read_text().splitlines() if line.startswith("| `")]
SPACES = (dt, dt.nn, dt.linalg, dt.random, dt.fft)


def names(text):
    return re.findall(r"`(\w+)`", text)


def test_what_stands_for_torchs_names_exists():
    named = {name for _, right in ROWS for name in re.findall(r"\b(dt|nn)((?:\.\w+)+)", right)}
    assert len(named) > 60
    for space, path in sorted(named):
        found = dt if space == "dt" else dt.nn
        for part in path[1:].split("."):
            assert hasattr(found, part), f"{space}{path}"
            found = getattr(found, part)


def test_no_name_is_in_the_table_that_we_have_too():
    ours = {name for space in (dt, dt.nn) for name in dir(space)}
    assert not [name for left, _ in ROWS for name in names(left) if name in ours]


def expect_none_left(torchs, ours):
    listed = {name for left, _ in ROWS for name in names(left)}
    assert not sorted(set(torchs) - listed - {name for space in ours for name in dir(space)})


def test_every_function_of_torch_nn_is_ours_or_in_the_table():
    functional = pytest.importorskip("torch", reason="torch is not installed").nn.functional
    found = {
        name
        for name in dir(functional)
        if name.islower() and not name.startswith("_") and not name.endswith("_")
        if callable(getattr(functional, name)) and "torch_function" not in name
    }
    assert len(found) > 100
    expect_none_left(found - {"boolean_dispatch", "assert_int_or_pair"}, (dt, dt.nn))


def test_every_core_op_of_aten_is_ours_or_in_the_table():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    core = set()
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        overloads = packet.overloads() if hasattr(packet, "overloads") else []
        if any(torch.Tag.core in getattr(packet, overload).tags for overload in overloads):
            core.add(name)
    assert len(core) > 100
    expect_none_left(core, SPACES)
