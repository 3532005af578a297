"""The .dvt file: what is in it, who can read it, and files that are wrong."""

import hashlib
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core

SEED = int(os.environ.get("DOVETAIL_SEED", "20261125"))
print(f"DOVETAIL_SEED={SEED}")
W = np.random.default_rng(SEED).standard_normal((5, 3)).astype(np.float32)


def program(dtype: str = "float32", *, where: str = "user.py:3") -> _core.Program:
    b = _core.ProgramBuilder()
    x = b.input(dtype, ["n", 5], "x")
    first = b.array_constant(dt.asarray(W, device="cpu:0").astype(dtype))
    second = b.array_constant(dt.asarray(W[:1], device="cpu:0").astype(dtype), "bias")
    product = b.call("matmul", [x, first], {}, [])
    b.at(where)
    out = b.call("add", [product, second], {}, [])
    return b.finish([out, first, second], '{"arguments":{"tuple":[0]}}')


def parts(path: Path) -> tuple[dict, bytes]:
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def pack(path: Path, header: dict | str | bytes, data: bytes) -> Path:
    text = header if isinstance(header, bytes) else (header if isinstance(header, str) else dumps(header)).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def sha256(document: dict) -> str:
    """Of the program's text without the nodes' places and the tensors' hashes; these have no number that Python
    spells otherwise."""
    nodes = [{k: v for k, v in node.items() if k != "where"} for node in document["nodes"]]
    bare = {**document, "nodes": nodes}
    if "tensors" in bare:
        bare["tensors"] = {
            name: {k: v for k, v in entry.items() if k != "sha256"} for name, entry in bare["tensors"].items()
        }
    return hashlib.sha256(dumps(bare).encode()).hexdigest()


def with_program(header: dict, change) -> dict:
    """The header with a program that is not as it was, and its right hash."""
    document = json.loads(header["__metadata__"]["program"])
    change(document)
    metadata = {"format": "dovetail", "program": dumps(document), "sha256": sha256(document)}
    return {**header, "__metadata__": metadata}


@pytest.fixture
def saved(tmp_path) -> Path:
    path = tmp_path / "m.dvt"
    program().save(path)
    return path


def test_a_file_holds_the_program_and_its_arrays(saved):
    header, data = parts(saved)
    metadata = header.pop("__metadata__")
    document = json.loads(metadata["program"])
    assert metadata["format"] == "dovetail"
    assert metadata["sha256"] == sha256(document) == sha256(json.loads(program().text()))
    assert document["tensors"] == {
        "w0": {"dtype": "float32", "shape": [5, 3], "sha256": hashlib.sha256(W.tobytes()).hexdigest()},
        "bias": {"dtype": "float32", "shape": [1, 3], "sha256": hashlib.sha256(W[:1].tobytes()).hexdigest()},
    }
    assert header["w0"] == {"dtype": "F32", "shape": [5, 3], "data_offsets": [0, 60]}
    assert header["bias"]["data_offsets"] == [64, 76] and header["pad0"]["data_offsets"] == [60, 64]
    assert (saved.stat().st_size - len(data)) % 64 == 0
    assert data[:60] == W.tobytes() and data[64:] == W[:1].tobytes()
    loaded = _core.load_program(saved)
    assert loaded.text() == program().text() and loaded.signature == '{"arguments":{"tuple":[0]}}'
    assert loaded.inputs == [("x", "float32", ("n", 5))]


def test_the_hash_is_the_same_wherever_the_code_was(tmp_path):
    hashes = set()
    for where in ("a.py:1", "b.py:2", ""):
        program(where=where).save(tmp_path / "m.dvt")
        hashes.add(parts(tmp_path / "m.dvt")[0]["__metadata__"]["sha256"])
    assert len(hashes) == 1


@pytest.mark.parametrize("device", ["cpu:0", "sim:0"])
def test_a_loaded_program_gives_the_same_bits(saved, device):
    loaded = _core.load_program(saved)
    saved.unlink()  # what is mapped stays
    for n in (1, 4, 0):
        x = dt.asarray(np.random.default_rng(SEED).standard_normal((n, 5)).astype(np.float32), device=device)
        for got, expected in zip(loaded.run(None, [x]), program().run(None, [x]), strict=True):
            assert np.asarray(got).tobytes() == np.asarray(expected).tobytes()


def test_every_dtype_comes_back(tmp_path):
    for name in dt.__array_namespace_info__().dtypes() | dict.fromkeys(("float16", "bfloat16", "float8_e4m3fn")):
        b = _core.ProgramBuilder()
        x = dt.asarray(np.arange(7) % 2, device="cpu:0").astype(name)
        b.finish([b.array_constant(x)]).save(tmp_path / "m.dvt")
        got = _core.load_program(tmp_path / "m.dvt").run("cpu:0", [])[0]
        assert got.dtype == x.dtype
        again = [np.asarray(a.astype("complex128" if "complex" in name else "float64")) for a in (got, x)]
        assert np.array_equal(*again), name


