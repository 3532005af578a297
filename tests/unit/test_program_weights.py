"""Weights that a .dvt file names in other files, where such files may lie, and the hashes of tensors."""

import hashlib
import json
import os
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core
from dovetail_conformance.interpret import interpret
from test_program_file import dumps, pack, parts, sha256

SEED = int(os.environ.get("DOVETAIL_SEED", "20261128"))
print(f"DOVETAIL_SEED={SEED}")
RNG = np.random.default_rng(SEED)
W, BIAS = RNG.standard_normal((4, 3)).astype(np.float32), RNG.standard_normal(3).astype(np.float32)
X = RNG.standard_normal((2, 4)).astype(np.float32)


def program() -> dt.Program:
    w, bias = dt.asarray(W, device="cpu:0"), dt.asarray(BIAS, device="cpu:0")
    return dt.export(lambda x: x @ w + bias, dt.spec(("n", 4), "float32"))


def checkpoint(path: Path, **arrays: np.ndarray) -> Path:
    dt.save_safetensors({name: dt.asarray(x, device="cpu:0") for name, x in arrays.items()}, path)
    return path


@pytest.fixture
def saved(tmp_path) -> Path:
    """A program whose matrix is in model.safetensors, and whose bias is its own."""
    checkpoint(tmp_path / "model.safetensors", **{"encoder.weight": W, "other": -W})
    program().save(tmp_path / "m.dvt", weights=["model.safetensors"])
    return tmp_path / "m.dvt"


def with_entry(path: Path, **changes: object) -> Path:
    """The file with another entry of its matrix, and the right hash."""
    header, data = parts(path)
    document = json.loads(header["__metadata__"]["program"])
    (name,) = [n for n, entry in document["tensors"].items() if entry["shape"] == [4, 3]]
    for key, value in changes.items():
        if value is None:
            document["tensors"][name].pop(key)
        else:
            document["tensors"][name][key] = value
    metadata = {"format": "dovetail", "program": dumps(document), "sha256": sha256(document)}
    return pack(path, {**header, "__metadata__": metadata}, data)


def gives_the_result(path: Path) -> None:
    for device in ("cpu:0", "sim:0"):
        np.testing.assert_allclose(dt.load(path)(dt.asarray(X, device=device)).numpy(), X @ W + BIAS, rtol=1e-5)


def refused(path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"^\[m.dvt\] " + text):
        dt.load(path)


def test_weights_of_a_checkpoint_are_not_written_again(saved):
    header, _ = parts(saved)
    document = json.loads(header["__metadata__"]["program"])
    entry = document["tensors"]["w0"]
    assert entry == {
        "dtype": "float32", "shape": [4, 3], "file": "model.safetensors", "tensor": "encoder.weight",
        "sha256": hashlib.sha256(W.tobytes()).hexdigest(),
    }  # fmt: skip
    assert set(header) == {"__metadata__", "w1"}
    gives_the_result(saved)
    (got,) = interpret(saved, [X])
    np.testing.assert_allclose(got, X @ W + BIAS, rtol=1e-6)


def test_a_folder_below_and_weights_that_no_file_has(tmp_path):
    (tmp_path / "shards").mkdir()
    checkpoint(tmp_path / "shards/a.safetensors", bias=BIAS)
    program().save(tmp_path / "m.dvt", weights=["shards/a.safetensors"])
    header, _ = parts(tmp_path / "m.dvt")
    assert set(header) == {"__metadata__", "w0"}
    gives_the_result(tmp_path / "m.dvt")


def test_a_loaded_program_is_saved_whole(saved, tmp_path):
    dt.load(saved).save(tmp_path / "m.dvt")
    (tmp_path / "model.safetensors").unlink()
    gives_the_result(tmp_path / "m.dvt")


@pytest.mark.parametrize(
    "name", ["../w.safetensors", "/etc/passwd", "a/../w.safetensors", "./w.safetensors", "a//b", "", "..", "a\\b",
             "c:w.safetensors", "a/", "x" * 2000, "a\0b"],
)  # fmt: skip
def test_names_that_leave_the_folder(saved, name):
    checkpoint(saved.parent.parent / "w.safetensors", **{"encoder.weight": W})
    try:
        refused(with_entry(saved, file=name), ".*it leaves the program's folder: expected a relative name")
    finally:
        (saved.parent.parent / "w.safetensors").unlink()
    with pytest.raises(ValueError, match="leaves the program's folder"):
        program().save(saved, weights=[name])


