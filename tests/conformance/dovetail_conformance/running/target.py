"""The device under test, through Dovetail's Python API: besides device_checks the only file that calls it."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from dovetail.entry_points import import_ops
from dovetail.schema import dtypes as dt
from dovetail.schema import registry
from dovetail.schema.dtypes import DType

from ..cases.inputs import place_as
from ..levels.must_pass import must_pass


class Unavailable(Exception):
    """There is no such device, or it cannot be used."""


class Target:
    """One device. `api` is the module to call: dovetail, unless the suite is testing itself."""

    def __init__(self, name: str, api: str = "dovetail"):
        self.api: Any = importlib.import_module(api)
        import_ops()
        try:
            self.device = self.api.device(name)
        except (ValueError, RuntimeError) as error:
            raise Unavailable(str(error)) from error
        self.name: str = self.device.name
        self.api.set_default_device(self.device)
        self.api.fallback("error")
        self.guards: bool = self.api._core.guard_memory()  # does the environment ask for it?
        self.made: dict[Any, Any] = {}  # what checks keep
        self._found: dict[tuple[str, DType | None], list[dict[str, Any]]] = {}  # by op and dtype
        self.announce: Callable[[str], None] = lambda call: None  # the next call, in case it crashes

    @property
    def float(self) -> type:
        """The dtype in which checks of the device compute: float32, or the profile's float."""
        return must_pass().float.numpy.type

    # ---- arrays -------------------------------------------------------------------------------------------------

    def asarray(self, a: np.ndarray) -> Any:
        return self.api.asarray(a, device=self.device)

    def place(self, a: np.ndarray, how: str) -> Any:
        return place_as(a, how, self.asarray, self.function)

    def numpy(self, x: Any) -> np.ndarray:
        """A copy on the host; waits for the device."""
        return np.array(x.numpy())

    def synchronize(self) -> None:
        self.device.synchronize()

    @contextmanager
    def threads(self, n: int) -> Iterator[None]:
        """Inside it kernels get this many of the host's threads."""
        core = self.api._core
        before = core.num_threads()
        core.set_num_threads(n)
        try:
            yield
        finally:
            core.set_num_threads(before)

    def guard(self, on: bool) -> None:
        """Whether new arrays lie between zones that show writes outside of them."""
        self.api._core.guard_memory(on and self.guards)

    @contextmanager
    def nothing_kept(self) -> Iterator[None]:
        """Inside it the host keeps no copies of kernels' calls, which DOVETAIL_POISON_CALLS=1 makes."""
        core = self.api._core
        before = core.poison_calls(False)
        try:
            yield
        finally:
            core.poison_calls(before)

    def overruns(self) -> list[tuple[str, str]]:
        """The ops that wrote outside their outputs since the last call, and each one's error."""
        return self.api._core.memory_overruns(self.device)

    def lost(self) -> bool:
        """The device is gone, for this process at least."""
        try:
            self.synchronize()
        except self.api.DeviceLostError:
            return True
        except Exception:
            return False  # an error that was still to be raised
        return False

    # ---- ops ----------------------------------------------------------------------------------------------------

    def function(self, op: str) -> Any:
        return self.api._core.op_function(op)

    def call(self, op: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The op's result. An op without arrays gets the device as an argument."""
        if not registry[op].operands:
            kwargs = kwargs | {"device": self.device}
        return self.function(op)(*args, **kwargs)

    def fallbacks(self) -> list[dict[str, Any]]:
        """The calls that other devices served for this one since the last call."""
        return self.api.fallback_report(reset=True)

    # ---- the device's declarations
    # --------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Its kernel table."""
        return self.api._core.kernel_table(self.name)

    def has_row(self, op: str, d: DType | None = None) -> bool:
        """Is there a kernel of the op, at all or for operands of a dtype?"""
        return bool(self._rows_of(op, d))

    def _rows_of(self, op: str, d: DType | None) -> list[dict[str, Any]]:
        if (op, d) not in self._found:
            rows = [r for r in self.rows if r["op"] == op]
            fits = {d.brief, "any", f"any{d.bits}"} if d else set()
            self._found[op, d] = [r for r in rows if not d or fits & {*r["inputs"], *r["outputs"]}]
        return self._found[op, d]

    def promised(self, op: str, d: DType, tol: float) -> float:
        """The tolerance that the op's kernels declare, where it is tighter: of several the widest."""
        return min(tol, max((r.get("max_ulp") or tol for r in self._rows_of(op, d)), default=tol))

    def flushes(self, op: str, d: DType) -> bool:
        """Whether subnormal numbers may become 0: if a kernel of the op declares it; in a decomposition, if any
        kernel does."""
        rows = self._rows_of(op, d) or self._flushing
        return any("flushes_subnormals" in r.get("flags", ()) for r in rows)

    @cached_property
    def _flushing(self) -> list[dict[str, Any]]:
        return [r for r in self.rows if "flushes_subnormals" in r.get("flags", ())]

    def may_decline(self, op: str, d: DType) -> bool:
        return any(r.get("queries") for r in self._rows_of(op, d))

    def packs(self, op: str, d: DType) -> bool:
        """Do kernels turn an operand into a layout of their own?"""
        return any(r.get("packs") for r in self._rows_of(op, d))

    def declined(self, op: str) -> int:
        """How many calls of the op all its kernels declined."""
        return self.api._core.declined_calls(op)

    def serve_declined(self) -> None:
        """Makes the first kernel that declines a call run it where no other serves it."""
        self.api._core.serve_declined(True)

    def is_deterministic(self, op: str, d: DType) -> bool:
        """Do all kernels that may serve the dtype declare it?"""
        rows = self._rows_of(op, d)
        return bool(rows) and all("deterministic" in r["flags"] for r in rows)

    def _kernels(self) -> dict[str, list[str]]:
        """The ops that have kernels, and the dtypes that they have them for."""
        return {op.name: dtypes for op in registry.values()
                if (dtypes := [d.brief for d in dt.ALL if self.has_row(op.name, d)])}  # fmt: skip

    def describe(self) -> dict[str, Any]:
        """For the report."""
        backend = next((b for b in self.api._core.backends() if b["name"] == self.device.backend), {})
        return {
            "device": {
                "name": self.name,
                "kind": self.device.kind,
                "arch": self.device.arch,
                "properties": _finite(dict(self.device.properties)),
            },
            "backend": {k: backend.get(k, "") for k in ("name", "version", "build_info", "abi")},
            "packs": [f"{p['name']} {p['version']}" for p in backend.get("packs", ())],
            "native": sorted({r["op"] for r in self.rows}),
            "kernels": self._kernels(),
            "dovetail": getattr(self.api, "__version__", "unknown"),
            "python": ".".join(map(str, sys.version_info[:3])),
            "numpy": np.__version__,
        }


def _finite(value: Any) -> Any:
    """With text for numbers that JSON has not: the checks report those as wrong."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)
