"""The device is found, has valid properties, and its kernel table is well-formed."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from ctypes import CDLL, byref, c_void_p, create_string_buffer
from pathlib import Path

from dovetail.schema import dtypes, registry

from ..running import float_mode
from . import Declined, check, expect, raises
from .memory import works
from .table import table


@check
def listed(t, rng):
    names = [d.name for d in t.api.devices()]
    expect(names.count(t.name) == 1, f"{t.name} is listed {names.count(t.name)} times among {', '.join(names)}")
    expect(re.fullmatch(r"[a-z][a-z0-9_]*:\d+", t.name), f"the name {t.name!r} is not of the form backend:number")
    again = t.api.device(t.name)
    expect(
        again == t.device and again.name == t.name, f"asking for {t.name} twice gives {t.device!r} and {again!r}"
    )
    first = t.api.device(t.device.backend)
    expect(first.backend == t.device.backend, f"{t.device.backend!r} alone gives {first!r}")
    expect(f"{t.device.backend}:{t.device.index}" == t.name, f"{t.name} has the index {t.device.index}")


@check
def unknown_names(t, rng):
    for wrong in (f"{t.device.backend}:9999", t.device.backend + "x", "no such device", ""):
        raises((ValueError, RuntimeError), lambda name=wrong: t.api.device(name), f"device({wrong!r})")
    near = raises((ValueError, RuntimeError), lambda: t.api.device(t.device.backend + "x"), "a misspelt name")
    expect(t.device.backend in str(near), f"a misspelt name is not answered with the nearest one: {near}")
    raises(TypeError, lambda: t.api.device(3), "device(3)")


@check
def properties_sane(t, rng):
    p = t.device.properties
    expect(str(p["name"]).strip(), "it has no name of its own (properties['name'] is empty)")
    expect(t.device.kind in ("cpu", "gpu", "npu", "other"), f"kind is {t.device.kind!r}")
    align = p["alloc_align"]
    expect(align > 0 and align & (align - 1) == 0, f"alloc_align is {align}, expected a power of two")
    total, free = p["mem_total"], p.get("mem_free", 0)  # 0: not known
    expect(free <= total or not total, f"mem_free is {free} of mem_total {total}")
    rates = {"peak_bytes_per_s": p["peak_bytes_per_s"], **p["peaks"]}
    for name, rate in rates.items():
        expect(rate >= 0 and math.isfinite(rate), f"{name} is {rate}")
    for name in ("peaks", "caps"):
        known = set(dtypes.by_name) if name == "peaks" else {"host_mapped", "p2p", "fork_safe"}
        expect(set(p[name]) <= known, f"{name} are {p[name]!r}")


@check
def properties_repeat(t, rng):
    changing = {"mem_free"}
    first, second = ({k: v for k, v in t.device.properties.items() if k not in changing} for _ in range(2))
    # Compared as text: properties_sane looks at rates that are NaN.
    expect(str(first) == str(second), f"properties differ from one call to the next: {first} and {second}")


@check
def float_mode_is_kept(t, rng):
    """Loaded and used, it leaves the host's arithmetic as it was: the oracle computes in this thread too."""
    works(t)
    expect(not (mode := float_mode.unusual()), f"since it was loaded, on the host {mode}")


_ASK = """
import json, sys
import dovetail as dt
found = [d for d in dt.devices() if d.backend == sys.argv[1]] or [dt.device(sys.argv[1])]
print(json.dumps({d.name: {k: v for k, v in d.properties.items() if k != "mem_free"} for d in found}))
"""


@check
def found_again(t, rng):
    """A second call, here or in a second process, returns the same."""
    with table(t) as own:
        counts = [own.count(), own.count()]
        mine = [d for d in t.api.devices() if d.backend == t.device.backend]
        expect(
            counts == [len(mine)] * 2,
            f"device_count returned {counts[0]}, then {counts[1]}, and {len(mine)} devices are open",
        )
        error = own.refused("device_open", 9999, byref(c_void_p()))
        expect(
            error and error.words, f"device_open(9999): expected a refusal with a reason, got {error or 'a device'}"
        )
        works(t)
    library = next(b["library"] for b in t.api._core.backends() if b["name"] == t.device.backend)
    if Path(library).suffix != ".py":  # a device in Python has no probe
        scores = [CDLL(library).dvt_probe_v1(create_string_buffer(256), 256) for _ in range(2)]
        expect(scores[0] == scores[1] != 0, f"dvt_probe_v1 returned {scores[0]}, and then {scores[1]}")
    run = subprocess.run(
        [sys.executable, "-c", _ASK, t.device.backend], capture_output=True, text=True, timeout=50, check=False
    )
    last = (run.stderr.strip().splitlines() or ["without a word"])[-1]
    expect(
        run.returncode >= 0,
        f"a second process was killed by signal {-run.returncode} as it opened the device: {last}",
    )
    if run.returncode:
        raise Declined(f"a second process cannot open the device: {last}")
    here = {d.name: {k: v for k, v in d.properties.items() if k != "mem_free"} for d in mine}
    there = json.loads(run.stdout.splitlines()[-1])
    expect(json.loads(json.dumps(here)) == there, f"a second process finds {there}, this one {here}")


@check
def kernel_table(t, rng):
    """A row that no call can ever reach is a mistake, most likely a misspelt name."""
    briefs = {d.brief for d in dtypes.ALL} | {"any", "any8", "any16", "any32", "any64", "any128"}
    for row in t.rows:
        op = registry.get(row["op"])
        expect(op, f"a kernel is for {row['op']!r}: there is no such op")
        expect(
            1 <= row["op_version"] <= op.spec.version,
            f"{op.name}: op version {row['op_version']} is not known here",
        )
        expect(
            len(row["outputs"]) == op.spec.n_out,
            f"{op.name}: {len(row['outputs'])} outputs, expected {op.spec.n_out}",
        )
        n, known = len(row["inputs"]), sum(p.since <= row["op_version"] for p in op.operands)
        expect(n == known, f"{op.name}: {n} operands, expected {known} of its version {row['op_version']}")
        unknown = ({*row["inputs"], *row["outputs"]}) - briefs
        expect(not unknown or all(u.startswith(("code", "f8", "f6", "f4", "i4", "u4")) for u in unknown),
               f"{op.name}: dtypes {sorted(unknown)} are not known here")  # fmt: skip
        expect(row["max_ulp"] >= 0 and math.isfinite(row["max_ulp"]), f"{op.name}: max_ulp is {row['max_ulp']}")


@check(level="L1")
def must_have_primitives(t, rng):
    """An op without a decomposition, and not served by the core, needs a kernel."""
    missing = [op.name for op in registry.values() if op.tier == "must" and not t.has_row(op.name)]
    expect(not missing, f"no kernel for must-have primitives: {', '.join(missing)}")
