"""dovetail.compile: a function over arrays runs as one call of a program that was traced from it."""

from __future__ import annotations

import threading
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import MethodType
from typing import Any

from dovetail import _core
from dovetail._compile_arguments import children, leaves, with_arrays
from dovetail._compile_graph import RunsEagerly
from dovetail._compile_misses import find_symbols, first_that_works, reason_of, ways
from dovetail._compile_trace import Bound, Traced, trace
from dovetail._core import Array
from dovetail._devices import device as to_device
from dovetail._function_trace import Dynamic, Spec, expect_that_a_call_runs, marks_of_arguments

__all__ = ["compile", "compile_report"]

MOST_TRACES = 8  # of one function (of one object's method); what needs more runs eagerly
MANY_OBJECTS = 32  # among the arguments, one after the other: a warning
_NO_FUNCTION: Any = object()
_KEPT = (  # of the function
    "__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "__type_params__",
    "__isabstractmethod__",
)  # fmt: skip

CompiledFunction = _core.CompiledFunction
_all: weakref.WeakSet[Any] = weakref.WeakSet()  # compiled functions


@dataclass(slots=True)
class _State:
    """What Python knows of a compiled function; the calls themselves are in bindings/compiled.cpp."""

    fn: Callable[..., Any]
    name: str
    options: dict[str, Any]
    parameters: dict[str, Any]
    instance: weakref.ref[Any] | None = None  # of a method: its object
    lock: threading.RLock = field(default_factory=threading.RLock)
    traces: list[Traced] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)  # why there was a further trace
    symbols: set[str] = field(default_factory=set)  # ints among the arguments that are no guards
    way: int = 0  # the first of ways() that has not failed
    why_way: str = ""  # it is not the first of all
    seconds: float = 0.0  # of tracing
    gone: int = 0  # programs that were made for objects which are gone
    eager_calls: int = 0
    eager: list[Any] = field(default_factory=list)  # what arguments are for which no program does what fn does
    warned: bool = False
    methods: dict[int, Any] = field(default_factory=dict)  # by the id of the object: (weak reference, compiled)


class _Compile:
    """dovetail.compile; see __call__."""

    off = staticmethod(_core.compile_off)

    def __call__(
        self,
        fn: Callable[..., Any] = _NO_FUNCTION,
        /,
        *,
        donate: Sequence[str] = (),
        dynamic: Dynamic = None,
        numerics: str = "wide",
        capture: bool = True,
        **others: Any,
    ) -> Any:
        """Makes fn a compiled function: traced at the first call, then run as one call of its program.

        A decorator, with or without options, of functions and methods, and a function of those and of Programs.
        Arguments are arrays, numbers, strings, None, and tuples, lists, dicts with strings as keys, namedtuples and
        dataclasses of them; any other object is one that the function reads arrays from, as `self`.

        donate: names of arguments whose arrays the call may overwrite; using them later raises RuntimeError.
        dynamic: sizes that may differ from call to call without another trace, as dovetail.export takes it; None:
        all. numerics: "wide", whose errors are not larger than those of eager calls, or "eager", which has the bits
        of eager calls. capture: runs that repeat become one replay where the device can record its work; such a
        function holds the memory of its intermediate results.
        """
        for name in others:
            raise TypeError(f"[compile] there is no option {name!r}: expected donate, dynamic, numerics or capture")
        if numerics not in ("wide", "eager"):
            raise ValueError(f'[compile] numerics: got {numerics!r}, expected "wide" or "eager"')
        donate = (donate,) if isinstance(donate, str) else donate
        if not isinstance(donate, Sequence) or not all(isinstance(name, str) for name in donate):
            raise TypeError(f"[compile] donate: got {donate!r}, expected names of arguments")
        if not (dynamic is None or isinstance(dynamic, (bool, dict))):
            raise TypeError(
                f"[compile] dynamic: got {dynamic!r}, expected None, a bool or a dict by arguments' names"
            )
        if not isinstance(capture, bool):
            raise TypeError(f"[compile] capture: got {capture!r}, expected a bool")
        options = {"donate": tuple(donate), "dynamic": dynamic, "numerics": numerics, "capture": capture}
        if fn is _NO_FUNCTION:
            return lambda function: self(function, **options)
        if isinstance(fn, (staticmethod, classmethod)):
            return type(fn)(self(fn.__func__, **options))
        if not callable(fn):
            raise TypeError(f"[compile] expected a function, got {fn!r}")
        expect_that_a_call_runs(fn, "compile")
        if isinstance(fn, CompiledFunction):
            fn = fn.__wrapped__
        name = getattr(fn, "__qualname__", None) or getattr(fn, "name", None) or type(fn).__name__
        state = _State(fn, name, options, _parameters(fn))
        for d in donate:
            if d not in state.parameters["names"]:
                raise ValueError(
                    f"[compile] donate: {name} has no argument {d!r}: expected some of "
                    f"{', '.join(state.parameters['names'])}"
                )
        return _made(state)

    def __repr__(self) -> str:
        return "dovetail.compile"


