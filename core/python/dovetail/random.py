"""Random arrays from counters: the same seed gives the same bits on every device and in every version of Dovetail.

A generator is a seed and an offset. Element i of a draw comes from word i % 4 of Philox4x32-10 at counter
offset + i // 4; a draw of n words moves the offset on by ceil(n / 4). Bits, integers and uniform numbers are the
same bit for bit everywhere; normal ones agree to a few units in the last place.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from numbers import Integral, Real
from operator import index

from dovetail import _core
from dovetail._array import expect_axis, symbolic
from dovetail._core import Array, Device, DType

__all__ = ["Generator", "bits", "default_generator", "integers", "key", "normal", "permutation", "seed", "uniform"]

_op = _core.op_function
_WORD, _LONG = 2**32 - 1, 2**64 - 1
_SPLIT = 0x53504C54  # in the counter's third word, which draws leave 0
_MOST_CHILDREN = 2**20
Shape = int | Sequence[int]
Where = Device | str | None


def _philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """One block of Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, 2011)."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & _WORD, (a >> 32) ^ c3 ^ k1, a & _WORD
        k0, k1 = (k0 + 0x9E3779B9) & _WORD, (k1 + 0xBB67AE85) & _WORD
    return c0, c1, c2, c3


def _sizes(what: str, shape: Shape) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if any(isinstance(n, bool) or not hasattr(n, "__index__") or getattr(n, "ndim", 0) for n in sizes):
        raise TypeError(f"[random.{what}] shape: expected an integer or a sequence of integers, got {shape!r}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"[random.{what}] shape: expected sizes of at least 0, got {shape!r}")
    return sizes


def _numbers(what: str, kind: type, **given: object) -> list:
    """Bounds or moments as Python numbers. Raises TypeError for what is neither a number nor an array of one."""
    numbers = []
    for name, value in given.items():
        number = value.item() if getattr(value, "shape", None) == () else value
        fits = (kind is Real or not number.is_real) if symbolic(number) else isinstance(number, kind)
        if isinstance(number, bool) or not fits:
            expected = "an integer" if kind is Integral else "a number"
            raise TypeError(f"[random.{what}] {name}: expected {expected}, got {value!r}")
        numbers.append(number)
    return numbers


def _long(name: str, value: int) -> int:
    if isinstance(value, (bool, Array)) or not hasattr(type(value), "__index__"):
        raise TypeError(f"[random] {name}: expected an integer, got {value!r}")
    value = index(value)  # of a number of a trace, too
    if not 0 <= value <= _LONG:
        raise ValueError(f"[random] {name}: expected 0 to 2^64 - 1, got {value}")
    return value


def _count(n: int) -> int:
    sizes = _sizes("permutation", n)
    if len(sizes) != 1:
        raise TypeError(f"[random.permutation] expected an array or an integer, got {n!r}")
    return sizes[0]


def _float_dtype(what: str, dtype: DType | str | None) -> DType:
    found = _core.to_dtype("float32" if dtype is None else dtype)
    if found.kind != "real floating":
        raise TypeError(f"[random.{what}] dtype: expected a real floating-point one, got {found}")
    return found


class Generator:
    """A stream of random numbers. seed: an integer from 0 to 2^64 - 1; None takes one from the operating system.

    Draws of several threads are safe and never overlap. `state` is (seed, offset) and can be set.
    """

    def __init__(self, seed: int | None = None):
        self._core = _core.Generator()
        self._trace = _core.recorder()  # in which it was made
        self._offset = None
        self.seed(seed)

    def seed(self, seed: int | None = None) -> None:
        """Starts anew: at offset 0 of a seed."""
        if seed is None:
            import os

            seed = int.from_bytes(os.urandom(8), "little")
        self.state = seed, 0

    @property
    def state(self) -> tuple[int, int]:
        """(seed, offset): what is needed to go on from here later."""
        return self._core.state

    @state.setter
    def state(self, state: tuple[int, int]) -> None:
        seed, offset = state
        state = _long("seed", seed), _long("offset", offset)
        if self._is_foreign():
            raise TypeError(
                "[random] a traced function sets the state of a generator that is not its own, which happens only "
                "while it is traced: set it before the call"
            )
        self._core.state = state
        self._offset = None

    def __repr__(self) -> str:
        seed, offset = self.state
        return f"Generator(seed={seed}, offset={offset})"

    def __reduce__(self):
        return _restored, self.state

    def _is_foreign(self) -> bool:
        """Whether a function is being traced that has not made this generator."""
        trace = _core.recorder()
        return trace is not None and self._trace is not trace

    def _advance(self, words: int) -> tuple[int, int]:
        """(seed, offset) of a draw of so many words. In a trace the offset may follow from sizes."""
        if _core.recorder() is None:
            return self._core.draw(words & _LONG)
        if self._is_foreign():
            raise TypeError(
                "[random] split() in a traced function, of a generator that is not its own: every call of the "
                "program would give the same numbers; make a dovetail.random.Generator(seed) in the function"
            )
        seed, offset = self.state
        if self._offset is not None:
            offset = self._offset
        self._offset = offset - (-words // 4)
        return seed, offset

    def _key(self, words: int, device: Where) -> Array:
        """The draw's key on the device: u32[4] {seed lo, seed hi, offset lo, offset hi}."""
        if self._is_foreign():
            return _core.recorder().draw_key(self, words, device)
        seed, offset = self._advance(words)
        if not symbolic(offset):
            return _core.from_buffer(struct.pack("<QQ", seed, offset), "uint32", (4,), device)
        halves = seed & _WORD, seed >> 32, offset % 2**32, offset // 2**32
        return _op("stack")([_op("full")((), half, dtype="uint32", device=device) for half in halves])

    def key(self, shape: Shape, *, device: Where = None) -> Array:
        """The key of a draw of this shape, for ops that draw by themselves: dropout draws one for each score.

        It is uint32: seed low and high, offset low and high. The generator goes on behind the draw.
        """
        return self._key(prod(_sizes("key", shape)), device)

    def bits(self, shape: Shape = (), *, device: Where = None) -> Array:
        """uint32 with all 32 bits random."""
        shape = _sizes("bits", shape)
        return _op("random_bits")(self._key(prod(shape), device), shape)

    def uniform(
        self,
        shape: Shape = (),
        *,
        low: float = 0.0,
        high: float = 1.0,
        dtype: DType | str | None = None,
        device: Where = None,
    ) -> Array:
        """Even from low (included) to high (excluded, but for rounding). dtype: float32 by default."""
        low, high = _numbers("uniform", Real, low=low, high=high)
        shape, found = _sizes("uniform", shape), _float_dtype("uniform", dtype)
        words = prod(shape) * (2 if found == "float64" else 1)
        x = _op("uniform")(self._key(words, device), shape, found)
        if (low, high) != (0.0, 1.0):
            x = x * (high - low) + low
        return x

    def normal(
        self,
        shape: Shape = (),
        *,
        mean: float = 0.0,
        std: float = 1.0,
        dtype: DType | str | None = None,
        device: Where = None,
    ) -> Array:
        """Normally distributed. dtype: float32 by default. Raises ValueError for a negative standard deviation."""
        mean, std = _numbers("normal", Real, mean=mean, std=std)
        shape, found = _sizes("normal", shape), _float_dtype("normal", dtype)
        if std < 0:
            raise ValueError(f"[random.normal] std: expected at least 0, got {std}")
        x = _op("normal")(self._key(prod(shape), device), shape, found)
        if (mean, std) != (0.0, 1.0):
            x = x * std + mean
        return x

    def integers(
        self,
        low: int,
        high: int | None = None,
        shape: Shape = (),
        *,
        dtype: DType | str | None = None,
        device: Where = None,
    ) -> Array:
        """Evenly distributed integers from low (included) to high (excluded); of one bound, from 0 to it.

        dtype: int64 by default. Raises ValueError for an empty range, one of more than 2^32 values, or one that
        does not fit the dtype.
        """
        if high is None:
            low, high = 0, low
        low, high = _numbers("integers", Integral, low=low, high=high)
        shape, found = _sizes("integers", shape), _core.to_dtype("int64" if dtype is None else dtype)
        if "integer" not in found.kind:
            raise TypeError(f"[random.integers] dtype: expected an integer one, got {found}")
        if not 0 < high - low <= 2**32:
            raise ValueError(f"[random.integers] expected 1 to 2^32 values from low to high, got {low} to {high}")
        from dovetail._dtypes import iinfo

        limits = iinfo(found)
        if low < limits.min or high - 1 > limits.max:
            raise ValueError(
                f"[random.integers] {low} to {high - 1} does not fit {found}: {limits.min} to {limits.max}"
            )
        return _op("integers")(self._key(prod(shape), device), shape, low, high, found)

    def permutation(self, x: int | Array, *, axis: int = 0, device: Where = None) -> Array:
        """The numbers below x in random order, as int64; of an array, its slices along an axis in random order."""
        n = x.shape[expect_axis("random.permutation", axis, x.ndim)] if isinstance(x, Array) else _count(x)
        words = self.bits((2, n), device=x.device if isinstance(x, Array) else device)
        halves = _op("astype")(words, "uint64")
        order = _op("argsort")(_op("bitwise_or")(_op("bitwise_left_shift")(halves[0], 32), halves[1]))
        return _op("take")(x, order, axis=axis) if isinstance(x, Array) else order

    def split(self, n: int) -> list[Generator]:
        """n generators with seeds drawn from this one, for other threads or parts of a program.

        Raises ValueError for more than 2^20: bits() draws seeds for more.
        """
        if isinstance(n, bool) or not hasattr(n, "__index__"):
            raise TypeError(f"[random.split] n: expected an integer, got {n!r}")
        n = n.__index__()
        if not 0 <= n <= _MOST_CHILDREN:
            raise ValueError(
                f"[random.split] n: expected 0 to 2^20 generators, got {n}; bits() draws seeds for more"
            )
        seed, offset = self._advance(4 * n)
        children = []
        for i in range(offset, offset + n):
            words = _philox((i & _WORD, i >> 32 & _WORD, _SPLIT, 0), (seed & _WORD, seed >> 32))
            children.append(Generator(words[0] | words[1] << 32))
        return children


def _restored(seed: int, offset: int) -> Generator:
    made = Generator(seed)
    made.state = seed, offset
    return made


# ---- the process's own generator ---------------------------------------------------------------------------------

_default = Generator.__new__(Generator)
_default._core = _core.default_generator()
_default._trace = _default._offset = None


def default_generator() -> Generator:
    """The generator behind the functions of this module; all threads share it."""
    return _default


seed = _default.seed
key = _default.key
bits = _default.bits
uniform = _default.uniform
normal = _default.normal
integers = _default.integers
permutation = _default.permutation


def __dir__() -> list[str]:
    return __all__
