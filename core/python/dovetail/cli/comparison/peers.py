"""The contenders: how each library takes NumPy's arrays, and which of its functions does the work of a point.

A table has an entry for each op whose call is not the function of the op's name on its operands. None stands for
an op that the library has no kernel for: what it would take several calls to do is not the same work.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dovetail.cli.comparison.kinds import POOL, conv2d_window
from dovetail.cli.comparison.points import Point

Call = Callable[[], Any]
Table = dict[str, Callable[..., Call] | None]


class NoKernel(Exception):
    """The library has no function for the point's op or dtype."""


class Contender:
    """One library, in a process of its own."""

    module: ClassVar[str]
    axis: ClassVar[str] = "axis"  # the keyword of the axis
    table: Table

    def __init__(self, threads: int, device: str | None):
        self.library = importlib.import_module(self.module)

    def version(self) -> str:
        return str(self.library.__version__)

    def array(self, x: Any) -> Any:
        return x

    def host(self, x: Any) -> Any:
        return np.asarray(x)

    def wait(self) -> None:
        """Returns when the calls until now have ended."""

    def namespaces(self) -> Sequence[Any]:
        return (self.library,)

    def call(self, point: Point, operands: Sequence[Any]) -> Call:
        """The work of a point as a call without arguments. Raises NoKernel."""
        arrays = [self.array(x) for x in operands]
        if point.op in self.table:
            made = self.table[point.op]
            if made is None:
                raise NoKernel
            return made(point, *arrays)
        for space in self.namespaces():
            if (function := getattr(space, point.op, None)) is not None:
                return partial(function, *arrays, **({} if point.axis is None else {self.axis: point.axis}))
        raise NoKernel


def _into(copy: Callable[[Any, Any], Any], out: Any, x: Any) -> Call:
    """A copy to memory that is there already, as a pool of memory makes it."""

    def run() -> Any:
        copy(out, x)
        return out

    return run


# ---- our own ----------------------------------------------------------------------------------------------------


class Dovetail(Contender):
    module = "dovetail"

    def __init__(self, threads: int, device: str | None):
        super().__init__(threads, device)
        dt, nn = self.library, self.library.nn
        dt.fallback("error")
        self.device = dt.device(device) if device else dt.default_device()
        self.table = {
            "matmul": lambda p, a, b: partial(dt.matmul, a, b, **({"dtype": "int32"} if p.dtype == "int8" else {})),
            "sdpa": lambda p, q, k, v: partial(nn.scaled_dot_product_attention, q, k, v, is_causal=p.causal),
            "conv2d": lambda p, x, w: partial(nn.conv2d, x, w, **conv2d_window(p)),
            "max_pool2d": lambda p, x: partial(nn.max_pool2d, x, **POOL),
            "layer_norm": lambda p, x, w, b: partial(nn.layer_norm, x, x.shape[-1:], w, b),
            "rms_norm": lambda p, x, w: partial(nn.rms_norm, x, x.shape[-1:], w),
            "top_k": lambda p, x: partial(dt.top_k, x, p.k, axis=p.along),
            "transpose": lambda p, x: lambda: dt.copy(dt.permute_dims(x, p.perm)),
            "astype": lambda p, x: partial(dt.astype, x, p.to),
            "concat": lambda p, *arrays: partial(dt.concat, arrays, axis=p.axis or 0),
            "normal": lambda p: partial(dt.random.normal, p.shape, dtype=p.dtype, device=self.device),
        }

    def array(self, x: Any) -> Any:
        return self.library.asarray(x, device=self.device)

    def host(self, x: Any) -> Any:
        return x.numpy()

    def wait(self) -> None:
        self.device.synchronize()

    def namespaces(self) -> Sequence[Any]:
        return (self.library, self.library.nn)


# ---- NumPy ------------------------------------------------------------------------------------------------------

_NUMPY_DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "float16", "float32", "float64", "complex64", "complex128")  # fmt: skip


