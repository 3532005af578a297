"""Makes a random program: lines of a function's body, and the arrays that it takes, holds and writes.

Every line is run on the device when it is made, for both shapes of the program; what raises is left out. So a
program has calls of every op of the schema that the device has, and needs no knowledge of them but their samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from dovetail.schema import Op, registry
from dovetail.schema.declare import REQUIRED
from dovetail.schema.dtypes import by_name
from dovetail.schema.samples import Draw, Sample

from ..cases.inputs import lay_out

if TYPE_CHECKING:
    from ..running.target import Target

SIZES = (0, 1, 2, 3, 5, 7, 8, 16, 17, 33)
SHAPES = (("m", "n"), ("m", "n"), ("n",), ("m",), ("m", 1), (1, "n"), (), ("m", "n", 2), (3, "n"))
DTYPES = ("float32",) * 6 + ("int32", "int64", "float64", "float16", "bfloat16", "bool", "uint8")
LAYOUTS = ("", "", "strided", "rows", "offset", "T")  # as cases.inputs.place_as takes them
GIVEN, HELD = ("x0", "x1", "x2"), ("W", "box.w", "box.parts[0]['b']")
LINES = 12
LARGEST = 1 << 16  # elements of a value


@dataclass(frozen=True, slots=True)
class Array:
    dtype: str
    shape: tuple[Any, ...]
    layout: str


@dataclass(frozen=True, slots=True)
class Program:
    seed: int
    sizes: tuple[dict[str, int], dict[str, int]]  # "m" and "n"
    arrays: dict[str, Array]  # by their names in the function
    samples: tuple[tuple[str, Sample], ...]  # (dtype, sample) of each box.samples
    lines: tuple[str, ...] = ()

    def source(self) -> str:
        body = "".join(f"    {part}\n" for line in self.lines for part in line.split("\n"))
        result = "[v for name, v in sorted(locals().items()) if name[0] == 'v']"
        return f"def f({', '.join(GIVEN)}, n, k):\n{body}    return {result}\n"

    def state(self, target: Target, which: int, draw: int) -> tuple[dict[str, Any], list[Any]]:
        """The globals of the function and its arrays, with the sizes of `which`: the same ones for equal `draw`."""
        rng = np.random.default_rng([self.seed, which, draw])
        made = {name: _placed(target, a, self.sizes[which], rng) for name, a in self.arrays.items()}
        box = SimpleNamespace(w=made["box.w"], parts=[{"b": made["box.parts[0]['b']"]}], samples=[])
        for dtype, sample in self.samples:
            box.samples.append(_arguments(target, dtype, sample, np.random.default_rng([self.seed, draw])))
        space = {"dt": target.api, "op": target.function, "W": made["W"], "box": box}
        return space, [made[name] for name in GIVEN]


def _placed(target: Target, a: Array, sizes: dict[str, int], rng: np.random.Generator) -> Any:
    shape = tuple(sizes.get(n, n) for n in a.shape)
    d = by_name[a.dtype]
    return target.place(Draw(shape, 0.0 if d.kind == "u" else -4.0, 8.0).make(rng, d), a.layout)


def _arguments(target: Target, dtype: str, sample: Sample, rng: np.random.Generator) -> Any:
    args, kwargs = lay_out(*sample.make(rng, by_name[dtype]), "", target.place)
    return SimpleNamespace(args=list(args), kwargs=kwargs)


SIGNS = ("signbit", "copysign")  # they show the sign of NaN, which is any


@cache
def elementwise(n: int) -> tuple[str, ...]:
    """Ops of the schema of n arrays and no other required argument."""

    def fits(op: Op) -> bool:
        required = [p for p in op.params if p.default is REQUIRED]
        return (
            op.spec.shape in ("same", "broadcast")
            and not op.spec.private
            and op.name not in SIGNS
            and [p.kind for p in required] == ["value"] * n
        )

    return tuple(op.name for op in registry.values() if fits(op))


@cache
def reductions() -> tuple[str, ...]:
    return tuple(op.name for op in registry.values() if op.spec.shape in ("reduce", "arg_reduce", "scan"))


class _Writer:
    def __init__(self, rng: np.random.Generator, samples: int):
        self.rng, self.names, self.samples, self.made = rng, [*GIVEN, *HELD], list(range(samples)), 0

    def one(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def value(self) -> str:
        """An array, a later one more often."""
        return str(self.one(self.names + self.names[-4:] * 2))

    def number(self) -> str:
        return str(self.one(("n", "k", "2", "0.5", "-1", "k * 2 + 1", "n + 1", f"{self.value()}.shape[0]")))

    def operand(self) -> str:
        return self.number() if self.rng.integers(3) == 0 else self.value()

    def expression(self) -> str:
        a, b = self.value(), self.value()
        kind = int(self.rng.integers(14))
        if kind < 3:
            return f"op({self.one(elementwise(1))!r})({a})"
        if kind < 5:
            return f"op({self.one(elementwise(2))!r})({a}, {self.operand()})"
        if kind < 7:
            return f"{a} {self.one(('+', '-', '*', '/', '<', '==', '%', '@', '&'))} {self.operand()}"
        if kind == 7:
            return f"{self.number()} {self.one(('+', '-', '*', '/'))} {a}"
        if kind == 8:
            extra = self.one(("", ", keepdims=True"))
            return f"op({self.one(reductions())!r})({a}, axis={self.one((0, -1))}{extra})"
        if kind < 11:
            return str(self.one(VIEWS)).format(a=a, b=b, n=self.one((1, 2, 3)))
        if kind == 11:
            return str(self.one(JOINS)).format(a=a, b=b, c=self.value())
        if kind == 12:
            return f"{a}.astype(dt.{self.one(DTYPES)})"
        return str(self.one(SIZED)).format(a=a, b=b, k=self.number())

    def line(self) -> str:
        kind = int(self.rng.integers(10))
        if kind == 0:
            return str(self.one(WRITES)).format(a=self.value(), b=self.operand(), i=self.one((0, 1, -1)))
        self.made += 1
        name = f"v{self.made:02}"
        if kind == 1:
            return str(self.one(CHOICES)).format(v=name, a=self.value(), e=self.expression(), o=self.expression())
        if kind == 2 and self.samples:
            j = self.samples.pop()
            return f"{name} = op(NAME)(*box.samples[{j}].args, **box.samples[{j}].kwargs)"
        return f"{name} = {self.expression()}"


VIEWS = (
    "{a}[{n}:]", "{a}[::2]", "{a}[::-1]", "{a}[..., 0]", "{a}[-1]", "{a}[None]", "{a}[: {a}.shape[0] // 2]",
    "{a}.reshape(-1)", "{a}.mT", "dt.flip({a}, axis=0)", "dt.broadcast_to({a}[None], ({n}, *{a}.shape))",
    "dt.permute_dims({a}, tuple(reversed(range({a}.ndim))))", "dt.roll({a}, {n}, axis=0)", "{a}.reshape({a}.shape)",
    "dt.squeeze({a}[None], axis=0)", "dt.take({a}, dt.arange({a}.shape[0]), axis=0)",
)  # fmt: skip
JOINS = (
    "dt.concat([{a}, {b}], axis=0)", "dt.concat([{a}, {a}[:1]], axis=-1)", "dt.stack([{a}, {a}])",
    "dt.where({a} > {b}, {a}, {b})", "dt.where({a} == {a}, {b}, {c})", "{a} @ {b}.mT",
    "dt.where({c}.astype(dt.bool), {a}, 0)", "[{a}, {b}][0] + {c}",
)  # fmt: skip
SIZED = (
    "{a} * {a}.shape[0]", "dt.zeros({a}.shape) + {k}", "dt.arange({a}.shape[0])", "{a} + {a}.size",
    "dt.full((2, {a}.shape[-1]), {k})", "dt.ones_like({a}) * {k}", "dt.random.normal({a}.shape)",
    "{a}.reshape(({a}.shape[0], -1))", "{a}.reshape({a}.size // 2, 2)",
)  # fmt: skip
WRITES = (
    "{a}[...] = {b}", "{a}[{i}] = {b}", "{a}[1:] = {b}", "{a} += {b}", "{a} *= {b}", "{a} -= 1",
    "{a}[..., {i}] = {a}[..., 0]", "{a}[::2] = {a}[::2] * 2",
)  # fmt: skip
CHOICES = (
    "if {a}.shape[0] > 3:\n    {v} = {e}\nelse:\n    {v} = {o}",
    "{v} = {e}\nfor i in range(n):\n    {v} = {v} + i",
    "{v} = {e} if n > 2 else {o}",
    "{v} = {e} if {a}.ndim == 2 else {o}",
    "{v} = {e} if k > 1 else {o}",
    "{v} = {e}\nif {a}.dtype == dt.float32:\n    {v} = -{v}",
)


def generate(target: Target, seed: int) -> Program:
    """The program of a seed on this device."""
    rng = np.random.default_rng(seed)

    def one(choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    sizes = ({"m": one(SIZES), "n": one(SIZES)}, {"m": one(SIZES), "n": one(SIZES)})
    arrays = {name: Array(one(DTYPES), one(SHAPES), one(LAYOUTS)) for name in (*GIVEN, *HELD)}
    chosen = list(_samples(rng, 3))
    program = Program(seed, sizes, arrays, tuple((dtype, sample) for _, dtype, sample in chosen))
    writer = _Writer(rng, len(chosen))
    environments = []
    for which, (n, k) in ((0, NUMBERS[0]), (1, NUMBERS[2])):
        space, given = program.state(target, which, 0)
        environments.append(space | dict(zip(GIVEN, given, strict=True)) | {"n": n, "k": k})
    lines: list[str] = []
    for _ in range(4 * LINES):
        line = writer.line()
        if "NAME" in line:
            j = int(line.partition("samples[")[2].partition("]")[0])
            line = line.replace("NAME", repr(chosen[j][0]))
        if all(_runs(line, environment, target) for environment in environments):
            lines.append(line)
            if line.startswith("v") or "\n    v" in line:
                name = f"v{writer.made:02}"
                if name in environments[0]:
                    writer.names.append(name)
        if len(lines) == LINES:
            break
    return replace(program, lines=tuple(lines))


# n and k of the calls; see run.CALLS.
NUMBERS = ((2, 0.5), (2, 1.5), (3, -2.0), (3, 0.5))


def _runs(line: str, environment: dict[str, Any], target: Target) -> bool:
    """Whether the line is right there; one that is not may have run in part, so that it is tried on copies."""
    trial = {k: _copied(v, target) for k, v in environment.items() if k != "__builtins__"}
    try:
        exec(line, trial)
        made = [v for k, v in trial.items() if k[0] == "v"]
        if not all(isinstance(v, target.api.Array) and v.size <= LARGEST for v in made):
            return False
        [v.numpy() for v in made]
        exec(line, environment)
    except Exception:
        return False
    return True


def _copied(x: Any, target: Target) -> Any:
    if isinstance(x, target.api.Array):
        return target.api.asarray(x, copy=True)
    if isinstance(x, SimpleNamespace):
        return SimpleNamespace(**{k: _copied(v, target) for k, v in vars(x).items()})
    if isinstance(x, list):
        return [_copied(v, target) for v in x]
    return {k: _copied(v, target) for k, v in x.items()} if isinstance(x, dict) else x


def _samples(rng: np.random.Generator, n: int) -> Iterator[tuple[str, str, Sample]]:
    """Random calls of the schema, (op, dtype, sample)."""
    names = list(registry)
    for _ in range(n):
        op = registry[names[int(rng.integers(len(names)))]]
        fitting = [s for s in op.cases() if not s.error and s.args]
        if fitting and op.dtypes and not op.spec.private and op.spec.shape != "control":
            sample = fitting[int(rng.integers(len(fitting)))]
            dtypes = [d for d in op.dtypes if sample.dtypes is None or d in sample.dtypes]
            yield op.name, dtypes[int(rng.integers(len(dtypes)))].name, sample


__all__ = ["GIVEN", "NUMBERS", "Array", "Program", "generate"]
