"""dovetail-xpu and libraries with a oneDNN, a BLAS, a SYCL or an OpenMP of their own: each calls its own, in
whatever order they are opened."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from programs import ON_CPU, python, run

# Products in types for which a device calls a library, compared with NumPy's.
USE = """
import dovetail as dv, numpy as np
rng = np.random.default_rng(0)
x, y = rng.integers(-4, 5, (2, 64, 64)).astype(np.float32)

def use(device):
    for dtype in (dv.float32, dv.bfloat16) + (dv.complex64,) * (device == "cpu"):
        if dtype == dv.complex64:
            a, b = (dv.asarray(v.astype(np.complex64), device=device) for v in (x, y))
            product = dv.matmul(a, b).numpy().real
        else:
            a, b = (dv.asarray(v, dtype=dtype, device=device) for v in (x, y))
            product = dv.matmul(a, b).astype(dv.float32).numpy()
        np.testing.assert_allclose(product, x @ y, atol=2 if dtype == dv.bfloat16 else 0)
"""


@pytest.fixture
def bindings(tmp_path):
    """bindings(code): the pairs of files between which the linker has bound symbols of oneDNN and of BLAS."""

    def bindings(code: str) -> set[tuple[Path, Path]]:
        # From the linker's own log, because two mapped copies do not prove that each caller uses its own.
        log = tmp_path / "log"
        run(sys.executable, "-c", code, LD_DEBUG="bindings", LD_DEBUG_OUTPUT=str(log), LD_BIND_NOW="1", **ON_CPU)
        pattern = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: \w+ symbol `\w*(?:dnnl|cblas)")
        return {
            (Path(one), Path(two))
            for file in tmp_path.glob("log.*")
            for one, two in pattern.findall(file.read_text(errors="replace"))
        }

    return bindings


def opened_by_the_cpu_device() -> set[str]:
    """The libraries opened by USE's products: without AVX-512 with bfloat16 products, the CPU device calls no
    oneDNN."""
    environment = run(sys.executable, "-m", "dovetail", "env").stdout
    (build,) = re.findall(r"gcc .*; kernels .*|clang .*; kernels .*", environment)
    libraries = {"libdovetail_openblas.so.0"} if "; OpenBLAS" in build else set()
    if "kernels avx512;" in build and "avx512_bf16" in build and "; oneDNN" in build:
        libraries.add("libdovetail_dnnl.so.3")
    return libraries


@pytest.mark.parametrize("order", [("xpu", "cpu"), ("cpu", "xpu")], ids="-".join)
def test_each_calls_its_own_libraries(bindings, order):
    import dovetail_cpu
    import dovetail_xpu

    cpu, xpu = (Path(module.__file__).resolve().parent for module in (dovetail_cpu, dovetail_xpu))
    found = bindings(USE + "".join(f"use({device!r})\n" for device in (*order, order[0])))
    of_cpu = {(one, two) for one, two in found if cpu in one.resolve().parents}
    assert {two.name for _, two in of_cpu} == opened_by_the_cpu_device()
    assert all(cpu in two.resolve().parents for _, two in of_cpu), of_cpu
    of_xpu = {(one, two) for one, two in found - of_cpu if "dnnl" in one.name + two.name}
    assert of_xpu, "dovetail-xpu opened no oneDNN"
    for one, two in of_xpu:
        assert two.name.startswith("libdnnl.so") and two.resolve().parent == xpu.parents[2], (one, two)
    # NumPy has an OpenBLAS too.
    assert not [(one, two) for one, two in found - of_cpu if cpu in two.resolve().parents]


@pytest.mark.parametrize("order", [("xpu", "cpu"), ("cpu", "xpu")], ids="-".join)
def test_arrays_go_from_one_to_the_other(order):
    first, second = order
    python(
        f"""
import dovetail as dv, numpy as np
x = np.arange(1000, dtype=np.float32)
there = (dv.asarray(x, device={first!r}) + 1).to_device({second!r})
back = (there + 1).to_device({first!r})
assert (there.device, back.device) == (dv.device({second!r}), dv.device({first!r}))
np.testing.assert_array_equal(back.numpy(), x + 2)
""",
        **ON_CPU,
    )


# A product by another library, in the same process.
OTHERS = {
    "onnxruntime": """
import onnxruntime
from onnx import TensorProto, helper
matrices = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (64, 64)) for name in "xyz"]
graph = helper.make_graph([helper.make_node("MatMul", "xy", "z")], "product", matrices[:2], matrices[2:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])

def use_other():
    np.testing.assert_array_equal(session.run(None, {"x": x, "y": y})[0], x @ y)
""",
    "torch": """
import torch

def use_other():
    np.testing.assert_array_equal((torch.from_numpy(x) @ torch.from_numpy(y)).numpy(), x @ y)
    torch.nn.functional.conv2d(torch.ones(1, 8, 16, 16), torch.ones(8, 8, 3, 3))  # by its oneDNN
""",
}


@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("library", OTHERS)
def test_with_another_library(bindings, library, first):
    if not find_spec(library):
        pytest.skip(f"{library} is not installed: hundreds of megabytes, pip install {library}")
    calls = {"ours": 'use("xpu")\n', "theirs": OTHERS[library] + "use_other()\n"}
    order = [first, *(name for name in calls if name != first)]
    found = bindings(USE + "".join(calls[name] for name in order) + 'use("xpu")\nuse_other()\n')
    opened = {(one, two) for one, two in found if one.name.startswith("libdnnl") or two.name.startswith("libdnnl")}
    assert opened, "dovetail-xpu opened no oneDNN"
    assert all(one.resolve() == two.resolve() for one, two in opened), opened
