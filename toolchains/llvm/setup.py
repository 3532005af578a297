"""The version is the repository's: it has one home, which a source archive carries along."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.sdist import sdist

HERE = Path(__file__).parent
VERSION = HERE / "VERSION" if (HERE / "VERSION").exists() else HERE / "../../VERSION"


class complete_sdist(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        shutil.copyfile(VERSION, Path(base_dir, "VERSION"))


setup(version=VERSION.read_text().strip(), cmdclass={"sdist": complete_sdist})
