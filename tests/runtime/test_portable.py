"""Decompositions in a .dvt file: a process without Python runs calls for which its library brings none."""

import json
import subprocess
import sys
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from c_programs import compiled

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from test_program_file import dumps, pack, parts, sha256

SEED = 20261128
X = np.random.default_rng(SEED).standard_normal((2, 1, 2, 1, 2, 3, 4)).astype(np.float32)
PATTERN = "f32.7;i"  # more axes than the library's own decompositions have


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    return compiled("run_program", tmp_path_factory.mktemp("run_program"))


@pytest.fixture
def run(program, tmp_path):
    """(result, error) of a file on the simulated accelerator, which has primitives alone."""
    library = pytest.importorskip("dovetail_sim").backend.library

    def run(file: Path, x: np.ndarray = X) -> tuple[np.ndarray | None, str]:
        np.save(tmp_path / "x.npy", x)
        ended = subprocess.run(
            [program, "sim:0", library, file, tmp_path / "x.npy", tmp_path / "y.npy"],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert ended.returncode in (0, 1), ended.stderr
        return (np.load(tmp_path / "y.npy"), "") if ended.returncode == 0 else (None, ended.stderr)

    return run


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def saved(path: Path, portable: bool = True, rank: int = 7) -> Path:
    dt.export(lambda x: dt.nn.softmax(x, axis=-1), dt.spec((None,) * rank, "float32")).save(path, portable=portable)
    return path


def document(path: Path) -> dict:
    return json.loads(parts(path)[0]["__metadata__"]["program"])


def with_document(path: Path, change) -> Path:
    header, data = parts(path)
    program = json.loads(header["__metadata__"]["program"])
    change(program)
    metadata = {"format": "dovetail", "program": dumps(program), "sha256": sha256(program)}
    return pack(path, {**header, "__metadata__": metadata}, data)


def test_a_call_that_the_library_has_no_decomposition_of(run, tmp_path):
    result, error = run(saved(tmp_path / "m.dvt", portable=False))
    assert result is None and f"this library brings no decomposition for {PATTERN}" in error
    result, _ = run(saved(tmp_path / "m.dvt"))
    np.testing.assert_allclose(result, softmax(X), rtol=1e-6, atol=1e-7)
    for shape in ((1,) * 7, (3, 2, 1, 1, 1, 2, 9)):  # sizes that were not tried
        x = np.random.default_rng(SEED).standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(run(tmp_path / "m.dvt", x)[0], softmax(x), rtol=1e-6, atol=1e-7)


def test_a_call_that_only_complex_numbers_have_a_decomposition_of(run, tmp_path):
    x = X.reshape(2, -1, 4)
    for portable in (False, True):
        made = dt.export(lambda x: dt.abs(dt.astype(x, "complex64") * 2 + x), dt.spec((None, None, 4), "float32"))
        made.save(tmp_path / "m.dvt", portable=portable)
        result, error = run(tmp_path / "m.dvt", x)
        if portable:
            np.testing.assert_allclose(result, 3 * np.abs(x), rtol=1e-6)
        else:
            assert "[astype] has no kernel, and this library brings no decomposition for f32.3;c64" in error


def test_what_is_in_the_file(tmp_path):
    known = document(saved(tmp_path / "m.dvt"))["decompositions"]
    assert known["softmax"]["v"] == 1 and list(known["softmax"]["patterns"]) == [PATTERN]
    ops = {node["op"] for of_op in known.values() for program in of_op["programs"] for node in program["nodes"]}
    from dovetail.schema import registry

    composite = {name for name in ops if registry[name].decomposition or registry[name].stored_decomposition}
    assert composite <= set(known), "what is in a decomposition is there, too"
    again = tmp_path / "again.dvt"
    dt.load(tmp_path / "m.dvt").save(again)
    assert document(again)["decompositions"] == known
    assert "decompositions" not in document(saved(tmp_path / "n.dvt", portable=False))


def test_the_librarys_own_decomposition_wins(run, tmp_path):
    """The file's would return its operand."""

    def change(program):
        wrong = {"inputs": [{}], "nodes": [], "outputs": [0]}
        program["decompositions"]["softmax"] = {
            "v": 1,
            "patterns": {"f32.2;i": [0], "*.2;i": [0]},
            "programs": [wrong],
        }

    x = X.reshape(-1, 4)
    np.testing.assert_allclose(
        run(with_document(saved(tmp_path / "m.dvt", rank=2), change), x)[0], softmax(x), rtol=1e-6
    )
    np.testing.assert_allclose(dt.load(tmp_path / "m.dvt")(x).numpy(), softmax(x), rtol=1e-6)


def of_softmax(program: dict, **changes: object) -> None:
    one = {"patterns": {PATTERN: [0]}} if "programs" in changes else {}
    program["decompositions"]["softmax"].update(one | changes)


HOSTILE = {
    "leads to itself": (
        lambda p: of_softmax(
            p, programs=[{"inputs": [{}], "nodes": [{"op": "softmax", "in": [0]}], "outputs": [1]}]
        ),
        "decompositions within decompositions",
    ),
    "other results": (
        lambda p: of_softmax(p, programs=[{"inputs": [{}], "nodes": [], "outputs": [0, 0]}]),
        "brings no decomposition",
    ),
    "other operands": (
        lambda p: of_softmax(p, programs=[{"inputs": [{}, {}], "nodes": [], "outputs": [0]}]),
        "brings no decomposition",
    ),
    "another shape": (
        lambda p: of_softmax(p, programs=[{"inputs": [{}], "nodes": [{"op": "sum", "in": [0]}], "outputs": [1]}]),
        "its decomposition gives shape",
    ),
    "an op that is not here": (
        lambda p: of_softmax(
            p, programs=[{"inputs": [{}], "nodes": [{"op": "nosuch", "in": [0]}], "outputs": [1]}]
        ),
        "brings no decomposition",
    ),
    "a later version": (lambda p: of_softmax(p, v=2), "brings no decomposition"),
    "no version": (lambda p: of_softmax(p, v=0), "decompositions of softmax: v: expected at least 1"),
    "a place that is not there": (lambda p: of_softmax(p, patterns={PATTERN: [7]}), "decompositions of softmax: "),
    "a list": (lambda p: p.update(decompositions=[]), "decompositions: expected an object"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_decompositions_that_are_wrong(run, tmp_path, name):
    change, text = HOSTILE[name]
    result, error = run(with_document(saved(tmp_path / "m.dvt"), change))
    assert result is None and text in error, error
