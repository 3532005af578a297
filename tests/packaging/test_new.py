"""dovetail new: its projects build, are discovered with no further step, and pass."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest


def new(site, *args: str) -> subprocess.CompletedProcess:
    return site.run("-m", "dovetail", "new", *args, "--output", str(site.folder), "--defaults")


def install(site, project: Path) -> None:
    """Build with this environment's packages, as there is no network, and install the wheel."""
    wheels = site.folder / "wheels"
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-index"]
    command += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(project)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, env=site.environment())
    assert ended.returncode == 0, ended.stderr
    site.install(*wheels.glob(f"dovetail_{project.name.replace('-', '_')}-*.whl"))


def own_tests(site, project: Path) -> str:
    ended = site.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(project / "tests"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def without_float64(project: Path) -> None:
    """Make the simulated device one without float64 and float8, as many chips are."""
    for file, text, other in (
        ("kernels.hpp", "Floats = Types<float, double>", "Floats = Types<float>"),
        ("half.hpp", "Types<bool, f8e4m3fn, f8e5m2, f16, bf16>", "Types<bool, f16, bf16>"),
    ):
        path = project / "src" / file
        assert text in path.read_text(), file
        path.write_text(path.read_text().replace(text, other))


RANDOM = """
import dovetail as dv, hashlib
for d in dv.devices():
    dv.random.seed(7)
    bits = dv.random.bits((1000,), device=d)
    print(d.name, hashlib.sha256(bits.numpy().tobytes()).hexdigest())
"""


GROUP = """
import dovetail as dv
x = dv.ones((2, 9), device="{device}")
f = dv.compile(lambda x: dv.exp(x * 2.0) + 1.0)
assert dv.max(dv.abs(f(x) - (dv.exp(x * 2.0) + 1.0))) == 0
print(f.explain(x))
"""


@pytest.mark.slow  # four minutes; test_guide.py makes one device of them
def test_devices_of_every_kind(site, repository):
    """All installed together, each at L1, with the same random bits and the same output of a model."""
    tables = set()
    kinds = {"acme": "simulated", "zeta": "host-memory", "my-proto": "python"}
    for name, kind in kinds.items():
        compiler = ["--compiler"] if kind == "simulated" else []
        ended = new(site, name, "--kind", kind, "--vendor", "Acme & Sons", *compiler)
        assert ended.returncode == 0, ended.stderr
        for file in filter(Path.is_file, (site.folder / name).rglob("*")):
            text = file.read_text()
            assert "../.." not in text and "@{" not in text and "in_tree" not in text, file
        if kind == "simulated":
            without_float64(site.folder / name)
        install(site, site.folder / name)
    found = {d["device"]: d for d in site.devices()["devices"]}
    assert found.keys() >= {"acme:0", "acme:1", "zeta:0", "my_proto:0", "cpu:0"}
    assert "Acme & Sons" in found["zeta:0"]["name"]
    for name, kind in kinds.items():
        assert "passed" in own_tests(site, site.folder / name)
        device = name.replace("-", "_")
        ended = site.run("-m", "dovetail", "conform", "--device", device, "--quick")
        assert "level L1 (f32, i32, i64, bool;" in ended.stdout, ended.stdout + ended.stderr
        minilm = repository / "examples/minilm"
        ended = site.run(str(minilm), "--device", f"{device}:0", "--seconds", "0")
        assert ("launches, in place of 3" in site.python(GROUP.format(device=device))) == (kind == "simulated")
        tables.add(ended.stdout.partition("\n")[2].rpartition("sentences per")[0].rpartition("\n")[0])
        assert "1.00  0.56 -0.01" in ended.stdout, ended.stdout + ended.stderr
    assert len(tables) == 1
    bits = dict(line.split() for line in site.python(RANDOM).splitlines())
    assert bits.keys() == found.keys() and len(set(bits.values())) == 1
    # A pack of host kernels cannot serve a device with queues, and rebuilding it is no cure.
    new(site, "--pack", "quick", "--for", "acme")
    install(site, site.folder / "quick")
    (pack,) = site.devices()["packs"]
    assert "acme has streams, and these kernels run on the host" in pack["cause"]
    assert pack["status"] == "quarantined" and "correct what it names" in pack["cure"]


def test_a_kernel_pack(site):
    for name in ("acme-quick", "zeta"):
        ended = new(site, "--pack", name, "--for", "cpu")
        assert ended.returncode == 0 and "pip install" in ended.stdout, ended.stderr
        install(site, site.folder / name)
    listed = site.devices()
    assert [(p["name"], p["status"]) for p in listed["packs"]] == [("acme_quick", "ready"), ("zeta", "ready")]
    assert "passed" in own_tests(site, site.folder / "acme-quick")
    # The README's own command; the second one is restricted.
    command = re.search(r'-k "(.*)"', (site.folder / "acme-quick/README.md").read_text())[1]
    for cases in (command, "(zeta or hardswish) and f32"):
        ended = site.run("-m", "dovetail", "conform", "--device", "cpu", "-k", cases)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert " + zeta 0.0.1 + acme_quick 0.0.1: " in ended.stdout
    listed = site.run("-m", "dovetail", "ops", "--device", "cpu", "--json", "-k", "hardswish").stdout
    rows = json.loads(listed)["ops"]
    assert rows[0]["engines"] == ["acme_quick", "zeta"]


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        ((), "expected the name of a device, or --pack NAME --for BACKEND"),
        (("acme", "--pack", "fast", "--for", "cpu"), "expected the name of a device, or --pack"),
        (("--pack", "fast"), "--pack and --for go together"),
        (("--pack", "fast", "--for", "cpu", "--compiler"), "--compiler is for devices in C++"),
        (("acme", "--kind", "python", "--compiler"), "--compiler is for devices in C++"),
        (("--pack", "my-dev", "--for", "my_dev"), "--pack my-dev: expected another name than the backend's"),
        (("conformance",), "is installed, and the project's wheel would replace it: choose another name"),
        (("Acme",), "'Acme' cannot be a name: expected lower-case letters, digits and -"),
        (("class",), "'class' cannot be a name"),
        (("../acme",), "cannot be a name"),
        (("acme", "--kind", "simulate"), "'simulate' is not one of 'simulated'"),
        (("wheels",), "is there already: choose another name, another --output, or remove it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_it_refuses(site, args, wanted):
    (site.folder / "wheels").mkdir()
    (site.folder / "wheels/mine").write_text("")
    ended = new(site, *args)
    assert ended.returncode == 2 and wanted in ended.stderr, ended.stderr
    assert sorted(path.name for path in site.folder.iterdir()) == ["site", "wheels"]


def test_what_it_says_can_be_pasted(site):
    """Whatever the folder's name and place; the backend by its name, not by its wheel's."""
    folder = site.folder / "two words"
    for output in (str(folder), "two words"):
        name = f"zeta{len(output)}"
        printed = site.run(
            "-m", "dovetail", "new", name, "--kind", "python", "--output", output, "--defaults"
        ).stdout
        (line,) = (line for line in printed.splitlines() if "pip install" in line)
        *_, path = shlex.split(line)
        assert Path(site.folder, path).samefile(folder / name)
    printed = new(site, "--pack", "fast", "--for", "my-dev").stdout
    assert '--device my_dev -k "fast or hardswish"' in printed


@pytest.mark.parametrize("kind", ["simulated", "host-memory", "python"])
def test_a_project_knows_nothing_of_this_repository(site, kind):
    """And its README lists every file that has its name."""
    ended = new(site, "zeta", "--kind", kind, "--vendor", "Else")
    assert ended.returncode == 0, ended.stderr
    project = site.folder / "zeta"
    files = [path for path in project.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    texts = {path.relative_to(project): path.read_text() for path in files}
    of_compiler = re.compile(r"compile\.[ch]pp|compiler_extension|@%")  # asked for with --compiler
    assert not [path for path, text in texts.items() if of_compiler.search(text)]
    assert not [path for path, text in texts.items() if re.search(r"\bsim\b|dovetail_sim|numpy --quick", text)]
    # Its tests apply to any device, except for the folder of the simulated hardware.
    ours = {path for path in texts if path.parts[0] == "tests" and path.parts[1] != "simulator"}
    assert ours == {Path("tests/test_device.py")}
    assert not re.search("DOVETAIL_ZETA|simul", texts[Path("tests/test_device.py")])
    readme = texts[Path("README.md")]
    assert ("`tests/simulator/`" in readme) == (kind == "simulated") == (project / "tests/simulator").is_dir()
    listed = re.search(r"The name `zeta` is in(.*)`python/dovetail_zeta`", readme, re.DOTALL)[1]
    named = {path.name for path, text in texts.items() if re.search(r"(?<![a-z])zeta(?![a-z])", text)}
    assert not [name for name in named - {"README.md", "__init__.py"} if name not in listed]
