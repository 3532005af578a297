"""This machine, as the operating system describes it."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

# The psABI's levels, each on top of the one before.
_LEVELS = {
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
# Features beyond the levels that matter to arithmetic.
_NOTABLE = (
    "avx_vnni avx_vnni_int8 avx_vnni_int16 avx_ifma avx_ne_convert avx10_1 avx10_2 "
    "avx512_bf16 avx512_fp16 avx512_vnni avx512_vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq avx512ifma "
    "gfni vaes vpclmulqdq amx_tile amx_int8 amx_bf16 amx_fp16 amx_complex "
    "asimd asimdhp asimddp asimdfhm fphp bf16 i8mm sve sve2 svebf16 svei8mm sme sme2"
).split()

_GPU_MODULES = ("nvidia", "xe", "i915", "amdgpu")


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def cpu(cpuinfo: str | None = None) -> dict[str, Any]:
    """Model, count and features; `cpuinfo` in place of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in (_read("/proc/cpuinfo") if cpuinfo is None else cpuinfo).splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    level = "x86-64" if platform.machine().lower() in ("x86_64", "amd64") else platform.machine()
    for name, needed in _LEVELS.items():
        if not needed <= flags:
            break
        level = name
    if part := fields.get("CPU part"):  # aarch64, where "model name" is the architecture's, if present
        model = f"implementer {fields.get('CPU implementer', '?')}, part {part}"
    else:
        model = fields.get("model name") or platform.processor() or "unknown"
    return {
        "model": model,
        "level": level,
        "features": [name for name in _NOTABLE if name in flags],
        "amx": sorted(flag for flag in flags if flag.startswith("amx_")),
        "avx512_fp16": "avx512_fp16" in flags,
        "logical": os.cpu_count(),
        "usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "quota": _quota(),
    }


def _quota() -> float | None:
    """CPUs that a container may use at once, where it is limited."""
    limit, _, period = _read("/sys/fs/cgroup/cpu.max").strip().partition(" ")
    return int(limit) / int(period) if limit.isdigit() and period.isdigit() else None


def system() -> dict[str, Any]:
    distribution = ""
    for line in _read("/etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            distribution = line.partition("=")[2].strip('"')
    memory = 0
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            memory = int(line.split()[1]) * 1024
    return {
        "os": distribution or platform.system(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip(),
        "memory": memory,
        "gpu_drivers": gpu_drivers(),
    }


def gpu_drivers(root: Path = Path("/")) -> dict[str, str]:
    """The kernel modules that drive GPUs, with their versions if known."""
    found = {}
    for name in _GPU_MODULES:
        module = root / "sys/module" / name
        if module.is_dir():
            found[name] = _read(str(module / "version")).strip() or "of the kernel"
    return found