def _made(state: _State) -> Any:
    p = state.parameters
    named = [(n, p["defaults"].get(n), n in p["defaults"]) for n in p["names"]]
    compiled = _core.make_compiled(
        state.fn, _missed, named, p["n_positional_only"], p["n_positional"], p["extra"], p["extra_keywords"],
        state.options["capture"],
    )  # fmt: skip
    for name in _KEPT:
        if hasattr(state.fn, name):
            setattr(compiled, name, getattr(state.fn, name))
    compiled._state = state
    _all.add(compiled)
    return compiled


def _parameters(fn: Callable[..., Any]) -> dict[str, Any]:
    from inspect import Parameter, signature

    from dovetail._program import Program

    made: dict[str, Any] = {
        "names": [], "defaults": {}, "n_positional_only": 0, "n_positional": 0, "extra": False,
        "extra_keywords": False,
    }  # fmt: skip
    try:
        parameters = () if isinstance(fn, Program) else signature(fn, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):  # functions written in C may have no signature
        parameters = ()
    if not parameters and not hasattr(fn, "__code__"):
        made |= {"extra": True, "extra_keywords": not isinstance(fn, Program)}
    for p in parameters:
        if p.kind is Parameter.VAR_POSITIONAL:
            made["extra"] = True
            continue
        if p.kind is Parameter.VAR_KEYWORD:
            made["extra_keywords"] = True
            continue
        made["names"].append(p.name)
        made["n_positional_only"] += p.kind is Parameter.POSITIONAL_ONLY
        made["n_positional"] += p.kind is not Parameter.KEYWORD_ONLY
        if p.default is not Parameter.empty:
            made["defaults"][p.name] = p.default
    return made


# ---- calls for which no program is right -------------------------------------------------------------------------


def _missed(
    compiled: Any, values: tuple[Any, ...], n_extra: int, keywords: tuple[str, ...], why: str, refused: bool
) -> Any:
    """Called by the compiled function: traces it for these arguments and runs the program.

    refused: a rule raises an error for them. A trace with Python's own sizes and numbers meets it on the line
    where it occurs, and the function may handle it.
    """
    state: _State = compiled._state
    bound = _bound(state, values, n_extra, keywords)
    _forget_dead(compiled, state)
    known = len(state.traces)
    if not _is_eager(state, bound):
        if state.lock.acquire(blocking=False):  # else another thread traces, and may wait for this one
            try:
                if known == len(state.traces) and known + len(state.eager) < MOST_TRACES:
                    _trace(compiled, state, bound, why, pinned=refused, is_call=True)
            except RunsEagerly as reason:
                state.eager.append(_eager_key(bound))
                _warn_once(state, f"[compile] {state.name!r} runs eagerly for arguments as these: {reason}")
            finally:
                state.lock.release()
        done, result = _core.run_compiled(compiled, values, n_extra, keywords)
        if done:
            return result
        if len(state.traces) >= MOST_TRACES:
            _warn_once(state, _most(state, reason_of(compiled, state, bound, why)))
    state.eager_calls += 1
    positional, named = bound.call(list(values))
    return state.fn(*positional, **named)