class NumPy(Contender):
    module = "numpy"

    def __init__(self, threads: int, device: str | None):
        super().__init__(threads, device)
        self.random = np.random.default_rng(0)
        self.table = dict.fromkeys(("sdpa", "conv2d", "max_pool2d", "top_k"))
        self.table |= {
            "matmul": lambda p, a, b: partial(self.product(p), a, b),
            "linear": lambda p, x, w, b: lambda: self.product(p)(x, w.T) + b,
            "copy": lambda p, x: _into(np.copyto, np.zeros_like(x), x),
            "cumulative_sum": lambda p, x: partial(np.cumsum, x, axis=p.axis),
            "cumulative_prod": lambda p, x: partial(np.cumprod, x, axis=p.axis),
            "transpose": lambda p, x: lambda: np.array(np.transpose(x, p.perm), order="C"),
            "astype": lambda p, x: partial(x.astype, p.to),
            "embedding": lambda p, at, w: partial(np.take, w, at, axis=0),
            "take_along_axis": lambda p, x, at: partial(np.take_along_axis, x, at, axis=p.along),
            "concat": lambda p, *arrays: partial(np.concatenate, arrays, axis=p.axis or 0),
            "normal": lambda p: partial(self.random.standard_normal, p.shape, p.dtype),
        }

    def product(self, point: Point) -> Any:
        """Products of other dtypes are plain loops, which take minutes."""
        if point.dtype not in ("float32", "float64"):
            raise NoKernel
        return np.matmul

    def call(self, point: Point, operands: Sequence[Any]) -> Call:
        if not {point.dtype, point.to or point.dtype} <= set(_NUMPY_DTYPES):
            raise NoKernel  # a dtype of ml_dtypes, element by element
        return super().call(point, operands)


# ---- torch ------------------------------------------------------------------------------------------------------


class Torch(Contender):
    module = "torch"
    axis = "dim"

    def __init__(self, threads: int, device: str | None):
        super().__init__(threads, device)
        t, f = self.library, self.library.nn.functional
        t.set_grad_enabled(False)
        t.set_num_threads(threads)
        self.table = {
            "matmul": lambda p, a, b: partial(t._int_mm if p.dtype == "int8" else t.matmul, a, b),
            "sdpa": lambda p, q, k, v: partial(f.scaled_dot_product_attention, q, k, v, is_causal=p.causal),
            "conv2d": lambda p, x, w: partial(f.conv2d, x, w, **conv2d_window(p)),
            "max_pool2d": lambda p, x: partial(f.max_pool2d, x, **POOL),
            "softmax": lambda p, x: partial(t.softmax, x, p.along),
            "log_softmax": lambda p, x: partial(t.log_softmax, x, p.along),
            "layer_norm": lambda p, x, w, b: partial(f.layer_norm, x, x.shape[-1:], w, b),
            "rms_norm": lambda p, x, w: partial(f.rms_norm, x, x.shape[-1:], w),
            "max": lambda p, x: partial(t.amax, x, **self.over(p)),
            "min": lambda p, x: partial(t.amin, x, **self.over(p)),
            "var": lambda p, x: partial(t.var, x, correction=0, **({"dim": None} | self.over(p))),
            "std": lambda p, x: partial(t.std, x, correction=0, **({"dim": None} | self.over(p))),
            "cumulative_sum": lambda p, x: partial(t.cumsum, x, dim=p.along),
            "cumulative_prod": lambda p, x: partial(t.cumprod, x, dim=p.along),
            "top_k": lambda p, x: partial(t.topk, x, p.k, dim=p.along),
            "copy": lambda p, x: _into(t.Tensor.copy_, t.zeros_like(x), x),
            "transpose": lambda p, x: lambda: x.permute(p.perm).contiguous(),
            "astype": lambda p, x: partial(x.to, getattr(t, p.to)),
            "embedding": lambda p, at, w: partial(f.embedding, at, w),
            "take_along_axis": lambda p, x, at: partial(t.gather, x, p.along, at),
            "concat": lambda p, *arrays: partial(t.cat, arrays, dim=p.axis or 0),
            "normal": lambda p: partial(t.randn, p.shape, dtype=getattr(t, p.dtype)),
        }

    def over(self, point: Point) -> dict[str, int]:
        return {} if point.axis is None else {"dim": point.axis}

    def namespaces(self) -> Sequence[Any]:
        return (self.library, self.library.special, self.library.nn.functional)

    def array(self, x: Any) -> Any:
        import ml_dtypes

        if x.dtype == ml_dtypes.bfloat16:
            return self.library.from_numpy(x.view(np.int16)).view(self.library.bfloat16)
        return self.library.from_numpy(x)

    def host(self, x: Any) -> Any:
        return (x.float() if x.dtype == self.library.bfloat16 else x).numpy()


def contender(name: str, threads: int, device: str | None) -> Contender:
    """The contender of that name, with its library imported."""
    if name == "onnxruntime":
        from dovetail.cli.comparison.onnx_peer import OnnxRuntime

        return OnnxRuntime(threads, device)
    return {"dovetail": Dovetail, "numpy": NumPy, "torch": Torch}[name](threads, device)


# The modules that a peer needs.
PEERS = {"torch": ("torch",), "numpy": ("numpy",), "onnxruntime": ("onnxruntime", "onnx")}
