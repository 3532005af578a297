"""The wheels of `make wheels`: their tags, and that they run; for aarch64 in an emulator."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.release
ROOT = Path(__file__).parents[2]
VERSION = (ROOT / "VERSION").read_text().strip()
ARCHITECTURES = ["x86_64", "aarch64"]
GLIBC = (2, 28)  # the newest of RHEL 8
TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"


def released(pattern: str) -> Path:
    (found,) = (ROOT / "dist/release").glob(pattern)
    return found


def wheels(architecture: str) -> list[Path]:
    """The wheels of the core and the CPU device."""
    return [
        released(f"dovetail_runtime-{VERSION}-{TAG}-*_{architecture}.whl"),
        released(f"dovetail_cpu-{VERSION}-py3-none-*_{architecture}.whl"),
    ]


def unpacked(architecture: str, folder: Path) -> Path:
    for wheel in wheels(architecture):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder


def exported(library: Path) -> dict[str, str]:
    """Its dynamic symbols and their kinds: T for a function, W for one that any library may bring.

    nm writes t and d for those that a version script makes local; they bind nothing outside.
    """
    command = ["nm", "-D", "--defined-only", str(library)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {name: kind for _, kind, name in map(str.split, lines) if kind not in "td"}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_tag_is_true(architecture):
    for wheel in wheels(architecture):
        tags = re.findall(r"manylinux_(\d+)_(\d+)_(\w+?)(?=\.|$)", wheel.stem.rpartition("-")[2])
        assert tags, wheel.name
        for major, minor, machine in tags:
            assert (int(major), int(minor)) <= GLIBC and machine == architecture
        command = [sys.executable, "-m", "auditwheel", "show", "--json", str(wheel)]
        printed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        tag = re.fullmatch(rf"manylinux_(\d+)_(\d+)_{architecture}", printed["overall_tag"])
        assert tag and tuple(map(int, tag.groups())) <= GLIBC, printed
        assert not printed["external_libs"] and not printed["unsupported_isa"], printed


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nothing_was_grafted_or_renamed(architecture):
    """The CPU device opens its libraries by its own names for them, and includes their licences."""
    core, cpu = (zipfile.ZipFile(wheel).namelist() for wheel in wheels(architecture))
    assert not [name for name in core + cpu if ".libs/" in name]
    opened = {"libdovetail_cpu.so", "libdovetail_serial.so", "libdovetail_openblas.so.0"}
    opened |= {"libdovetail_dnnl.so.3"} if architecture == "x86_64" else set()
    assert {f"dovetail_cpu/lib/{name}" for name in opened} == {name for name in cpu if ".so" in name}
    assert any(name.startswith("dovetail_cpu/lib/licences/scipy-openblas32/LICENSE") for name in cpu)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_one_cxx_runtime(architecture, tmp_path):
    """Statically linked code stays inside; the system's libstdc++ throws, catches and ends the process."""
    for library in unpacked(architecture, tmp_path).glob("dovetail*/**/lib*.so*"):
        strong = {name for name, kind in exported(library).items() if kind not in "WVu"}
        assert not [name for name in strong if re.match("_ZN?K?St|__cxa|__gxx|__libc", name)], library.name


def test_the_library_is_the_same_to_its_users(core_wheel, tmp_path):
    """libdovetail.so exports the same symbols as a build for this machine alone.

    Weak ones are apart: whether a compiler inlines a template's instance or keeps it is its own choice.
    """
    libraries = []
    for wheel in (core_wheel, wheels("x86_64")[0]):
        with zipfile.ZipFile(wheel) as archive:
            libraries.append(Path(archive.extract("dovetail/libdovetail.so", tmp_path / wheel.stem)))
    if libraries[0].read_bytes() == libraries[1].read_bytes():
        pytest.skip("RELEASED=1: there is no build for this machine alone")
    here, released = ({n for n, kind in exported(library).items() if kind not in "WVu"} for library in libraries)
    assert here and here == released


def test_old_libraries_load_it(tmp_path):
    """glibc 2.31's loader, with every symbol bound at once; no Python of that age can test the module."""
    packages = unpacked("x86_64", tmp_path)
    (sysroot,) = (ROOT / "build").glob("release*/x86_64/sysroot")
    folders = [sysroot / "lib/x86_64-linux-gnu", sysroot / "usr/lib/x86_64-linux-gnu"]
    loader = [str(folders[0] / "ld-linux-x86-64.so.2"), "--library-path", ":".join(map(str, folders))]

    def load(*arguments: object) -> str:
        ended = subprocess.run(
            [*loader, *map(str, arguments)], capture_output=True, text=True, env={"LD_BIND_NOW": "1"}
        )
        assert ended.returncode == 0 and "not found" not in ended.stderr, ended.stdout + ended.stderr
        return ended.stdout

    probe, cpu = packages / "dovetail/dovetail-probe", packages / "dovetail_cpu/lib/libdovetail_cpu.so"
    for library in (packages / "dovetail/libdovetail.so", *cpu.parent.glob("lib*.so*")):
        assert str(sysroot / "lib/x86_64-linux-gnu/libc.so.6") in load("--list", library)
    probe.chmod(0o755)
    assert "stage done" in load(probe, cpu)