def test_links_that_leave_the_folder(tmp_path):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir(), elsewhere.mkdir()
    checkpoint(elsewhere / "w.safetensors", weight=W)
    (home / "w.safetensors").symlink_to(elsewhere / "w.safetensors")
    with pytest.raises(ValueError, match=r"it is a link to .*elsewhere/w.safetensors"):
        program().save(home / "m.dvt", weights=["w.safetensors"])
    (home / "w.safetensors").unlink()
    checkpoint(home / "w.safetensors", weight=W)
    program().save(home / "m.dvt", weights=["w.safetensors"])
    gives_the_result(home / "m.dvt")
    (home / "w.safetensors").unlink()
    for target in (elsewhere / "w.safetensors", Path("../elsewhere/w.safetensors")):
        (home / "w.safetensors").symlink_to(target)
        refused(home / "m.dvt", 'tensor w0 in "w.safetensors": it leaves the program\'s folder: it is a link to')
        (home / "w.safetensors").unlink()
    (home / "inside").mkdir()
    checkpoint(home / "inside/real.safetensors", weight=W)
    (home / "w.safetensors").symlink_to("inside/real.safetensors")
    gives_the_result(home / "m.dvt")


def test_a_hugging_face_cache_has_links_to_its_blobs(tmp_path):
    repository = tmp_path / "models--acme--tiny"
    snapshot, blobs = repository / "snapshots/0123abcd", repository / "blobs"
    snapshot.mkdir(parents=True), blobs.mkdir()
    checkpoint(blobs / "aa11", weight=W)
    (snapshot / "model.safetensors").symlink_to("../../blobs/aa11")
    program().save(snapshot / "m.dvt", weights=["model.safetensors"])
    (snapshot / "m.dvt").rename(blobs / "bb22")
    (snapshot / "m.dvt").symlink_to("../../blobs/bb22")
    gives_the_result(snapshot / "m.dvt")
    (tmp_path / "models--other").mkdir()
    checkpoint(tmp_path / "models--other/blobs", weight=W)
    (snapshot / "model.safetensors").unlink()
    (snapshot / "model.safetensors").symlink_to("../../../models--other/blobs")
    refused(
        snapshot / "m.dvt", 'tensor w0 in "model.safetensors": it leaves the program\'s folder: it is a link to'
    )


def test_files_that_do_not_fit(saved):
    refused(with_entry(saved, tensor="gone"), 'tensor w0 in "model.safetensors": it has no tensor gone')
    refused(with_entry(saved, tensor=None), "tensor w0: expected both a file and a tensor")
    refused(with_entry(saved, tensor="other", sha256="12"), "tensor w0: its sha256 is no number of 64")
    checkpoint(saved.parent / "model.safetensors", other=W.astype(np.float64))
    refused(
        with_entry(saved, tensor="other", sha256="0" * 64), "tensor w0 in .*: dtype, shape or size are not those"
    )
    (saved.parent / "model.safetensors").write_bytes(b"{}")
    refused(saved, 'tensor w0 in "model.safetensors": not a safetensors file')
    (saved.parent / "model.safetensors").unlink()
    refused(saved, 'tensor w0 in "model.safetensors": there is no such file in the program\'s folder')
    with pytest.raises(ValueError, match=r"weights \"gone.safetensors\": there is no such file"):
        program().save(saved, weights=["gone.safetensors"])


def test_hashes_of_tensors(saved):
    assert _core.verify_program(saved) == (2, W.nbytes + BIAS.nbytes, [], [])
    checkpoint(saved.parent / "model.safetensors", **{"encoder.weight": W + 1})
    assert _core.verify_program(saved)[3] == ["w0"]
    gives = dt.load(saved)(dt.asarray(X, device="cpu:0")).numpy()  # a program does not read them
    np.testing.assert_allclose(gives, X @ (W + 1) + BIAS, rtol=1e-5)
    data = bytearray(saved.read_bytes())
    data[-1] ^= 1
    saved.write_bytes(data)
    assert _core.verify_program(saved)[3] == ["w0", "w1"]
    assert _core.verify_program(with_entry(saved, sha256=None))[2] == ["w0"]
