"""dovetail build: what is in the folder, that it gives the same results, and what is refused."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from click.testing import CliRunner
from dispatch_kernel import float32_kernel
from dovetail import _core
from dovetail.cli.app import dovetail as command
from dovetail.cli.build import _replace
from dovetail.prototype import PythonDevice, kernel
from dovetail.schema import op as declare
from dovetail.schema.declare import Tensor
from test_program_file import pack, parts

SEED = int(os.environ.get("DOVETAIL_SEED", "20261128"))
print(f"DOVETAIL_SEED={SEED}")
RNG = np.random.default_rng(SEED)
W1 = (RNG.standard_normal((64, 256)) / 8).astype(np.float32)
W2 = (RNG.standard_normal((256, 64)) / 16).astype(np.float32)
PACKED = RNG.standard_normal(6).astype(np.float32)
CODES = RNG.integers(-127, 128, (64, 64)).astype(np.int8)


@pytest.fixture(autouse=True)
def process_settings(monkeypatch):
    """What the command sets for its process."""
    monkeypatch.setenv("DOVETAIL_COMPILE_WAIT", "0")
    before = dt.fallback()
    yield
    dt.fallback(before)


def run(*args: object, code: int = 0) -> str:
    result = CliRunner().invoke(command, [*map(str, args)], prog_name="dovetail")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def network(x):
    w1, w2, codes = (dt.asarray(a, device="cpu:0") for a in (W1, W2, CODES))
    scale = dt.sqrt(dt.asarray(4.0, dtype="float32", device="cpu:0"))  # a constant: 2
    h = x @ w1
    h = 0.5 * h * (1 + dt.tanh(0.7978845608028654 * (h + 0.044715 * h * h * h))) * scale
    y = h @ dt.permute_dims(dt.permute_dims(w2, (1, 0)), (1, 0))
    return y + x @ (dt.astype(codes, "float32") / 127)


def expected(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    h = x @ W1
    h = 0.5 * h * (1 + np.tanh(0.7978845608028654 * (h + 0.044715 * h**3))) * 2
    return h @ W2 + x @ (CODES / 127)


def rows(n: int) -> np.ndarray:
    return RNG.standard_normal((n, 64)).astype(np.float32)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("built") / "m.dvt"
    dt.export(network, dt.spec(("n", 64), "float32")).save(path)
    return path


@pytest.fixture
def built(saved, tmp_path) -> Path:
    run("build", saved, "--device", "cpu", "--out", tmp_path / "m.aot", "--sizes", "n=32", "--no-code")
    return tmp_path / "m.aot"


def manifest(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text())


def changed(folder: Path, **changes: object) -> Path:
    (folder / "manifest.json").write_text(json.dumps(manifest(folder) | changes))
    return folder


def test_it_runs_for_all_sizes(built):
    program = dt.load(built, device="cpu")
    for n in (32, 1, 7, 0):
        x = rows(n)
        np.testing.assert_allclose(program(dt.asarray(x, device="cpu")).numpy(), expected(x), rtol=2e-4, atol=2e-4)
    assert program(rows(2)).device == dt.device("cpu:0")


def test_eager_numerics_have_the_bits_of_the_program(saved, tmp_path):
    run("build", saved, "--device", "cpu", "--out", tmp_path / "e.aot", "--numerics", "eager")
    x = dt.asarray(rows(9), device="cpu")
    assert dt.load(tmp_path / "e.aot")(x).numpy().tobytes() == dt.load(saved)(x).numpy().tobytes()


def test_constants_are_folded_and_never_grow(saved, built):
    before, after = (json.loads(parts(p)[0]["__metadata__"]["program"]) for p in (saved, built / "program.dvt"))
    ops = [node["op"] for node in after["nodes"]]
    assert "sqrt" not in ops and "permute_dims" not in ops, ops
    assert "astype" in ops  # of int8, which would be four times as large
    size = {p: sum(np.prod(t["shape"]) * np.dtype(t["dtype"]).itemsize for t in d["tensors"].values())
            for p, d in (("before", before), ("after", after))}  # fmt: skip
    assert size["after"] <= size["before"] + 1024 and {t["dtype"] for t in after["tensors"].values()} >= {"int8"}


def test_the_manifest(built):
    found = manifest(built)
    assert found["dovetail_artefact"] == 1 and found["backend"] == "cpu" and found["sizes"] == [[[32, 64]]]
    assert found["target"] == os.uname().machine and found["producer"] == f"dovetail {dt.__version__}"
    assert (built / "packs.safetensors").exists() == (found["packs"]["count"] > 0) and found["code"] == []
    files = {p.name: sha256(p.read_bytes()) for p in built.iterdir() if p.is_file() and p.name != "manifest.json"}
    assert found["sha256"] == files and "program.dvt" in files


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def checksum(data: bytes) -> str:
    """As the library has it: four lanes of 64 bits, then the lanes and the size."""

    def mixed(total: int, word: int) -> int:
        total = (total ^ word) * 0x9E3779B97F4A7C15 % 2**64
        return total ^ total >> 32

    sums, whole = [1, 2, 3, 4], len(data) // 32 * 4
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)] + [0] * 4
    for i, word in enumerate(words[:whole]):
        sums[i % 4] = mixed(sums[i % 4], word)
    total = len(data)
    for lane, word in zip(sums, words[whole : whole + 4], strict=True):
        total = mixed(total, mixed(lane, word))
    return f"{total:016x}"


@pytest.fixture
def packing(tmp_path):
    """The kernel of an op that packs its second operand, and a folder built of a program that calls it."""
    name = f"acme.saved_pack_{len(_core.ops())}"

    @declare(name=name, shape="broadcast", dtype="float", reference=np.add, tol=1)
    def decomposition(x1: Tensor, x2: Tensor) -> Tensor:
        """x1 + x2."""
        return x1 + x2

    def compute(x1, x2):
        return x1 + x2

    dt.device("cpu")
    call = dt.register_op(decomposition)
    _core.add_kernel("cpu:0", float32_kernel(name, 2, compute, packs=1))
    w = dt.asarray(PACKED, device="cpu:0")
    dt.export(lambda x: call(x, w), dt.spec(("n", 6), "float32")).save(tmp_path / "p.dvt")
    run("build", tmp_path / "p.dvt", "--device", "cpu", "--out", tmp_path / "p.aot", "--sizes", "n=2", "--no-code")
    return compute, tmp_path / "p.aot"


def packs_of(folder: Path) -> dict[str, dict]:
    header, _ = parts(folder / "packs.safetensors")
    return {name: entry for name, entry in header.items() if name.startswith("pack/")}


@pytest.mark.usefixtures("leave_the_schema_as_it_was")
def test_packed_weights_are_taken_as_they_are(packing):
    """From the first call on, and with their bytes: a changed one changes the result."""
    compute, folder = packing
    ((name, entry),) = packs_of(folder).items()
    assert name.startswith("pack/w0/cpu/acme.saved_pack_") and entry["data_offsets"][0] % 64 == 0
    assert manifest(folder)["packs"] == {"count": 1, "bytes": entry["data_offsets"][1]}
    before, taken = compute.packed, _core.saved_packs()[0]
    program, x = dt.load(folder, device="cpu"), rows(2)[:, :6]
    for _ in range(3):
        np.testing.assert_array_equal(program(dt.asarray(x, device="cpu")).numpy(), x + PACKED)
    assert compute.packed == before and _core.saved_packs()[0] == taken + 1


@pytest.mark.usefixtures("leave_the_schema_as_it_was")
def test_packed_weights_of_another_layout_are_packed_anew(packing):
    compute, folder = packing
    header, data = parts(folder / "packs.safetensors")
    pack(folder / "packs.safetensors", renamed(header, lambda n: n.rpartition("/")[0] + "/" + "f" * 16), data)
    before, stale = compute.packed, _core.saved_packs()[1]
    program, x = dt.load(folder, device="cpu"), rows(2)[:, :6]
    for _ in range(3):
        np.testing.assert_array_equal(program(dt.asarray(x, device="cpu")).numpy(), x + PACKED)
    assert compute.packed == before + 1 and _core.saved_packs()[1] == stale + 1


def renamed(header: dict, change) -> dict:
    """The header of packed weights with other names of tensors, and of their checksums."""
    return {
        change(n) if n.startswith("pack/") else n: renamed(e, change) if n == "__metadata__" else e
        for n, e in header.items()
    }


@pytest.mark.usefixtures("leave_the_schema_as_it_was")
def test_packed_weights_that_are_damaged_are_packed_anew(packing, capfd):
    compute, folder = packing
    header, data = parts(folder / "packs.safetensors")
    ((_, entry),) = packs_of(folder).items()
    begin, end = entry["data_offsets"]
    before, damaged = compute.packed, _core.saved_packs()[2]
    x = rows(2)[:, :6]
    for at in (begin, (begin + end) // 2, end - 1):
        flipped = bytearray(data)
        flipped[at] ^= 0x40
        pack(folder / "packs.safetensors", header, bytes(flipped))
        program = dt.load(folder, device="cpu")
        for _ in range(3):
            np.testing.assert_array_equal(program(dt.asarray(x, device="cpu")).numpy(), x + PACKED)
    assert compute.packed == before + 3 and _core.saved_packs()[2] == damaged + 3
    if not damaged:  # once for each process
        reported = capfd.readouterr().err
        assert "saved packs are damaged, as that of acme.saved_pack_" in reported
        assert "packed anew; copy the folder again, `dovetail show --verify` checks" in reported


@pytest.mark.usefixtures("leave_the_schema_as_it_was")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pack/w0", "expected pack/array/backend/call/layout"),
        ("pack/w0/cpu/a/b/1/2/xyz", "its layout is no number"),
    ],
)
def test_packs_with_names_that_are_wrong(packing, name, text):
    _, folder = packing
    header, data = parts(folder / "packs.safetensors")
    pack(folder / "packs.safetensors", renamed(header, lambda _: name), data)
    with pytest.raises(ValueError, match=r"^\[p.aot\] packs.safetensors: .*" + text + CURE):
        dt.load(folder, device="cpu")


CURE = ".*; copy the folder again, or `dovetail build` it again$"


@pytest.mark.usefixtures("leave_the_schema_as_it_was")
@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda p: p.unlink(), FileNotFoundError, "no such file: .*packs.safetensors"),
        (lambda p: p.write_bytes(p.read_bytes()[:-1]), ValueError, "cut off: tensor pack/w0/.* ends at byte"),
        (lambda p: p.write_bytes(p.read_bytes()[:100]), ValueError, "cut off: the header ends at byte"),
        (lambda p: p.write_bytes(b""), ValueError, "not a safetensors file"),
        (lambda p: without_checksums(p, None), ValueError, "the metadata have no checksum of it"),
        (lambda p: without_checksums(p, 3), ValueError, "a checksum: expected a string"),
        (lambda p: without_checksums(p, "12"), ValueError, "its checksum is no number of 16 lower-case digits"),
    ],
)
def test_a_file_of_packed_weights_that_is_no_good(packing, change, error, text):
    _, folder = packing
    change(folder / "packs.safetensors")
    with pytest.raises(error, match=r"^\[p.aot\] packs.safetensors: .*" + text + CURE):
        dt.load(folder, device="cpu")


def without_checksums(path: Path, instead: object) -> None:
    header, data = parts(path)
    others = {n: instead if n.startswith("pack/") else v for n, v in header["__metadata__"].items()}
    pack(path, header | {"__metadata__": {n: v for n, v in others.items() if v is not None}}, data)


def test_show_verifies_all_files_of_a_folder(built):
    text = run("show", built, "--verify")
    assert "verified: " in text and f"verified: {len(manifest(built)['sha256'])} files of the folder" in text
    for name in manifest(built)["sha256"]:
        content = (built / name).read_bytes()
        (built / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert f"[m.aot] files are not those that were built: {name}; copy" in run(
            "show", built, "--verify", code=1
        )
        (built / name).write_bytes(content)
    (built / "new").write_text("")
    assert json.loads(run("show", built, "--verify", "--json", code=1).rpartition("Error")[0])[
        "verified_files"
    ] == {
        "files": len(manifest(built)["sha256"]) + 1,
        "wrong": ["new"],
    }
    (built / "new").unlink()
    changed(built, sha256=[])
    assert "manifest.json has no hashes of the folder's files; `dovetail build` it" in run(
        "show", built, "--verify", code=1
    )
    (built / "manifest.json").unlink()
    assert "manifest.json cannot be read: No such file or directory" in run("show", built, "--verify", code=1)


def test_machine_code_runs_only_where_it_is_trusted(saved, tmp_path):
    """In processes of their own: the first has a toolchain, the others have none."""
    llvm = Path(__file__).parents[2] / "toolchains/llvm"
    python = os.environ.get("DOVETAIL_LLVM_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import llvmlite"], capture_output=True, check=False).returncode:
        pytest.skip("needs llvmlite; DOVETAIL_LLVM_PYTHON names a Python that has it")
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\nPYTHONPATH={llvm} exec {python} -m dovetail_llvm.worker\n")
    tool.chmod(0o755)
    folder = tmp_path / "c.aot"
    in_process(f"run('build', {str(saved)!r}, '--device', 'cpu', '--out', {str(folder)!r}, '--sizes', 'n=512')",
               DOVETAIL_TOOLCHAINS=f"llvm={tool}", XDG_CACHE_HOME=str(tmp_path / "cache"))  # fmt: skip
    names = manifest(folder)["code"]
    assert names and sorted(p.name for p in (folder / "code").iterdir()) == names
    # Whether the groups of a process run machine code: the images that it has been given.
    used = """
