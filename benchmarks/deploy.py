"""Programs in C against onnxruntime, one thread each, in turns: python benchmarks/deploy.py NAME=SIZES MODEL...

    python benchmarks/deploy.py minilm.dvt:b=1,t=16 minilm.onnx:minilm.aot:b=1,t=16

Each argument is paths of one model, separated by colons, and the sizes of its inputs last: files .dvt and folders
of `dovetail build` run in benchmarks/deploy.c, .onnx files in onnxruntime. Prints of each the best and the median
time of a run, and of the C program the time to open and the peak memory after one run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dovetail

HERE = Path(__file__).parent
ROUNDS = 4


def compiled(folder: Path) -> Path:
    package = Path(dovetail.__file__).parent
    program = folder / "deploy"
    include = next(
        h for h in (package / "include", HERE.parent / "core/include") if (h / "dovetail/runtime.h").is_file()
    )
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O2", f"-I{include}", HERE / "deploy.c",
               package / "libdovetail.so", f"-Wl,-rpath,{package}", "-o", program]  # fmt: skip
    subprocess.run(command, check=True)
    return program


def in_c(
    program: Path, device: str, library: str, model: str, sizes: list[str], seconds: float
) -> dict[str, float]:
    trust = "1" if Path(model).is_dir() else "0"
    ended = subprocess.run(
        [program, device, library, model, trust, str(seconds), *sizes], capture_output=True, text=True, check=True,
        env={**os.environ, "DOVETAIL_NUM_THREADS": "1"},
    )  # fmt: skip
    return json.loads(ended.stdout)


def in_onnxruntime(model: str, sizes: dict[str, int], seconds: float) -> dict[str, float]:
    import numpy as np
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    begin = time.perf_counter()
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    opened = time.perf_counter() - begin
    kinds = {
        "tensor(float)": np.float32,
        "tensor(int64)": np.int64,
        "tensor(int32)": np.int32,
        "tensor(bool)": bool,
    }
    feed = {x.name: np.ones([n if isinstance(n, int) else sizes[n] for n in x.shape], kinds[x.type])
            for x in session.get_inputs()}  # fmt: skip
    session.run(None, feed)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - start)
    times.sort()
    return {"open_ms": opened * 1e3, "best_ms": times[0] * 1e3, "median_ms": times[len(times) // 2] * 1e3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--device", default="cpu:0")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    options = parser.parse_args()
    backend = options.device.partition(":")[0]
    library = importlib.import_module(f"dovetail_{backend}").backend.library
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        for argument in options.models:
            *paths, last = argument.split(":")
            sizes = dict(pair.split("=") for pair in filter(None, last.split(",")))
            best: dict[str, dict[str, float]] = {}
            for _ in range(ROUNDS):
                for path in paths:
                    if path.endswith(".onnx"):
                        got = in_onnxruntime(path, {k: int(v) for k, v in sizes.items()}, options.seconds)
                    else:
                        given = [f"{k}={v}" for k, v in sizes.items()]
                        got = in_c(program, options.device, library, path, given, options.seconds)
                    known = best.setdefault(path, got)
                    best[path] = {key: min(known[key], value) for key, value in got.items()}
            for path, figures in best.items():
                shown = ", ".join(f"{key} {value:.4g}" for key, value in figures.items())
                print(f"{Path(path).name:24} {shown}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
