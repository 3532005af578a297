"""What GPUs refuse is refused on every device: SYCL's CPU device would take it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TESTS, SOURCES = ROOT / "backends/xpu/tests", ROOT / "backends/xpu/src"
LOST, INTERNAL = 4, 5  # what is within the limits comes as far as the device, which is lost


@pytest.fixture(scope="module")
def limits(tmp_path_factory) -> Path:
    """The program limits.cpp. Of the backend it has launch.cpp alone: nothing behind the limits is ever called."""
    program, prefix = tmp_path_factory.mktemp("limits") / "limits", Path(sys.prefix)
    command = ["c++", "-std=c++20", "-O0", "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING", f"-I{SOURCES}"]
    command += [f"-I{ROOT}/core/include", "-isystem", prefix / "include", "-o", program]
    command += [TESTS / "limits.cpp", SOURCES / "launch.cpp", prefix / "lib/libsycl.so"]
    command += ["-no-pie", "-Wl,--unresolved-symbols=ignore-all", f"-Wl,-rpath,{prefix}/lib"]
    built = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return program


@pytest.mark.parametrize(
    ("global_size", "local_size", "argument_bytes", "told"),
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
def test_a_launch_within_the_limits_alone_is_enqueued(limits, global_size, local_size, argument_bytes, told):
    words = [limits, len(global_size), *global_size, *local_size, argument_bytes]
    ended = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True)
    said, status = ended.stdout.splitlines()
    assert int(status) == (INTERNAL if told else LOST)
    assert (told or "lost") in said