def test_the_safetensors_package_reads_it(saved):
    numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    arrays = numpy.load_file(saved)
    assert np.array_equal(arrays["w0"], W) and np.array_equal(arrays["bias"], W[:1])


def test_a_file_that_cannot_be_written_leaves_the_old_one(saved, tmp_path):
    before = saved.read_bytes()
    (tmp_path / "folder.dvt").mkdir()
    for path, error, why in (
        (tmp_path / "missing/m.dvt", FileNotFoundError, "No such file or directory: {}; make its folder first"),
        (tmp_path / "folder.dvt", IsADirectoryError, "Is a directory: {}; name a file"),
        (saved / "m.dvt", OSError, "Not a directory: {}; make its folder first"),
        (Path("/sys/m.dvt"), PermissionError, "Permission denied: {}; choose a folder that you may write to"),
    ):
        with pytest.raises(error, match=rf"^\[{path.name}\] it cannot be written: {why.format(path)}"):
            program().save(path)
    program("float64").save(saved)
    assert saved.read_bytes() != before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder.dvt", "m.dvt"]


# ---- files that are wrong ----------------------------------------------------------------------------------------


def refused(path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"^\[m.dvt\] " + text):
        _core.load_program(path)


def test_what_is_no_dovetail_file(tmp_path, saved):
    header, data = parts(saved)
    path = tmp_path / "m.dvt"
    for content in (b"", b"PK\x03\x04", b"x" * 100, b"\x80\x02}q\x00."):
        path.write_bytes(content)
        refused(path, "not a safetensors file")
    path.write_bytes(struct.pack("<Q", 2**40) + b"{}")
    refused(path, f"a header of {2**40} bytes: expected at most 100000000")
    del header["__metadata__"]
    refused(pack(path, header, data), "not a dovetail file: a safetensors file without a program")
    for metadata in (5, [], {"format": "pt"}, {"format": "dovetail"}, {"format": "dovetail", "program": 1}):
        refused(pack(path, {"__metadata__": metadata, **header}, data), "not a dovetail file")
    with pytest.raises(FileNotFoundError, match=r"\[gone.dvt\] no such file"):
        _core.load_program(tmp_path / "gone.dvt")
    with pytest.raises(FileNotFoundError, match="no such file"):
        _core.load_program(tmp_path)


def test_a_file_cut_at_any_byte_is_refused(saved):
    data = saved.read_bytes()
    for size in {*range(0, len(data), 41), 7, 8, 9, len(data) - 1}:
        saved.write_bytes(data[:size])
        refused(saved, "cut off: |not a safetensors file")
    saved.write_bytes(data[:-1])
    refused(saved, rf"cut off: tensor bias ends at byte {len(data)}, the file has {len(data) - 1}$")
    saved.write_bytes(data + b"\0")
    refused(saved, "the file has 1 bytes behind its last tensor")


def test_offsets_are_checked(saved):
    header, data = parts(saved)
    for name, offsets, text in [
        ("w0", [0, 64], "tensor pad0 begins at byte 60 of the data: expected 64|tensor bias begins"),
        ("w0", [4, 60], "tensor w0 begins at byte 4 of the data: expected 0"),
        ("w0", [60, 0], "tensor w0: offsets 60 and 0"),
        ("w0", [-1, 60], "tensor w0: offsets -1 and 60"),
        ("w0", [0, 2**62], "cut off: tensor w0 ends at byte"),
        ("w0", [0, 2**63 - 1], "cut off: tensor w0 ends at byte"),
        ("w0", [0, 2**64 - 1], "tensor w0: data_offsets: expected an integer of 64 bits"),
        ("w0", [2**63 - 1, 2**63 - 1], "cut off: tensor w0"),
        ("w0", [0], "tensor w0: expected two data_offsets"),
        ("w0", {"0": 60}, "tensor w0: data_offsets: expected a list"),
        ("bias", [0, 60], "tensor "),
        ("bias", [60, 64], "tensor "),
    ]:
        changed = {**header, name: {**header[name], "data_offsets": offsets}}
        refused(pack(saved, changed, data), text)