x = rows(512)
dt._core.record_images()
got = dt.load({folder!r}, device='cpu', trust_code={trust})(dt.asarray(x, device='cpu'))
np.testing.assert_allclose(got.numpy(), expected(x), rtol=2e-4, atol=2e-4)
print(dt._core.write_code({out!r})[0])
"""
    for trust, expected_count in ((False, 0), (True, len(names))):
        out = tmp_path / f"out{trust}"
        (out / "code").mkdir(parents=True)
        printed = in_process(used.format(folder=str(folder), trust=trust, out=str(out)), DOVETAIL_COMPILE_WAIT="1",
                             DOVETAIL_TOOLCHAINS="", XDG_CACHE_HOME=str(tmp_path / "none"))  # fmt: skip
        assert int(printed) == expected_count
    damaged = shutil.copytree(folder, tmp_path / "d.aot")
    for name in names:
        code = bytearray((damaged / "code" / name).read_bytes())
        code[-1] ^= 1
        (damaged / "code" / name).write_bytes(code)
    out = tmp_path / "none"
    (out / "code").mkdir(parents=True)
    printed = in_process(used.format(folder=str(damaged), trust=True, out=str(out)), DOVETAIL_COMPILE_WAIT="1",
                         DOVETAIL_TOOLCHAINS="", XDG_CACHE_HOME=str(out))  # fmt: skip
    assert int(printed) == 0
    (folder / "code").chmod(0o777)
    with pytest.raises(ValueError, match=r"\[c.aot\] every user may write its folder, so its code is not"):
        dt.load(folder, device="cpu", trust_code=True)


def in_process(code: str, **environment: str) -> str:
    here = Path(__file__).parent
    program = f"import sys\nsys.path.insert(0, {str(here)!r})\nfrom test_build import *\n{code}"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()[-1] if ended.stdout else ""


def test_a_folder_for_another_processor(saved, tmp_path):
    other = "x86_64" if os.uname().machine == "aarch64" else "aarch64"
    text = run("build", saved, "--device", "cpu", "--out", tmp_path / "o.aot", "--target", other)
    assert f"no packed weights and no machine code: they are made on {other}" in text
    assert manifest(tmp_path / "o.aot")["target"] == other
    x = rows(3)
    np.testing.assert_allclose(dt.load(tmp_path / "o.aot")(x).numpy(), expected(x), rtol=2e-4, atol=2e-4)


def test_what_is_refused(built, saved, tmp_path):
    with pytest.raises(
        ValueError, match=r"\[m.aot\] it was built for cpu, not for sim:0; dovetail build --device sim"
    ):
        dt.load(built, device="sim")
    for changes, text in (
        ({"dovetail_artefact": 2}, "it is of format 2, this dovetail reads format 1; pip install -U"),
        ({"dovetail_artefact": 0}, "it is of format 0, this dovetail reads format 1; `dovetail build` it again"),
        ({"dovetail_artefact": "1"}, "dovetail_artefact: expected an integer" + CURE),
        ({"backend": 3}, "backend: expected a string" + CURE),
        ({"packs": []}, "packs.*count" + CURE),
        ({"packs": {"count": "1"}}, "count: expected an integer" + CURE),
        ({"numerics": 0.5}, "numerics: expected a string" + CURE),
        ({"code": ["../../evil.so"]}, "code: a name that is no file of code" + CURE),
        ({"code": ["a" * 64 + ".code"]}, f"sha256: .*code/{'a' * 64}.code" + CURE),
        ({"code": ["a" * 64 + ".code"], "sha256": []}, "sha256" + CURE),
        ({"sizes": 3}, "sizes: expected a list" + CURE),
        ({"sizes": [[]]}, "sizes of 0 inputs: expected 1" + CURE),
        ({"sizes": [[[-1, 64]]]}, "sizes: expected at most 16 axes" + CURE),
    ):
        folder = shutil.copytree(built, tmp_path / "copy" / "m.aot")
        with pytest.raises(ValueError, match=r"^\[m.aot\] manifest.json: .*" + text):
            dt.load(changed(folder, **changes), device="cpu")
        shutil.rmtree(folder)
    with pytest.raises(ValueError, match=r"^\[m.aot\] "):
        dt.load(changed(built, sizes=[[[32]]]), device="cpu")
    for key in ("dovetail_artefact", "backend", "sizes", "packs", "code"):
        folder = shutil.copytree(built, tmp_path / "copy" / "m.aot")
        (folder / "manifest.json").write_text(json.dumps({k: v for k, v in manifest(folder).items() if k != key}))
        with pytest.raises(ValueError, match=rf"^\[m.aot\] manifest.json: .*{key}" + CURE):
            dt.load(folder, device="cpu")
        shutil.rmtree(folder)
    for text in ("{", "", "[]", "\xff", "3"):
        (built / "manifest.json").write_text(text, "latin-1")
        with pytest.raises(ValueError, match=r"^\[m.aot\] manifest.json: " + CURE):
            dt.load(built, device="cpu")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"manifest.json; dovetail build makes such a folder"):
        dt.load(tmp_path / "empty", device="cpu")
    assert "is no folder that `dovetail build` made" in run("build", saved, "--out", tmp_path / "empty", code=1)
    (tmp_path / "empty").rmdir()


def test_building_again_replaces_the_folder(built, saved):
    (built / "old").write_text("")
    run("build", saved, "--device", "cpu", "--out", built, "--no-code")
    assert not (built / "old").exists() and [p.name for p in built.parent.iterdir() if p.name.startswith(".")] == []


def test_a_link_stays_and_its_folder_is_replaced(built, saved, tmp_path):
    (tmp_path / "link").symlink_to(built)
    (built / "old").write_text("")
    run("build", saved, "--device", "cpu", "--out", tmp_path / "link", "--no-code")
    assert (tmp_path / "link").is_symlink() and not (built / "old").exists() and (built / "manifest.json").is_file()


@pytest.mark.parametrize("error", [OSError("no space"), KeyboardInterrupt()])
def test_the_former_folder_survives_an_interrupt(tmp_path, monkeypatch, error):
    folder, draft = tmp_path / "m.aot", tmp_path / "draft"
    for path in (folder, draft):
        path.mkdir()
        (path / "name").write_text(path.name)
    rename = Path.rename

    def stop(path, to):
        if path == draft:
            raise error
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", stop)
    with pytest.raises(type(error)):
        _replace(folder, draft)
    assert (folder / "name").read_text() == "m.aot"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["draft", "m.aot"]


def test_builds_into_one_folder_at_the_same_time(tmp_path):
    folder = tmp_path / "m.aot"
    drafts = [tmp_path / f"draft{i}" for i in range(64)]
    for draft in drafts:
        draft.mkdir()
        for part in ("a", "b"):
            (draft / part).write_text(draft.name)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda draft: _replace(folder, draft), drafts))
    assert (folder / "a").read_text() == (folder / "b").read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["m.aot"]


def test_run_compares_a_folder_with_its_program_alone(built):
    """Other packed weights, with their checksums, give other results."""
    header, data = parts(built / "packs.safetensors")
    for name, entry in packs_of(built).items():
        begin, end = entry["data_offsets"]
        assert header["__metadata__"][name] == checksum(data[begin:end])
        header["__metadata__"][name] = checksum(bytes(end - begin))
    pack(built / "packs.safetensors", header, bytes(len(data)))
    assert "DIFFERENT" in run("run", built, "--device", "cpu", "--random", "n=32", "--compare", "cpu", code=1)
    assert "DIFFERENT" in run("run", built, "--device", "cpu", "--random", "n=32", "--compare", "sim", code=1)


class Poor(PythonDevice):
    """It adds, and cannot do anything else."""

    name = "poorer"

    @kernel("add", "float32")
    def add(self, x1, x2, out):
        out.numpy()[...] = x1.numpy() + x2.numpy()


def test_a_device_that_lacks_a_kernel(tmp_path):
    dt.load_backend(Poor)
    dt.export(dt.exp, dt.spec(("n",), "float32")).save(tmp_path / "e.dvt")
    with pytest.raises(NotImplementedError, match=r"^\[e.dvt\] \[exp\]"):
        dt.load(tmp_path / "e.dvt", device="poorer")
    assert "[exp]" in run("build", tmp_path / "e.dvt", "--device", "poorer", "--out", tmp_path / "e.aot", code=1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e.dvt"]


def test_run_and_show_take_a_folder(built):
    assert "equal enough" in run("run", built, "--device", "cpu", "--random", "n=4", "--compare", "cpu")
    assert "program network" in run("show", built) or "network" in run("show", built)
