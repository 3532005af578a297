"""A device in L1's dtypes alone: no case needs another dtype unless the documents list it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from conformance_narrow_device import FURTHER
from dovetail_conformance.cases import all_cases
from dovetail_conformance.levels import standing as levels
from dovetail_conformance.levels.must_pass import must_pass
from dovetail_conformance.reporting.document import results
from dovetail_conformance.submission.contradictions import contradiction

ROOT = Path(__file__).parents[2]
# Cases that a device without float64 and float8 failed, or that could cost it a level without a message.
CASES = (
    "scaled_linear[f32,vector]",
    "scaled_linear[f32,property]",
    "scaled_linear[f32,mixed]",
    "scaled_linear[f32,determinism]",
    "scaled_linear[f32,steady]",
    "astype[f32,to_f64]",
    "astype[f32,property]",
    "quantize[f32,property]",
    "sort[bool,any_value]",
    "uniform[f32,continues]",
    "normal[f32,rare]",
    "integers[i64,ranges]",
)


def test_no_dtype_beyond_its_own_costs_it_a_level(tmp_path):
    file = tmp_path / "results.json"
    environment = {
        "DOVETAIL_BACKEND_PATH": str(Path(__file__).parent / "conformance_narrow_device.py"),
        "DOVETAIL_BACKENDS": "conformance_narrow_device",
        "OPENBLAS_NUM_THREADS": "1",  # the workers suffice
    }
    command = [sys.executable, "-m", "dovetail", "conform", "--device", "narrow", "--json", str(file)]
    command += [word for id in CASES for word in ("--case", id)]
    ended = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    document = json.loads(file.read_text())
    found = results(document)
    bad = {id: found[id] for id in CASES if not levels.holds(all_cases()[id], found[id])}
    assert not bad and ended.returncode == 0, (bad, ended.stdout, ended.stderr)
    # `dovetail verify` accepts them too.
    rejected = {c["id"]: contradiction(all_cases()[c["id"]], c, document["kernels"]) for c in document["cases"]}
    assert not any(rejected.values()), rejected
    passed = [id for id in CASES if found[id].status == "pass"]
    assert {"sort[bool,any_value]", "uniform[f32,continues]", "astype[f32,property]"} <= {*passed}


def test_the_documents_list_the_further_dtypes_of_l1():
    text = (ROOT / "docs/first_device.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ((?:`\w+` ?)+)\|$", text, re.MULTILINE)
    listed = {dtype: sorted(re.findall(r"\w+", ops)) for dtype, ops in rows}
    assert listed == {dtype: sorted(ops.split()) for dtype, ops in FURTHER.items()}


def test_no_case_of_l1_names_an_optional_dtype():
    known = {*must_pass().dtypes, "u32"}  # the key of random ops is data: any device can store it
    named = {c.id: {d.brief for d in c.others()} for c in all_cases().values() if c.level == "L1"}
    assert not {id: dtypes - known for id, dtypes in named.items() if dtypes - known}
