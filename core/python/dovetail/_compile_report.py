"""What dovetail.compile did, as text: explain() and compile_report()."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dovetail import _core
from dovetail import _pytree as pytree
from dovetail._errors import FallbackWarning
from dovetail._program import Program
from dovetail._program_text import listing

if TYPE_CHECKING:
    from dovetail._compile import _State
    from dovetail._compile_trace import Traced

__all__ = ["dump", "explanation", "report", "traces_of"]


def explanation(
    state: _State,
    traced: Traced,
    shapes: Sequence[tuple[Any, ...]],
    integers: Sequence[int],
    reals: Sequence[float],
    steps: tuple[tuple[int, int, list, list], str],
) -> str:
    """The program of a call, and what it stands for."""
    core = traced.program
    names = [name for name, _, _ in core.inputs]
    lines = [f"[compile] {state.name}: {_counted(state)}, {1000 * state.seconds:.1f} ms", *_switched_off()]
    lines += traces_of(state)
    lines += [f"  autocast to {traced.autocast}"] if traced.autocast else []
    lines += [f"  captured: {name}" for name in traced.captured]
    lines += [f"  writes to: {name}" for name in traced.written]
    lines += [f"  note: {note}" for note in traced.notes]
    launches, capture = steps
    lines += [*_sizes(names, shapes), *_launches(core, launches)]
    lines += [f"  {capture}"] if capture else []
    return "\n".join([*lines, _text(core, state.name, integers, reals)])


def _counted(state: _State) -> str:
    gone = f" and {state.gone} for objects that are gone" if state.gone else ""
    return _number(len(state.traces), "trace") + gone


def _number(n: int, what: str, plural: str = "s") -> str:
    return f"{n} {what}{'' if n == 1 else plural}"


def _switched_off() -> list[str]:
    off = os.environ.get("DOVETAIL_COMPILE") == "0"
    return ["  DOVETAIL_COMPILE=0: calls run eagerly, and none of this"] if off else []


def traces_of(state: _State) -> list[str]:
    """Why there was more than one trace."""
    return [f"  traced again: {reason}" for reason in state.reasons]


def _text(core: Any, name: str, integers: Sequence[int], reals: Sequence[float]) -> str:
    names = tuple(name for name, _, _ in core.inputs)
    tree = pytree.Node("tuple", (), (), tuple)
    program = Program(core, name, names, tuple(pytree.Leaf(i) for i in range(len(names))), tree)
    return listing(program, integers, reals)


def dump(folder: str, name: str, traced: Any, lowered: Any, numbers: tuple[Sequence[int], Sequence[float]]) -> None:
    """Writes a program before and after the passes: NAME-HASH.traced and .lowered. Warns where it cannot."""
    from hashlib import sha256

    texts = {kind: _text(core, name, *numbers) for kind, core in (("traced", traced), ("lowered", lowered))}
    stem = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[-100:]
    stem = f"{stem}-{sha256(texts['traced'].encode()).hexdigest()[:16]}"
    try:
        os.makedirs(folder, exist_ok=True)
        for kind, text in texts.items():
            with open(os.path.join(folder, f"{stem}.{kind}"), "w", encoding="utf-8") as file:
                file.write(text + "\n")
    except OSError as e:
        warnings.warn(f"[compile] DOVETAIL_COMPILE_DUMP: {folder}: {e.strerror}", FallbackWarning, stacklevel=2)


def _sizes(names: Sequence[str], shapes: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    for name, shape in zip(names, shapes, strict=True):
        yield f"  {name}: {shape}"


def _launches(core: Any, steps: tuple[int, int, list, list]) -> Iterator[str]:
    """How many launches a call takes, and of what: groups of nodes by the device's compiler, and the others."""
    import json

    launches, one_by_one, groups, reasons = steps
    nodes = json.loads(core.text())["nodes"]
    instead = f", in place of {one_by_one}" if groups else ""
    yield f"  {_number(len(nodes), 'node')} in {_number(launches, 'launch', 'es')}{instead}"
    for members, name, description in groups:
        how = f": {description}" if description else ""
        yield f"  compiled: {name}, nodes {', '.join(map(str, members))}{how}"
    grouped = {k for members, _, _ in groups for k in members}
    counts = Counter((node["op"], *reasons[k : k + 1]) for k, node in enumerate(nodes) if k not in grouped)
    for (op, *reason), n in counts.most_common():
        why = f": {reason[0]}" if reason and reason[0] else ""
        yield f"  one by one: {f'{n} ' if n > 1 else ''}{op}{why}"


def _groups(state: _State) -> Iterator[str]:
    """How devices run its programs: a line for each way, of any number of sets of sizes, and one for each group."""
    for i, traced in enumerate(state.traces):
        ways: dict[Any, list[float]] = {}
        for device, seconds, alone, groups in _core.groups_of(traced.program):
            ways.setdefault((device, alone, tuple(groups)), []).append(seconds)
        for (device, alone, groups), times in ways.items():
            sizes = f" for {len(times)} sets of sizes" if len(times) > 1 else ""
            yield (
                f"  trace {i + 1} on {device}{sizes}: groups {len(groups)}, nodes by themselves {alone}, made in "
                f"{1000 * sum(times):.1f} ms"
            )
            for (name, where), n in Counter(groups).items():
                yield f"    {f'{n} times ' if n > 1 else ''}{name}" + (f", at {where}" if where else "")


def report(functions: Sequence[tuple[_State, Sequence[str]]]) -> str:
    """For each compiled function its traces, why they were made, how devices run and capture them."""
    lines = []
    used = [(state, captures) for state, captures in functions if state.traces or state.gone or state.eager_calls]
    for state, captures in sorted(used, key=lambda f: f[0].name):
        eager = f", {state.eager_calls} eager calls" if state.eager_calls else ""
        lines.append(f"{state.name}: {_counted(state)} in {1000 * state.seconds:.1f} ms{eager}")
        lines += traces_of(state)
        lines += _groups(state)
        lines += [f"  {n} times {text}" if n > 1 else f"  {text}" for text, n in Counter(captures).items()]
    return "\n".join([*(lines or ["no compiled functions"]), *_toolchains()])


def _toolchains() -> Iterator[str]:
    """What compilers of devices asked toolchains for: how much was made, where the rest was found, what failed."""
    tools, problem = _core.toolchains()
    for tool in tools:
        times = [made["cpu_ms"] for made in tool["made"]]
        spent = f" in {sum(times):.1f} ms of CPU time" if times else ""
        each = f", at most {max(times):.1f} for one" if len(times) > 1 else ""
        yield (
            f"toolchain {tool['name']}: {len(times)} made{spent}{each}, {tool['shared']} shared, "
            f"{tool['kept']} from the cache"
        )
        for reason, n in Counter(tool["failures"]).items():
            yield f"  {f'{n} times ' if n > 1 else ''}not made: {reason}"
    if tools and problem:
        yield f"  nothing is kept on disk: {problem}"