def _forget_dead(compiled: Any, state: _State) -> None:
    """Drops the programs that were made for an object which is gone."""
    dead = [t for t in state.traces if t.is_dead]
    for traced in dead:
        state.traces.remove(traced)
        _core.drop_compiled_program(compiled, traced.program)
    before, state.gone = state.gone, state.gone + len(dead)
    if before < MANY_OBJECTS <= state.gone:
        warnings.warn(
            f"[compile] {state.name!r} was traced for {state.gone} objects that are gone since, as another object "
            "among its arguments is a trace: pass a tuple, dict or dataclass of what it reads, or one that stays",
            stacklevel=3,  # the caller of the compiled function
        )


def _eager_key(bound: Bound) -> Any:
    """What the arguments are, but for the values of numbers."""
    facts = {path: fact[:2] if fact[:2] == ("value", "int") else fact for path, fact in bound.facts().items()}
    return facts, to_device(None)


def _is_eager(state: _State, bound: Bound) -> bool:
    return bool(state.eager) and _eager_key(bound) in state.eager


def _bound(state: _State, values: Sequence[Any], n_extra: int, keywords: Sequence[str]) -> Bound:
    p, is_method = state.parameters, state.instance is not None
    leaves(values[is_method:])  # which refuses what is nested too deep
    names = [*p["names"], *(f"args[{i}]" for i in range(n_extra)), *keywords]
    return Bound(names, values, p["n_positional"], len(p["names"]), n_extra, keywords, is_method)


def _trace(
    compiled: Any,
    state: _State,
    bound: Bound,
    why: str,
    *,
    specs: dict[int, Spec] | None = None,
    pinned: bool = False,
    is_call: bool = False,
) -> Traced:
    """As _compile_trace.trace()."""
    reason = reason_of(compiled, state, bound, why)
    find_symbols(state, bound)
    skipped = int(bound.weak_self)
    names, first = bound.names[skipped:], bound.values[skipped:]
    dynamic = False if pinned else state.options["dynamic"]
    marks = marks_of_arguments(dynamic, names, first, "compile", children)
    start = time.perf_counter()
    program, traced = first_that_works(
        state,
        [(2, None)] if pinned else ways(state, bound),
        lambda symbols, is_last: trace(
            state.fn, bound, symbols, marks, state.options, specs or {}, pinned, is_call and is_last
        ),
    )
    state.seconds += time.perf_counter() - start
    if state.traces:
        state.reasons.append(reason)
    _log(state, reason, traced)
    if traced.left and not any(t.left for t in state.traces):
        warnings.warn(
            f"[compile] {state.name!r}: {traced.left}. Keep large tables where the function does not go, or pass "
            "what it needs of them as arguments",
            stacklevel=3,  # the caller of the compiled function
        )
    state.traces.append(traced)
    _core.add_compiled_program(compiled, program)
    return traced


def _warn_once(state: _State, text: str) -> None:
    if not state.warned:
        state.warned = True
        warnings.warn(text, stacklevel=3)  # the caller of the compiled function


def _most(state: _State, reason: str) -> str:
    return (
        f"[compile] {state.name!r} was traced {MOST_TRACES} times, which is the most: {reason}. It runs eagerly "
        "from here on where no trace fits; compute with a number instead of looking at it or making text of it, "
        "pass what changes as an array, or compile the parts that do not change"
    )


def _log(state: _State, reason: str, traced: Traced) -> None:
    _core.log_compile(f"{state.name}: traced because of {reason}")
    for note in traced.notes:
        _core.log_compile(f"{state.name}: {note}")


# ---- methods of compiled functions -------------------------------------------------------------------------------


def _get(self: Any, instance: Any, owner: Any = None) -> Any:
    """A compiled method has programs of its own for each object, and forgets them with it."""
    if instance is None:
        return self
    state: _State = self._state
    known = state.methods.get(id(instance))
    if known is None:
        try:
            key = id(instance)
            reference = weakref.ref(instance, lambda _: state.methods.pop(key, None))
        except TypeError:  # without weak references the object is an argument like others
            return MethodType(self, instance)
        own = _State(state.fn, state.name, state.options, state.parameters, reference)
        known = state.methods[key] = reference, _made(own)
    return MethodType(known[1], instance)


