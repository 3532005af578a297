"""Prints `<minor>;<folder>` of this environment's torch, without importing it."""

import importlib.util
from importlib.metadata import version
from pathlib import Path

spec = importlib.util.find_spec("torch")
if spec is None or spec.origin is None:
    raise SystemExit("dovetail-torch: there is no torch in this environment; pip install torch")
print(".".join(version("torch").split(".")[:2]), Path(spec.origin).parent, sep=";")
