"""The content of the wheels, their names, and what they must not contain."""

import re
import subprocess
import sysconfig
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest


def members(wheel: Path) -> dict[str, zipfile.ZipInfo]:
    with zipfile.ZipFile(wheel) as archive:
        return {info.filename: info for info in archive.infolist()}


def read(wheel: Path, suffix: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(suffix)]
        return archive.read(name)


def is_elf(data: bytes) -> bool:
    return data.startswith(b"\x7fELF")


def libraries(wheel: Path, folder: Path) -> list[Path]:
    """The programs and libraries of a wheel, unpacked."""
    found = []
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if is_elf(archive.read(name)[:4]):
                found.append(Path(archive.extract(name, folder)))
    assert found
    return found


def dynamic(library: Path) -> str:
    return subprocess.run(["readelf", "-dW", str(library)], check=True, capture_output=True, text=True).stdout


def platform_tag() -> str:
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def test_core_is_for_one_python(core_wheel):
    tag = f"cp{sysconfig.get_config_var('py_version_nodot')}"
    assert core_wheel.name.endswith(f"-{tag}-{tag}-{platform_tag()}.whl")


def test_core_holds_what_it_should(core_wheel, repository):
    files = members(core_wheel)
    names = set(files)
    extension = f"dovetail/_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    for name in (extension, "dovetail/libdovetail.so", "dovetail/dovetail-probe", "dovetail/py.typed"):
        assert name in names
    assert "dovetail/cli/comparison/points.json" in names
    assert files["dovetail/dovetail-probe"].external_attr >> 16 & 0o111, "dovetail-probe must be executable"
    for header in (repository / "core/include/dovetail").glob("*.h*"):
        assert f"dovetail/include/dovetail/{header.name}" in names
    assert {"dovetail/cmake/dovetail-config.cmake", "dovetail/cmake/dovetail-config-version.cmake"} <= set(names)

    sources = {"dovetail": "core/python/dovetail", "dovetail/schema": "core/schema"}
    sources["dovetail/entry_points"] = "entry_points"
    expected = {
        f"{package}/{path.relative_to(repository / folder)}"
        for package, folder in sources.items()
        for path in (repository / folder).rglob("*.py")
    }
    templates = {name for name in names if name.startswith("dovetail/templates/")}
    assert expected == {name for name in names - templates if name.endswith(".py")}
    for kind in ("simulated", "host-memory", "python", "pack"):
        assert {f"dovetail/templates/{kind}/{name}" for name in ("copier.yml", "pyproject.toml")} <= templates
    assert {f"dovetail/{path.name}" for path in (repository / "core/generated").glob("*.pyi")} <= set(names)


def test_core_asks_for_what_it_imports(core_wheel):
    metadata = message_from_bytes(read(core_wheel, ".dist-info/METADATA"))
    always = [requirement for requirement in metadata.get_all("Requires-Dist") if "extra ==" not in requirement]
    required = {re.split(r"[^\w-]", requirement)[0] for requirement in always}
    assert required == {"importlib-metadata", "numpy", "ml-dtypes", "click", "rich"}
    assert all(">=" in requirement for requirement in metadata.get_all("Requires-Dist"))
    assert b"dovetail = dovetail.cli:main" in read(core_wheel, "entry_points.txt")


def test_backend_is_for_every_python(cpu_wheel):
    assert cpu_wheel.name.endswith(f"-py3-none-{platform_tag()}.whl")
    assert b"Root-Is-Purelib: false" in read(cpu_wheel, ".dist-info/WHEEL")
    assert b"[dovetail.backends]\ncpu = dovetail_cpu:backend" in read(cpu_wheel, "entry_points.txt")
    assert message_from_bytes(read(cpu_wheel, "METADATA")).get_all("Requires-Dist", []) == [
        "dovetail-runtime<0.2,>=0.1",
        'dovetail-llvm<0.2,>=0.1; extra == "jit"',
    ]


@pytest.mark.parametrize("which", ["core_wheel", "cpu_wheel", "template_wheel"])
def test_no_sources_and_no_tests(which, request):
    for name in members(request.getfixturevalue(which)):
        if name.startswith("dovetail/templates/"):  # which are sources
            continue
        assert not re.search(r"\.(c|cc|cpp|inc|o|a|log)$|CMakeLists|(^|/)tests?/|__pycache__", name), name


@pytest.mark.parametrize("which", ["core_wheel", "cpu_wheel", "template_wheel"])
def test_libraries_search_their_own_folder_only(which, request, tmp_path):
    """No path of the machine that built them; they need the system's C and C++ libraries and each other."""
    found = libraries(request.getfixturevalue(which), tmp_path)
    ours = {library.name for library in found}
    for library in found:
        text = dynamic(library)
        for path in re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", text):
            assert all(re.match(r"\$ORIGIN(/|$)", folder) for folder in path.split(":")), (library.name, path)
        for needed in re.findall(r"NEEDED\).*\[(.*)\]", text):
            system = re.match(
                r"(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux.*|libgfortran|libz)\.so", needed
            )
            assert needed in ours or system, (library.name, needed)


@pytest.mark.parametrize("which", ["core_wheel", "cpu_wheel", "template_wheel"])
def test_libraries_have_no_path_of_the_build(which, request, tmp_path, repository):
    for library in libraries(request.getfixturevalue(which), tmp_path):
        assert str(repository).encode() not in library.read_bytes(), library.name


def test_backend_needs_no_python(cpu_wheel, tmp_path):
    for library in libraries(cpu_wheel, tmp_path):
        symbols = subprocess.run(
            ["nm", "-D", "--undefined-only", str(library)], capture_output=True, text=True
        ).stdout
        assert not re.search(r"\bPy[A-Z_]", symbols), library.name


@pytest.mark.parametrize("which", ["cpu_wheel", "template_wheel"])
def test_plugin_exports_two_functions(which, request, tmp_path):
    found = libraries(request.getfixturevalue(which), tmp_path)
    (plugin,) = [path for path in found if path.name in ("libdovetail_cpu.so", "libdovetail_sim.so")]
    out = subprocess.run(
        ["nm", "-D", "--defined-only", str(plugin)], check=True, capture_output=True, text=True
    ).stdout
    exported = {line.split()[-1].partition("@")[0] for line in out.splitlines()}
    assert exported == {"dvt_probe_v1", "dvt_backend_v1"}


def test_versions_agree(core_wheel, cpu_wheel, repository):
    version = (repository / "VERSION").read_text().strip()
    for wheel in (core_wheel, cpu_wheel):
        assert message_from_bytes(read(wheel, ".dist-info/METADATA"))["Version"] == version
    assert f'PACKAGE_VERSION "{version}"'.encode() in read(core_wheel, "dovetail-config-version.cmake")
