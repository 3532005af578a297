"""The schema imports nothing but itself. Each check reads the sources in place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "core" / "schema"
OPS = sorted((SCHEMA / "ops").glob("*.py"))
FILES = sorted(path for path in SCHEMA.rglob("*.py") if path.name != "decompositions.py")  # it needs the runtime
STANDARD = {
    "__future__", "argparse", "ast", "collections", "contextlib", "difflib", "importlib", "itertools", "math",
    "numbers",
    "operator", "pathlib", "struct", "sys", "threading", "typing",
}  # fmt: skip


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(node: ast.AST) -> set[str]:
    """Top-level packages that the statements below node import; relative imports are not counted."""
    found = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Import):
            found |= {a.name.split(".")[0] for a in n.names}
        elif isinstance(n, ast.ImportFrom) and n.level == 0 and n.module:
            found.add(n.module.split(".")[0])
    return found


def is_op(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(d, ast.Call) and isinstance(d.func, ast.Name) and d.func.id == "op" for d in node.decorator_list
    )


def declared() -> list[tuple[Path, ast.FunctionDef]]:
    return [(path, node) for path in OPS for node in tree(path).body if is_op(node)]


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_the_schema_stands_alone(path):
    """Only the standard library on import; NumPy in oracles, the runtime for arrays."""
    allowed = STANDARD | ({"numpy"} if path.name == "oracle.py" else set())
    top_level = [n for n in tree(path).body if not isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.If))]
    assert set().union(*map(imported, top_level)) <= allowed
    assert imported(tree(path)) <= STANDARD | {"numpy", "ml_dtypes", "dovetail"}
    if "dovetail" in imported(tree(path)):
        assert path.name == "declare.py"


@pytest.mark.parametrize("path", OPS, ids=relative)
def test_a_file_of_ops_imports_the_schema_only(path):
    assert imported(tree(path)) <= {"__future__", "collections", "itertools", "math", "struct"}


def test_every_op_is_declared_once():
    names = [node.name.removesuffix("_") for _, node in declared()]
    assert len(names) > 120
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("path", OPS, ids=relative)
def test_decompositions_compute_with_ops(path):
    """A decomposition never uses NumPy: that would read values."""
    for node in tree(path).body:
        if is_op(node):
            used = {n.id for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name)}
            assert not used & {"np", "numpy"}, node.name


def test_a_body_looks_at_nothing_but_its_arguments():
    """It is traced once per shape and dtype, and replayed: no clock, no environment, no mutable globals."""
    for path, node in declared():
        for n in ast.walk(node):
            assert not isinstance(n, (ast.Global, ast.Nonlocal, ast.Await, ast.Import)), (relative(path), node.name)


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_files_stay_readable(path):
    text = path.read_text()
    assert text.count("\n") <= 500
    assert text.startswith('"""')
    for word in ("TODO", "FIXME", "XXX"):
        assert word not in text


def test_every_rule_that_an_op_names_exists_in_the_core():
    """rules.inc lists the core's rules; the schema only describes them."""
    listed = (ROOT / "core/src/rules/rules.inc").read_text()
    for _, node in declared():
        call = next(d for d in node.decorator_list if isinstance(d, ast.Call))
        for key in call.keywords:
            if key.arg in ("shape", "dtype") and isinstance(key.value, ast.Constant):
                kind = {"shape": "SHAPE", "dtype": "DTYPE"}[key.arg]
                assert f"{kind}({key.value.value}" in listed, f"{node.name}: {key.arg} {key.value.value}"