def test_tensors_are_those_of_the_program(saved):
    header, data = parts(saved)
    for key, value in [
        ("dtype", "F64"), ("dtype", "U8"), ("dtype", 3), ("shape", [3, 5]), ("shape", [15]), ("shape", "5"),
        ("shape", [2**40, 2**40]),
    ]:  # fmt: skip
        refused(pack(saved, {**header, "w0": {**header["w0"], key: value}}, data), ".*tensor")
    renamed = {{"w0": "w1"}.get(name, name): entry for name, entry in header.items()}
    refused(pack(saved, renamed, data), "it has no tensor w0, which its program needs")
    for tensor, text in [
        ({"dtype": "float32", "shape": [2**40, 2**40]}, ""),
        ({"dtype": "float32", "shape": [2**62, 2**62, 0]}, ""),
        ({"dtype": "float32", "shape": [-5, -3]}, "tensor w0: expected at most 16 axes"),
        ({"dtype": "float32", "shape": [1] * 17}, "tensor w0: expected at most 16 axes"),
        ({"dtype": "float33", "shape": [5, 3]}, "a tensor's dtype: there is no dtype 'float33'"),
        ({"shape": [5, 3]}, "a tensor: expected a member 'dtype'"),
        ({"dtype": "float32", "shape": [5, 4]}, "tensor w0: dtype, shape or size"),
    ]:
        changed = with_program(header, lambda p, tensor=tensor: p["tensors"].update(w0=tensor))
        refused(pack(saved, changed, data), text)


@pytest.mark.parametrize("byte", [2, 255])
def test_an_array_of_bool_holds_zeros_and_ones(tmp_path, byte):
    builder = _core.ProgramBuilder()
    mask = builder.array_constant(dt.asarray([True, False, True], device="cpu:0"), "mask")
    path = tmp_path / "m.dvt"
    builder.finish([mask]).save(path)
    assert _core.load_program(path).run("cpu:0", [])[0].tolist() == [True, False, True]
    header, data = parts(path)
    at = header["mask"]["data_offsets"][0] + 1
    pack(path, header, data[:at] + bytes([byte]) + data[at + 1 :])
    refused(path, f"tensor mask of bool has the byte {byte} at 1: expected 0 or 1; save it anew")


def test_the_program_is_the_one_that_was_saved(saved):
    header, data = parts(saved)
    header["__metadata__"]["program"] = header["__metadata__"]["program"].replace("matmul", "outer")
    refused(pack(saved, header, data), "its program was changed: the sha256 is [0-9a-f]{64}, expected [0-9a-f]{64}")


def test_newer_programs_name_what_they_need(saved):
    header, data = parts(saved)
    for change, text in [
        (
            lambda p: p["nodes"][0].update(v=99),
            "needs matmul version 99, this dovetail has version 2; pip install -U",
        ),
        (lambda p: p["nodes"][0].update(op="no_op"), "node 0: needs the op 'no_op', which is not here"),
        (lambda p: p.update(dovetail=2), "a program of format 2: this library reads format 1; pip install -U"),
        (lambda p: p["nodes"][0]["in"].__setitem__(1, {"tensor": "w9"}), "node 0: there is no tensor 'w9'"),
        (lambda p: p["inputs"][0].update(shape=["", 5]), "an input's shape: the name of a size is empty"),
        (lambda p: p["outputs"].append(9), "outputs 9: expected 0 to 2"),
    ]:
        refused(pack(saved, with_program(header, change), data), text)
    with pytest.raises(ValueError) as caught:
        _core.load_program(pack(saved, with_program(header, lambda p: p["nodes"][0].update(v=99)), data))
    assert caught.value.cure == "pip install -U dovetail-runtime" and str(caught.value).count("pip") == 1


def test_names_twice_and_deep_nesting_are_refused(saved):
    header, data = parts(saved)
    text = dumps(header)
    refused(
        pack(saved, text[:-1] + ',"w0":' + dumps(header["w0"]) + "}", data),
        "JSON at byte .*the name 'w0' for the second time",
    )
    for deep in ("[" * 100_000, '{"a":' * 100_000):
        refused(pack(saved, '{"__metadata__":' + deep, data), "JSON at byte .*nested too deep")
        metadata = {"format": "dovetail", "program": deep, "sha256": "0" * 64}
        refused(pack(saved, {**header, "__metadata__": metadata}, data), "JSON at byte .*nested too deep")
    refused(pack(saved, b'{"\xff' + text.encode(), data), "")


def test_no_byte_of_the_header_crashes_the_reader(saved, tmp_path):
    """In a process of its own; a file that is refused says why, with its name."""
    code = f"""
import random, sys
from dovetail import _core
data, rng = open({str(saved)!r}, "rb").read(), random.Random({SEED})
pieces = [b"9", b'"', b"[", b"99999999"]
for i in range(1500):
    mutant = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) - 80)
        mutant[at : at + rng.choice([0, 1, 1, 8])] = rng.choice(pieces + [bytes([rng.randrange(256)])])
    open({str(tmp_path / "mutant.dvt")!r}, "wb").write(mutant)
    try:
        _core.load_program({str(tmp_path / "mutant.dvt")!r})
    except ValueError as e:
        assert str(e).startswith("[mutant.dvt] "), e
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, f"DOVETAIL_SEED={SEED}\n{ended.stderr[-2000:]}"
