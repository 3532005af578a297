"""Every op from C on a device with the must-have kernels alone: what the library brings serves the calls."""

import os
import re
import subprocess
from collections import Counter, defaultdict

import dovetail
import numpy as np
import pytest
from c_programs import compiled
from dovetail import _core
from dovetail.schema import dtypes as dt
from dovetail.schema import registry
from dovetail_conformance.cases.legal import RULES
from dovetail_conformance.cases.operand import Call, Operand
from dovetail_conformance.judging.compare import compare
from dovetail_conformance.judging.oracle import answers
from drawn_calls import Result, draw, results, written

SEED = int(os.environ.get("DOVETAIL_TEST_SEED", "20261125"))
CALLS = 6  # of each op and dtype
LEAST = 0.98
NOT_IMPLEMENTED = 5  # of enum dvr_status
MISSED = re.compile(
    r"(?:\[\w+\] its decomposition: )*\[\w+\] has no kernel, and this library brings no decomposition for (\S+): "
    r"it needs the Python front end"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(calls) -> results, in a process that has libdovetail and the simulated accelerator, but no Python."""
    sim = pytest.importorskip("dovetail_sim").backend.library
    folder = tmp_path_factory.mktemp("every_op")
    program = compiled("every_op", folder)

    def run(calls: list[Call]) -> list[Result]:
        asked, answered = folder / "calls", folder / "results"
        asked.write_bytes(b"".join(map(written, calls)))
        ended = subprocess.run(
            [program, "sim:0", sim, asked, answered], capture_output=True, text=True, timeout=600, check=False
        )
        assert ended.returncode == 0, f"{ended.returncode}: {ended.stderr}"
        got = list(results(answered.read_bytes()))
        assert len(got) == len(calls)
        return got

    return run


def wrong(call, dtype, result) -> str:
    """How the results differ from those of the oracle, which is given mixed operands in the dtype of the call."""
    values = {p.name for p in call.op.operands if p.kind == "value"}

    def promoted(a):
        if isinstance(a, list):
            return [promoted(x) for x in a]
        return a.astype(dtype.numpy) if isinstance(a, np.ndarray) else a

    host = {n: promoted(a) if n in values else a for n, a in call.host.items()}
    expected = answers(call.op, *call.arguments(host))
    if len(result.arrays) != len(expected):
        return f"{len(result.arrays)} results, expected {len(expected)}"
    for got, a in zip(result.arrays, expected, strict=True):
        verdict = compare(got, a.value, a.dtype, a.tol, a.scale, signed_zeros=a.signed_zeros)
        if not verdict.ok:
            return verdict.message
    return ""


def test_calls_that_nobody_traced(run, capfd):
    """Ranks 0 to 6, sizes with 0 and 1, all dtypes, layouts, optional operands and attributes."""
    own = [o for o in registry.values() if o.__module__.startswith("dovetail.schema.") and o.spec.shape in RULES]
    kernels = {row["op"] for row in _core.kernel_table(dovetail.device("sim").name)}
    assert kernels == {o.name for o in own if o.spec.must}
    drawn = [
        (op, d, draw(op, d, np.random.default_rng([SEED, i, j, k]), list(dt.NOT_COMPLEX)))
        for i, op in enumerate(own)
        for j, d in enumerate(op.dtypes)
        for k in range(CALLS)
    ]
    got = run([call for _, _, call in drawn])
    asked, served, missed, mistakes = Counter(), Counter(), defaultdict(Counter), []
    for (op, d, call), result in zip(drawn, got, strict=True):
        asked[op.name] += 1
        if result.status == NOT_IMPLEMENTED:
            missed[op.name][MISSED.fullmatch(result.message).group(1)] += 1
            continue
        served[op.name] += 1
        why = result.message if result.status else wrong(call, d, result) if op.reference else ""
        if why:
            mistakes.append(f"{call}: {why}")
    share = served.total() / asked.total()
    with capfd.disabled():
        print(f"\nseed {SEED}: {share:.2%} of {asked.total()} calls of {len(asked)} ops served")
        for name in sorted(missed, key=lambda n: served[n] / asked[n]):
            patterns = ", ".join(f"{p} x{n}" for p, n in missed[name].most_common(3))
            print(f"  {name}: {served[name] / asked[name]:.1%} of {asked[name]}; missed {patterns}")
    assert not mistakes, f"seed {SEED}, {len(mistakes)} of {len(got)}:\n" + "\n".join(mistakes[:40])
    assert share >= LEAST


def test_an_error_names_what_is_missing(run):
    """Nobody traced the concatenation of eleven arrays; the process goes on after the error."""
    row = Operand((2, 3), dt.float32)
    many, few = (Call(registry["concat"], {"arrays": [row] * n, "axis": 1}) for n in (11, 2))
    missing, served = run([many, few])
    assert missing.status == NOT_IMPLEMENTED
    assert missing.message == (
        f"[concat] has no kernel, and this library brings no decomposition for {','.join(['f32.2'] * 11)};i: it "
        "needs the Python front end"
    )
    assert served.status == 0 and served.arrays[0].shape == (2, 6)
