"""A missing device, a missing runtime, or a wrong version of it. Other devices still work."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from programs import ON_CPU, dovetail, python, run

USE_CPU = "import dovetail as dv; print((dv.asarray([1.0, 2.0], device='cpu') + 1.0).tolist())"
INTEL = r"libsycl|libur_|libumf|libintelocl|libOpenCL|libsvml|libimf|libirng|libintlc|libdnnl|libdovetail_xpu"


# ---- no device ---------------------------------------------------------------------------------------------------


def test_without_a_device_the_lists_say_so_and_nothing_else():
    listed = dovetail("devices")
    assert "xpu: opened, but it has no device" in listed.stdout
    assert "DOVETAIL_XPU_ALLOW_CPU=1" in listed.stdout and "driver" in listed.stdout
    assert not re.search(r"^xpu:0", listed.stdout, flags=re.MULTILINE) and listed.stderr == ""
    output = dovetail("env")
    assert re.search(r"^ +xpu \S+: no device found$", output.stdout, flags=re.MULTILINE) and output.stderr == ""


def test_without_a_device_another_one_serves():
    ended = run(sys.executable, "-c", "import dovetail as dv; print((dv.asarray([1.0]) + 1.0).device)")
    assert (ended.stdout, ended.stderr) == ("cpu:0\n", "")


def test_asking_for_the_absent_device_is_an_error():
    ended = run(sys.executable, "-c", "import dovetail as dv; dv.device('xpu:0')", check=False)
    assert ended.returncode == 1
    output = ended.stderr.splitlines()[-1]
    assert output.startswith(
        "ValueError: there is no device 'xpu:0': backend 'xpu' has none; expected an Intel GPU"
    )


def test_the_cpu_device_is_there_when_it_is_allowed():
    listed = dovetail("devices", **ON_CPU)
    assert re.search(r"^xpu:0 +cpu ", listed.stdout, flags=re.MULTILINE) and listed.stderr == ""


# ---- nothing is loaded for other devices ----------------------------------------------------------------------


def loaded(code: str, **variables: str) -> set[str]:
    """The libraries of Intel's that a program has mapped at its end."""
    maps = python(code + "\nprint(open('/proc/self/maps').read())", **variables)
    return {Path(line.split()[-1]).name for line in maps.splitlines() if re.search(INTEL, line)}


def test_nothing_of_intels_is_mapped_while_only_the_cpu_is_used():
    assert loaded(USE_CPU, **ON_CPU) == set()
    used = loaded(USE_CPU.replace("'cpu'", "'xpu'"), **ON_CPU)
    assert {"libdovetail_xpu.so", "libsycl.so.9"} <= {re.sub(r"(\.so\.9).*", r"\1", name) for name in used}


# ---- a missing or wrong runtime -------------------------------------------------------------------------------


class World:
    """A virtual environment with links to this one's packages, except Intel's runtime, and a copy of the
    backend."""

    def __init__(self, folder: Path) -> None:
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        self.python = folder / "bin/python"
        self.libraries = folder / "lib"
        (self.site,) = self.libraries.glob("python3*/site-packages")
        self._home = folder / "home"
        import dovetail_xpu

        here = Path(dovetail_xpu.__file__).parents[1]
        for entry in here.iterdir():
            if entry.name.startswith("dovetail_xpu"):
                shutil.copytree(entry, self.site / entry.name)
            elif not entry.name.startswith(("intel_sycl_rt", "__pycache__")):
                (self.site / entry.name).symlink_to(entry)

    def runtime(self, *, without: str = "") -> None:
        """Its libraries."""
        for file in Path(sys.prefix, "lib").glob("*.so*"):
            if not without or not file.name.startswith(without):
                (self.libraries / file.name).symlink_to(file)

    def metadata(self, version: str) -> None:
        """Its wheel's."""
        info = self.site / f"intel_sycl_rt-{version}.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: intel-sycl-rt\nVersion: {version}\n")

    def backend(self) -> dict:
        """The list's message about it; the CPU must still work."""
        options = {"interpreter": self.python, "PYTHONUSERBASE": str(self._home)} | ON_CPU
        assert python(USE_CPU, **options) == "[2.0, 3.0]\n"
        listed = json.loads(dovetail("devices", "--json", **options).stdout)
        (backend,) = [b for b in listed["backends"] if b["name"] == "xpu"]
        names = [d["device"] for d in listed["devices"]]
        assert "cpu:0" in names
        return backend | {"devices": [name for name in names if name.startswith("xpu")]}


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "world")


CURE = "pip install 'intel-sycl-rt>=2026.2,<2027'"


def test_with_its_runtime_it_works_there_too(world):
    """Without the changes of the tests below, everything works."""
    world.runtime()
    world.metadata("2026.2.0")
    assert world.backend()["devices"] == ["xpu:0"]


def test_a_missing_runtime_is_quarantined_with_its_cure(world):
    backend = world.backend()
    assert (backend["status"], backend["devices"]) == ("quarantined", [])
    output = f"{backend['cause']} {backend['cure']}"
    assert "no libsycl.so.9 in " in output and "but it is not installed" in output and CURE in output


def test_a_runtime_of_the_wrong_version_is_quarantined_with_its_cure(world):
    world.runtime(without="libsycl.so.9")
    world.metadata("2025.0.0")
    backend = world.backend()
    assert (backend["status"], backend["devices"]) == ("quarantined", [])
    output = f"{backend['cause']} {backend['cure']}"
    assert "no libsycl.so.9 in " in output and "but version 2025.0.0 is installed" in output and CURE in output


def test_a_runtime_with_a_hole_is_quarantined(world):
    world.runtime(without="libsvml")
    world.metadata("2026.2.0")
    backend = world.backend()
    assert (backend["status"], backend["devices"]) == ("quarantined", [])
    assert "libsvml.so: cannot open shared object file" in backend["cause"]
