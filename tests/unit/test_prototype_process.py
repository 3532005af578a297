"""Devices written in Python in a process: discovery, threads and the GIL, fork, exit, kernels in C."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dispatch_kernel import float32_kernel
from dovetail.prototype import PythonDevice, kernel

ROOT = Path(__file__).parents[2]
SECONDS = 120  # seconds after which a process counts as hung; a loaded machine is slow

DEVICE = """
import dovetail as dt, numpy as np, os, sys, threading, time
from dovetail.prototype import PythonDevice, kernel

class Acme(PythonDevice):
    name = "acme"
    {members}

    @kernel("copy", "any")
    def copy(self, x, out):
        out.numpy()[...] = x.numpy()

    @kernel("add", "float32", alias=True)
    def add(self, x1, x2, out):
        {inside}
        np.add(x1.numpy(), x2.numpy(), out=out.numpy())
"""
LOADED = "\n(device,) = dt.load_backend(Acme)\nx = dt.asarray(np.arange(6, dtype=np.float32), device=device)\n"


def device_source(inside: str = "pass", members: str = "pass") -> str:
    return DEVICE.format(inside=inside, members=members)


def run(*command: object, **variables: str) -> subprocess.CompletedProcess:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("DOVETAIL_")}
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env=clean | {"DOVETAIL_BACKEND_AUTOLOAD": "0"} | variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def output(code: str, **variables: str) -> str:
    """The output of a process that must succeed with an empty standard error."""
    ended = run("-c", code, **variables)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr
    return ended.stdout


def found(**variables: str) -> dict:
    ended = run("-m", "dovetail", "devices", "--json", **variables)
    return json.loads(ended.stdout)


# ---- discovery ---------------------------------------------------------------------------------------------------


def test_a_file_on_the_path_is_a_backend(tmp_path):
    (file := tmp_path / "my_device.py").write_text(device_source())
    listed = found(DOVETAIL_BACKEND_PATH=str(file))
    assert [d["device"] for d in listed["devices"]] == ["acme:0"]
    assert listed["backends"][0]["library"] == str(file) and listed["backends"][0]["status"] == "ready"
    assert output(f"import dovetail as dt; print(dt.load_backend({str(file)!r}))").strip().endswith("('acme:0')]")


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("x = (", "raised SyntaxError"),
        ("import no_such_module_x", "raised ModuleNotFoundError: No module named 'no_such_module_x'"),
        ("raise SystemExit(1)", "raised SystemExit: 1"),
        ("from dovetail.prototype import PythonDevice", "declares none: expected one class derived from"),
        (device_source() + "\nclass Other(Acme): name = 'other'\n", "declares Acme, Other: expected one class"),
        (device_source(members="def __init__(self, i): raise OSError('no card')"), "raised OSError: no card"),
        (device_source(members="def alloc(self, a, b, c, d=1/0): ..."), "raised ZeroDivisionError"),
        (device_source().replace('"add", "f', '"ad", "f'), "there is no op 'ad', did you mean 'add'"),
    ],
)
def test_a_broken_file_is_quarantined_with_its_cause(tmp_path, source, cause):
    (bad := tmp_path / "bad.py").write_text(source)
    (good := tmp_path / "good.py").write_text(device_source().replace('"acme"', '"good"'))
    listed = found(DOVETAIL_BACKEND_PATH=f"{bad}{os.pathsep}{good}")
    status = {b["name"]: (b["status"], b["cause"]) for b in listed["backends"]}
    assert [d["device"] for d in listed["devices"]] == ["good:0"]
    (reason,) = [why for status, why in status.values() if status == "quarantined"]
    assert cause in reason


NARROW = f"""{device_source()}
(device,) = dt.load_backend(Acme)
x = dt.asarray(np.array([4.0, 9.0]), device=device)
for mode in "error", "allow":
    dt.fallback(mode)
    try:
        print(dt.sqrt(x).tolist())
    except NotImplementedError as error:
        print(str(error).partition("; ")[2])
"""


def test_fallback_opens_the_device_that_it_runs_on():
    """The error's cure works in a program that has used no other device."""
    cure = "dovetail.fallback('allow') runs it on another device of the host, .astype() changes the dtype"
    assert output(NARROW, DOVETAIL_BACKENDS="cpu", DOVETAIL_BACKEND_AUTOLOAD="1").splitlines() == [
        cure,
        "[2.0, 3.0]",
    ]
    alone = "no cpu device is installed that could run it, .astype() changes the dtype"
    assert output(NARROW).splitlines() == [cure, alone]


