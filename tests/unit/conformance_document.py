"""Made-up documents: real case ids, random figures, and one of everything that a report can show."""

from __future__ import annotations

import functools
import math
import random
from typing import Any

from dovetail.schema import registry
from dovetail_conformance.cases import all_cases
from dovetail_conformance.levels.standing import up_to
from dovetail_conformance.reporting.summary import parts

EDGES = [0, 0.25, 0.5, 1, 2, 4, 8, 16, 64]
NASTY = "</script><img src=x onerror=\"document.title='taken'\"> & 'quotes' 3 < 4\nsecond line"
SMALL = ("device.", "add[", "exp[", "matmul[", "reshape[", "softmax[", "where[", "gelu[")


def document(ids: tuple[str, ...] = SMALL, seed: int = 0) -> dict[str, Any]:
    """A run without a fault, of the cases whose ids begin with these prefixes."""
    rng = random.Random(seed)
    cases = [
        _passed(case, rng) for id, case in all_cases().items() if id.startswith(ids) and case.level in up_to("L2")
    ]
    kernels = {op.name: [d.brief for d in op.dtypes] for op in registry.values() if op.tier}
    return {
        "schema": "dovetail-conformance-results",
        "schema_version": 1,
        "run": {"level": "L2", "quick": False, "profile": None, "expression": None, "cases": [], "seed": 7,
                "workers": 2, "timeout": 60.0, "performance": False,
                "started": "2026-03-01T10:00:00+00:00", "seconds": 431.2,
                "complete": True, "stopped_by": None, "shard": None, "suite": "1.2.3",
                "must_pass": {"version": 1, "sha256": "57" * 32}, "cases_sha256": "2a" * 32,
                "system": {"platform": "Linux-6.1-x86_64", "machine": "x86_64"}},
        "device": {"name": "acme:0", "kind": "npu", "arch": "a2",
                   "properties": {"name": "Acme Accelerator A2", "mem_total": 17179869184, "alloc_align": 256,
                                  "peaks": {"f32": 2.5e12, "f16": 1e13}, "synchronous": False}},
        "backend": {"name": "acme", "version": "1.4.2", "build_info": "clang 19; a2", "abi": "1.0"},
        "packs": ["acme-extras 0.3"],
        "native": sorted(kernels),
        "kernels": kernels,
        "dovetail": "1.2.3", "python": "3.11.7", "numpy": "2.4.6",
        "level": {"reached": "L2", "asked": "L2", "profile": None,
                  "text": "level L2 (f32, i32, i64, bool; 61 native, 85 decomposed)"},
        "counts": _counts(cases),
        "waivers": [], "undeclared": [], "error_edges": EDGES, "performance": None,
        "cases": cases,
    }  # fmt: skip


@functools.cache
def full_ids() -> tuple[str, ...]:
    return tuple(all_cases())


def with_everything(ids: tuple[str, ...] = SMALL) -> dict[str, Any]:
    """A document with failures of every kind, waivers in every state, findings and performance."""
    made = document(ids)
    for case in made["cases"]:
        op, dtype, rest = parts(case["id"])
        if op == "exp" and dtype in ("f16", "bf16"):
            _spoil(
                case,
                "fail",
                "3 of 65 elements wrong, 9.25 ulp off where 1 are allowed; got 2.7, expected 2.8",
            )
            case |= {"ulp": 9.25, "index": [7], "got": "2.7", "expected": "2.8"}
        elif op == "matmul" and dtype == "f64":
            _spoil(case, "crash", "signal SIGSEGV\nFatal Python error: Segmentation fault")
        elif op == "gelu" and dtype == "f32":
            _spoil(case, "timeout", "not done after 60 s")
        elif op == "where" and dtype == "bool":
            _spoil(case, "fallback", "where ran on another device")
        elif op == "softmax" and dtype == "f64":
            case |= {"status": "waived", "message": "2 of 9 elements wrong", "waiver": "softmax[[]f64,*"}
        elif op == "add" and dtype in ("u16", "u32", "u64"):
            case |= {"status": "unsupported", "message": "no kernel", "ulp": None}
        elif op == "add" and dtype == "i8":
            case |= {"status": "not-run"}
        elif op == "add" and dtype == "f32" and rest == "values":
            _spoil(case, "fail", NASTY)
        elif op == "device.streams" and rest == "many":
            case |= {"status": "unsupported", "message": "the device declares that it has one stream"}
    made["waivers"] = [
        {"case": "softmax[[]f64,*", "device": "acme", "backend": ">=1.4,<2", "reason": "f64 is emulated: " + NASTY,
         "url": "https://acme.example/issues/12", "expires": "2027-01-01", "state": "used",
         "cases": [c["id"] for c in made["cases"] if c["status"] == "waived"]},
        {"case": "erf*", "reason": "none needed any more", "url": "javascript:alert(1)", "state": "unexpected-pass",
         "cases": []},
        {"case": "tan*", "reason": "old", "expires": "2025-01-01", "state": "expired", "cases": []},
        {"case": "sinh*", "reason": "nothing matches", "state": "unused", "cases": []},
    ]  # fmt: skip
    made["undeclared"] = [{"op": "add", "dtype": "u16", "message": "works, though the device declares no kernel"}]
    rates = {"small": 2400.0, "large": 812.5}
    memory = {size: {"bytes": 1 << 20, "copy_gb_per_s": rate, "read_gb_per_s": 1.1 * rate,
                     "write_gb_per_s": 0.9 * rate} for size, rate in rates.items()}  # fmt: skip
    ceilings = {"copy_gb_per_s": 812.5, "gemm_gflop_per_s": {"f32": 14200.0, "f16": 51000.0}, "memory": memory}
    made["performance"] = {"ceilings": ceilings}
    made["cases"] += _performance(ceilings)
    made["counts"] = _counts(made["cases"])
    text = "level L0 (the device itself); L1 not met: 34 of 322 cases did not pass"
    made["level"] |= {"reached": "L0", "text": text}
    return made


