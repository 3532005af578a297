"""The XPU backend compared with the CPU's: python benchmarks/xpu.py (SYCL's CPU device: DOVETAIL_XPU_ALLOW_CPU=1)

MiniLM at 8 x 128: milliseconds of time and of processor time per forward on both devices, medians of alternating
runs; the aim on SYCL's CPU device is 0.7 of dovetail-cpu's speed. Launch: microseconds to enqueue one small op, and
what of it is the plugin's and SYCL's (xpu_launch.cpp). First use: milliseconds in a fresh process, from no device
to the first result. Overlap: milliseconds that a copy from pinned memory and kernels take at once, on two streams,
by the device's own clock.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import dovetail as dt
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples" / "minilm"))

FIRST_USE = """
import time
import dovetail as dt
times = [time.perf_counter()]
dt.device({device!r})
times.append(time.perf_counter())
x = dt.ones((4, 4), device={device!r})
(x + x)[0, 0].item()
times.append(time.perf_counter())
print(*(1e3 * (t - times[0]) for t in times[1:]))
"""


def forward(device: str):
    from model import MiniLM

    model = MiniLM(device)
    rng = np.random.default_rng(0)
    ids = dt.asarray(rng.integers(0, 30000, (8, 128)), device=device)
    mask = dt.asarray(np.ones((8, 128), np.int64), device=device)

    def call() -> dt.Array:
        y = model.embed(ids, mask)
        model.device.synchronize()
        return y

    return call


def minilm(device: str, seconds: float) -> None:
    calls = {name: forward(name) for name in ("cpu", device)}
    first, second = (call().numpy() for call in calls.values())
    np.testing.assert_allclose(first, second, atol=1e-5)
    wall: dict[str, list[float]] = {name: [] for name in calls}
    processor: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(wall["cpu"]) < 5:
        for name, call in calls.items():
            start, used = time.perf_counter(), time.process_time()
            call()
            wall[name].append((time.perf_counter() - start) * 1e3)
            processor[name].append((time.process_time() - used) * 1e3)
    for what, times in (("time", wall), ("processor time", processor)):
        cpu, xpu = (statistics.median(t) for t in times.values())
        print(f"MiniLM 8 x 128, {what}: cpu {cpu:.1f} ms, {device} {xpu:.1f} ms: {cpu / xpu:.2f} of its speed")


def launch_us(device: str) -> float:
    """The time to enqueue only: the wait is outside."""
    d, x = dt.device(device), dt.ones((256,), device=device)
    out, times = dt.floor(x), []
    for _ in range(20):
        d.synchronize()
        start = time.perf_counter()
        for _ in range(100):
            out = dt.floor(x)
        times.append((time.perf_counter() - start) * 1e4)
    del out
    return statistics.median(times)


def plugin() -> Path:
    """The loaded file, whether installed or from DOVETAIL_BACKEND_PATH."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    return next(Path(line.split()[-1]) for line in maps if line.endswith("/libdovetail_xpu.so"))


def launch_parts_us() -> tuple[float, float]:
    """Times of the plugin's row, and of SYCL alone: no Python, no dispatch."""
    sys.path.insert(0, str(ROOT / "backends/xpu/tests"))
    from test_spirv import found

    with tempfile.TemporaryDirectory() as folder:
        spirv, program, prefix = Path(folder, "floor.spv"), Path(folder, "xpu_launch"), Path(sys.prefix)
        spirv.write_bytes(next(m.code for m in found(plugin().read_bytes()) if m.kernel == "floor_f32"))
        command = ["c++", "-std=c++20", "-O2", "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING", "-o", program]
        command += ["-isystem", prefix / "include", f"-I{ROOT}/core/include", f"-I{ROOT}/backends/xpu/src"]
        command += [ROOT / "benchmarks/xpu_launch.cpp", prefix / "lib/libsycl.so", "-ldl"]
        command += ["-Wl,--disable-new-dtags", f"-Wl,-rpath,{prefix}/lib"]
        subprocess.run(list(map(str, command)), check=True)
        ended = subprocess.run([program, plugin(), spirv], stdout=subprocess.PIPE, text=True, check=True)
    of_plugin, of_sycl = map(float, ended.stdout.split())
    return of_plugin, of_sycl


def first_use_ms(device: str) -> tuple[float, float]:
    """Times until the device is open, and until there is a result."""
    times = []
    for _ in range(5):
        run = subprocess.run(
            [sys.executable, "-c", FIRST_USE.format(device=device)], capture_output=True, text=True, check=True
        )
        times.append([float(word) for word in run.stdout.split()])
    return statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)


def overlap_ms(device: str) -> tuple[float, float, float]:
    """A copy alone, kernels alone, and both at once on streams of their own: medians, by the device's events."""
    from dovetail_conformance.device_checks.table import PINNED, Table

    d = dt.device(device)
    own, n = Table(types.SimpleNamespace(api=dt, device=d)), 1 << 28
    pinned, target, x = own.alloc(n, kind=PINNED), own.alloc(n), dt.ones((1 << 22,), device=device)
    copying, computing = dt.Stream(d), dt.Stream(d)

    def copy() -> None:
        for _ in range(3):
            own.copy(target, own.at_host(pinned, n), n, dt._core.stream_handle(copying))

    def compute() -> None:
        with computing:
            y = x
            for _ in range(12):
                y = dt.exp(y * 0.5)

    def span(*works) -> float:
        d.synchronize()
        events = [[dt.Event(d, timing=True) for _ in range(2)] for _ in (copying, computing)]
        for stream, (first, _) in zip((copying, computing), events, strict=True):
            first.record(stream)
        for work in works:
            work()
        for stream, (_, last) in zip((copying, computing), events, strict=True):
            last.record(stream)
        d.synchronize()
        return max(first.elapsed_ns(last) * 1e-6 for first, _ in events for _, last in events)

    for work in (copy, compute):
        work()
    parts = [(copy,), (compute,), (copy, compute)]
    rounds = [[span(*works) for works in parts] for _ in range(5)]
    alone, other, both = (statistics.median(r[i] for r in rounds) for i in range(3))
    own.close()
    return alone, other, both


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="xpu")
    parser.add_argument("--seconds", type=float, default=8.0, help="of MiniLM")
    options = parser.parse_args()
    if not any(d.name.startswith(f"{options.device}:") for d in dt.devices()):
        print(f"nothing measured: there is no device {options.device}, see `dovetail devices`")
        return
    for name in ("cpu", options.device):
        print(f"launch of floor(256 elements) on {name}: {launch_us(name):.1f} us")
        opened, result = first_use_ms(name)
        print(f"first use of {name}: {opened:.0f} ms until it is open, {result:.0f} ms until there is a result")
    of_plugin, of_sycl = launch_parts_us()
    print(f"launch of one kernel: {of_plugin:.1f} us by the plugin's row, {of_sycl:.1f} us by SYCL alone")
    copy, compute, both = overlap_ms(options.device)
    print(f"copy {copy:.0f} ms, kernels {compute:.0f} ms; on two streams at once {both:.0f} ms")
    minilm(options.device, options.seconds)


if __name__ == "__main__":
    main()
