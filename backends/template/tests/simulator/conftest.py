"""Tests of the simulated hardware: delete this folder together with src/driver.* and src/settings.cpp.

Each test is a program in a process of its own, whose environment sets what the hardware does."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2]
PROJECT = tomllib.loads(FOLDER.joinpath("pyproject.toml").read_text())["project"]
(NAME,) = PROJECT["entry-points"]["dovetail.backends"]
collect_ignore_glob = [] if FOLDER.joinpath("src/settings.cpp").exists() else ["test_*.py"]

PRELUDE = f"""
import ctypes, numpy as np, os, threading, time, dovetail as dt
from dovetail import memory
NAME = {NAME!r}
first, second = dt.device(NAME + ":0"), dt.device(NAME + ":1")
dt.set_default_device(first)
dt.fallback("error")

def raises(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"expected {{kind.__name__}}")

def equal(array, expected):
    np.testing.assert_array_equal(array.numpy(), np.asarray(expected, array.numpy().dtype))
"""


@pytest.fixture
def name() -> str:
    return NAME


@pytest.fixture
def python() -> Callable[..., subprocess.CompletedProcess]:
    """python(code, FAULT="oom:5") runs code with DOVETAIL_SIM_FAULT=oom:5; with check it must succeed."""

    def run(code: str, *, check: bool = True, **settings: object) -> subprocess.CompletedProcess:
        variables = {f"DOVETAIL_{NAME.upper()}_{key}": str(value) for key, value in settings.items()}
        environment = os.environ | {"DOVETAIL_POISON_CALLS": "1"} | variables
        ended = subprocess.run(
            [sys.executable, "-c", PRELUDE + code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not check or ended.returncode == 0, ended.stdout + ended.stderr
        return ended

    return run
