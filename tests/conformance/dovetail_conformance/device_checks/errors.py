"""A wrong call raises a Python exception with its cause, and the device still works."""

from __future__ import annotations

import numpy as np

from . import Failed, check, expect, raises
from .memory import works


def arrays(t):
    return t.asarray(np.arange(6, dtype=t.float).reshape(2, 3)), t.asarray(np.zeros((4, 5), t.float))


@check
def host_fallback_off(t, rng):
    """The suite measures this device alone."""
    expect(t.api.fallback() == "error", f"host fallback is {t.api.fallback()!r} in the suite's worker")
    raises(ValueError, lambda: t.api.fallback("sometimes"), "fallback('sometimes')")
    x, _ = arrays(t)
    t.numpy(t.function("matmul")(x, t.function("permute_dims")(x, (1, 0))))
    moved = t.fallbacks()
    expect(not moved, f"{moved[0]['op'] if moved else ''} ran on another device although that is forbidden")


@check
def names_the_op(t, rng):
    x, y = arrays(t)
    for op, args in {"matmul": (x, y), "add": (x, y), "reshape": (x, (7,)), "sum": (x,)}.items():
        kwargs = {"axis": 5} if op == "sum" else {}
        error = raises(
            ValueError, lambda op=op, a=args, k=kwargs: t.function(op)(*a, **k), f"{op} with wrong arguments"
        )
        expect(str(error).startswith(f"[{op}]"), f"the error does not begin with [{op}]: {error}")
    works(t)


@check
def wrong_dtypes(t, rng):
    x, _ = arrays(t)
    for op, args in {"bitwise_and": (x, x), "bitwise_left_shift": (x, 1)}.items():
        raises(TypeError, lambda op=op, a=args: t.function(op)(*a), f"{op} of floats")
    raises((TypeError, ValueError), lambda: t.function("astype")(x, "no such dtype"), "astype to an unknown dtype")
    raises(TypeError, lambda: t.function("add")(x, "text"), "adding a string")
    raises(TypeError, lambda: t.function("add")(x), "add of one array")
    works(t)


@check
def bad_index(t, rng):
    """Found on the device, perhaps later; the exception is raised at the latest when the result is read."""
    x = t.asarray(np.arange(5, dtype=t.float))
    for index in (5, -6, 1 << 40):
        indices = t.asarray(np.array([0, index, 1], np.int64))
        error = raises(
            IndexError,
            lambda i=indices: (t.numpy(t.function("take")(x, i)), t.synchronize()),
            f"index {index} of 5",
        )
        expect("take" in str(error), f"the error does not name the op: {error}")
        works(t)
    raises(IndexError, lambda: x[5], "x[5] of 5 elements")


@check
def value_survives(t, rng):
    """A refused in-place call leaves its array as it was."""
    x, y = arrays(t)
    before = t.numpy(x)

    def add_wrong():
        nonlocal x
        x += y

    raises(ValueError, add_wrong, "adding (4, 5) in place to (2, 3)")
    expect(np.array_equal(t.numpy(x), before), "an array changed in a call that was refused")

    def put_wrong():
        x[0] = y

    raises(ValueError, put_wrong, "putting (4, 5) into a row of 3")
    expect(np.array_equal(t.numpy(x), before), "an array changed in an assignment that was refused")


@check
def two_devices(t, rng):
    """Arrays of two devices do not mix in one call."""
    others = [d for d in t.api.devices() if d.name != t.name]
    x, _ = arrays(t)
    for other in others:
        y = t.api.asarray(np.zeros((2, 3), t.float), device=other)
        error = raises(
            (ValueError, TypeError),
            lambda y=y: t.function("add")(x, y),
            f"adding arrays of {t.name} and {other.name}",
        )
        expect(t.name in str(error) and other.name in str(error), f"the error does not name both devices: {error}")
    works(t)


@check
def many_in_a_row(t, rng):
    """Errors use nothing up."""
    x, y = arrays(t)
    matmul = t.function("matmul")
    for i in range(500):
        try:
            matmul(x, y)
        except ValueError:
            continue
        raise Failed(f"round {i}: matmul of (2, 3) and (4, 5) was accepted")
    works(t)