def _warmup(self: Any, *args: Any, **kwargs: Any) -> None:
    """Traces for arguments like these, and chooses kernels, without running anything.

    dovetail.spec(shape, dtype) stands for an array on the device of the others, or the default one. A size that is
    None or a name stays open. Raises what the function raises, and RuntimeError where it runs eagerly.
    """
    state: _State = self._state
    try:
        _prepared(self, state, args, kwargs)
    except RunsEagerly as why:
        raise RuntimeError(f"[compile] {state.name!r} runs eagerly for arguments as these: {why}") from None


def _prepared(
    self: Any, state: _State, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Traced, list[Any], list[int], list[float], Any]:
    """The trace that a call runs, the arrays among its arguments, its integers and reals, and its launches with how
    they are captured."""
    bound = _bind(state, args, kwargs)
    values, specs = with_arrays(bound.values)
    bound = replace(bound, values=values)
    given = tuple(values), bound.n_extra, bound.keywords
    with state.lock:
        program, why, integers, reals, *steps = _core.prepare_compiled(self, *given)
        if program is None:
            _forget_dead(self, state)
            if len(state.traces) >= MOST_TRACES:
                raise RunsEagerly(f"it was traced {MOST_TRACES} times, which is the most")
            traced = _trace(self, state, bound, why, specs=specs)
            program, _, integers, reals, *steps = _core.prepare_compiled(self, *given)
        traced = next((t for t in state.traces if t.program is program), state.traces[-1])
    return traced, [specs.get(id(x), x) for x in leaves(values) if isinstance(x, Array)], integers, reals, steps


def _shapes_of(traced: Traced, arrays: Sequence[Any]) -> list[tuple[Any, ...]]:
    shapes: list[tuple[Any, ...]] = list(traced.shapes)
    seen: set[int] = set()
    given = [x for x in arrays if not (id(x) in seen or seen.add(id(x)))]
    shapes[: len(given)] = [tuple(x.shape) for x in given]  # arguments come first among the inputs
    return shapes


def _bind(state: _State, args: Sequence[Any], kwargs: dict[str, Any]) -> Bound:
    """Arguments of a call by parameter. Raises TypeError as the call would."""
    p = state.parameters
    if state.instance is not None:
        args = (state.instance(), *args)
    names, n = p["names"], min(len(args), p["n_positional"])
    given = dict(zip(names, args[:n], strict=False))
    extra = args[n:]
    if extra and not p["extra"]:
        raise TypeError(f"[compile] {state.name} takes {p['n_positional']} positional arguments, got {len(args)}")
    if twice := [key for key in kwargs if key in given]:
        raise TypeError(f"[compile] {state.name} got two values for {twice[0]!r}")
    further = {key: x for key, x in kwargs.items() if key not in names}
    if further and not p["extra_keywords"]:
        raise TypeError(f"[compile] {state.name} has no argument {next(iter(further))!r}")
    given = p["defaults"] | given | {key: x for key, x in kwargs.items() if key in names}
    if missing := [key for key in names if key not in given]:
        raise TypeError(f"[compile] {state.name} misses the argument {missing[0]!r}")
    values = (*(given[key] for key in names), *extra, *further.values())
    return _bound(state, values, len(extra), tuple(further))


