"""The CUDA backend compared with its peers: make bench-cuda, or python benchmarks/cuda.py [--only memory gemm]

Each part's own file documents what it measures, and against what. They run in processes of their own, one after the
other: what is switched for a whole process is not switched for the rest, and no part works in memory that another
has left. Only a GPU gives figures; without one `--tiny` runs the programs on the emulated driver.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cuda_timing

HERE = Path(__file__).parent
PARTS = {  # name: program, settings of its process
    "memory": ("cuda_memory.py", {}),
    "allocation": ("cuda_allocation.py", {}),
    "gemm": ("cuda_gemm.py", {"DOVETAIL_CUDA_ALLOW_TF32": "0"}),
    "tf32": ("cuda_gemm.py", {"DOVETAIL_CUDA_ALLOW_TF32": "1"}),
    "attention": ("cuda_attention.py", {}),
    "launch": ("cuda_launch.py", {}),
    # Packing is off while the host captures; this program captures without the runtime's knowledge.
    "replay": ("cuda_replay.py", {"DOVETAIL_PACKING": "0"}),
}


def header(bench: cuda_timing.Bench) -> str:
    printed = f"{bench.device.properties['name']}, {bench.device.properties['arch']}"
    if bench.torch:
        cudnn = bench.torch.backends.cudnn.version()
        printed += f"; torch {bench.torch.__version__}, CUDA {bench.torch.version.cuda}, cuDNN {cudnn}"
    return printed


def main() -> None:
    parser = cuda_timing.parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    print(header(cuda_timing.opened(options)), flush=True)
    failed = []
    for part in options.only:
        program, variables = PARTS[part]
        command = [sys.executable, HERE / program, "--device", options.device]
        command += ["--tiny"] if options.tiny else []
        print(f"-- {part}", flush=True)
        if subprocess.run(command, env=os.environ | variables, check=False).returncode:
            failed.append(part)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
