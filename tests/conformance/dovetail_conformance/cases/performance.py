"""How long representative calls take: every family of ops, in float32 first, in further dtypes where the device
has kernels for them. performance/ceilings.py computes the share of a ceiling when all are measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from dovetail import _timing
from dovetail.schema import Op, registry
from dovetail.schema import dtypes as dt
from dovetail.schema.workloads import Maker, Workload, workloads

from ..levels.standing import PERFORMANCE
from ..performance.working_sets import SIZES, working_set
from ..results import Status
from ..running.target import Target
from . import Case, Outcome

SECONDS = 0.06  # of the measurement, without making the operands
UNIT = 1 << 14  # elements: a call of this size shows how many bytes one takes
PRODUCTS = {"small": 1 << 16, "medium": 1 << 20}  # elements of products: their time grows faster than their memory
FURTHER = (dt.float16, dt.bfloat16, dt.float64, dt.int8, dt.int32, dt.int64)


class Timed(NamedTuple):
    """Calls of an op that are measured."""

    sizes: tuple[str, ...] = SIZES
    workloads: tuple[str, ...] = ("",)
    layouts: tuple[str, ...] = ("",)
    dtype: dt.DType = dt.float32
    further: bool = False  # medium ones in other dtypes too


_BEYOND_CACHE = ("medium", "large")
_ONE = ("medium",)
_AXES = ("rows", "columns", "all")
TIMED: dict[str, tuple[Timed, ...]] = {
    "copy": (Timed(further=True), Timed(_BEYOND_CACHE, layouts=("T", "strided"))),
    "add": (Timed(further=True), Timed(_BEYOND_CACHE, ("outer",))),
    "exp": (Timed(further=True),),
    "astype": (Timed(), Timed(_ONE, dtype=dt.float16), Timed(_ONE, dtype=dt.bfloat16)),
    **dict.fromkeys(("multiply", "divide", "maximum", "where", "less", "sqrt", "tanh", "gelu"), (Timed(),)),
    **dict.fromkeys(
        ("negative", "floor", "clip", "log", "sin", "atan2", "erf", "pow", "remainder", "relu", "sigmoid",
         "isfinite"),
        (Timed(_BEYOND_CACHE),),
    ),
    **dict.fromkeys(("bitwise_and", "bitwise_left_shift", "floor_divide"), (Timed(_BEYOND_CACHE, dtype=dt.int32),)),
    "sum": (Timed(workloads=_AXES), Timed((), ("rows",), further=True)),
    "max": (Timed(workloads=_AXES),),
    "mean": (Timed(_BEYOND_CACHE, _AXES),),
    "argmax": (Timed(_BEYOND_CACHE, _AXES),),
    "any": (Timed(_ONE, ("rows",), dtype=dt.bool_),),
    "softmax": (Timed(further=True),),
    **dict.fromkeys(("log_softmax", "layer_norm", "rms_norm", "cumulative_sum"), (Timed(),)),
    "matmul": (Timed(tuple(PRODUCTS), ("square", "batched")), Timed(_BEYOND_CACHE, ("skinny", "vector")),
               Timed((), ("square",), further=True)),
    **dict.fromkeys(("linear", "scaled_dot_product_attention", "conv2d", "conv1d"), (Timed(tuple(PRODUCTS)),)),
    **dict.fromkeys(("max_pool2d", "avg_pool2d"), (Timed(_BEYOND_CACHE),)),
    **dict.fromkeys(("take", "take_along_axis", "scatter", "sort", "argsort"), (Timed(_BEYOND_CACHE),)),
    "random_bits": (Timed(_BEYOND_CACHE, dtype=dt.uint32),),
    "uniform": (Timed(_BEYOND_CACHE),),
    "normal": (Timed(_BEYOND_CACHE),),
    "integers": (Timed(_BEYOND_CACHE, dtype=dt.int32),),
}  # fmt: skip


@dataclass(slots=True, kw_only=True)
class PerformanceCase(Case):
    guarded = False
    workload: str
    size: str
    layout: str
    needs_kernel: bool  # of the dtype: a decomposition is measured in the usual one

    def run(self, target: Target, seed: int) -> Outcome:
        assert self.dtype
        if self.needs_kernel and not target.has_row(self.op, self.dtype):
            return Outcome(Status.UNSUPPORTED, f"there is no kernel in {self.dtype.name}")
        try:
            work = self._work(target)
            args = [target.place(a, self.layout) if isinstance(a, np.ndarray) else a for a in work.args]
            function = target.function(self.op)
            timing = _timing.measure(lambda: function(*args, **work.kwargs), target.device, SECONDS)
        except NotImplementedError as error:
            return Outcome(Status.UNSUPPORTED, str(error))
        except MemoryError as error:
            return Outcome(Status.UNSUPPORTED, f"does not fit: {error}")
        return Outcome(Status.PASS, "", _measured(work, timing))

    def _work(self, target: Target) -> Workload:
        assert self.dtype
        make = workloads(registry[self.op])[self.workload]
        unit = make(Maker(UNIT, self.dtype))
        if unit.flops > unit.bytes and self.size in PRODUCTS:
            return make(Maker(PRODUCTS[self.size], self.dtype))
        wanted = working_set(self.size, target.device.kind, target.device.properties)
        return make(Maker(int(UNIT * wanted / unit.bytes), self.dtype))


def cases(op: Op) -> Iterator[Case]:
    for timed in TIMED.get(op.name, ()):
        for workload in timed.workloads:
            for d, size in _grid(op, timed):
                for layout in timed.layouts:
                    what = [d.brief, f"perf={workload}" if workload else "perf", size]
                    id = f"{op.name}[{','.join([*what, *([f'layout={layout}'] if layout else [])])}]"
                    yield PerformanceCase(
                        id, PERFORMANCE, op.name, d,
                        workload=workload, size=size, layout=layout, needs_kernel=d is not timed.dtype,
                    )  # fmt: skip


def _grid(op: Op, timed: Timed) -> Iterator[tuple[dt.DType, str]]:
    for size in timed.sizes:
        yield timed.dtype, size
    if timed.further:
        for d in FURTHER:
            if d in op.dtypes:
                yield d, "medium"


def _measured(work: Workload, timing: _timing.Timing) -> dict[str, Any]:
    found: dict[str, Any] = {
        "time_s": timing.best,
        "spread": round(timing.spread, 4),
        "timer": "host",
        "bytes": int(work.bytes),
        "written": int(work.written),
        "flops": int(work.flops),
        "gb_per_s": work.bytes / timing.best * 1e-9,
    }
    return found | ({"gflop_per_s": work.flops / timing.best * 1e-9} if work.flops else {})
