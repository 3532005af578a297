"""The device under test, through Dovetail's Python API: the only file beside device_checks that calls it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from dovetail.entry_points import import_ops
from dovetail.schema import registry
from dovetail.schema.dtypes import DType

from ..cases.inputs import place_as


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
        self.made: dict[Any, Any] = {}  # what checks keep
        self._rows: list[dict[str, Any]] | None = None
        self.tell: Callable[[str], None] = lambda call: None  # what is about to be called, in case it is the last

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

    # ---- ops ----------------------------------------------------------------------------------------------------

    def function(self, op: str) -> Any:
        return self.api._core.op_function(op)

    def call(self, op: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The op's result. One without arrays is told where to make it."""
        if not registry[op].operands:
            kwargs = kwargs | {"device": self.device}
        return self.function(op)(*args, **kwargs)

    def fallbacks(self) -> list[dict[str, Any]]:
        """What other devices did for this one since the last call."""
        return self.api.fallback_report(reset=True)

    # ---- what the device declares -------------------------------------------------------------------------------

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Its kernel table."""
        if self._rows is None:
            self._rows = self.api._core.kernel_table(self.name)
        return self._rows

    def rows_of(self, op: str, d: DType) -> list[dict[str, Any]]:
        """The kernels of an op for a dtype."""
        fits = {d.brief, "any", f"any{d.bits}"}
        return [r for r in self.rows if r["op"] == op and fits & {*r["inputs"], *r["outputs"]}]

    def has_row(self, op: str, d: DType | None = None) -> bool:
        """Is there a kernel of the op, at all or for operands of a dtype?"""
        return bool(self.rows_of(op, d)) if d else any(r["op"] == op for r in self.rows)

    def promised(self, op: str, d: DType, tol: float) -> float:
        """The tolerance that the op's kernels declare, where it is tighter: of several the widest."""
        return min(tol, max((r.get("max_ulp") or tol for r in self.rows_of(op, d)), default=tol))

    def flushes(self, op: str, d: DType) -> bool:
        """May subnormal numbers become 0? Where a kernel of the op declares it; for a body, any of its dtype."""
        rows = self.rows_of(op, d) or [r for r in self.rows if {d.brief, "f32"} & {*r["inputs"], *r["outputs"]}]
        return any("flushes_subnormals" in r.get("flags", ()) for r in rows)

    def may_decline(self, op: str, d: DType) -> bool:
        return any(r.get("queries") for r in self.rows_of(op, d))

    def declined(self, op: str) -> int:
        """How many calls of the op all its kernels declined."""
        return self.api._core.declined_calls(op)

    def serve_declined(self) -> None:
        """From now on the first kernel that declines a call runs it where no other serves it."""
        self.api._core.serve_declined(True)

    def declares(self, op: str, d: DType) -> bool:
        """Must a call with this dtype work? Where there is a kernel, or a body that serves the dtype."""
        declared = registry[op]
        return self.has_row(op, d) or declared.core or declared.spec.view

    def describe(self) -> dict[str, Any]:
        """For the report."""
        backend = next((b for b in self.api._core.backends() if b["name"] == self.device.backend), {})
        return {
            "device": {
                "name": self.name,
                "kind": self.device.kind,
                "arch": self.device.arch,
                "properties": dict(self.device.properties),
            },
            "backend": {k: backend.get(k, "") for k in ("name", "version", "build_info", "abi")},
            "packs": [f"{p['name']} {p['version']}" for p in backend.get("packs", ())],
            "native": sorted({r["op"] for r in self.rows}),
            "dovetail": getattr(self.api, "__version__", "unknown"),
            "python": ".".join(map(str, sys.version_info[:3])),
            "numpy": np.__version__,
        }
