"""Writes core/generated/decompositions.json, which the library brings: python core/schema/decompositions.py

Needs a built runtime, since the rules of the core follow every shape: `make install` or `make dev` first.
Each op is traced for the dtypes, ranks and attributes of traced_calls.py; a program serves all sizes for which its
guards hold. What the file lacks is traced when it is needed, in a process that has Python.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

GENERATED = Path(__file__).resolve().parent.parent / "generated" / "decompositions.json"
ANY = "*"  # in patterns and programs: the dtype of the value operands


def decompositions(op: Any, core: Any, dt: Any) -> dict[str, Any]:
    """{"any": [dtypes], "patterns": {pattern: [places among programs]}, "programs": [...]} of one op."""
    from dovetail.schema.traced_calls import calls_of

    traced: dict[str, dict[Any, list[str]]] = {}  # by pattern and dtype of the value operands
    for operands, pattern, text in traced_calls(op, core, calls_of(op, dt)):
        pattern, dtype = apart(op, pattern, operands)
        if text not in (known := traced.setdefault(pattern, {}).setdefault(dtype, [])):
            known.append(text)
    every = {dtype for of in traced.values() for dtype in of}
    texts: dict[str, list[str]] = {}
    for pattern, of in traced.items():
        shared, dtypes = _shared(of) if of.keys() == every and None not in every else ([], set())
        if dtypes:
            texts[pattern] = shared
        texts |= {pattern.replace(ANY, d.brief) if d else pattern: of[d] for d in of if d not in dtypes}
    if op.spec.shape in ("same", "broadcast"):
        texts = _shared_by_ranks(texts)
    places: dict[str, int] = {}
    patterns = {
        pattern: [places.setdefault(text, len(places)) for text in programs] for pattern, programs in texts.items()
    }
    return {
        "any": sorted(d.brief for d in every if d) if any(ANY in p for p in patterns) else [],
        "patterns": patterns,
        "programs": [json.loads(text) for text in places],
    }


def traced_calls(op: Any, core: Any, calls: Iterable[Any]) -> Iterator[tuple[list[Any], str, str]]:
    """(operands, pattern, program's text) of those calls that the op takes."""
    for operands, attributes in calls:
        given = [None if x is None else (x[0].name, list(x[1])) for x in operands]
        named = {k: getattr(v, "name", v) for k, v in attributes.items()}
        try:
            yield operands, *core.decomposition_text(op.name, given, named)
        except (TypeError, ValueError, IndexError, NotImplementedError):
            continue


def apart(op: Any, pattern: str, operands: list[Any]) -> tuple[str, Any]:
    """A pattern with ANY for the dtype of value operands, and this dtype; as it is where they have none."""
    names, attributes = (part.split(",") for part in (pattern + ";").split(";")[:2])
    dtype = None
    for i, x in enumerate(operands):
        if x is not None and op.operands[min(i, len(op.operands) - 1)].kind == "value":
            names[i], dtype = names[i].replace(x[0].brief, ANY, 1), x[0]
    for i, p in enumerate(op.attributes):
        if dtype and p.kind == "dtype" and attributes[i] == dtype.brief:
            attributes[i] = ANY
    return ";".join([",".join(names), *([",".join(attributes)] if op.attributes else [])]), dtype


def _shared(of: dict[Any, list[str]]) -> tuple[list[str], set[Any]]:
    """Programs with ANY for the dtype, and the dtypes for which they give the right ones: as many as possible, or
    none where no two have programs in common."""
    shared: list[str] = []
    served: set[Any] = set()
    for base, programs in of.items():
        made = [text.replace(f'"dtype":"{base.name}"', f'"dtype":"{ANY}"') for text in programs]
        alike = {d for d in of if [t.replace(f'"dtype":"{ANY}"', f'"dtype":"{d.name}"') for t in made] == of[d]}
        if len(alike) > max(1, len(served)):
            shared, served = made, alike
    return shared, served


def without_ranks(pattern: str) -> str:
    operands, *attributes = pattern.split(";")
    return ";".join([re.sub(r"\.\d+", "", operands), *attributes])


def _shared_by_ranks(texts: dict[str, list[str]]) -> dict[str, list[str]]:
    """One pattern for all ranks of an elementwise op where its programs do not depend on them."""
    by_short: dict[str, dict[str, list[str]]] = {}
    for pattern, programs in texts.items():
        by_short.setdefault(without_ranks(pattern), {})[pattern] = programs
    found: dict[str, list[str]] = {}
    for short, of in by_short.items():
        programs = next(iter(of.values()))
        found |= {short: programs} if all(p == programs for p in of.values()) else of
    return found


FORMS = "forms"  # the name of their line, which no op has


def forms(runtime: Any) -> list[dict[str, Any]]:
    """[{"marks": constants that stand for any, "shapes", "written": program, "op": program}] of schema/forms.py."""
    from dovetail.schema.forms import EPS, FORMS, SCALE

    def traced(function: Any, shapes: Any) -> dict[str, Any]:
        sizes = [[1 if n == 1 else f"n{n}" for n in shape] for shape in shapes]  # equal ones stay equal
        program = json.loads(runtime.export(function, *(runtime.spec(s, "float32") for s in sizes)).text())
        for left_out in ("signature", "guards"):
            program.pop(left_out, None)
        for node in program["nodes"]:
            node.pop("where", None)
        for given in program["inputs"]:
            given.pop("name", None)
            given["shape"] = [n if isinstance(n, int) else None for n in given["shape"]]
        return json.loads(json.dumps(program).replace('"dtype": "float32"', f'"dtype": "{ANY}"'))

    found = []
    for form in FORMS:
        for shapes in form.shapes:
            written, op = traced(form.written, shapes), traced(form.op, shapes)
            found.append({"marks": [EPS, SCALE], "shapes": shapes, "written": written, "op": op})
    return found


def text_of(names: list[str] | None = None) -> str:
    from dovetail import _core as core
    from dovetail.schema import dtypes as dt
    from dovetail.schema import registry

    own = sorted(
        o.name
        for o in registry.values()
        if (o.decomposition or o.stored_decomposition) and o.__module__.startswith("dovetail.schema")
    )
    lines = []
    if not names:
        import dovetail

        lines.append(f"{json.dumps(FORMS)}:{json.dumps(forms(dovetail), separators=(',', ':'))}")
    for name in names or own:
        made = decompositions(registry[name], core, dt)
        lines.append(f"{json.dumps(name)}:{json.dumps(made, separators=(',', ':'))}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="decompositions.py", description=__doc__.split("\n")[0])
    parser.add_argument("ops", nargs="*", help="print the decompositions of these ops, and write nothing")
    options = parser.parse_args(argv)
    text = text_of(options.ops)
    if options.ops:
        sys.stdout.write(text)
    else:
        GENERATED.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
