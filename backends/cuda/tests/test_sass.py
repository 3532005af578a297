"""The compiled code of the kernels that depend on it: its instructions, and that nothing is spilled. The build
refuses spills in all kernels; these tests check the rest.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cuda_programs import NVIDIA, run

SOURCES = Path(__file__).resolve().parent.parent / "src"
HEADERS = SOURCES.parents[2] / "core/include"
TOOLS = NVIDIA / "cu13" / "bin"
HOPPER = [f"flash_hopper_{dtype}_{size}" for dtype in ("f16", "bf16") for size in (64, 128)]


@pytest.fixture(scope="module")
def hopper(tmp_path_factory) -> tuple[str, dict[str, str]]:
    """ptxas' messages about attention_sm90a.cu, and the instructions of its kernels."""
    cubin = tmp_path_factory.mktemp("sass") / "attention.cubin"
    compiled = run(
        *(TOOLS / "nvcc", "-std=c++20", "-O3", "-fmad=false", "--expt-relaxed-constexpr", "-arch=sm_90a", "-cubin"),
        *("-Xptxas", "-v", f"-I{SOURCES}", f"-I{HEADERS}", "-o", cubin, SOURCES / "kernels/attention_sm90a.cu"),
        timeout=600,
    )
    functions = re.split(r"Function : (\w+)", run(TOOLS / "cuobjdump", "-sass", cubin).stdout)
    return compiled.stdout + compiled.stderr, dict(zip(functions[1::2], functions[2::2], strict=True))


def test_products_are_not_serialised(hopper):
    printed, _ = hopper
    assert not re.search(r"C75\d\d", printed), printed  # wgmma instructions that wait for each other


def test_nothing_is_spilled(hopper):
    printed, _ = hopper
    assert set(re.findall(r"(\d+) bytes spill", printed)) == {"0"}, printed


@pytest.mark.parametrize("kernel", HOPPER)
def test_instructions(hopper, kernel):
    """Asynchronous products, tile copies, and more registers for those that multiply."""
    code = hopper[1][kernel]
    for instruction in ("HGMMA.64x128x16.F32", "UTMALDG.4D", "SYNCS", "USETMAXREG"):
        assert instruction in code, instruction


@pytest.mark.parametrize("kernel", HOPPER)
def test_exponentials_hide_behind_products(hopper, kernel):
    """In the loops, where values are multiplied meanwhile, they come before the wait for those."""
    marks = re.findall(r"WARPGROUP\.DEPBAR\.LE gsb0, 0x[01]|MUFU\.EX2", hopper[1][kernel])
    loops = [i for i, mark in enumerate(marks) if mark.endswith("0x1")]
    assert len(loops) == 2, marks  # with hidden keys, and without
    for i in loops:
        between = marks[i + 1 : marks.index("WARPGROUP.DEPBAR.LE gsb0, 0x0", i + 1)]
        assert len(between) >= 64, between
