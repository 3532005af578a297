"""cuDNN's execution plans for GPUs that this machine lacks: our graphs, for devices that are described in JSON."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from cuda_devices import A100, B200, H200
from cuda_programs import NVIDIA, PROGRAMS, run

DEVICES = {"A100": A100, "H200": H200, "B200": B200}
# cuDNN takes half a minute to plan for one.
NAMES = [pytest.param(name, marks=pytest.mark.slow if name != "H200" else ()) for name in DEVICES]
MIB = 1 << 20
BACKWARD = 160 * MIB  # a float32 sum of dq, and a few more tensors

# Graphs, and the largest workspace that their plans may need: scores of 4096 x 4096 for 2 x 16 heads would be 1
# GiB.
ATTENTION = {
    "attention size=64 log_sum_exp": MIB,
    "attention size=64 backward": BACKWARD,
    "attention row_major type=f16 log_sum_exp": MIB,
    "attention causal log_sum_exp": MIB,
    "attention rows=16384 causal log_sum_exp": MIB,
    "attention backward": BACKWARD,
    "attention causal backward type=f16": BACKWARD,
    "attention size=192 log_sum_exp": MIB,
    "attention size=256 causal log_sum_exp": MIB,
    "attention size=72 rows=1003": MIB,
    "attention heads=32 kv_heads=8 causal log_sum_exp": MIB,
    "attention heads=32 kv_heads=8 causal backward": 3 * BACKWARD,
    "attention heads=32 kv_heads=8 rows=1 columns=4096": MIB,
    "attention rows=1 columns=16384": MIB,
    "attention lengths log_sum_exp": MIB,
    "attention ragged causal log_sum_exp": MIB,
    "attention ragged causal backward": BACKWARD,
    "attention bias bias_type=f32 log_sum_exp": MIB,
    "attention bias backward": BACKWARD,
    "attention causal bias log_sum_exp": MIB,
    "attention type=f16 bias bias_type=f16 size=64 rows=1003": MIB,
    "attention heads=32 kv_heads=8 causal bias bias_heads=1 log_sum_exp": MIB,
    "attention bias bias_heads=1 bias_rows=1 bias_type=f32": MIB,
    "attention dropout log_sum_exp": 80 * MIB,
    "attention dropout causal backward": BACKWARD,
    "attention causal backward deterministic": 1200 * MIB,
}
CONVOLUTION = {
    "convolution kernel=1 bias": 80 * MIB,
    "convolution bias": 80 * MIB,
    "convolution kernel=7 channels=3 outputs=64 side=224 step=2 bias": 80 * MIB,
    "convolution step=2 bias": 80 * MIB,
    "convolution dilation=2 padding=2 bias": 80 * MIB,
    "convolution groups=4 bias": 80 * MIB,
    "convolution groups=64 outputs=64 bias": 80 * MIB,
    "convolution bias tf32": 80 * MIB,
    "convolution bias type=f64": 80 * MIB,
    "convolution kernel=1 bias type=bf16": 80 * MIB,
    "convolution bias type=bf16": 80 * MIB,
    "convolution batch=2 channels=3 outputs=5 side=9 bias type=f16": MIB,
}
# Device, graph: cuDNN's error. Other rows serve such calls.
REFUSED = {
    ("A100", "attention size=256 backward"): "hidden_dim should be less than or equal to 128",
    ("H200", "attention size=100"): "hidden_dim should be multiple of 8",
    ("B200", "attention type=f32"): "",
}


class Plan(NamedTuple):
    workspace: int
    engine: str


@pytest.fixture(scope="session")
def driver(tmp_path_factory) -> Path:
    """A folder with a libcuda that finds no device, and loads any code that cuDNN has compiled."""
    folder = tmp_path_factory.mktemp("driver")
    header = (NVIDIA / "cu13/include/cuda.h").read_text("utf-8")
    names = set(re.findall(r"CUDAAPI\s+(cu\w+)\s*\(", header)) | set(
        re.findall(r"#define\s+cu\w+\s+(?:__CUDA_API_P?TS?Z?\()?(cu\w+)", header)
    )
    makes = re.compile(r"cu(Module|Library)Load|cu(Library|Module|Kernel)Get(Kernel|Function|Module)$")
    takes = re.compile(r"cu(Module|Library|Kernel|Func)")
    lines = ["static int there;"]
    for name in sorted(names):
        if makes.match(name):
            lines.append(f"int {name}(void** made) {{ *made = &there; return 0; }}")
        else:
            lines.append(f"int {name}(void) {{ return {0 if takes.match(name) else 100}; }}")  # no device
    (folder / "cuda.c").write_text("\n".join(lines), "utf-8")
    command = ["cc", "-shared", "-fPIC", "-w", "-Wl,-soname,libcuda.so.1", "-o", folder / "libcuda.so.1"]
    subprocess.run([*command, folder / "cuda.c"], check=True)
    return folder


@pytest.fixture(scope="session")
def plans(driver) -> Callable[[str], dict[str, Plan | str]]:
    """For a device's name: a plan, or the reason why there is none, for each graph."""

    @cache
    def plans(name: str) -> dict[str, Plan | str]:
        device = DEVICES[name]
        graphs = [*ATTENTION, *CONVOLUTION, *(graph for on, graph in REFUSED if on == name)]
        ended = run(
            *(PROGRAMS / "cudnn_plans", str(device["deviceVer"] // 10), json.dumps(device)),
            input="\n".join(graphs),
            timeout=600,
            DOVETAIL_CUDA_LIBS=str(NVIDIA),
            LD_LIBRARY_PATH=str(driver),
        )
        answers = [line.split(" ", 2) for line in ended.stdout.splitlines()]
        assert len(answers) == len(graphs), ended.stderr
        return {
            graph: Plan(int(answer[1]), answer[2]) if answer[0] == "plan" else " ".join(answer[1:])
            for graph, answer in zip(graphs, answers, strict=True)
        }

    return plans


@pytest.mark.parametrize("name", NAMES)
def test_every_graph_has_a_plan(plans, name):
    for graph, most in {**ATTENTION, **CONVOLUTION}.items():
        plan = plans(name)[graph]
        assert isinstance(plan, Plan), (graph, plan)
        assert re.match(r"eng\d+", plan.engine), (graph, plan)
        assert plan.workspace <= most, (graph, plan)


@pytest.mark.parametrize("name", NAMES)
def test_what_cudnn_does_not_support_says_why(plans, name):
    for on, graph in REFUSED:
        if on == name:
            refusal = plans(name)[graph]
            assert isinstance(refusal, str) and REFUSED[on, graph] in refusal and refusal, (graph, refusal)


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_not_computed_as_tf32_unless_that_is_allowed(plans, name):
    exact, fast = (plans(name)[f"convolution bias{more}"] for more in ("", " tf32"))
    assert exact.engine.partition("_")[0] != fast.engine.partition("_")[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_deterministic_gradient_has_another_plan(plans, name):
    known = plans(name)
    assert known["attention causal backward deterministic"] != known["attention backward"]