@pytest.mark.parametrize(("registered", "devices"), [("acme", ["acme:0"]), ("other", [])])
def test_an_entry_point_may_lead_to_a_class(tmp_path, registered, devices):
    (tmp_path / "acme_device.py").write_text(device_source())
    info = tmp_path / "dovetail_acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dovetail-acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[dovetail.backends]\n{registered} = acme_device:Acme\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    listed = found(PYTHONPATH=path, DOVETAIL_BACKENDS=registered, DOVETAIL_BACKEND_AUTOLOAD="1")
    assert [d["device"] for d in listed["devices"]] == devices
    (backend,) = [b for b in listed["backends"] if b["name"] == registered]
    assert backend["distribution"] == "dovetail-acme 1.0"
    if not devices:
        assert "registered as 'other' and calls itself 'acme'" in backend["cause"]


# ---- threads -----------------------------------------------------------------------------------------------------


MEANWHILE = """
# A kernel releases the GIL; meanwhile another thread changes the operand that it works on.
state = threading.local()
def meanwhile():
    if getattr(state, "main", False):
        go.set()
        done.wait(60)
Acme.meanwhile = staticmethod(meanwhile)
go, done, state.main = threading.Event(), threading.Event(), False
"""


@pytest.mark.parametrize(
    ("make", "change", "use", "expected"),
    [
        ("np.arange(6.0, dtype=np.float32)", "x[...] = 9.0", "(x + x).tolist()", [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
        ("np.arange(6.0, dtype=np.float32)", "x += 1.0", "(x + x).tolist()", [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
        ("np.arange(6.0, dtype=np.float32)", "x[...] = 9.0", "x[::2].copy().tolist()", [0.0, 2.0, 4.0]),
        ("np.array([True, False] * 3)", "x[...] = False", "dt.nonzero(x[::2])[0].tolist()", [0, 1, 2]),
    ],
)
def test_operands_keep_their_value_while_a_kernel_waits(make, change, use, expected):
    code = (
        device_source("self.meanwhile()").replace(
            "out.numpy()[...] = x.numpy()",
            "self.meanwhile()\n        \
out.numpy()[...] = x.numpy()",
        )
        + MEANWHILE
        + LOADED
        + f"""
x = dt.asarray({make}, device=device)
def other():
    global x
    go.wait(60)
    {change}
    done.set()
thread = threading.Thread(target=other)
thread.start()
state.main = True
print({use})
thread.join()
"""
    )
    assert json.loads(output(code)) == expected


HAMMER = """
from concurrent.futures import ThreadPoolExecutor
sys.setswitchinterval(1e-5)
big = dt.asarray(np.ones(200_000, np.float32), device=device)  # calls on it release the GIL

def work(i):
    until = time.monotonic() + 3
    n = 0
    while time.monotonic() < until:
        a = x + float(i)
        assert a.tolist() == [v + i for v in range(6)], a
        b = big + big
        assert float(b[i].item()) == 2.0
        if i == 0:
            dt.memory.empty_cache(device)
        if i == 1:
            assert (x[::2] + x[1::2]).numpy()[0] == 1.0
        try:
            x + dt.asarray(np.ones(5, np.float32), device=device)
        except ValueError as error:
            assert "(5,)" in str(error)
        n += 1
    return n

with ThreadPoolExecutor(6) as pool:
    print(min(pool.map(work, range(6))) > 0)
"""


def test_threads_take_turns():
    assert output(device_source("time.sleep(0)") + LOADED + HAMMER).strip() == "True"


def test_a_python_row_under_a_streams_lock_does_not_stop_the_others(tmp_path):
    """A kernel that needs the GIL runs while its stream's lock is held, and other threads wait for that lock."""
    compiler = shutil.which(os.environ.get("CXX", "c++")) or pytest.skip("needs a C++ compiler")
    library = tmp_path / "queue.so"
    source, include = ROOT / "tests/abi/queue.cpp", ROOT / "core/include"
    flags = ["-std=c++17", "-shared", "-fPIC", "-pthread", f"-I{include}"]
    subprocess.run([compiler, *flags, source, "-o", library], check=True)
    code = f"""
import sys, threading, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
import dovetail as dt, numpy as np
from dispatch_kernel import float32_kernel
(device,) = dt.load_backend({str(library)!r})
def compute(a, b):
    time.sleep(0.001)
    return a + b
dt._core.add_kernel(device.name, float32_kernel("dvt.add", 2, compute))
x = dt.asarray(np.ones(4, np.float32), device=device)
device.synchronize()
def work():
    for _ in range(100):
        x + x
        device.synchronize()
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(compute.calls)
"""
    assert output(code).strip() == "400"


# ---- fork and the end --------------------------------------------------------------------------------------------


def test_a_forked_child_goes_on():
    code = (
        device_source()
        + LOADED
        + """
child = os.fork()
y = (x + x).tolist()
if not child:
    os._exit(0 if y == [0, 2, 4, 6, 8, 10] else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), y[1])
"""
    )
    assert output(code).split() == ["0", "2.0"]


def test_device_memory_survives_a_fork_only_if_declared():
    own = "def alloc(self, size): from dovetail.prototype import HostMemory; return HostMemory(size)".split(": ", 1)
    body = f"{own[0]}:\n        {own[1].replace('; ', chr(10) + '        ')}"
    code = (
        device_source(members=body)
        + LOADED
        + """
child = os.fork()
if not child:
    try:
        x + x
    except RuntimeError as error:
        os._exit(7 if "forked" in str(error) else 1)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    )
    assert output(code).strip() == "7"
    assert output(code.replace('name = "acme"', 'name, fork_safe = "acme", True')).strip() == "0"


def test_arrays_may_outlive_everything():
    code = (
        device_source()
        + LOADED
        + """
import builtins
class Late:
    def __del__(self):
        try:
            self.x + self.x
        except RuntimeError as error:
            assert "the interpreter is ending" in str(error)
        del self.x
builtins.keep = [x + x, Late()]
builtins.keep[1].x = x + 1.0
cycle = [x + x]
cycle.append(cycle)
print("end")
"""
    )
    assert output(code).strip() == "end"


def test_close_comes_once_before_the_end():
    body = "def close(self):\n        print('closed', (np.ones(2) + 1).sum())"
    code = (
        device_source(members=body)
        + LOADED
        + """
import atexit
atexit.register(lambda: print((x + x).tolist()[1]))
"""
    )
    assert output(code).split() == ["2.0", "closed", "4.0"]


def test_a_daemon_thread_may_run_to_the_end():
    code = (
        device_source("time.sleep(1e-4)")
        + LOADED
        + """
def work():
    while True:
        x + x
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("end")
"""
    )
    for _ in range(3):
        assert output(code).strip() == "end"


# ---- from Python to C --------------------------------------------------------------------------------------------

ADD_IN_C = """
#include <dovetail/abi.h>
static dvt_status add(dvt_device* d, const dvt_call* c) {
  (void)d;
  const float *a = c->in[0]->data, *b = c->in[1]->data;
  float* out = c->out[0]->data;
  for (int64_t i = 0; i < c->out[0]->shape[0]; ++i) out[i] = a[i] + b[i] + 100;
  return DVT_OK;
}
static const dvt_operand operands[3] = {{{DVT_FLOAT, 32, 1}, 0, 0, 0}, {{DVT_FLOAT, 32, 1}, 0, 0, 0},
                                        {{DVT_FLOAT, 32, 1}, 0, 0, 0}};
DVT_EXPORT const dvt_kernel row;
const dvt_kernel row = {.struct_size = sizeof(dvt_kernel), .op_version = 1, .op = "dvt.add", .engine = "c",
                        .operands = operands, .n_in = 2, .n_out = 1, .run = add};
"""


class Moving(PythonDevice):
    name = "moving"

    @kernel("add", "float32 int64")
    def add(self, x1, x2, out):
        out.numpy()[...] = x1.numpy() + x2.numpy()


def test_a_kernel_moves_to_c(tmp_path):
    compiler = shutil.which(os.environ.get("CC", "cc")) or pytest.skip("needs a C compiler")
    (source := tmp_path / "add.c").write_text(ADD_IN_C)
    library, include = tmp_path / "add.so", ROOT / "core/include"
    subprocess.run([compiler, "-std=c11", "-shared", "-fPIC", f"-I{include}", source, "-o", library], check=True)
    (device,) = dt.load_backend(Moving)
    x = dt.asarray(np.arange(3, dtype=np.float32), device=device)
    assert (x + x).tolist() == [0, 2, 4]
    row = ctypes.c_char.in_dll(ctypes.CDLL(str(library)), "row")
    dt._core.add_kernel(device.name, ctypes.addressof(row))
    assert (x + x).tolist() == [100, 102, 104]
    i = dt.asarray([1, 2], device=device)
    assert (i + i).tolist() == [2, 4]  # ops without a C kernel still run in Python


def test_a_row_made_through_ctypes_is_taken_too():
    (device,) = dt.load_backend(Moving)

    def compute(a, b):
        return a - b

    dt._core.add_kernel(device.name, float32_kernel("dvt.add", 2, compute))
    x = dt.asarray(np.arange(3, dtype=np.float32), device=device)
    assert (x + x).tolist() == [0, 0, 0] and compute.calls == 1
