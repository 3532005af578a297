"""The kernels' SPIR-V as Intel's compiler for GPUs takes it: no GPU is needed to see that it does.

acm-g10 (Arc) has no float64, pvc (Data Center GPU Max) has; ocloc is in Debian's intel-opencl-icd.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

MAGIC = struct.pack("<I", 0x07230203)
CAPABILITY, ENTRY_POINT, FUNCTION, FUNCTION_END, FLOAT64 = 17, 15, 54, 56, 10  # SPIR-V specification, 3.3 and 3.52
# Where a model spends its time; registers that do not suffice cost it several times over there. Products of
# matrices are oneDNN's: kernels of our own do what it refuses.
HOT = re.compile(
    r"(add|multiply|divide|maximum|exp|gelu|where_x|take_x|copy_x|sum|max|softmax|layer_norm|attention).*_"
    r"?(f16|bf16|f32|x16|x32)"
)


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
    """What is embedded in the plugin that is installed."""
    import dovetail_xpu

    with open(dovetail_xpu.backend.library, "rb") as file:
        return list(found(file.read()))


def compiled(device: str, chosen: list[Module], folder: Path) -> str:
    """What the compiler said; it must have taken them all."""
    ocloc = shutil.which("ocloc") or pytest.skip("needs ocloc, of Debian's intel-opencl-icd")
    lines = []
    for i, module in enumerate(chosen):
        folder.joinpath(f"{i}.spv").write_bytes(module.code)
        lines.append(f"-spirv_input -file {folder}/{i}.spv -device {device} -out_dir {folder}/out -output {i}.")
    (folder / "commands").write_text("\n".join(lines) + "\n")
    ended = subprocess.run(
        [ocloc, "multi", "commands"], cwd=folder, capture_output=True, text=True, timeout=1200, check=False
    )
    said = ended.stdout + ended.stderr
    made = {int(file.name.partition(".")[0]) for file in (folder / "out").glob("*.bin")}
    refused = [chosen[i].kernel for i in range(len(chosen)) if i not in made]
    assert not refused, f"{device} refuses {refused}:\n{said[:3000]}"
    return said


def spilling(said: str) -> list[str]:
    """`warning: kernel NAME compiled SIMD16 allocated 128 regs and spilled around 20`"""
    return re.findall(r"kernel (?:__sycl_kernel_)?(\w+)\s+compiled .*spilled", said)


def test_modules_are_found():
    names = {module.kernel for module in modules()}
    assert len(names) == len(modules()) > 500
    assert {"add_f32", "add_f32_strided", "where_x128", "astype_f64_bf16"} <= names


def test_only_kernels_of_float64_need_it():
    assert [m.kernel for m in modules() if m.fp64 and "f64" not in m.kernel] == []
    assert [m.kernel for m in modules() if not m.fp64 and m.kernel.startswith("exp_f64")] == []


@pytest.mark.parametrize("device", ["acm-g10", "pvc"])
def test_the_compiler_for_gpus_takes_them(device, tmp_path):
    chosen = [m for m in modules() if HOT.fullmatch(m.kernel) or m.fp64 == (device == "pvc")]
    spilled = spilling(compiled(device, chosen, tmp_path))
    print(f"{device}: {len(chosen)} kernels; registers spilled in {spilled or 'none'}")
    assert [kernel for kernel in spilled if HOT.fullmatch(kernel)] == []
