"""The cases of onnx.backend.test as .dvt files, replayed by a C program, bit by bit equal to eager execution.

python tests/onnx/replay.py --device cpu:0 -k resize

prints each case that is not replayed and why. A case is made one program for its own inputs: elements of inputs
that decide about shapes are constants of it. Eager execution runs the model node by node, without programs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import onnx

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "runtime")]
import suite  # noqa: E402
from c_programs import compiled  # noqa: E402

del sys.path[:2]


class NotReplayedError(Exception):
    """Why a case cannot be a file for a program without Python."""


def results(device: str, pattern: str = "") -> dict[str, str]:
    """Of each case "equal", or why it is not."""
    made: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as root:
        folders: dict[Path, str] = {}
        for name, case in suite.cases(pattern).items():
            model, sets = suite.materialised(case)
            for given, _ in sets:
                folder = Path(root, str(len(folders)))
                try:
                    write(model, given, device, folder)
                    folders[folder] = name
                except NotReplayedError as why:
                    made.setdefault(name, []).append(str(why))
                except Exception as error:  # the model does not run eagerly
                    made.setdefault(name, []).append(f"not run: {type(error).__name__}: {error}")
        for folder, answer in zip(folders, replayed([*folders], device, Path(root)), strict=True):
            made.setdefault(folders[folder], []).append(answer)
    return {name: next((a for a in answers if a != "equal"), "equal") for name, answers in made.items()}


def write(model: onnx.ModelProto, given: list[Any], device: str, folder: Path) -> None:
    """operands.dvt, program.dvt and results.dvt for one call of a model."""
    import dovetail
    import dovetail.onnx

    home = dovetail.device(device)
    dovetail.random.seed(0)
    eager = dovetail.onnx.load(model, home, limits=dovetail.onnx.Limits(variants=0))
    expected = dict(zip(eager.outputs, eager(*given), strict=True))
    loaded = dovetail.onnx.load(model, home)
    dovetail.random.seed(0)
    loaded(*given)
    (step, *others) = loaded._steps
    if others or step.why is not None:
        raise NotReplayedError(next(s.why for s in loaded._steps if s.why is not None))
    variant = step.variants[-1]
    if variant.host:
        raise NotReplayedError("results that are strings, or optionals without an element, are on the host")
    values = dict(zip((port.name for port in loaded.inputs), given))
    folder.mkdir()
    variant.program.save(folder / "program.dvt", portable=True)
    _save(folder / "operands.dvt", [values[name] for name in variant.names], home)
    _save(folder / "results.dvt", [expected[name] for name in variant.outputs], home)


def _save(path: Path, values: list[Any], home: Any) -> None:
    """A program without inputs that returns these values."""
    import dovetail

    arrays = [dovetail.asarray(x, device=home) for x in _leaves(values)]
    dovetail.export(lambda: tuple(arrays)).save(path)


def _leaves(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, (list, tuple)) else [value]


def replayed(folders: list[Path], device: str, root: Path) -> list[str]:
    """What the C program reports of each folder. A crash costs one of them."""
    backend = import_module(f"dovetail_{device.partition(':')[0]}").backend
    command = [compiled("replay_programs", root), device, backend.library]
    answers: list[str] = []
    while len(answers) < len(folders):
        lines = "".join(f"{folder}\n" for folder in folders[len(answers) :])
        ended = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
        answers += ended.stdout.splitlines()
        if len(answers) < len(folders):
            answers.append(f"exit code {ended.returncode}: {ended.stderr[-300:]}")
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu:0")
    parser.add_argument("-k", default="", help="parts of names, separated by commas")
    parser.add_argument("-o", help="writes {name: result}")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    made = results(args.device, args.k)
    for name, why in made.items():
        if why != "equal":
            print(name, why[:200])
    print(f"{sum(why == 'equal' for why in made.values())} of {len(made)} are equal")
    if args.o:
        Path(args.o).write_text(json.dumps(made, indent=0))


if __name__ == "__main__":
    main()
