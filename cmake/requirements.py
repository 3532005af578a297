"""Prints the requirements of the given pyproject.toml files, one per line.

--build: what building the projects' wheels needs. --group: dependency groups of the repository's own.
"""

import argparse
import tomllib
from pathlib import Path


def read(project: Path) -> dict:
    return tomllib.loads((project / "pyproject.toml").read_text())


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--build", metavar="PROJECT", nargs="*", default=[], type=Path)
parser.add_argument("--group", metavar="NAME", nargs="*", default=[])
args = parser.parse_args()

found = [requirement for project in args.build for requirement in read(project)["build-system"]["requires"]]
groups = read(Path(__file__).parent.parent)["dependency-groups"]
found += [requirement for group in args.group for requirement in groups[group]]
print("\n".join(dict.fromkeys(found)))
