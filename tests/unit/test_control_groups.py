"""The memory limit of a container, on a device that uses the host's memory.

A mount namespace of the program's own hides the machine's control groups behind a folder with the limit.
"""

import subprocess
import sys
import textwrap

import dovetail as dt
import pytest

MIB = 1 << 20
LIMIT, USED = 512 * MIB, 100 * MIB

needs_cpu = pytest.mark.skipif(
    "cpu" not in {d.backend for d in dt.devices()}, reason="dovetail-cpu is not installed"
)

# The files of both versions of control groups, at the path of this process's group in each mounted hierarchy.
HIDE = f"""
import os, subprocess, sys

with open("/proc/self/cgroup") as file:
    groups = dict(line.rstrip().split(":", 2)[1:] for line in file)
with open("/proc/self/mountinfo") as file:
    mounts = [(line.split(), line.split(" - ")[1].split()) for line in file]
files = {{
    "memory.limit_in_bytes": {LIMIT},
    "memory.usage_in_bytes": {USED},
    "memory.max": {LIMIT},
    "memory.current": {USED},
}}
found = False
for front, back in mounts:
    if back[0] == "cgroup2" or (back[0] == "cgroup" and "memory" in back[-1].split(",")):
        group = groups.get("" if back[0] == "cgroup2" else "memory", "/")
        group = "" if ".." in group else group.removeprefix(front[3].rstrip("/"))
        subprocess.run(["mount", "-t", "tmpfs", "none", front[4]], check=True)
        folder = front[4] + "/" + group.strip("/")
        os.makedirs(folder, exist_ok=True)
        for name, number in files.items():
            with open(folder + "/" + name, "w") as file:
                file.write(str(number) + "\\n")
        found = True
if not found:
    sys.exit(77)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""


def run(program):
    unshare = ["unshare", "--map-root-user", "--mount"]
    try:
        subprocess.run(
            [*unshare, "mount", "-t", "tmpfs", "none", "/sys/fs/cgroup"], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user cannot make a mount namespace")
    ended = subprocess.run(
        [*unshare, sys.executable, "-c", HIDE, textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if ended.returncode == 77:
        pytest.skip("no control groups are mounted")
    return ended


@needs_cpu
def test_memory_errors_come_before_the_limit():
    ended = run(f"""
        import dovetail as dt

        def empty(mib):
            return dt.empty(mib << 20, dtype="uint8", device="cpu")

        try:
            empty(600)
            raise AssertionError("more than the limit")
        except MemoryError as error:
            print(error)
        arrays = []
        try:
            while len(arrays) < 100:
                arrays.append(empty(32))
        except MemoryError:
            pass
        held = dt.memory.stats("cpu")["reserved"]
        assert {LIMIT} // 2 < held <= {LIMIT} - {LIMIT} // 64, held
        del arrays
        cached = dt.memory.stats("cpu")["cached"]
        assert cached <= {LIMIT} // 8 + (32 << 20), cached
        empty(32)
    """)
    assert ended.returncode == 0, ended.stderr
    assert "this process may use 512 MiB of host memory" in ended.stdout
