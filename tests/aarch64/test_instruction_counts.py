"""benchmarks/aarch64_instructions.py: how the emulator's log is counted, and what kind an instruction is."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "cmake/aarch64"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import aarch64_instructions
import emulated

# QEMU's format: the code at 0x1010 is generated anew between its runs.
LOG = """\
IN: main
0x00001000:  94000004  bl       #0x1010

Trace 0: 0x7f00 [00001111/0000000000001000/00000001/00000200] main
IN:
0x00001010:  4e24cc00  fmla     v0.4s, v0.4s, v4.4s
0x00001014:  d65f03c0  ret

Trace 0: 0x7f10 [00001111/0000000000001010/00000001/00000200]
IN: _GLOBAL__sub_I_marker
0x00001030:  d65f03c0  ret

Trace 0: 0x7f30 [00001111/0000000000001030/00000001/00000200] _GLOBAL__sub_I_marker
IN: marker
0x00001020:  d65f03c0  ret

Trace 0: 0x7f20 [00001111/0000000000001020/00000001/00000200] marker
Trace 0: 0x7f10 [00001111/0000000000001010/00000001/00000200]
Trace 0: 0x7f10 [00001111/0000000000001010/00000001/00000200]
IN:
0x00001010:  d65f03c0  ret

Trace 0: 0x7f40 [00001111/0000000000001010/00000001/00000200]
Trace 0: 0x7f20 [00001111/0000000000001020/00000001/00000200] marker
Trace 0: 0x7f10 [00001111/0000000000001010/00000001/00000200]
Trace 0: 0x7f20 [00001111/0000000000001020/00000001/00000200] marker
Trace 0: 0x7f00 [00001111/0000000000001000/00000001/00000200] main
Trace 0: 0x7f20 [00001111/0000000000001020/00000001/00000200] marker
"""


def test_what_runs_between_markers_is_counted_as_it_was_translated_last():
    blocks, spans = emulated.count_blocks(LOG.splitlines(keepends=True))
    counted = [{tuple(blocks[i].words): times for i, times in span.items()} for span in spans]
    assert counted == [{(0x4E24CC00, 0xD65F03C0): 2, (0xD65F03C0,): 1}, {(0x94000004,): 1}]


def test_a_log_that_ends_too_early_is_refused():
    lines = LOG.splitlines(keepends=True)
    for log in (lines[:-1], lines[:5]):
        with pytest.raises(RuntimeError, match="marker"):
            emulated.count_blocks(log)


@pytest.mark.parametrize(
    "kind, instructions",
    [
        (
            "multiply",
            "fmla v1.4s, v2.4s, v3.s[0]|fmul z0.s, z1.s, z2.s|fmadd s0, s1, s2, s3|fmad z0.s, p0/m, z1.s, z2.s",
        ),
        ("multiply", "bfmmla z0.s, z1.h, z2.h|bfdot v0.4s, v1.8h, v2.8h|bfmlalt v0.4s, v1.8h, v2.8h"),
        ("multiply", "sdot v0.4s, v1.16b, v2.16b|usdot z0.s, z1.b, z2.b|ummla v0.4s, v1.16b, v2.16b"),
        (
            "multiply",
            "mla v0.4s, v1.4s, v2.4s|mul v0.4s, v1.4s, v2.4s|umlal2 v0.4s, v1.8h, v2.8h|smull v0.4s, v1.4h, v2.4h",
        ),
        ("load", "ldp q0, q1, [x0], #32|ld1rw {z0.s}, p0/z, [x1]|ld4 {v0.4s-v3.4s}, [x0]|ldrsw x0, [x1]"),
        ("store", "str q0, [x0]|st1w {z0.s}, p0, [x1]|stp x29, x30, [sp, #-16]!"),
        ("other", "mul x0, x1, x2|madd x0, x1, x2, x3|smull x0, w1, w2|umull x0, w1, w2|msub x0, x1, x2, x3"),
        (
            "other",
            "fmov v0.4s, #1.0|fmax v0.4s, v1.4s, v2.4s|mov x0, x1|movi v0.4s, #0|prfm pldl1keep, [x0]|b.ne 0x10",
        ),
        ("other", "fcvtl v0.4s, v1.4h|add x0, x1, x2|ret|subs x0, x0, #1|fmaxnmv s0, v1.4s|dup v0.4s, w0"),
    ],
)
def test_kinds(kind, instructions):
    assert {aarch64_instructions.kind(i) for i in instructions.split("|")} == {kind}


def test_the_engine_is_whose_code_multiplied():
    libraries = {
        "libdovetail_cpu.so": Counter({"fmul v0.4s, v1.4s, v2.4s": 5, "add x0, x0, x1": 1000}),
        "libdovetail_openblas.so.0": Counter({"fmla z1.s, p0/m, z2.s, z3.s": 4, "fmla z11.s, p0/m, z2.s, z3.s": 4}),
    }
    assert aarch64_instructions.multiplier(libraries) == ("OpenBLAS", "fmla z.s")
