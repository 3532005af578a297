"""How an op is declared.

    @op(shape="broadcast", dtype="float", reference=np.logaddexp, tol=8)
    def logaddexp(x1: Tensor, x2: Tensor, /) -> Tensor:
        \"\"\"log(exp(x1) + exp(x2)), without overflow.\"\"\"
        m = maximum(x1, x2)
        ...

The parameters' annotations define their kinds. Operands: `Tensor` takes part in the dtype rule, `Mask` is bool,
`Index` is cast to int64, `Raw` is left alone; `| None` makes one optional, `Sequence[Tensor]` repeats the last one.
All else is an attribute: int, float, bool, str, Ints (an int or several), DType, Scalar (any Python number).

A function with more than a docstring is a decomposition: ordinary Python over other ops, run on tracers, which have
.shape .dtype .ndim, the operators and basic indexing. It may look at those and at attributes (as the shape rule has
normalised them), never at values. Sizes and numbers of attributes are Numbers (number.py): arithmetic with them
stays an expression of the program; where Python compares them or counts with them, the program is right only for
what gives the same answer. So write smallest(a, b) and largest(a, b) for min and max, is_integer(a) for
isinstance(a, int), and loop(n, body, x) (loops.py) for rounds whose number follows from a size.
An op without a decomposition needs a kernel on every device, unless the core itself serves it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from . import dtypes as dt
from .dtypes import DType


class Unsupported(NotImplementedError):
    """Raised by a decomposition that cannot serve these dtypes: the op needs a kernel there."""


class Tensor:
    """Annotation of a value operand; in a decomposition, the interface of tracers."""

    shape: tuple[int, ...]
    ndim: int
    dtype: DType
    if TYPE_CHECKING:

        def __getitem__(self, key: Any) -> Tensor: ...
        def _binary(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _binary
        __floordiv__ = __mod__ = __pow__ = __matmul__ = __and__ = __rand__ = __or__ = __xor__ = _binary
        __lshift__ = __rshift__ = __lt__ = __le__ = __gt__ = __ge__ = _binary
        __eq__ = __ne__ = _binary  # type: ignore[assignment]


class Mask(Tensor):
    """Annotation of an operand that is bool whatever the others are."""


class Index(Tensor):
    """Annotation of an operand of integers that become int64."""


class Raw(Tensor):
    """Annotation of an operand of any dtype that is left alone."""


class Program:
    """Annotation of an attribute of a control op: a program that the op's nodes hold."""


if TYPE_CHECKING:
    Ints = int | tuple[int, ...]
    Scalar = int | float | bool | complex
else:

    class Ints:
        """Annotation of an attribute: an int or a sequence of ints."""

    class Scalar:
        """Annotation of an attribute: a Python number of any kind."""


OPERANDS = {"Tensor": "value", "Mask": "mask", "Index": "index", "Raw": "raw"}
ATTRIBUTES = {
    "int": "i64",
    "float": "f64",
    "bool": "boolean",
    "str": "str",
    "Ints": "i64s",
    "DType": "dtype",
    "Scalar": "scalar",
    "Program": "program",
}
REQUIRED = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()


class Param(NamedTuple):
    """One parameter, as struct ParamSpec of the core has it."""

    name: str
    kind: str  # of OPERANDS or ATTRIBUTES
    optional: bool  # None may be given
    variadic: bool
    keyword_only: bool
    positional_only: bool
    default: Any  # REQUIRED, or a value
    since: int = 1  # the op's version that brought it

    @property
    def is_operand(self) -> bool:
        return self.kind in ("value", "mask", "index", "raw")


# What the core has to know of some ops: enum OpFlags explains them.
TRAITS = (
    *("set_slice", "converts", "identity_on_ints", "integer_exponent"),
    *("loop", "branch", "while", "scan"),  # control ops
)


# What dovetail.autocast does to floats narrower than float64 among an op's value operands: "lower" casts them to
# the dtype of the scope, "float32" to float32; with "widest" the op's dtype rule brings them together, as ever.
AUTOCAST = ("lower", "float32", "widest")


