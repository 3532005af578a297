"""Groups as kernels of text. The emulated driver runs them by a fake NVRTC, behind which is a C++ compiler: results
have the bits of the same nodes one by one. The real NVRTC compiles the same texts to machine code, which nothing
here can run.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import nvrtc
import pytest
from cuda_programs import EMULATED, NVIDIA, ON_GPU, PROGRAMS, needs_gpu, python, run
from group_programs import (
    CAPTURED,
    CONVERSIONS,
    EMPTY_ROWS,
    INTEGERS,
    ONE_TEXT,
    OPS,
    RANDOM,
    REFUSED_FORM,
    SUMS,
    prelude,
)

HERE = str(Path(__file__).resolve().parent)
ORDERS = ["forward", "backward", "shuffled:1"]
GROUPS = EMULATED | {"DOVETAIL_CUDA_LIBS": str(PROGRAMS / "fake/nvrtc")}
PRELUDE = (
    prelude("cuda")
    + f"""
sys.path.insert(0, {HERE!r})
def texts():
    return sum(name.endswith(".cu") for name in os.listdir(os.environ["FAKE_NVRTC_LOG"]))
"""
)


def program(code: str, **variables: str) -> str:
    """On the emulated driver, unless the variables say otherwise."""
    return python(PRELUDE + code, **GROUPS | variables)


@pytest.fixture
def variables(machine: dict[str, str]) -> dict[str, str]:
    """On a GPU, if there is one, the real NVRTC."""
    return GROUPS if machine == EMULATED else machine


@pytest.fixture
def log(tmp_path: Path) -> dict[str, str]:
    """The variable that makes the fake NVRTC keep the texts."""
    return {"FAKE_NVRTC_LOG": str(tmp_path)}


# ---- results ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> Path:
    """The folder of the texts of random groups whose results were right, in a folder for each order of threads."""
    folder = tmp_path_factory.mktemp("texts")
    for i, order in enumerate(ORDERS):
        variables = {"FAKE_NVRTC_LOG": str(folder / order), "DOVETAIL_CUDA_EMULATED_ORDER": order}
        program(f"first = {5 * i}\n{RANDOM}", **variables)
    return folder


def test_random_groups_have_the_bits_of_their_nodes(printed):
    """In several orders of threads: without a barrier a group has other results in one of them."""
    assert len(list(printed.glob("*/*.cu"))) >= 15


@needs_gpu
def test_random_groups_on_a_gpu():
    python(f"{PRELUDE}\nfirst = 0\n{RANDOM}", **ON_GPU)


@pytest.mark.parametrize(
    "code", [OPS, INTEGERS, CONVERSIONS, EMPTY_ROWS], ids=["floats", "integers", "conversions", "empty rows"]
)
def test_every_op_has_the_bits_of_its_kernel(code, variables):
    python(PRELUDE + code, **variables)


def test_sums_are_near_to_float64(variables):
    """Compositions that are one launch, of halves too: at most as inexact as their nodes one by one."""
    python(PRELUDE + SUMS, **variables)


# ---- what is compiled, and when --------------------------------------------------------------------------------


def test_a_text_is_compiled_once_for_all_sizes_numbers_and_functions(log):
    program(ONE_TEXT, **log)


def test_the_text_of_a_kernel_is_dumped(log, tmp_path):
    program(
        f"""
import os
os.environ["DOVETAIL_COMPILE_DUMP"] = {str(tmp_path)!r}
dt.compile(lambda x: dt.exp(x) - 3.5)(made(8))
""",
        **log,
    )
    (text,) = tmp_path.glob("kernel-*.text")
    assert "__global__" in text.read_text()


def test_groups_are_captured(variables):
    python(PRELUDE + CAPTURED, **variables)


def test_what_does_not_compile_runs_node_by_node(log):
    """With a warning that has the compiler's words."""
    program(
        """
f = dt.compile(lambda x: dt.exp(x) + x * 2.0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    same(f(made(40)), f.__wrapped__(made(40)))
assert "refused: dvt_exp" in str(caught[0].message) and len(caught) == 1, [str(w.message) for w in caught]
assert launches(f, made(40)) == ["exp", "multiply", "add"]
assert "refused: dvt_exp" in f.explain(made(40))
""",
        FAKE_NVRTC_REFUSE="dvt_exp",
        **log,
    )


def test_a_form_that_does_not_compile_runs_node_by_node(log):
    """That of operands which lie in other orders, for example; it is tried once."""
    program(REFUSED_FORM, FAKE_NVRTC_REFUSE="size[2]", **log)


