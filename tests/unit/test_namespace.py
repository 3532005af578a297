"""The namespace of the package: complete, quick to import, with true module names."""

from __future__ import annotations

import ast
import importlib
import inspect
import shutil
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import dovetail as dt
import pytest

# Slow modules and those of a device; a plain import must load none of them.
HEAVY = (
    "numpy",
    "inspect",
    "importlib_metadata",
    "importlib.metadata",
    "typing",
    "re",
    "click",
    "rich",
    "ml_dtypes",
    "dovetail.schema",
)

# What the array API 2025.12 has, by namespace.
STANDARD = {
    "": (
        "abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh "
        "bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays "
        "broadcast_shapes broadcast_to can_cast ceil clip concat conj copysign cos cosh count_nonzero "
        "cumulative_prod cumulative_sum diff divide e empty empty_like equal exp expand_dims expm1 eye finfo flip "
        "floor floor_divide from_dlpack full full_like greater greater_equal hypot iinfo imag inf isdtype isfinite "
        "isin isinf isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not "
        "logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply "
        "nan negative newaxis nextafter nonzero not_equal ones ones_like permute_dims pi positive pow prod real "
        "reciprocal remainder repeat reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt "
        "square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc "
        "unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros zeros_like "
    ),
    "fft": ("fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn "),
    "linalg": (
        "cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power matrix_rank "
        "matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm "
    ),
}


@pytest.mark.parametrize("space", STANDARD)
def test_every_function_of_the_standard_is_there(space):
    namespace = importlib.import_module(f"dovetail.{space}".rstrip("."))
    names = STANDARD[space].split()
    assert [name for name in names if not hasattr(namespace, name)] == []
    assert set(names) <= {*namespace.__all__}


def test_import_of_what_is_for_another_python_or_processor(tmp_path):
    shutil.copytree(Path(dt.__file__).parent, tmp_path / "dovetail", ignore=shutil.ignore_patterns("*.so*"))
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import dovetail"]
    printed = subprocess.run(command, capture_output=True, text=True).stderr
    assert "ImportError: dovetail is installed for another Python or processor" in printed
    assert "python -m pip install --force-reinstall dovetail-runtime" in printed


def test_import_loads_nothing_heavy():
    code = f"import sys; import dovetail; print([m for m in {HEAVY} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_every_written_function_is_where_the_namespace_says():
    for module, names in dt._WRITTEN.items():
        found = importlib.import_module(f"dovetail.{module}")
        assert set(names) <= set(getattr(found, "__all__", names)) | {"register_op"}
        for name in names:
            assert getattr(dt, name) is getattr(found, name)


def test_all_and_dir_are_complete():
    missing = [name for name in dt.__all__ if not hasattr(dt, name)]
    assert not missing
    assert {"add", "asarray", "float32", "nn", "random", "unique_all"} <= set(dir(dt))
    assert len(dt.__all__) == len(set(dt.__all__))


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(dt, "no_such_function")
    assert not hasattr(dt.nn, "no_such_function")


def test_ops_live_in_their_spaces_and_private_ones_nowhere():
    for op in dt._core.ops():
        space = getattr(dt, op["space"]) if op["space"] else dt
        if "." in op["name"]:
            continue  # another test's
        if op["private"] and op["name"] not in ("cond", "scan", "while_loop"):  # functions that record those ops
            assert not hasattr(dt, op["name"])
        elif op["space"] != "random":
            assert callable(getattr(space, op["name"]))


def test_ops_have_signatures():
    assert str(inspect.signature(dt.add)) == "(x1, x2, /)"
    assert str(inspect.signature(dt.clip)) == "(x, /, min=None, max=None)"
    assert str(inspect.signature(dt.sum)) == "(x, /, *, axis=None, dtype=None, keepdims=False)"
    assert str(inspect.signature(dt.zeros)) == "(shape, *, dtype=None, device=None)"
    assert str(inspect.signature(dt.concat)) == "(arrays, /, *, axis=0)"
    assert str(inspect.signature(dt.expand_dims)) == "(x, /, axis=0)"


def test_linalg_has_what_the_standard_has_in_both_namespaces():
    for name in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
        assert getattr(dt.linalg, name) is getattr(dt, name) and name in dt.linalg.__all__
    assert {"qr", "solve", "cholesky", "svd"} <= {*dt.linalg.__all__}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("concatenate", "it is dovetail.concat"),
        ("array", "it is dovetail.asarray"),
        ("softmax", "it is dovetail.nn.softmax"),
        ("normal", "it is dovetail.random.normal"),
    ],
)
def test_names_of_other_libraries_are_explained(name, message):
    with pytest.raises(AttributeError, match=message):
        getattr(dt, name)


def test_suggested_names_exist():
    from dovetail._names import RENAMED

    assert not [name for name in RENAMED if hasattr(dt, name)]
    attrgetter(*RENAMED.values())(dt)


def test_submodules_list_their_own_names():
    for module in (dt.memory, dt.random):
        assert dir(module) == sorted(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)


def test_stubs_have_the_functions_that_are_written_by_hand():
    """Each from its own module: the signature of the op's stub may lack parameters."""
    stub = ast.parse(Path(dt.__file__).with_name("__init__.pyi").read_text())
    imported = {a.name: n.module for n in stub.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert {name: imported.get(name) for name in dt._HOME} == {n: f"dovetail.{m}" for n, m in dt._HOME.items()}
