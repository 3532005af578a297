"""Compiled networks against eager ones: CPU time of a call, and what the first calls cost.

    python benchmarks/compile_networks.py [--device cpu] [--dtype float32] [network ...]

Times are the process's CPU time per call, least of several rounds in which eager and compiled calls take turns, in
microseconds. `first`: the call that traces and compiles. `error`: the root mean square of the compiled network's
errors against the same network in float64, for several random ones, over that of eager's; the aim is 1.1. `peak`:
the memory that a call takes at most, eager and compiled, beside what is there before, in KiB.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from networks import NETWORKS, Network

SEEDS = 64


def leaves(x: Any) -> list[dt.Array]:
    return [x] if isinstance(x, dt.Array) else [leaf for part in x for leaf in leaves(part)]


def wide(x: Any) -> Any:
    if isinstance(x, dt.Array):
        return dt.astype(x, dt.float64) if dt.isdtype(x.dtype, "real floating") else x
    return type(x)(wide(part) for part in x)


def values(x: Any) -> list[np.ndarray]:
    return [np.asarray(dt.astype(leaf, dt.float64)) for leaf in leaves(x)]


def wide_network(network: Network) -> Network:
    """The same weights, in float64."""
    made = object.__new__(type(network))
    for name, value in vars(network).items():
        setattr(made, name, wide_part(value))
    return made


def wide_part(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: wide_part(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(wide_part(part) for part in value)
    return wide(value) if isinstance(value, dt.Array) else value


def mean_square(got: Any, expected: list[np.ndarray]) -> float:
    return float(
        np.mean([np.mean((a - b) ** 2) / np.mean(b**2) for a, b in zip(values(got), expected, strict=True)])
    )


def microseconds(call: Callable[[], Any], device: dt.Device, calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        call()
    device.synchronize()
    return 1e6 * (time.process_time() - begin) / calls


def peak(call: Callable[[], Any], device: dt.Device) -> float:
    call()
    device.synchronize()
    before = dt.memory.stats(device)["in_use"]
    dt.memory.reset_peak(device)
    kept = call()
    device.synchronize()
    del kept
    return (dt.memory.stats(device)["peak"] - before) / 1024


def error_ratio(kind: type[Network], device: str, dtype: dt.DType) -> float:
    compiled = eager = 1e-60
    for seed in range(SEEDS):
        network = kind(device, dtype, seed)
        inputs = network.inputs()
        oracle = values(wide_network(network)(*wide(inputs)))
        compiled += mean_square(dt.compile(network)(*inputs), oracle)
        eager += mean_square(network(*inputs), oracle)
    return float(np.sqrt(compiled / eager))


def row(network: Network, rounds: int) -> str:
    inputs, device = network.inputs(), network.device
    compiled = dt.compile(network)
    begin = time.process_time()
    compiled(*inputs)
    first = 1e6 * (time.process_time() - begin)
    calls = max(1, int(2e4 / max(microseconds(lambda: network(*inputs), device, 3), 1.0)))
    eager = ours = float("inf")
    for _ in range(rounds):
        eager = min(eager, microseconds(lambda: network(*inputs), device, calls))
        ours = min(ours, microseconds(lambda: compiled(*inputs), device, calls))
    ratio = error_ratio(type(network), device.name, network.dtype)
    peaks = "".join(f"{peak(lambda f=f: f(*inputs), device):9.0f}" for f in (network, compiled))
    return (
        f"{type(network).__name__:<16}{eager:10.1f}{ours:10.1f}{eager / ours:8.2f}{first:10.0f}{ratio:8.2f}{peaks}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("networks", nargs="*")
    options = parser.parse_args()
    device = dt.device(options.device)
    print(
        f"{'us on ' + device.name:<16}{'eager':>10}{'compiled':>10}{'ratio':>8}{'first':>10}{'error':>8}{'peak':>9}"
    )
    for kind in NETWORKS:
        if not options.networks or kind.__name__ in options.networks:
            print(row(kind(device, getattr(dt, options.dtype)), options.rounds))


if __name__ == "__main__":
    main()
