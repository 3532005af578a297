"""pytest --pyargs dovetail_conformance --dovetail-device acme: the suite's cases as pytest's own.

Every run of pytest imports this where the suite is installed: no NumPy and no Dovetail here, and nothing happens
unless the command line names the suite.
"""

from __future__ import annotations

import argparse

import pytest

SUITE = "dovetail_conformance"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dovetail", "Dovetail's conformance suite: pytest --pyargs dovetail_conformance")
    group.addoption("--dovetail-device", metavar="NAME", help="the device, as `dovetail devices` shows it")
    group.addoption(
        "--dovetail-level",
        choices=["L0", "L1", "L2", "L3"],
        default="L1",
        help="its cases and those below (default: L1)",
    )
    group.addoption("--dovetail-quick", action="store_true", help="fewer layouts and no slow checks")
    group.addoption("--dovetail-profile", metavar="NAME", help="the level in other dtypes")
    group.addoption("--dovetail-seed", type=number, default=0, metavar="N", help="seed of all inputs (default: 0)")
    group.addoption("--dovetail-timeout", type=seconds, metavar="SECONDS", help="for one case (default: 60)")
    group.addoption("--dovetail-api", default="dovetail", help=argparse.SUPPRESS)


def number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected 0 or more, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    from .cli import LONGEST_TIMEOUT  # not with this module: every run of pytest imports it

    if not 0 < (value := float(text)) <= LONGEST_TIMEOUT:
        raise argparse.ArgumentTypeError(f"expected more than 0 and at most {LONGEST_TIMEOUT:g}, got {text!r}")
    return value


def pytest_configure(config: pytest.Config) -> None:
    if not (config.option.pyargs and any(named(argument) for argument in config.args)):
        return
    if not config.option.dovetail_device:
        raise pytest.UsageError(
            f"{SUITE} tests a device: name it with --dovetail-device NAME; `dovetail devices` shows them"
        )
    from .running.under_pytest import Suite

    config.pluginmanager.register(Suite(config), SUITE + "_cases")


def named(argument: str) -> bool:
    """Is it the suite, or cases of it: dovetail_conformance::matmul, dovetail_conformance::add[f32,values]?"""
    return argument.partition("::")[0] in (SUITE, __name__)