class Spec(NamedTuple):
    """The core's description of an op: struct OpSpec."""

    name: str
    version: int
    space: str
    shape: str
    dtype: str
    params: tuple[Param, ...]
    n_out: int
    half_in_f32: bool
    has_decomposition: bool
    must: bool
    private: bool
    view: bool
    traits: tuple[str, ...]  # of TRAITS
    autocast: str  # of AUTOCAST
    tol: float
    doc: str  # one line
    of_complex: bool = False  # whether it has a decomposition for complex numbers
    of_stored: bool = False  # and for dtypes that are only stored

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of its OpFlags."""
        own = {
            "half_in_f32": self.half_in_f32,
            "decomposition": self.has_decomposition,
            "complex_decomposition": self.of_complex,
            "stored_decomposition": self.of_stored,
            "must": self.must,
            "private": self.private,
            "view": self.view,
            "autocast_lower": self.autocast == "lower",
            "autocast_float32": self.autocast == "float32",
        }
        return (*(name for name, given in own.items() if given), *self.traits)


# The dtypes of an op's cases, by its dtype rule, unless `dtypes` is given: the dtype of the value operands.
DEFAULT_DTYPES = {
    "float": dt.FLOATS,
    "floats": dt.FLOATS,
    "promote": dt.REAL,
    "numeric": dt.REAL,
    "matmul": dt.REAL,
    "same": dt.REAL,
    "part": dt.REAL,
    "float_part": dt.FLOATS,
    "eigh": dt.FLOATS,
    "svd": dt.FLOATS,
    "same_real": dt.REAL,
    "integer": dt.INTEGERS,
    "bit": dt.BOOL + dt.INTEGERS,
    "logical": dt.NOT_COMPLEX,
    "compare": dt.NOT_COMPLEX,
    "predicate": dt.REAL,
    "accum": dt.NOT_COMPLEX,
    "index": dt.REAL,
    "given": dt.NOT_COMPLEX,
    "bits": (dt.uint32,),
    "int32": (dt.int32,),
    "quantize": dt.FLOATS,
    "scaled": (dt.float32,),
}

registry: dict[str, Op] = {}
_local = threading.local()


def _docstring_only():
    """Has the code of a function that is only a docstring."""


class Op:
    """A declared op. Calling it calls the op of that name on whatever the arguments are: tracers or arrays."""

    def __init__(self, fn: Callable, spec: Spec, **python: Any):
        self.spec, self.fn = spec, fn
        self.name, self.params = spec.name, spec.params
        self.__name__ = self.__qualname__ = fn.__name__
        self.__module__ = fn.__module__
        self.__doc__ = fn.__doc__
        self.decomposition: Callable | None = fn if spec.has_decomposition else None
        self.complex_decomposition: Callable | None = None
        self.stored_decomposition: Callable | None = None
        self.reference: Callable | None = python["reference"]
        self.scale: Callable | None = python["scale"]
        self.samples: Callable[[], Iterable] | None = python["samples"]
        self.domain: tuple = python["domain"]
        self.dtypes: tuple[DType, ...] = python["dtypes"]
        self.tier: str | None = python["tier"]
        self.core: bool = python["core"]
        self.operands = tuple(p for p in self.params if p.is_operand)
        self.attributes = tuple(p for p in self.params if not p.is_operand)
        self._positional = tuple(p.name for p in self.params if not p.keyword_only)
        self._defaults = {p.name: p.default for p in self.params}

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for a in (*args, *kwargs.values()):
            for item in a if isinstance(a, (list, tuple)) else (a,):
                if hasattr(item, "__dovetail_op__"):
                    return item.__dovetail_op__(self, *args, **kwargs)
        if recorder := active_recorder():
            return recorder.__dovetail_op__(self, *args, **kwargs)
        return self._run(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        try:
            from dovetail import _core
        except ImportError:
            given = ", ".join(type(a).__name__ for a in (*args, *kwargs.values())) or "nothing"
            raise TypeError(
                f"[{self.name}] nothing here can run it: expected a tracer, or dovetail's runtime and its arrays, "
                f"got {given}"
            ) from None
        return _core.op_function(self.name)(*args, **kwargs)

    def bind(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arguments by parameter name, in order, defaults filled in."""
        names = self._positional
        if len(args) > len(names):
            raise TypeError(f"[{self.name}] too many arguments: expected at most {len(names)}, got {len(args)}")
        given = self._defaults | dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in given or name in names[: len(args)]:
                raise TypeError(f"[{self.name}] {name}= is {'given twice' if name in given else 'unknown'}")
            given[name] = value
        for name, value in given.items():
            if value is REQUIRED:
                raise TypeError(f"[{self.name}] {name} is missing")
        return given

    def trace(self, recorder: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Runs the decomposition. Calls without a tracer among the arguments (full, iota) go to the recorder."""
        given = (*zip(self._positional, args, strict=False), *kwargs.items())
        raw = {p.name for p in self.operands if p.kind == "raw"}  # these are for the decomposition to look at
        values = [value for name, value in given if name not in raw]
        is_complex = dt.any_complex(values)
        function = self.complex_decomposition if is_complex else self.decomposition
        if self.stored_decomposition and not is_complex and dt.any_stored(values):
            function = self.stored_decomposition
        if function is None:
            of = " for complex numbers" if is_complex else ""
            raise Unsupported(f"[{self.name}] has no decomposition{of}: it needs a kernel")
        return recorded(recorder, function, *args, **kwargs)

    def of_complex(self, function: Callable) -> Callable:
        """Decorates the decomposition, another or the op's own, where an operand or the result is complex."""
        self.complex_decomposition = function
        self.spec = self.spec._replace(of_complex=True)
        return function

    def of_stored(self, function: Callable) -> Callable:
        """Decorates the decomposition where an operand or the result has a dtype that is only stored."""
        self.stored_decomposition = function
        self.spec = self.spec._replace(of_stored=True)
        return function

    def expected(self, *args: Any, like: DType | None = None, **kwargs: Any) -> Any:
        """The oracle's answer for NumPy arguments: floats are widened to float64, integers keep their type.

        `like` is the dtype that the op computes in; without it that of the widest floating operand.
        """
        from .oracle import expected

        return expected(self, args, kwargs, like)

    def cases(self) -> Iterator:
        """The conformance samples: the op's own, else those that fit any elementwise op."""
        from .samples import samples_of

        return samples_of(self)


def active_recorder() -> Any:
    """Where ops called without a tracer go: the innermost recorded()'s; None outside."""
    return getattr(_local, "recorder", None)


def recorded(recorder: Any, function: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """function(*args, **kwargs), whose ops without a tracer among their arguments go to recorder.__dovetail_op__.

    No context manager, as Ctrl-C on the way into its block or out of it would leave the recorder on.
    """
    before = active_recorder()
    try:
        _local.recorder = recorder
        return function(*args, **kwargs)
    finally:
        _local.recorder = before


def _spelled(annotation: Any) -> str:
    """An annotation as source: `Tensor | None` whether or not the module postpones annotations."""
    if not isinstance(annotation, str):
        annotation = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    word = "".join(c if c.isalnum() or c in "_." else " " for c in annotation).split()
    return " ".join(w.rsplit(".", 1)[-1] for w in word)


def _params(fn: Callable, name: str, since: dict[str, int]) -> tuple[Param, ...]:
    code, notes = fn.__code__, fn.__annotations__
    n_pos, n = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    defaults = dict(zip(code.co_varnames[:n_pos][::-1], (fn.__defaults__ or ())[::-1], strict=False))
    defaults |= fn.__kwdefaults__ or {}
    if code.co_flags & 12:
        raise TypeError(f"[{name}] *args and **kwargs cannot be declared: use Sequence[Tensor]")
    params = []
    for i, param in enumerate(code.co_varnames[:n]):
        words = _spelled(notes.get(param, "")).split()
        optional, variadic = "None" in words, "Sequence" in words
        kinds = [w for w in words if w not in ("None", "Sequence")]
        kind = (OPERANDS | ATTRIBUTES).get(kinds[0]) if len(kinds) == 1 else None
        if kind is None:
            raise TypeError(
                f"[{name}] {param} has no kind: expected one of {', '.join((*OPERANDS, *ATTRIBUTES))}, "
                f"got {notes.get(param, 'no annotation')!r}"
            )
        params.append(
            Param(
                param.removesuffix("_"),  # else_
                kind,
                optional,
                variadic,
                i >= n_pos,
                i < code.co_posonlyargcount,
                defaults.get(param, REQUIRED),
                since.get(param, 1),
            )
        )
    _check_params(params, name)
    return tuple(params)


def _check_params(params: list[Param], name: str) -> None:
    operands = [p for p in params if p.is_operand]
    for p in operands:
        if p.variadic and (p.kind != "value" or p is not operands[-1]):
            raise TypeError(f"[{name}] {p.name}: only the last operand can be a sequence, and of Tensor")
        if p.default is not (None if p.optional else REQUIRED):
            raise TypeError(
                f"[{name}] {p.name}: an operand is `Tensor` without a default or `Tensor | None = None`"
            )
    for p in params:
        if not p.is_operand and p.variadic:
            raise TypeError(f"[{name}] {p.name}: several ints are `Ints`")
        if p.default is None and not p.optional:
            raise TypeError(f"[{name}] {p.name} = None needs `| None` in its annotation")
        if p.kind == "dtype" and p.default not in (None, REQUIRED):
            raise TypeError(f"[{name}] {p.name}: the only default of a DType is None")


def op(
    *,
    shape: str,
    dtype: str,
    reference: Callable | None = None,
    tol: float = 0,
    scale: Callable | None = None,
    samples: Callable[[], Iterable] | None = None,
    domain: tuple = (),
    dtypes: tuple[DType, ...] | None = None,
    tier: str | None = None,
    space: str = "",
    private: bool = False,
    view: bool = False,
    core: bool = False,
    traits: tuple[str, ...] = (),
    half: str = "float32",
    autocast: str = "widest",
    version: int = 1,
    since: dict[str, int] | None = None,
    name: str | None = None,
    n_out: int = 1,
) -> Callable[[Callable], Op]:
    """Declares the decorated function as an op, named as it is (without a trailing underscore).

    shape, dtype   names of rules (see rules.py)
    reference      the oracle: takes the operands as NumPy arrays, floats as float64, attributes as keywords.
                   One with a parameter `like` is also given the DType that the op computes in
    tol, scale     the error allowed: tol * ulp(max(|reference|, scale(same arguments))), ulp of the result's dtype
    samples        makes the conformance samples (see samples.py); an elementwise op has some anyway, within
                   `domain`: one (low, high) per operand, () or None for any value at all
    dtypes         of the case, where the dtype rule allows too many
    tier           "must": every device has a kernel; "extended": worth one though a decomposition serves. A
                   decomposition of a must-have op serves the calls with attributes newer than version 1 alone
    space          the public namespace below dovetail: "", "nn", "linalg", "random"
    private        for decompositions: in no public namespace
    view, core     served by the core: as metadata, or over copies
    traits         of TRAITS
    half           "float32": float16 and bfloat16 compute in float32 and round once, where there is no kernel for
                   them; "native": the decomposition runs on them as they are
    autocast       what dovetail.autocast does: one of AUTOCAST
    version        grows when an attribute with a default or, at their end, an optional operand is added; since
                   names the version of each
    """

    def declare(fn: Callable) -> Op:
        full_name = name or fn.__name__.removesuffix("_")
        has_decomposition = fn.__code__.co_code != _docstring_only.__code__.co_code
        doc = (fn.__doc__ or "").strip().split("\n", 1)[0]
        must_only = tier == "must" and version == 1  # newer attributes may go to a decomposition
        served = view or core
        _check(
            full_name, fn, doc, has_decomposition,
            tier=tier, half=half, served=served, traits=traits, autocast=autocast, bare=must_only,
        )  # fmt: skip
        spec = Spec(
            full_name,
            version,
            space,
            shape,
            dtype,
            _params(fn, full_name, since or {}),
            n_out,
            half == "float32",
            has_decomposition,
            tier == "must",
            private,
            view,
            traits,
            autocast,
            float(tol),
            doc,
        )
        made = Op(
            fn, spec,
            reference=reference, scale=scale, samples=samples, domain=domain, tier=tier, core=core,
            dtypes=DEFAULT_DTYPES.get(dtype, dt.REAL) if dtypes is None else dtypes,
        )  # fmt: skip
        registry[full_name] = made
        return made

    return declare


def _check(
    name: str,
    fn: Callable,
    doc: str,
    has_decomposition: bool,
    *,
    tier: str | None,
    half: str,
    served: bool,
    traits: tuple[str, ...],
    autocast: str,
    bare: bool,
) -> None:
    if name in registry:
        raise ValueError(f"[{name}] is declared twice: in {registry[name].__module__} and in {fn.__module__}")
    if not doc and __debug__:
        raise ValueError(f"[{name}] needs a docstring: expected its first line to describe the result")
    if unknown := set(traits) - {*TRAITS}:
        raise ValueError(f"[{name}] traits: expected some of {', '.join(TRAITS)}, got {', '.join(sorted(unknown))}")
    if tier not in (None, "must", "extended"):
        raise ValueError(f"[{name}] tier: expected 'must', 'extended' or None, got {tier!r}")
    if autocast not in AUTOCAST:
        raise ValueError(
            f"[{name}] autocast: expected {', '.join(AUTOCAST[:-1])} or {AUTOCAST[-1]}, got {autocast!r}"
        )
    if half not in ("float32", "native"):
        raise ValueError(f"[{name}] half: expected 'float32' or 'native', got {half!r}")
    if has_decomposition and (bare or served):
        raise ValueError(
            f"[{name}] has a decomposition: it is neither a must-have primitive of version 1 nor served by the core"
        )
    if not has_decomposition and tier != "must" and not served:
        raise ValueError(f"[{name}] has no decomposition: expected one, or tier='must', or the core to serve it")