def test_a_kernel_that_is_not_loaded():
    """As where the GPU has no memory for its code: its nodes run one by one."""
    program("""
from libcuda import Driver
x, y = made(6, 7), made(6, 7, seed=1)
other = dt.permute_dims(made(7, 6), (1, 0))
for args in ((x, y), (other, y)):
    f = dt.compile(lambda x, y: dt.exp(x) + y)
    expected = [f.__wrapped__(*a) for a in ((x, y), args)]  # which loads their kernels
    if args[0] is other:
        same(f(x, y), expected[0])
    Driver().fail("cuLibraryLoadData=2@1")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        same(f(*args), expected[1])
    if args[0] is x:
        assert "cuLibraryLoadData: " in str(caught[0].message), [str(w.message) for w in caught]
    Driver().fail("")
    assert launches(f, *args) == ["exp", "add"]
""")


# ---- without NVRTC ---------------------------------------------------------------------------------------------

ALONE = """
f = dt.compile(lambda x: dt.exp(x) + x)
warnings.simplefilter("error")
same(f(made(40)), f.__wrapped__(made(40)))
assert launches(f, made(40)) == ["exp", "add"]
print(f.explain(made(40)))
"""


def test_without_nvrtc_nodes_run_one_by_one(tmp_path):
    """explain() says why; nothing is printed, nothing fails."""
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "libnvrtc.so.13"]
    subprocess.run(command, input="int nvrtcCreateProgram(void) { return 0; }", text=True, check=True)
    printed = program(ALONE, DOVETAIL_CUDA_LIBS=str(tmp_path))
    assert "one by one: exp: NVRTC is too old: it has no nvrtc" in printed
    assert "pip install -U 'dovetail-cuda[cu13]'" in printed


def test_a_gpu_that_nvrtc_does_not_know(tmp_path):
    printed = program(ALONE, DOVETAIL_CUDA_EMULATED_CAPABILITY="10.0")
    assert "one by one: exp: NVRTC is too old for this GPU: it has no sm_100" in printed


def test_machine_code_is_not_for_the_emulated_driver():
    printed = program(ALONE, DOVETAIL_CUDA_LIBS="")
    assert "one by one: exp: the emulated driver runs no machine code of NVRTC's" in printed


# ---- machine code ----------------------------------------------------------------------------------------------


def options_of(text: str, architecture: str, headers: Path) -> list[str]:
    """Those that the backend gave, for another GPU; NVRTC finds the backend's headers and no others."""
    given = text.splitlines()[0].removeprefix("// ").split()
    return [*(o for o in given if not o.startswith("-arch")), f"-arch={architecture}", f"-I{headers}"]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_nvrtc_compiles_the_texts(printed, architecture):
    """All of an order as one program, in which each kernel has a name of its own."""
    for folder in printed.iterdir():
        texts = [file.read_text() for file in sorted(folder.glob("*.cu"))]
        joined = "".join(re.sub(r"\b(group\(|dvt_arguments\b)", rf"t{i}_\1", text) for i, text in enumerate(texts))
        code = nvrtc.compile(joined, *options_of(texts[0], architecture, folder / "headers"))
        assert all(b".text.t%d_group" % i in code for i in range(len(texts)))


def test_nvrtc_compiles_every_function(printed):
    """Kept as functions, whether a text calls them or not."""
    folder = printed / ORDERS[0]
    options = options_of(next(folder.glob("*.cu")).read_text(), "sm_80", folder / "headers")
    functions = (folder / "headers/groups/device/functions.cuh").read_text().replace("#pragma once", "")
    code = nvrtc.compile(functions.replace("static __device__", "__device__"), *options, "-rdc=true")
    for name in ("exp_f32", "pow_i8", "gelu_tanh_f64", "convert_u64_bf16", "load_f8e5m2", "isfinite_f64"):
        assert re.search(rf"\.text\.\w*dvt_{name}".encode(), code), name


def test_products_and_sums_are_not_contracted(tmp_path, log):
    program("f = dt.compile(lambda x, y: x * y + y)\nf(made(40), made(40))", **log)
    text = (tmp_path / "0.cu").read_text()
    for architecture in ("sm_80", "sm_90a"):
        cubin = tmp_path / f"{architecture}.cubin"
        cubin.write_bytes(nvrtc.compile(text, *options_of(text, architecture, tmp_path / "headers")))
        instructions = run(NVIDIA / "cu13/bin/cuobjdump", "-sass", cubin).stdout
        assert "FMUL" in instructions and "FADD" in instructions and "FFMA" not in instructions, instructions


# ---- the suite -------------------------------------------------------------------------------------------------


def test_the_suite_of_compiled_functions(conform, variables):
    results = conform("--level", "L3", "-k", "device.compile", **variables)
    assert {case["status"] for case in results["cases"]} == {"pass"}, results["printed"]
