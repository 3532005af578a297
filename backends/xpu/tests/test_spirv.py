"""Intel's compiler for GPUs accepts the kernels' SPIR-V, which can be tested without a GPU. acm-g10 (Arc) has no
float64, pvc (Data Center GPU Max) has; ocloc is in Debian's intel-opencl-icd.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from programs import ON_CPU, python

MAGIC = struct.pack("<I", 0x07230203)
CAPABILITY, ENTRY_POINT, FUNCTION, FUNCTION_END, FLOAT64 = 17, 15, 54, 56, 10  # SPIR-V specification, 3.3 and 3.52
# Kernels that must not spill: those in which a model spends its time, and those that once spilled.
FITTING = re.compile(
    r"(add|multiply|divide|maximum|exp|gelu|where_x|take_x|copy_x|sum|max|softmax|layer_norm|attention).*_?(f16|bf16|f32|x16|x32)(_\d+)?"
    r"|(matmul|argmax|argmin|cumulative_sum|cumulative_prod)_.*"
)
# The options that src/modules.cpp passes to a driver, in OpenCL's and Level Zero's syntax.
OPTIONS = {
    "cl": "-cl-fp32-correctly-rounded-divide-sqrt",
    "ze": "-ze-fp32-correctly-rounded-divide-sqrt -ze-intel-enable-auto-large-GRF-mode",
}


class Module(NamedTuple):
    kernel: str
    fp64: bool
    code: bytes


def module_at(data: bytes, begin: int) -> Module | None:
    """A module ends with the last of its functions."""
    at, kernel, fp64 = begin + 20, "", False
    while at + 8 <= len(data):
        (word,) = struct.unpack_from("<I", data, at)
        opcode, length = word & 0xFFFF, word >> 16
        if not length:
            return None
        if opcode == CAPABILITY:
            fp64 |= struct.unpack_from("<I", data, at + 4)[0] == FLOAT64
        elif opcode == ENTRY_POINT:
            kernel = data[at + 12 : data.index(0, at + 12)].decode().removeprefix("__sycl_kernel_")
        at += 4 * length
        if opcode == FUNCTION_END and struct.unpack_from("<H", data, at)[0] != FUNCTION:
            return Module(kernel, fp64, data[begin:at])
    return None


def found(data: bytes) -> Iterator[Module]:
    at = -1
    while (at := data.find(MAGIC, at + 1)) >= 0:
        module = module_at(data, at)
        if module and module.kernel:
            yield module


@cache
def modules() -> list[Module]:
    """The module embedded in the installed plugin."""
    import dovetail_xpu

    with open(dovetail_xpu.backend.library, "rb") as file:
        return list(found(file.read()))


def ocloc(*args: str, cwd: Path, **variables: str) -> str:
    """The output of Intel's offline compiler."""
    program = shutil.which("ocloc") or pytest.skip("needs ocloc, of Debian's intel-opencl-icd")
    ended = subprocess.run(
        [program, *args],
        cwd=cwd,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    return ended.stdout + ended.stderr


def compiled(device: str, chosen: list[Module], folder: Path, api: str = "ze") -> str:
    """The compiler's output; it must have accepted all modules."""
    lines = []
    for i, module in enumerate(chosen):
        folder.joinpath(f"{i}.spv").write_bytes(module.code)
        lines.append(
            f'-spirv_input -file {folder}/{i}.spv -device {device} -options "{OPTIONS[api]}" '
            f"-out_dir {folder}/out -output {i}."
        )
    (folder / "commands").write_text("\n".join(lines) + "\n")
    printed = ocloc("multi", "commands", cwd=folder)
    made = {int(file.name.partition(".")[0]) for file in (folder / "out").glob("*.bin")}
    refused = [chosen[i].kernel for i in range(len(chosen)) if i not in made]
    assert not refused, f"{device} refuses {refused}:\n{printed[:3000]}"
    return printed


def assembly(device: str, module: Module, folder: Path, api: str) -> str:
    """The GPU's machine code for a module, disassembled."""
    compiled(device, [module], folder, api)
    (library,) = Path("/usr/lib").glob("*/libiga64.so.1")  # Debian has no link of the name that ocloc opens
    (folder / "libiga64.so").symlink_to(library)
    (binary,) = (folder / "out").glob("*.bin")
    ocloc(
        "disasm", "-file", str(binary), "-device", device, "-dump", "code", cwd=folder, LD_LIBRARY_PATH=str(folder)
    )
    (text,) = (folder / "code").glob("*.asm")
    return text.read_text("utf-8")


def spilling(printed: str) -> list[str]:
    """`warning: kernel NAME compiled SIMD16 allocated 128 regs and spilled around 20`"""
    return re.findall(r"kernel (?:__sycl_kernel_)?(\w+)\s+compiled .*spilled", printed)


def test_modules_are_found():
    names = {module.kernel for module in modules()}
    assert len(names) == len(modules()) > 500
    assert {"add_f32", "add_f32_strided", "where_x128", "astype_f64_bf16"} <= names


def test_only_kernels_of_float64_need_it():
    assert [m.kernel for m in modules() if m.fp64 and "f64" not in m.kernel] == []
    assert [m.kernel for m in modules() if not m.fp64 and m.kernel.startswith("exp_f64")] == []


@pytest.mark.parametrize("device", [pytest.param("acm-g10", marks=pytest.mark.slow), "pvc"])
def test_the_compiler_for_gpus_takes_them(device, tmp_path):
    needs_fp64 = device == "pvc"
    chosen = [m for m in modules() if m.fp64 == needs_fp64 or (needs_fp64 and FITTING.fullmatch(m.kernel))]
    spilled = spilling(compiled(device, chosen, tmp_path))
    print(f"{device}: {len(chosen)} kernels; registers spilled in {spilled or 'none'}")
    assert [kernel for kernel in spilled if FITTING.fullmatch(kernel)] == []


@pytest.mark.parametrize("api", list(OPTIONS))
@pytest.mark.parametrize(("kernel", "macro"), [("divide_f32", "invm"), ("sqrt_f32", "rsqtm")])
def test_quotients_and_roots_are_rounded_as_ieee_has_it(kernel, macro, api, tmp_path):
    """By IEEE's macros of several steps, not by the approximate instruction."""
    (module,) = (m for m in modules() if m.kernel == kernel)
    used = set(re.findall(r"\bmath\.(\w+)", assembly("pvc", module, tmp_path, api)))
    assert used == {macro}


def test_the_driver_is_asked_to_round_them_so():
    """On the CPU device that is OpenCL; the trace is of the layer below SYCL."""
    traced = python(
        "import dovetail as dv; (dv.asarray([1.0], device='xpu') / 3.0).tolist()", SYCL_UR_TRACE="2", **ON_CPU
    )
    built = re.findall(r"<--- urProgramBuild\(.*pOptions = \w+ \((.*?)\)\) -> UR_RESULT_SUCCESS", traced)
    assert built and {options.strip() for options in built} == {OPTIONS["cl"]}
