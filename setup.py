"""What pyproject.toml cannot express: packages in several folders, and a clean build folder."""

import shutil
import tomllib
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build import build

BUILD = Path("build/wheel")


class fresh_build(build):
    """Starts from nothing: a file that was renamed or removed must not reach the wheel from an earlier build."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


def packages() -> list[str]:
    found = []
    folders = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    for package, folder in folders.items():
        found += [package] if package else []
        found += [f"{package}.{sub}".lstrip(".") for sub in find_packages(folder)]
    return found


BUILD.mkdir(parents=True, exist_ok=True)
setup(
    packages=packages(),
    package_data={"dovetail": ["py.typed"], "dovetail.cli.comparison": ["points.json"]},
    cmdclass={"build": fresh_build},
    options={"build": {"build_base": str(BUILD)}, "egg_info": {"egg_base": str(BUILD)}},
)