USE = """
import numpy as np
import dovetail as dv

assert [d.name for d in dv.devices()] == ["cpu:0"], dv.devices()
draw = np.random.default_rng(20)
a, b = (draw.standard_normal(shape).astype(np.float32) for shape in ((33, 70), (70, 21)))
x, y = dv.asarray(a), dv.asarray(b)
np.testing.assert_allclose(np.asarray(x @ y), a.astype(np.float64) @ b, rtol=1e-4, atol=1e-5)
e = np.exp(a.astype(np.float64) - a.max(axis=-1, keepdims=True))
np.testing.assert_allclose(np.asarray(dv.nn.softmax(x, axis=-1)), e / e.sum(axis=-1, keepdims=True), rtol=1e-5)
images, kernel = draw.standard_normal((1, 3, 8, 8)).astype(np.float32), np.ones((2, 3, 3, 3), np.float32)
assert np.asarray(dv.nn.conv2d(dv.asarray(images), dv.asarray(kernel))).shape == (1, 2, 6, 6)


def raised(function):
    try:
        function()
    except Exception as error:
        return type(error)


# Thrown in libdovetail.so, caught in the Python module.
assert raised(lambda: dv.device("nonsuch")) is ValueError
assert raised(lambda: x @ x) is ValueError
assert raised(lambda: dv.bitwise_and(x, x)) is TypeError
assert raised(lambda: dv.sum(x, axis=7)).__name__ == "AxisError"
assert raised(lambda: x[40, 0]) is IndexError
print("right")
"""


class Here:
    """A virtual environment on this machine."""

    def __init__(self, folder: Path, wheels: list[Path]) -> None:
        self.python = [str(folder / "bin/python")]
        self.variables: dict[str, str] = {}
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        install(["--python", *self.python], [], wheels)


class Emulated:
    """A folder of packages and the Python that runs in the emulator."""

    def __init__(self, folder: Path, wheels: list[Path]) -> None:
        arm = ROOT / "build/aarch64"
        name = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.python = ["sh", str(ROOT / "cmake/aarch64/run.sh"), str(arm), str(arm / "sysroot/usr/bin" / name)]
        self.variables = {"PYTHONPATH": str(folder), "QEMU_CPU": "neoverse-n2"}
        # The tags that pip accepts with glibc 2.28.
        tags = ["manylinux2014_aarch64", *(f"manylinux_2_{minor}_aarch64" for minor in range(17, GLIBC[1] + 1))]
        target = ["--target", str(folder), *(f"--platform={tag}" for tag in tags)]
        install([], [*target, f"--python-version={name.removeprefix('python')}"], wheels)


def clean() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("DOVETAIL_", "PYTHON"))}


def install(pip_options: list[str], options: list[str], wheels: list[Path]) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", *pip_options]
    command = [*pip, "install", "--quiet", "--only-binary=:all:", *options, *map(str, wheels)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, env=clean())
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module", params=ARCHITECTURES)
def run(request, tmp_path_factory):
    """run(argument...): Python in an environment that has the released wheels and the dependencies that pip
    finds."""
    folder = tmp_path_factory.mktemp(request.param)
    conformance = released(f"dovetail_conformance-{VERSION}-*.whl")
    kind = Here if request.param == "x86_64" else Emulated
    environment = kind(folder / "packages", [*wheels(request.param), conformance])

    def run(*arguments: str) -> str:
        ended = subprocess.run(
            [*environment.python, *arguments], capture_output=True, text=True, timeout=900, cwd=folder,
            env=clean() | environment.variables,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    run.architecture = request.param
    return run


def test_a_released_wheel_computes(run):
    assert run("-c", USE) == "right\n"
    listed = json.loads(run("-m", "dovetail", "devices", "--json"))
    assert [device["device"] for device in listed["devices"]] == ["cpu:0"]
    machine = run("-c", "import platform; print(platform.machine())").strip()
    assert machine == run.architecture


def test_a_released_wheel_conforms(run):
    """The quick run; in an emulator only matrix products, which take a minute or two."""
    cases = [] if run.architecture == "x86_64" else ["-k", "matmul and f32"]
    run("-m", "dovetail", "conform", "--device", "cpu", "--quick", "--no-report", *cases)
