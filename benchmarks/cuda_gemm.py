"""Square products of matrices against cuBLASLt called directly, and torch's: cuda.py runs it.

float32 in TF32 is a switch of the whole process (DOVETAIL_CUDA_ALLOW_TF32): with it that alone is measured.
"""

from __future__ import annotations

import os

import cuda_timing
import dovetail as dt
import numpy as np
from cuda_direct import Direct
from cuda_timing import Aim, Bench, medians

OF_CUBLASLT = Aim(0.97)
CALLS = 5
TYPES = {"bf16": dt.bfloat16, "f16": dt.float16, "f32": dt.float32, "tf32": dt.float32}


def assert_same_product(ours: dt.Array, theirs: dt.Array) -> None:
    """Check one corner: all peers must time the same problem."""
    here, there = (dt.astype(x[:64, :64], dt.float32).numpy() for x in (ours, theirs))
    np.testing.assert_allclose(here, there, rtol=0.02, atol=0.02 * np.abs(there).max())


def measure(bench: Bench, kind: str, n: int, direct: Direct | None) -> None:
    a, b = (dt.astype(dt.random.normal((n, n)), TYPES[kind]) for _ in range(2))
    samplers = [lambda: bench.time(lambda: a @ b, CALLS)]
    if direct:
        c = dt.empty((n, n), dtype=a.dtype)
        plan = direct.gemm(kind, a, b, c)
        x, y = bench.shared(a), bench.shared(b)
        samplers += [lambda: plan.time(CALLS), lambda: bench.time_torch(lambda: x @ y, CALLS)]
    seconds = medians(bench, *samplers)
    printed, figure = f"{2e-12 * n**3 / seconds[0]:.0f} TFLOP/s", None
    if direct:
        assert_same_product(a @ b, c)
        plan.close()
        figure = seconds[1] / seconds[0]
        cublaslt, torch = (2e-12 * n**3 / t for t in seconds[1:])
        printed += f"; cuBLASLt {cublaslt:.0f}, torch {torch:.0f}: {figure:.3f} of cuBLASLt"
    bench.line(f"GEMM {kind}, {n} cubed", printed, figure, OF_CUBLASLT)


def main() -> None:
    bench = cuda_timing.opened(cuda_timing.parser(__doc__).parse_args())
    allows_tf32 = os.environ.get("DOVETAIL_CUDA_ALLOW_TF32", "0") not in ("", "0")
    direct = None
    if bench.torch:
        direct = Direct()
        bench.torch.set_float32_matmul_precision("high" if allows_tf32 else "highest")
    for kind in ("tf32",) if allows_tf32 else ("bf16", "f16", "f32"):
        measure(bench, kind, bench.choose(8192, 32), direct)


if __name__ == "__main__":
    main()
