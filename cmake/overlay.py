"""overlay.py FOLDER PROJECT...: an importable tree of links to the projects' Python packages.

CMake puts compiled libraries into the same folders, and every project gets a dist-info so that its entry points are
found: with FOLDER on PYTHONPATH the developer tree behaves like the installed wheels, and edits count at once.
"""

import os
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path


def link(target: Path, at: Path) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    if at.is_symlink() and at.readlink() == target:
        return
    at.unlink(missing_ok=True)
    at.symlink_to(target)


def copy(source: Path, at: Path) -> None:
    """A backend's module returns its library's path, and may resolve links for that."""
    at.unlink(missing_ok=True)
    shutil.copy2(source, at)


def fill_package(source: Path, at: Path, place: Callable[[Path, Path], None]) -> None:
    """The package's folder is a real one, to which compiled files are added."""
    at.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        if entry.suffix in (".py", ".pyi", ".typed"):
            place(entry, at / entry.name)
        elif entry.is_dir() and entry.name != "__pycache__":
            link(entry, at / entry.name)


def write_metadata(project: dict, version: str, at: Path) -> None:
    info = at / f"{project['name'].replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n")
    groups = dict(project.get("entry-points", {}), console_scripts=project.get("scripts", {}))
    lines = []
    for group, points in groups.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines))


def overlay(root: Path, at: Path, version: str, place: Callable[[Path, Path], None]) -> None:
    data = tomllib.loads((root / "pyproject.toml").read_text())
    tool = data.get("tool", {})
    packages = [Path(package) for package in tool.get("scikit-build", {}).get("wheel", {}).get("packages", [])]
    package_dir = tool.get("setuptools", {}).get("package-dir", {"": str(packages[0].parent) if packages else "."})
    for package, folder in package_dir.items():
        if package:
            link(root / folder, at / package.replace(".", "/"))
            continue
        for source in (root / folder).iterdir():
            if (source / "__init__.py").exists():
                fill_package(source, at / source.name, place)
    write_metadata(data["project"], version, at)


def main() -> None:
    at, *projects = (Path(arg).resolve() for arg in sys.argv[1:])
    repository = Path(__file__).resolve().parent.parent
    version = (repository / "VERSION").read_text().strip()
    for folder, folders, files in os.walk(at):
        for name in folders + files:
            path = Path(folder, name)
            if path.is_symlink() and not path.exists():
                path.unlink()
    for info in at.glob("*.dist-info"):  # of a project or version that has been renamed
        shutil.rmtree(info)
    for project in projects:
        if (project / "pyproject.toml").exists():
            overlay(project, at, version, copy if project.parent.name == "backends" else link)
    link(repository / "core/include", at / "dovetail/include")
    link(repository / "cmake", at / "dovetail/cmake")
    for stub in (repository / "core/generated").glob("*.pyi"):
        link(stub, at / "dovetail" / stub.name)


if __name__ == "__main__":
    main()
