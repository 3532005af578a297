"""Groups as kernels that the OpenCL driver of SYCL's CPU device compiles: results have the bits of the same nodes
one by one, and sums are as near to float64."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
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
from programs import ON_CPU, python


@pytest.mark.parametrize(
    "code",
    [f"first = 0\n{RANDOM}", OPS, INTEGERS, CONVERSIONS, SUMS, EMPTY_ROWS, CAPTURED],
    ids=["random", "floats", "integers", "conversions", "sums", "empty rows", "captured"],
)
def test_groups_have_the_results_of_their_nodes(code):
    python(prelude("xpu") + code, **ON_CPU)


# ---- what is compiled, and when --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compiler(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("compiler") / "librefusing.so"
    source = Path(__file__).with_name("refusing_compiler.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", source, "-o", library], check=True)
    return library


@pytest.fixture
def program(compiler):
    """program(code, **variables) runs it in a new process, behind refusing_compiler.c."""
    texts = "import ctypes\ntexts = ctypes.CDLL(os.environ['LD_PRELOAD']).texts\n"
    return lambda code, **variables: python(
        prelude("xpu") + texts + code, LD_PRELOAD=str(compiler), **ON_CPU | variables
    )


def test_a_text_is_compiled_once_for_all_sizes_numbers_and_functions(program):
    program(
        ONE_TEXT
        + """
assert launches(f, x, 0.5) == ["multiply+exp+add"]
"""
    )


def test_the_text_of_a_kernel_is_dumped(program, tmp_path):
    program(f"""
import os
os.environ["DOVETAIL_COMPILE_DUMP"] = {str(tmp_path)!r}
dt.compile(lambda x: dt.exp(x) - 3.5)(made(8))
""")
    (text,) = tmp_path.glob("kernel-*.text")
    assert "__kernel void group(" in text.read_text()


def test_what_does_not_compile_runs_node_by_node(program):
    """With a warning that has the compiler's words."""
    program(
        """
f = dt.compile(lambda x: dt.exp(x) + x * 2.0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    same(f(made(40)), f.__wrapped__(made(40)))
assert len(caught) == 1 and "error: expected unqualified-id" in str(caught[0].message), caught
assert launches(f, made(40)) == ["exp", "multiply", "add"]
assert "error: expected unqualified-id" in f.explain(made(40)), f.explain(made(40))
""",
        OPENCL_REFUSE="dvt_exp",
    )


def test_a_form_that_does_not_compile_runs_node_by_node(program):
    """That of operands which lie in other orders, for example; it is tried once."""
    program(REFUSED_FORM, OPENCL_REFUSE="size[2]")


def test_a_group_with_too_many_arguments_runs_node_by_node():
    """A kernel has 1 KB for them, on every device."""
    python(
        prelude("xpu")
        + """
def f(*xs):
    y = dt.exp(xs[0])
    for x in xs[1:]:
        y = y * 1.5 + x
    return y
xs = [dt.permute_dims(made(3, 4, 5, seed=i), (2, 1, 0)) if i % 2 else made(5, 4, 3, seed=i) for i in range(40)]
c = dt.compile(f)
same(c(*xs), f(*xs))
assert launches(c, *xs)[:3] == ["exp", "multiply", "add"], launches(c, *xs)
same(c(*xs[:9]), f(*xs[:9]))
assert len(launches(c, *xs[:9])) == 1
""",
        **ON_CPU,
    )


def test_without_the_compiler_nodes_run_one_by_one(program):
    """explain() says why; nothing is printed, nothing fails."""
    program(
        """
f = dt.compile(lambda x: dt.exp(x) + x)
warnings.simplefilter("error")
same(f(made(40)), f.__wrapped__(made(40)))
assert launches(f, made(40)) == ["exp", "add"]
assert "one by one: exp: groups need OpenCL's library" in f.explain(made(40)), f.explain(made(40))
""",
        OPENCL_HIDE="clCreateProgramWithSource",
    )


def test_the_suite_of_compiled_functions(conform):
    results = conform("--level", "L3", "-k", "device.compile")
    assert {case["status"] for case in results["cases"]} == {"pass"}, results["printed"]
