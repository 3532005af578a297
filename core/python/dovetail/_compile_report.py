"""What dovetail.compile did, as text: explain() and compile_report()."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dovetail import _pytree as pytree
from dovetail._program import Program
from dovetail._program_text import listing

if TYPE_CHECKING:
    from dovetail._compile import _State
    from dovetail._compile_trace import Traced

__all__ = ["explanation", "report"]


def explanation(
    state: _State,
    traced: Traced,
    shapes: Sequence[tuple[Any, ...]],
    integers: Sequence[int],
    reals: Sequence[float],
) -> str:
    """The program of a call, and what it stands for."""
    core = traced.program
    names = tuple(name for name, _, _ in core.inputs)
    tree = pytree.Node("tuple", (), (), tuple)
    program = Program(core, state.name, names, tuple(pytree.Leaf(i) for i in range(len(names))), tree)
    lines = [f"[compile] {state.name}: {len(state.traces)} traces, {1000 * state.seconds:.1f} ms"]
    lines += [f"  traced again: {reason}" for reason in state.reasons]
    lines += [f"  captured: {name}" for name in traced.captured]
    lines += [f"  writes to: {name}" for name in traced.written]
    lines += [f"  note: {note}" for note in traced.notes]
    return "\n".join([*lines, *_sizes(names, shapes), *_launches(core), listing(program, integers, reals)])


def _sizes(names: Sequence[str], shapes: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    for name, shape in zip(names, shapes, strict=True):
        yield f"  {name}: {shape}"


def _launches(core: Any) -> Iterator[str]:
    import json

    counts = Counter(node["op"] for node in json.loads(core.text())["nodes"])
    calls = ", ".join(f"{n} {op}" if n > 1 else op for op, n in counts.most_common())
    yield f"  {counts.total()} nodes, run one by one: {calls or 'none'}"


def report(states: Sequence[_State]) -> str:
    """A line for each compiled function, and one for each further trace of it."""
    lines = []
    for state in sorted((s for s in states if s.traces or s.eager_calls), key=lambda s: s.name):
        eager = f", {state.eager_calls} eager calls" if state.eager_calls else ""
        lines.append(f"{state.name}: {len(state.traces)} traces in {1000 * state.seconds:.1f} ms{eager}")
        lines += [f"  traced again: {reason}" for reason in state.reasons]
    return "\n".join(lines) or "no compiled functions"
