"""dovetail.load_safetensors and save_safetensors, compared with the safetensors package."""

import json
import os
import re
import struct
import subprocess
import sys
import threading
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core

safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
SEED = int(os.environ.get("DOVETAIL_SEED", "20261126"))
print(f"DOVETAIL_SEED={SEED}")
DEVICES = ["cpu:0", "sim:0"]
DTYPES = [name for name in dt.__array_namespace_info__().dtypes() if name != "complex128"] + [
    "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip


def arrays_of_all_dtypes(device):
    x = np.arange(6).reshape(2, 3) % 2
    made = {f"x.{name}": dt.asarray(x, device=device).astype(name) for name in DTYPES}
    scalar, empty = dt.asarray(7, device=device), dt.zeros((0, 3), device=device)
    return made | {"scalar": scalar, "empty": empty, "view": dt.arange(12, device=device).reshape(3, 4).T[1:, ::2]}


def same(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


# ---- there and back ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_every_dtype_comes_back(tmp_path, device):
    saved = arrays_of_all_dtypes(device)
    dt.save_safetensors(saved, tmp_path / "m.safetensors")
    for other in DEVICES:
        loaded = dt.load_safetensors(tmp_path / "m.safetensors", device=other)
        assert list(loaded) == list(saved)
        for name, x in loaded.items():
            assert x.device == dt.device(other) and same(x, saved[name]), name


@pytest.mark.parametrize("device", DEVICES)
def test_the_package_reads_what_we_write(tmp_path, device):
    path = tmp_path / "m.safetensors"
    saved = arrays_of_all_dtypes(device)
    dt.save_safetensors(saved, path, metadata={"format": "pt", "naïve": 'é\n"\0😀'})
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == {"format": "pt", "naïve": 'é\n"\0😀'}
        assert set(file.keys()) == set(saved)
        for name, x in saved.items():
            if x.dtype not in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):  # some versions have no NumPy dtype
                got = file.get_tensor(name)
                assert got.dtype.name == x.dtype.name and np.array_equal(got, x.numpy())


@pytest.mark.parametrize("device", DEVICES)
def test_we_read_what_the_package_writes(tmp_path, device):
    numbers = {
        name: np.arange(6).reshape(2, 3).astype(name)
        for name in ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64")
    }
    numbers["größe"] = np.ones((2, 0, 3), np.float32)
    safetensors.save_file(numbers, tmp_path / "m.safetensors", {"a": "b"})
    loaded = dt.load_safetensors(tmp_path / "m.safetensors", device=device)
    assert set(loaded) == set(numbers)
    for name, n in numbers.items():
        assert loaded[name].dtype == n.dtype and np.array_equal(loaded[name].numpy(), n)


def test_names_choose_and_order(tmp_path):
    path = tmp_path / "m.safetensors"
    dt.save_safetensors({name: dt.full((2,), i) for i, name in enumerate("abc")}, path)
    assert list(dt.load_safetensors(path, names=["c", "a", "c"])) == ["c", "a"]
    assert dt.load_safetensors(path, names=()) == {}
    with pytest.raises(
        ValueError, match=r"\[load_safetensors\] m.safetensors has no tensor 'd': .* 3, as 'a', 'b'"
    ):
        dt.load_safetensors(path, names=["a", "d"])
    with pytest.raises(TypeError, match="expected a list of names, got 'abc'"):
        dt.load_safetensors(path, names="abc")


# ---- memory ------------------------------------------------------------------------------------------------------


def test_arrays_on_the_host_are_the_file_and_never_change_it(tmp_path):
    path = tmp_path / "m.safetensors"
    dt.save_safetensors({"a": dt.asarray([1, 2], dtype="int8"), "b": dt.arange(1000.0, device="cpu:0")}, path)
    before = path.read_bytes()
    dt.memory.empty_cache("cpu:0")
    in_use = dt.memory.stats("cpu:0")["in_use"]
    loaded = dt.load_safetensors(path, device="cpu:0")
    assert dt.memory.stats("cpu:0")["in_use"] == in_use
    b = loaded["b"]
    path.unlink()
    b += 1
    b[0] = 5
    assert b.tolist()[:3] == [5, 2, 3] and loaded["a"].tolist() == [1, 2]
    path.write_bytes(before)
    assert dt.load_safetensors(path)["b"].tolist()[:3] == [0, 1, 2]


def test_elements_that_are_not_aligned_are_copied(tmp_path):
    header = {
        "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
        "b": {"dtype": "F64", "shape": [2], "data_offsets": [1, 17]},
        "c": {"dtype": "BOOL", "shape": [3], "data_offsets": [17, 20]},
    }
    data = b"\x07" + struct.pack("<2d", 1.5, -2.5) + bytes([0, 255, 2])
    path = pack(tmp_path / "m.safetensors", header, data)
    for device in DEVICES:
        loaded = dt.load_safetensors(path, device=device)
        assert loaded["a"].tolist() == [7] and (loaded["b"] * 2).tolist() == [3, -5]
        assert int(dt.sum(loaded["c"])) == 2  # bools are 0 and 1 inside
    assert np.asarray(_core.elements(dt.load_safetensors(path, device="cpu:0")["b"])).ctypes.data % 8 == 0


def test_large_arrays_go_in_chunks(tmp_path):
    n = 5_000_003  # 8 MiB and 1 byte are two chunks; these are three, from both pinned buffers
    x = np.random.default_rng(1).integers(0, 2**31, n, dtype=np.int32)
    dt.save_safetensors({"x": dt.asarray(x, device="sim:0")}, tmp_path / "m.safetensors")
    assert np.array_equal(safetensors.load_file(tmp_path / "m.safetensors")["x"], x)
    assert np.array_equal(dt.load_safetensors(tmp_path / "m.safetensors", device="sim:0")["x"].numpy(), x)


def test_a_slow_device_has_what_the_buffers_had(tmp_path):
    """In a process of its own, whose simulated device takes 50 ms to begin a copy: the host reads faster."""
    x = np.arange(5_000_000, dtype=np.float32)
    safetensors.save_file({"x": x}, tmp_path / "m.safetensors")
    code = f"""
import dovetail as dt, numpy as np
x = dt.load_safetensors({str(tmp_path / "m.safetensors")!r}, device="sim:0")["x"]
with dt.Stream("sim:0"):
    largest = dt.max(x)
assert float(largest) == 4_999_999
assert np.array_equal(x.numpy(), np.arange(5_000_000, dtype=np.float32))
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"DOVETAIL_SIM_LATENCY_US": "50000"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr


# ---- several files -----------------------------------------------------------------------------------------------


@pytest.fixture
def split(tmp_path):
    for i, names in enumerate(("ab", "c")):
        dt.save_safetensors({n: dt.full((2,), ord(n)) for n in names}, tmp_path / f"model-{i}.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    shards = {"c": "model-1.safetensors", "a": "model-0.safetensors", "b": "model-0.safetensors"}
    index.write_text(json.dumps({"metadata": {"total_size": 12}, "weight_map": shards}))
    return index


def test_an_index_names_the_files(split):
    for path in (split, str(split), split.parent):
        loaded = dt.load_safetensors(path)
        assert {name: x.tolist() for name, x in loaded.items()} == {n: [ord(n)] * 2 for n in "cab"}
        assert list(loaded) == ["c", "a", "b"]
    assert list(dt.load_safetensors(split, names=["b"])) == ["b"]
    split.unlink()
    with pytest.raises(ValueError, match=r"is a folder without model.safetensors.index.json or model.safetensors"):
        dt.load_safetensors(split.parent)
    (split.parent / "model-0.safetensors").rename(split.parent / "model.safetensors")
    assert list(dt.load_safetensors(split.parent)) == ["a", "b"]


@pytest.mark.parametrize(
    ("index", "why"),
    [
        ("[", "Expecting value"),
        ("[]", "expected an object with a weight_map"),
        ('{"weight_map": []}', "expected an object with a weight_map"),
        (
            '{"weight_map": {"a": "../a.safetensors"}}',
            "tensor a: expected the name of a .safetensors file, got '../a",
        ),
        ('{"weight_map": {"a": "/etc/passwd"}}', "tensor a: expected the name of a .safetensors file"),
        ('{"weight_map": {"a": 3}}', "tensor a: expected the name of a .safetensors file, got 3"),
        ('{"weight_map": {"a": "a.safetensors", "a": "b.safetensors"}}', "the name 'a' for the second time"),
        ('{"weight_map": ' + "[" * 100_000, "recursion"),
        ('{"weight_map": {"z": "model-1.safetensors"}}', "it has no tensor z"),
        ('{"weight_map": {"z": "gone.safetensors"}}', "gone.safetensors: no such file"),
    ],
)
def test_a_wrong_index_is_refused(split, index, why):
    split.write_text(index)
    error = FileNotFoundError if "no such file" in why else ValueError
    with pytest.raises(error, match=r"^\[load_safetensors\] .*" + why):
        dt.load_safetensors(split)


def test_no_index(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"\[load_safetensors\] gone.json: no such file"):
        dt.load_safetensors(tmp_path / "gone.json")


# ---- wrong files -------------------------------------------------------------------------------------------------


def pack(path, header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ({"a": entry(offsets=(0, 9))}, "tensor a ends at byte"),
        ({"a": entry(offsets=(0, 2**62))}, "tensor a ends at byte"),
        ({"a": entry(offsets=(8, 0))}, "tensor a: offsets 8 and 0"),
        ({"a": entry(offsets=(-8, 0))}, "tensor a: offsets -8 and 0"),
        ({"a": entry(offsets=(0, 2**64 - 1))}, "tensor a: data_offsets: expected an integer of 64 bits"),
        ({"a": entry(offsets=(0, 0.5))}, "tensor a: data_offsets: expected an integer"),
        ({"a": entry(shape=(1,), offsets=(0, 4))}, "the file has 4 bytes behind its last tensor"),
        ({"a": entry(shape=(1,), offsets=(4, 8))}, "tensor a begins at byte 4 of the data: expected 0"),
        ({"a": entry(), "b": entry(shape=(1,), offsets=(4, 8))}, "tensor [ab] begins at byte 4|tensor b begins"),
        ({"a": entry(), "b": entry()}, "tensor [ab] begins at byte 0 of the data: expected 8"),
        ({"a": entry(shape=(3,))}, "tensor a: 8 bytes, expected 12"),
        ({"a": entry(shape=())}, "tensor a: 8 bytes, expected 4"),
        ({"a": entry(shape=(2**40, 2**40))}, "tensor a: .*"),
        ({"a": entry(shape=(2**62, 4))}, "tensor a: .*"),
        ({"a": entry(shape=(-2,))}, "tensor a: .*"),
        ({"a": entry(shape=(1,) * 17 + (2,))}, "tensor a: .* has 18 axes: expected at most 16"),
        ({"a": entry(shape=("2",))}, "tensor a: shape: expected an integer"),
        ({"a": {**entry(), "shape": 2}}, "tensor a: shape: expected a list"),
        ({"a": entry(dtype="F7")}, "tensor a: dovetail has no dtype F7"),
        ({"a": entry(dtype=7)}, "tensor a: dtype: expected a string"),
        ({"a": {"dtype": "F32", "shape": [2]}}, "tensor a: its entry: expected a member 'data_offsets'"),
        ({"a": 7}, "tensor a: its entry: expected a member 'dtype'"),
        (b'{"a":' + json.dumps(entry()).encode() + b',"a":7}', "the name 'a' for the second time"),
        (b'{"\xff":' + json.dumps(entry()).encode() + b"}", "expected a name in UTF-8"),
        (b'{"a":', "JSON at byte 5"),
        (b"[]", "not a safetensors file"),
        (b'{"__metadata__":' + b"[" * 100_000, "nested too deep"),
    ],
)
def test_hostile_headers_are_refused(tmp_path, header, why):
    path = pack(tmp_path / "m.safetensors", header, bytes(8))
    with pytest.raises(ValueError, match=r"^\[load_safetensors\] m.safetensors: .*" + why):
        dt.load_safetensors(path)


def test_files_that_are_none_are_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    for content, why in [
        (b"", "not a safetensors file"),
        (b"PK\x03\x04" * 9, "not a safetensors file"),
        (struct.pack("<Q", 2**63) + b"{}", f"a header of {2**63} bytes: expected at most 100000000"),
        (struct.pack("<Q", 99) + b"{}", "cut off: the header ends at byte 107, the file has 10"),
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"^\[load_safetensors\] m.safetensors: {why}"):
            dt.load_safetensors(path)
    os.mkfifo(tmp_path / "pipe")
    for gone in ("gone", "pipe"):
        with pytest.raises(FileNotFoundError, match="no such file"):
            dt.load_safetensors(tmp_path / gone)


def test_a_file_of_many_tensors(tmp_path):
    n = 20_000
    header = {f"t{i}": entry("U8", (1,), (i, i + 1)) for i in range(n)}
    loaded = dt.load_safetensors(
        pack(tmp_path / "m.safetensors", header, (bytes(range(256)) * 79)[:n]), names=["t300"]
    )
    assert loaded["t300"].tolist() == [300 % 256]


def test_no_byte_of_a_header_crashes_the_reader(tmp_path):
    """In a process of its own; a file that is refused says why, with its name."""
    dt.save_safetensors(arrays_of_all_dtypes("cpu:0"), tmp_path / "m.safetensors", metadata={"a": "b"})
    code = f"""
import random
import dovetail as dt
data, rng = open({str(tmp_path / "m.safetensors")!r}, "rb").read(), random.Random({SEED})
end = 8 + int.from_bytes(data[:8], "little")
refused = 0
for i in range(1000):
    mutant = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(end)
        mutant[at : at + rng.choice([0, 1, 1, 8])] = rng.choice([b"9", b'"', b"[", b"9" * 8, rng.randbytes(1)])
    open({str(tmp_path / "mutant.safetensors")!r}, "wb").write(mutant)
    try:
        for x in dt.load_safetensors({str(tmp_path / "mutant.safetensors")!r}, device="cpu:0").values():
            x.tobytes()
    except ValueError as error:
        assert str(error).startswith("[load_safetensors] mutant.safetensors: "), error
        refused += 1
print(refused)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert 300 < int(run.stdout) < 1000


# ---- what cannot be saved ----------------------------------------------------------------------------------------


def test_arrays_that_cannot_be_saved(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"old")
    x = dt.zeros(2)
    for arrays, metadata, error, why in [
        (
            {"z": dt.zeros(2, dtype="complex128")},
            None,
            ValueError,
            r"z: .* no dtype complex128.*x\.real and x\.imag",
        ),
        ({"z": np.zeros(2)}, None, TypeError, r"z: expected a dovetail array, got ndarray: dovetail\.asarray"),
        (x, None, TypeError, "arrays: expected a dict of names and arrays, got Array"),
        ({3: x}, None, TypeError, "arrays: a name: expected a string, got int"),
        ({"__metadata__": x}, None, ValueError, "use metadata="),
        ({"\ud800": x}, None, ValueError, "expected text of Unicode"),
        ({"x": x}, {"a": 3}, TypeError, "metadata: a: expected a string, got int"),
        ({"x": x}, {3: "a"}, TypeError, "metadata: a name: expected a string, got int"),
    ]:
        with pytest.raises(error, match=r"^\[save_safetensors\] .*" + why):
            dt.save_safetensors(arrays, path, metadata=metadata)
    with pytest.raises(Exception, match=r"save_safetensors.*save the arrays that the function returns"):
        dt.export(lambda y: dt.save_safetensors({"y": y}, path), x)
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["m.safetensors"]


def test_the_old_file_stays_where_the_new_one_cannot_be_written(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"^\[save_safetensors\] m.safetensors: it cannot be written: No such file"
    ):
        dt.save_safetensors({"x": dt.zeros(2)}, tmp_path / "gone" / "m.safetensors")
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(IsADirectoryError, match=r"it cannot be written: Is a directory: .*; name a file"):
        dt.save_safetensors({"x": dt.zeros(2)}, tmp_path / "folder.safetensors")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.safetensors"]


def test_readers_see_a_whole_file(tmp_path):
    path, done = tmp_path / "m.safetensors", threading.Event()
    dt.save_safetensors({"x": dt.full((1000,), 0)}, path)

    def write():
        for i in range(100):
            dt.save_safetensors({"x": dt.full((1000,), i)}, path)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        x = dt.load_safetensors(path)["x"]
        assert int(dt.max(x)) == int(dt.min(x))
    writer.join()


def test_no_arrays(tmp_path):
    dt.save_safetensors({}, tmp_path / "m.safetensors")
    assert dt.load_safetensors(tmp_path / "m.safetensors") == {}
    assert safetensors.load_file(tmp_path / "m.safetensors") == {}


def test_the_guide_runs(tmp_path, monkeypatch):
    pytest.importorskip("einops", reason="einops is not installed")
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "docs/interchange.md").read_text()
    space = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(block, "docs/interchange.md", "exec"), space)
    assert same(space["bias"], space["again"]["layer.bias"]) and same(space["weights"]["layer.bias"], space["bias"])
    assert space["patches"].shape == (2, 16, 192) and space["means"].shape == (2, 3)
    x = dt.arange(3)
    with pytest.raises(TypeError) as caught:
        x += 1.5
    assert f"TypeError: {caught.value}\n" in text
    header = {"layer.bias": entry("F32", (4,), (0, 8))}
    with pytest.raises(ValueError) as caught:
        dt.load_safetensors(pack(tmp_path / "model.safetensors", header, bytes(8)))
    assert f"ValueError: {caught.value}\n" in text
