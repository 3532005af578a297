"""The ops of a level: those of the schema and of the device's own wheels, and few at L0."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

from dovetail.schema import registry
from dovetail_conformance import device_checks

ROOT = Path(__file__).parents[2]
REFUSED = {"astype", "bitwise_and", "bitwise_left_shift", "reshape"}  # before the device is used

_COUNTS = """
from dovetail_conformance.cases import all_cases
from dovetail_conformance.running.options import Options
from dovetail_conformance.running.plan import plan

for device, packs in (("another:0", None), ("other:0", []), ("other:0", ["fast"])):
    all_cases.cache_clear()
    ids = [c.id for c in plan(Options(device=device, level="L2", no_report=True), packs).cases]
    print(sum(id.startswith("other_fast.twice[") for id in ids) > 0)
"""
PACK = """
class pack:
    library, ops = "/none.so", "other_fast_ops"
"""
FEW_KERNELS = """
import sys
sys.path.insert(0, {examples!r})
from dovetail.prototype import Kernel
from numpy_device import NumpyDevice

class FewKernels(NumpyDevice):
    name = "few"
    kernels = {{n: k.op for n, k in vars(NumpyDevice).items() if isinstance(k, Kernel)}}
    locals().update({{n: None for n, op in kernels.items() if op not in {ops}}})
"""
OPS = '''
import numpy as np
from dovetail.schema import Tensor, op

@op(name="other_fast.twice", shape="same", dtype="float", reference=lambda x: 2 * np.asarray(x))
def twice(x: Tensor, /) -> Tensor:
    """x + x."""
    return x + x
'''


def test_l0_only_calls_the_ops_that_it_lists():
    called = set()
    for file in Path(device_checks.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "function":
                called |= {a.value for a in node.args if isinstance(a, ast.Constant)}
    kernels = {op for op in called if not registry[op].spec.view}
    assert {*device_checks.OPS} <= kernels <= {*device_checks.OPS} | REFUSED


def test_a_device_with_the_kernels_of_l0_alone_reaches_it(tmp_path):
    """As docs/first_device.md promises."""
    promise = re.search(r"five ops in float32: write (.*) first\.", (ROOT / "docs/first_device.md").read_text())[1]
    assert sorted(re.findall(r"`(\w+)`", promise)) == [*device_checks.OPS]
    (tmp_path / "few.py").write_text(FEW_KERNELS.format(examples=str(ROOT / "examples"), ops=device_checks.OPS))
    environment = {"DOVETAIL_BACKEND_PATH": str(tmp_path / "few.py"), "DOVETAIL_BACKENDS": "few"}
    command = [sys.executable, "-m", "dovetail", "conform", "--device", "few", "--level", "L0", "--no-report"]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0 and "level L0 (the device itself)" in done.stdout, done.stdout + done.stderr


def test_a_pack_for_another_device_changes_no_level(tmp_path):
    """Packages of others stay verifiable, whatever is installed on the verifying machine."""
    (tmp_path / "other_fast.py").write_text(PACK)
    (tmp_path / "other_fast_ops.py").write_text(OPS)
    info = tmp_path / "other_fast-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-fast\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dovetail.kernels]\nother.fast = other_fast:pack\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", _COUNTS], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    # Counted unless they are for another device, or the package records that it was made without the pack.
    assert done.stdout.split() == ["False", "False", "True"], done.stderr
