"""A device whose kernels are NumPy's: the must-have primitives, and from them every op. It passes L1:

DOVETAIL_BACKEND_PATH=$PWD/examples/numpy_device.py dovetail conform --device numpy --quick
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from dovetail.prototype import PythonDevice, View
from dovetail.prototype import kernel as any_kernel

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64"
FLOATS = "float32 float64"
REAL = f"{INTEGERS} {FLOATS}"
BITS = f"bool {INTEGERS}"

kernel = functools.partial(any_kernel, strided=True, scalars=True, alias=True)  # as NumPy's own functions


def quiet(function: Callable[..., None]) -> Callable[..., None]:
    """Suppress NumPy's warnings about NaN, infinity and integers that wrap: a device gives none."""

    @functools.wraps(function)
    def run(*args: object, **attributes: object) -> None:
        with np.errstate(all="ignore"):
            function(*args, **attributes)

    return run


def elementwise(ufunc: np.ufunc) -> Callable[..., None]:
    @quiet
    def run(self: NumpyDevice, *operands: View) -> None:
        ufunc(*(x.numpy() for x in operands[:-1]), out=operands[-1].numpy())

    return run


def rounded(ufunc: np.ufunc) -> Callable[..., None]:
    """Compute in float64 and round once: NumPy's float32 functions err by more than the required 1 ulp."""

    @quiet
    def run(self: NumpyDevice, x: View, out: View) -> None:
        out.numpy()[...] = ufunc(x.numpy(), dtype=np.float64)

    return run


class NumpyDevice(PythonDevice):
    name = "numpy"
    version = np.__version__
    product = "NumPy"
    kind = "cpu"

    # ---- copies --------------------------------------------------------------------------------------------------

    @kernel("copy", "any")
    def copy(self, x, out):
        out.numpy()[...] = x.numpy()

    @kernel("astype", "any->any", alias=False)
    @quiet
    def astype(self, x, out, *, dtype):
        x, out = x.numpy(), out.numpy()
        out[...] = x != 0 if out.dtype == np.bool_ else x.real if out.dtype.kind != "c" else x

    @kernel("full", "any")
    def full(self, out, *, shape, fill_value, dtype):
        out.numpy()[...] = np.array(fill_value).astype(out.numpy().dtype)

    @kernel("iota", REAL)
    def iota(self, out, *, size, dtype):
        out.numpy()[...] = np.arange(size)

    @kernel("take", "any", scalars=False, alias=False)
    def take(self, x, indices, out, *, axis):
        out.numpy()[...] = np.take(x.numpy(), indices.numpy(), axis or 0)

    @kernel("scatter", "any", scalars=False, version=1)
    def scatter(self, x, indices, updates, out, *, axis):
        out.numpy()[...] = x.numpy()
        slices = (slice(None),) * axis + (indices.numpy(),)
        out.numpy()[slices] = updates.numpy()

    @kernel("where", "any", alias=False)
    def where(self, condition, x1, x2, out):
        out.numpy()[...] = np.where(condition.numpy(), x1.numpy(), x2.numpy())

    # ---- arithmetic ----------------------------------------------------------------------------------------------

    add = kernel("add", REAL)(elementwise(np.add))
    subtract = kernel("subtract", REAL)(elementwise(np.subtract))
    multiply = kernel("multiply", REAL)(elementwise(np.multiply))
    divide = kernel("divide", FLOATS)(elementwise(np.divide))
    maximum = kernel("maximum", f"bool {REAL}")(elementwise(np.maximum))
    minimum = kernel("minimum", f"bool {REAL}")(elementwise(np.minimum))
    equal = kernel("equal", f"bool {REAL}")(elementwise(np.equal))
    less = kernel("less", f"bool {REAL}")(elementwise(np.less))
    bitwise_and = kernel("bitwise_and", BITS)(elementwise(np.bitwise_and))
    bitwise_or = kernel("bitwise_or", BITS)(elementwise(np.bitwise_or))
    bitwise_xor = kernel("bitwise_xor", BITS)(elementwise(np.bitwise_xor))
    bitwise_left_shift = kernel("bitwise_left_shift", INTEGERS)(elementwise(np.left_shift))
    bitwise_right_shift = kernel("bitwise_right_shift", INTEGERS)(elementwise(np.right_shift))
    floor = kernel("floor", FLOATS)(elementwise(np.floor))
    sqrt = kernel("sqrt", FLOATS)(elementwise(np.sqrt))
    exp = kernel("exp", FLOATS)(rounded(np.exp))
    log = kernel("log", FLOATS)(rounded(np.log))
    sin = kernel("sin", FLOATS)(rounded(np.sin))

    @kernel("quotient", INTEGERS)
    @quiet
    def quotient(self, x1, x2, out):
        x1, x2 = x1.numpy(), x2.numpy()
        down = np.floor_divide(x1, x2)  # 0 where x2 is 0
        up = (down * x2 != x1) & ((x1 < 0) != (x2 < 0)) & (x2 != 0)
        out.numpy()[...] = down + up.astype(down.dtype)

    # ---- reductions and products ---------------------------------------------------------------------------------

    @kernel("sum", REAL, scalars=False, alias=False)
    @quiet
    def sum(self, x, out, *, axis, dtype, keepdims):
        x = x.numpy()
        wide = np.float64 if x.dtype.kind == "f" else x.dtype
        out.numpy()[...] = np.sum(x, axis=axis, dtype=wide, keepdims=keepdims)

    @kernel("max", f"bool {REAL}", scalars=False, alias=False)
    def max(self, x, out, *, axis, keepdims):
        out.numpy()[...] = np.max(x.numpy(), axis=axis, keepdims=keepdims)

    @kernel("matmul", REAL, scalars=False, alias=False)
    @quiet
    def matmul(self, x1, x2, out):
        out.numpy()[...] = np.matmul(x1.numpy(), x2.numpy())
