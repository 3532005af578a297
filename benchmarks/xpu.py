"""The XPU backend beside the CPU's: python benchmarks/xpu.py (SYCL's CPU device: DOVETAIL_XPU_ALLOW_CPU=1)

MiniLM at 8 x 128: milliseconds of time and of processor time per forward on both devices, medians of alternating
runs; the aim on SYCL's CPU device is 0.7 of dovetail-cpu's speed. Launch: microseconds to enqueue one small op.
First use: milliseconds in a fresh process, from no device to the first result.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import dovetail as dt
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "minilm"))

FIRST_USE = """
import time
import dovetail as dt
start = time.perf_counter()
x = dt.ones((4, 4), device={device!r})
(x + x)[0, 0].item()
print((time.perf_counter() - start) * 1e3)
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
    """Enqueuing alone: what is queued is waited for outside."""
    d, x = dt.device(device), dt.ones((256,), device=device)
    out, times = dt.negative(x), []
    for _ in range(20):
        d.synchronize()
        start = time.perf_counter()
        for _ in range(100):
            out = dt.negative(x)
        times.append((time.perf_counter() - start) * 1e4)
    del out
    return statistics.median(times)


def first_use_ms(device: str) -> float:
    times = []
    for _ in range(5):
        run = subprocess.run(
            [sys.executable, "-c", FIRST_USE.format(device=device)], capture_output=True, text=True, check=True
        )
        times.append(float(run.stdout))
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="xpu")
    parser.add_argument("--seconds", type=float, default=8.0, help="of MiniLM")
    options = parser.parse_args()
    if not any(d.name.startswith(f"{options.device}:") for d in dt.devices()):
        print(f"nothing measured: there is no device {options.device}, see `dovetail devices`")
        return
    for name in ("cpu", options.device):
        print(f"launch of negative(256 elements) on {name}: {launch_us(name):.1f} us")
        print(f"first use of {name}: {first_use_ms(name):.0f} ms")
    minilm(options.device, options.seconds)


if __name__ == "__main__":
    main()
