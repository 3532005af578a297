"""GPUs' limits are enforced on every device: SYCL's CPU device would accept more."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import built, run

LOST, INTERNAL = 4, 5  # launches within the limits reach the device, which is lost


@pytest.fixture(scope="module")
def limits(tmp_path_factory) -> Path:
    return built(tmp_path_factory.mktemp("limits") / "limits", "launch.cpp")


@pytest.mark.parametrize(
    ("global_size", "local_size", "argument_bytes", "message"),
    [
        ([256], [256], 1024, None),
        ([8, 16, 64], [2, 4, 32], 8, None),
        ([512], [512], 8, "groups of 512"),
        ([8, 16, 64], [4, 4, 32], 8, "groups of 512"),
        ([100], [16], 8, "100 work items in groups of 16"),
        ([64, 9], [8, 2], 8, "9 work items in groups of 2"),
        ([0], [16], 8, "0 work items in groups of 16"),
        ([16], [0], 8, "16 work items in groups of 0"),
        ([16], [16], 1032, "1032 bytes of arguments"),
    ],
)
def test_a_launch_within_the_limits_alone_is_enqueued(limits, global_size, local_size, argument_bytes, message):
    text, status = run(limits, len(global_size), *global_size, *local_size, argument_bytes).stdout.splitlines()
    assert int(status) == (INTERNAL if message else LOST)
    assert (message or "lost") in text
