"""Calls for which no program is right: why, and how the next trace takes the numbers among the arguments."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any

from dovetail import _core
from dovetail._compile_graph import RunsEagerly
from dovetail._core import Array
from dovetail._tracer import TraceError
from dovetail.schema.number import in_table

if TYPE_CHECKING:
    from dovetail._compile import _State
    from dovetail._compile_trace import Bound, Traced

__all__ = ["find_symbols", "first_that_works", "reason_of", "ways"]

Way = tuple[int, Set[str] | None]  # (its place, the symbols of Arguments)


def ways(state: _State, bound: Bound) -> list[Way]:
    """How numbers among the arguments may be traced. Some code takes only those of Python: `json.dumps(n)`."""
    facts = bound.facts()
    found: list[Way] = [(0, symbols)] if (symbols := state.symbols & facts.keys()) else []
    found.append((1, frozenset()))
    if state.way == 2 or ("float",) in facts.values():
        found.append((2, None))
    return [way for way in found if way[0] >= state.way]


def first_that_works(
    state: _State, ways: list[Way], attempt: Callable[[Set[str] | None, bool], tuple[Any, Traced]]
) -> tuple[Any, Traced]:
    """The trace of the first way in which the function raises nothing; or raises what it does in the last one."""
    failed: Exception | None = None
    for place, symbols in ways:
        is_last = place == ways[-1][0]
        try:
            made = attempt(symbols, is_last)
            break
        except (RunsEagerly, TraceError):
            raise
        except Exception as error:
            if is_last:
                raise
            failed = error
    if failed is not None:
        kinds = "ints and floats" if place == 2 else "ints"
        state.way = place
        state.why_way = (
            f"{kinds} among the arguments are guards by their values, as one that stands for any value raised "
            f"{type(failed).__name__}: {failed}"
        )
    made[1].notes += [state.why_way] if state.why_way else []
    return made


def find_symbols(state: _State, bound: Bound) -> None:
    """An int is a guard by its value; the second value of it makes it a number of the program."""
    if state.options["dynamic"] is False:
        return
    numpy_integers = {
        path
        for path, value in zip(bound.names, bound.values)
        if type(value) is not int and hasattr(type(value), "dtype") and hasattr(type(value), "__index__")
        and not isinstance(value, Array)
    }  # fmt: skip
    state.symbols |= numpy_integers
    facts = bound.facts()
    for traced in state.traces:
        for path, fact in facts.items():
            before = traced.facts.get(path)
            if _is_int(fact) and _is_int(before) and fact != before:
                state.symbols.add(path)


def reason_of(compiled: Any, state: _State, bound: Bound, why: str) -> str:
    """What differs from what the nearest trace was made for."""
    if why:
        return why
    if not state.traces:
        return "the first call"

    nearest = min(reversed(state.traces), key=lambda traced: len(_differing(traced, bound)))
    lowered, lower = nearest.autocast, _core.autocast_dtype(nearest.device)
    if lowered != lower:
        return f"dovetail.autocast lowers to {lower or 'nothing'}, and lowered to {lowered or 'nothing'}"
    for path, now, before in _differing(nearest, bound)[:1]:
        return f"argument {path} is {_shown(now)}, and was {_shown(before)}"
    at = _core.failing_step(compiled, nearest.program, tuple(bound.values), bound.n_extra, tuple(bound.keywords))
    if at < 0:
        return "an array is at two places among what the function reads, and was not, or the other way round"
    return f"{nearest.watched[at]}, which the function reads, is not what it was"


def _differing(traced: Traced, bound: Bound) -> list[tuple[str, Any, Any]]:
    """(path, what is there now, what was) of the arguments that are not as the program expects them."""
    facts, known = bound.facts(traced.symbols is None), traced.facts
    paths = [*known, *(path for path in facts if path not in known)]
    pairs = [(path, facts.get(path), known.get(path)) for path in paths]
    numbers = traced.symbols or ()
    return [
        (path, now, before)
        for path, now, before in pairs
        if now != before and not (path in numbers and _is_int(now) and _is_int(before) and in_table(now[2]))
    ]


def _is_int(fact: Any) -> bool:
    return fact is not None and fact[:2] == ("value", "int")


def _shown(fact: Any) -> str:
    if fact is None:
        return "not there"
    if fact[0] == "array":
        return f"an array of {fact[1]} with {fact[2]} axes on {fact[3]}"
    if fact[0] == "same":
        return f"the array of {fact[1]}"
    if fact[0] == "value":
        return repr(fact[2])
    return f"another {fact[1]}" if fact[0] == "object" else f"a {fact[0]}" + (f" of {fact[1:]}" if fact[1:] else "")
