"""The wheel of the bridge: a library for each version of torch, and a Python package."""

import os
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.sdist import sdist

HERE = Path(__file__).parent
ROOT = HERE / "../.."  # the source tree; a source archive carries what it needs from there


def first_existing(*paths: Path) -> Path:
    for path in paths:
        if path.exists():
            return path
    raise FileNotFoundError(f"expected one of {', '.join(map(str, paths))}")


class platform_wheel(bdist_wheel):
    """No Python extension in it: one wheel per platform serves every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class complete_sdist(sdist):
    """Adds the version and the runtime's headers, which live outside this folder."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        shutil.copyfile(first_existing(HERE / "VERSION", ROOT / "VERSION"), Path(base_dir, "VERSION"))
        headers = first_existing(HERE / "include/dovetail", ROOT / "core/include/dovetail")
        shutil.copytree(headers, Path(base_dir, "include/dovetail"), dirs_exist_ok=True)


setup(
    version=first_existing(HERE / "VERSION", ROOT / "VERSION").read_text().strip(),
    cmake_source_dir=".",
    cmake_args=[f"-DDOVETAIL_TORCH_PREBUILT={os.environ.get('DOVETAIL_TORCH_PREBUILT', '')}"],
    cmdclass={"bdist_wheel": platform_wheel, "sdist": complete_sdist},
)
