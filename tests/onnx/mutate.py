"""Changed ONNX files: each import ends with a model or an error that names it, in time and in memory.

python tests/onnx/mutate.py --cases 100000 --seed 1

The files are those of onnx.backend.test. Their messages are changed field by field: numbers, names and bytes take
other values, parts are left out, are there twice, change places or come from another file; sometimes bytes of the
file change, too. Cases run in child processes with a time and a memory limit. What ends otherwise is printed with
the number of its case: `--first N --cases 1` repeats it.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import re
import resource
import signal
import struct
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor

HERE = Path(__file__).resolve().parent
SECONDS = 60  # of one case, whose import may take Limits.seconds
MEMORY = 8 << 30  # of the addresses of a child
BATCH = 2000
ALLOWED = (ValueError, TypeError, IndexError, NotImplementedError, MemoryError)
NUMBERS = (0, 1, 2, 3, -1, -2, 7, 127, 255, 1 << 16, 1 << 31, -(1 << 31), (1 << 62), (1 << 63) - 1, -(1 << 63))
REALS = (0.0, -0.0, 1.0, -1.0, 1e-30, 1e30, float("inf"), float("nan"), 0.5)
NAMES = ("", "x", "y", "a" * 300, "\x1b[2J", "\u202e", "..", "Loop", "If", "Scan", "Add", "Constant", "Reshape")


def seeds() -> list[bytes]:
    """Small models of the suite, in the order of their names."""
    sys.path.insert(0, str(HERE))
    import suite

    sys.path.remove(str(HERE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [suite.materialised(case)[0].SerializeToString() for case in suite.cases("node/,simple/").values()]
    return [raw for raw in models if len(raw) < 20_000]


# ---- changes -----------------------------------------------------------------------------------------------------


def mutant(files: list[bytes], draw: random.Random) -> bytes:
    model = onnx.ModelProto.FromString(draw.choice(files))
    other = onnx.ModelProto.FromString(draw.choice(files))
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        change(draw.choice(messages(model)), messages(other), draw)
    raw = bytearray(model.SerializeToString())
    if draw.random() < 0.1 and raw:
        for _ in range(draw.randint(1, 3)):
            raw[draw.randrange(len(raw))] = draw.randrange(256)
    return bytes(raw)


def messages(root: Any) -> list[Any]:
    """A message and all within it; those of the graphs several times, which are what an import reads."""
    found, todo = [], [root]
    while todo and len(found) < 5000:
        message = todo.pop()
        found += [message] * (3 if message.DESCRIPTOR.name in ("NodeProto", "AttributeProto", "TensorProto") else 1)
        for field, value in message.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                todo += value if is_repeated(field) else [value]
    return found


def is_repeated(field: Any) -> bool:
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == FieldDescriptor.LABEL_REPEATED


def change(message: Any, others: list[Any], draw: random.Random) -> None:
    fields = message.DESCRIPTOR.fields
    given = [field for field, _ in message.ListFields()]
    field = draw.choice(given) if given and draw.random() < 0.8 else draw.choice(fields)
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        alike = [m for m in others if m.DESCRIPTOR is field.message_type]
        if not is_repeated(field):
            if alike and draw.random() < 0.8:
                getattr(message, field.name).CopyFrom(draw.choice(alike))
            else:
                message.ClearField(field.name)
            return
        change_list(getattr(message, field.name), [draw.choice(alike)] if alike else [], draw)
    elif is_repeated(field):
        change_list(getattr(message, field.name), [value_of(field, others, draw)], draw)
    elif draw.random() < 0.1:
        message.ClearField(field.name)
    else:
        put(message, field.name, value_of(field, others, draw))


def change_list(items: Any, new: list[Any], draw: random.Random) -> None:
    """One is left out, is there twice, changes places or is added."""
    kept = [
        item.__class__.FromString(item.SerializeToString()) if hasattr(item, "DESCRIPTOR") else item
        for item in items
    ]
    how = draw.randrange(5)
    at = draw.randrange(len(kept)) if kept else 0
    if kept and how == 0:
        del kept[at]
    elif kept and how == 1:
        kept.insert(draw.randrange(len(kept) + 1), kept[at])
    elif kept and how == 2:
        other = draw.randrange(len(kept))
        kept[at], kept[other] = kept[other], kept[at]
    elif kept and how == 3 and new:
        kept[at] = new[0]
    else:
        kept[at:at] = new
    del items[:]
    try:
        items.extend(kept)
    except (ValueError, TypeError):  # a number or a text that the field does not take
        del items[:]


def put(message: Any, name: str, value: Any) -> None:
    try:
        setattr(message, name, value)
    except (ValueError, TypeError):
        message.ClearField(name)


def value_of(field: Any, others: list[Any], draw: random.Random) -> Any:
    """Another value of a field: one that is special, or that another file has in such a field."""
    known = [
        v
        for m in others
        if m.DESCRIPTOR is field.containing_type
        for f, v in m.ListFields()
        if f.name == field.name
    ]
    if known and draw.random() < 0.5:
        value = draw.choice(known)
        return draw.choice(list(value) or [0]) if is_repeated(field) else value
    if field.type == FieldDescriptor.TYPE_ENUM:
        return draw.choice([v.number for v in field.enum_type.values])
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return draw.choice(REALS)
    if field.type == FieldDescriptor.TYPE_STRING:
        return draw.choice(NAMES)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return draw.choice(
            (b"", b"\xff", b"linear", bytes(draw.randrange(256) for _ in range(draw.randint(0, 40))))
        )
    limit = 31 if field.cpp_type == FieldDescriptor.CPPTYPE_INT32 else 63
    return min(max(draw.choice(NUMBERS), -(1 << limit)), (1 << limit) - 1)


# ---- cases -------------------------------------------------------------------------------------------------------


def run(raw: bytes) -> str:
    """How the import of a file ends; raises what it must not end with."""
    from dovetail.onnx import Limits, check, load

    limits = Limits(nodes=2000, seconds=20.0, folded_bytes=1 << 26)
    try:
        load(raw, "cpu", limits=limits)
    except ALLOWED as error:
        if not str(error).startswith("[model] "):
            raise AssertionError(f"does not name the model: {type(error).__name__}: {error}") from error
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", str(error)):
            raise AssertionError(f"moves the cursor: {error!r}") from error
        return type(error).__name__
    str(check(raw, limits=limits))
    return "loaded"


def hunt(seed: int, first: int, cases: int) -> tuple[dict[str, int], list[str]]:
    """How many cases ended how, and what was found."""
    files = seeds()
    shared = mmap.mmap(-1, 1 << 16)  # the case that a child works on, and how those before ended
    ends: dict[str, int] = {}
    found: list[str] = []
    kinds: set[str] = set()
    at = first
    while at < first + cases:
        end = min(at + BATCH, first + cases)
        here, there = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(here)
            _child(files, seed, at, end, shared, there)
        os.close(there)
        with os.fdopen(here) as pipe:
            lines = pipe.read().splitlines()
        status = os.waitpid(child, 0)[1]
        for line in lines:
            how, _, why = line.partition("\t")
            ends[how] = ends.get(how, 0) + 1
            if why and why.partition(": ")[2][:60] not in kinds:  # each kind of finding once
                kinds.add(why.partition(": ")[2][:60])
                found.append(why)
        if status:
            at = struct.unpack("q", shared[:8])[0]
            found.append(f"case {at}: ended by {signal.strsignal(os.WTERMSIG(status)) or status}")
            end = at + 1
        at = end
    return ends, found


def _child(files: list[bytes], seed: int, first: int, last: int, shared: mmap.mmap, pipe: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for i in range(first, last):
        shared[:8] = struct.pack("q", i)
        signal.alarm(SECONDS)
        try:
            line = run(mutant(files, random.Random(f"{seed}/{i}")))
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"case {i}: {type(error).__name__} {where.name}: {error}"
            line = "found\t" + text.replace("\n", " ")[:400].encode("ascii", "backslashreplace").decode()
        os.write(pipe, (line + "\n").encode())
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--cases", type=int, default=1000)
    args = parser.parse_args()
    ends, found = hunt(args.seed, args.first, args.cases)
    print(f"seed {args.seed}:", ", ".join(f"{n} {how}" for how, n in sorted(ends.items())))
    for finding in found:
        print(finding)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