def _graph(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The function as a dovetail.Program, for arguments like these: as dovetail.export makes it.

    Its arguments are the positional ones that are no objects. Keyword arguments, objects, and arrays that the
    function captures are constants of the Program. It returns what the function returns; what the function writes
    to its arguments is not a part of it.
    """
    from dovetail._compile_arguments import is_value, number_of
    from dovetail._export import exported

    state: _State = self._state
    bound = _bind(state, args, kwargs)
    values = list(bound.values)

    def is_object(x: Any) -> bool:  # from which the function reads arrays
        known = isinstance(x, (Array, Spec)) or is_value(x) or type(number_of(x)) is float
        return not known and children(x, "") is None and not hasattr(x, "__array__")

    n = len(args) + bound.weak_self
    positional = [*range(min(n, bound.n_positional)), *range(bound.n_named, bound.n_named + bound.n_extra)]
    places = [i for i in positional if not is_object(values[i])]

    def call(*given: Any) -> Any:
        for i, x in zip(places, given, strict=True):
            values[i] = x
        positional, named = bound.call(values)
        return state.fn(*positional, **named)

    call.__qualname__ = state.name
    names = [bound.names[i] for i in places]
    return exported(call, names, [values[i] for i in places], state.options["dynamic"])


def _explain(self: Any, *args: Any, **kwargs: Any) -> str:
    """How a call with these arguments runs: its program, guards, captured arrays, and why there were traces.

    It traces where no program fits, and runs nothing. Raises what the function raises.
    """
    from dovetail._compile_report import explanation, traces_of

    state: _State = self._state
    try:
        traced, arrays, integers, reals, steps = _prepared(self, state, args, kwargs)
    except RunsEagerly as why:
        return "\n".join([f"[compile] {state.name} runs eagerly for arguments as these: {why}", *traces_of(state)])
    return explanation(state, traced, _shapes_of(traced, arrays), integers, reals, steps)


def _check(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Runs every group of the program beside its nodes, one by one, and compares the results.

    A CompileCheck, to print: the first group that differs, the line of the function, and by how many units in the
    last place; `.first` is it, `.results` has all, `.ulp` the largest difference. Nothing is written, donated or
    drawn. It traces where no program fits. Raises what the function raises, and RuntimeError where it runs eagerly.
    """
    from dovetail._compile_check import check_of

    state: _State = self._state
    bound = _bind(state, args, kwargs)
    if any(isinstance(x, Spec) for x in leaves(bound.values)):
        raise TypeError(f"[compile] {state.name}: check() computes with elements: expected arrays, got a spec")
    try:
        traced, *_ = _prepared(self, state, args, kwargs)
    except RunsEagerly as why:
        raise RuntimeError(f"[compile] {state.name!r} runs eagerly for arguments as these: {why}") from None
    groups = _core.compare_groups(self, traced.program, tuple(bound.values), bound.n_extra, bound.keywords)
    return check_of(state.name, state.options["numerics"] == "eager", groups)


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """Itself, as of functions; of a bound method or another object one of the copied object."""
    from copy import deepcopy

    from dovetail._program import Program

    state: _State = self._state
    fn = state.fn if isinstance(state.fn, Program) else deepcopy(state.fn, memo)
    if fn is state.fn or id(self) in memo:  # there where its object holds it
        return memo.get(id(self), self)
    made = compile(fn, **state.options)
    vars(made).update((key, value) for key, value in vars(self).items() if key not in vars(made))
    return made


def _reduce(self: Any, *_: Any) -> str:
    """Pickle keeps the name by which it is found, as of functions."""
    import sys

    state: _State = self._state
    name = str(getattr(self, "__qualname__", state.name))
    home = sys.modules.get(str(getattr(self, "__module__", None)))
    found: Any = home
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not self:
        raise TypeError(
            f"[compile] pickle: {self.__module__} has no {name!r} that is this function: expected one that its "
            "module has under its name; define it there, or pickle what it is made of"
        )
    return name


def compile_report() -> str:
    """Every compiled function of this process: its traces and why they were made, the groups in which devices run
    them, and the time that both took."""
    from dovetail._compile_report import report

    return report([(c._state, _core.capture_states(c)) for c in _all])


for _name, _method in {
    "__copy__": lambda self: self, "__deepcopy__": _deepcopy, "__reduce_ex__": _reduce,
    "__get__": _get, "warmup": _warmup, "graph": _graph, "explain": _explain,
    "check": _check,
    "__repr__": lambda self: f"<compiled {self._state.name}>",
}.items():  # fmt: skip
    setattr(CompiledFunction, _name, _method)

compile = _Compile()
