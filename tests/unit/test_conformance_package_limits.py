"""Packages that are made to cost time and memory: each is refused early."""

import subprocess
import sys

import pytest
from conformance_packages import assembled, made
from dovetail_conformance.submission import archive

HEADROOM = 500 << 20  # bytes for one package, above what the imports take
MILLION = 1_000_000


def zeros(n):
    return b'{"cases": [' + b"0," * n + b"0]}"


def objects(n):
    return b'{"cases": [' + b"{}," * n + b"{}]}"


def keys(n):
    return b"{" + b",".join(b'"%07d":0' % i for i in range(n)) + b"}"


HOSTILE = {
    "dotted key": ("statement.toml", lambda: b".".join([b"a"] * 50_000) + b" = 1\n", "first line"),
    "deep submitter": ("statement.toml", lambda: b"submitter = " + b"[" * 900_000, "first line"),
    "zeros": ("results.json", lambda: zeros(15 * MILLION), "15,000,000 values"),
    "objects": ("results.json", lambda: objects(5 * MILLION), "lists and objects"),
    "keys within the bounds": ("results.json", lambda: keys(600_000), "malformed"),
    "depth": ("results.json", lambda: b"[" * 400_000, "cannot be read"),
    "lines": ("log.txt", lambda: b"\n" * (7 << 20), "does not end with the level"),
    "wheels": ("wheels.json", lambda: b'{"wheels": [' + b"{}," * 450_000 + b"{}]}", "malformed"),
}

_VERIFY = """
import resource, sys
from pathlib import Path
from dovetail_conformance.submission import Refused
from dovetail_conformance.submission.verify import verify

verify_once = lambda path: print(verify(Path(path)).sha256)
try:
    verify_once(sys.argv[2])  # a genuine one first: it loads everything that is loaded on the way
except Refused as why:
    sys.exit(f"the genuine one was refused: {why}")
used = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmSize:"))
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]), resource.RLIM_INFINITY))
for path in sys.argv[3:]:
    try:
        verify_once(path)
    except Refused as why:
        print(why)
    except MemoryError:
        print("took more memory than there is")
"""


@pytest.fixture(scope="module")
def genuine():
    return assembled(made())


def test_hostile_packages_are_refused_within_little_memory(tmp_path, genuine):
    (tmp_path / "genuine.tgz").write_bytes(genuine)
    for name, (member, content, _) in HOSTILE.items():
        found, mtime = archive.unpack(genuine)
        (tmp_path / f"{name}.tgz").write_bytes(archive.pack(found | {member: content()}, mtime))
    paths = [str(tmp_path / f"{name}.tgz") for name in ("genuine", *HOSTILE)]
    command = [sys.executable, "-c", _VERIFY, str(HEADROOM), *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, *answers = done.stdout.splitlines()
    assert len(answers) == len(HOSTILE), done.stdout
    for (name, (_, _, expected)), answer in zip(HOSTILE.items(), answers):
        assert expected in answer, (name, answer)