def difference(made: dict[str, Any]) -> dict[str, Any]:
    """Compare to a baseline in which everything passed, a little faster here and slower there."""
    bad = [c for c in made["cases"] if c["status"] in ("fail", "crash", "timeout")]
    timed = [c for c in made["cases"] if c.get("time_s")]
    times = [{"id": c["id"], "before_s": f * c["time_s"], "now_s": c["time_s"], "ratio": 1 / f, "noise": 0.15}
             for c, f in zip(timed, (0.5, 2))]  # fmt: skip
    return {
        "device": "acme:0", "backend": "acme 1.4.1", "started": "2026-02-01T09:00:00+00:00", "same_device": True,
        "timed": len(timed), "slower": times[:1], "faster": times[1:],
        "endings": [{"id": c["id"], "before": "pass", "now": c["status"]} for c in bad[:5]]
        + [{"id": "erf[f32,values]", "before": "fail", "now": "pass"}],
        "appeared": ["erf[f32,new]"], "missing": [],
    }  # fmt: skip


def _counts(cases: list[dict[str, Any]]) -> dict[str, int]:
    statuses = [c["status"] for c in cases]
    return {s: statuses.count(s) for s in sorted(set(statuses))}


def _passed(case: Any, rng: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {"id": case.id, "level": case.level, "status": "pass",
                            "seconds": round(rng.lognormvariate(-6.5, 1), 6)}  # fmt: skip
    if not case.dtype:
        return made
    allowed = registry[case.op].spec.tol or 0 if case.dtype.kind == "f" else 0
    tol = float(allowed if isinstance(allowed, int | float) else 1)
    ulp = float(f"{tol * rng.betavariate(2, 4):.4g}")
    elements = rng.choice((1, 17, 65, 1024, 65536))
    bins = [0] * (len(EDGES) + 1)
    for _ in range(8):
        error = ulp * rng.random() ** 2
        bins[next((i for i, edge in enumerate(EDGES) if error <= edge), len(EDGES))] += math.ceil(elements / 8)
    return made | {"tol": tol, "ulp": ulp, "errors": bins}


def _spoil(case: dict[str, Any], status: str, message: str) -> None:
    case |= {"status": status, "message": message,
             "replay": f"dovetail conform --device acme:0 --case '{case['id']}' --seed 7"}  # fmt: skip


def _performance(ceilings: dict[str, Any]) -> list[dict[str, Any]]:
    rng, cases = random.Random(5), []
    bandwidth, peaks = ceilings["copy_gb_per_s"], ceilings["gemm_gflop_per_s"]
    sizes = {"copy": (0, 8e6), "add": (1e6, 12e6), "exp": (8e6, 8e6), "sum": (1e6, 4e6), "softmax": (2e7, 8e6),
             "layer_norm": (1e7, 8e6), "gelu": (3e7, 8e6), "matmul": (2.1e9, 1.2e7),
             "conv2d": (9e8, 1e7), "scaled_dot_product_attention": (4e8, 1.6e7)}  # fmt: skip
    for op, (flops, size) in sizes.items():
        for dtype, bytes in (("f32", size), ("f16", size / 2)):
            bound = "memory" if not flops or flops / bytes < peaks[dtype] / bandwidth else "compute"
            percent = 100 * rng.betavariate(5, 2)
            speed = bandwidth * 1e9 / bytes if bound == "memory" else peaks[dtype] * 1e9 / flops
            time = 100 / percent / speed
            cases.append(
                {"id": f"{op}[{dtype},perf,large]", "level": "P", "status": "pass", "seconds": 0.4,
                 "time_s": time, "bytes": int(bytes), "flops": int(flops), "gb_per_s": bytes / time / 1e9,
                 "gflop_per_s": flops / time / 1e9 or None, "percent": percent, "bound": bound, "timer": "event"}
            )  # fmt: skip
    return cases
