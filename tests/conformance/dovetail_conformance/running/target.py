"""The device under test, through Dovetail's Python API: the only file beside device_checks that calls it."""

from __future__ import annotations

import importlib
import sys
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
        self.guards: bool = self.api._core.guard_memory()  # does the environment ask for it?
        self.made: dict[Any, Any] = {}  # what checks keep
        self._rows: list[dict[str, Any]] | None = None

    # ---- arrays -------------------------------------------------------------------------------------------------

    def asarray(self, a: np.ndarray) -> Any:
        return self.api.asarray(a, device=self.device)

    def place(self, a: np.ndarray, how: str) -> Any:
        return place_as(a, how, self.asarray, self.function("permute_dims"))

    def numpy(self, x: Any) -> np.ndarray:
        """A copy on the host; waits for the device."""
        return np.array(x.numpy())

    def synchronize(self) -> None:
        self.device.synchronize()

    def guard(self, on: bool) -> None:
        """Whether arrays made from now on lie between zones that show what is written beside them."""
        self.api._core.guard_memory(on and self.guards)

    def overruns(self) -> list[tuple[str, str]]:
        """The ops that wrote beside their outputs since the last call, and what each did."""
        return self.api._core.memory_overruns(self.device)

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

    def has_row(self, op: str, d: DType | None = None) -> bool:
        """Is there a kernel of the op, at all or for operands of a dtype?"""
        rows = [r for r in self.rows if r["op"] == op]
        if d is None:
            return bool(rows)
        fits = {d.brief, "any", f"any{d.bits}"}
        return any(fits & {*r["inputs"], *r["outputs"]} for r in rows)

    def declares(self, op: str, d: DType) -> bool:
        """Must a call with this dtype work? Where there is a kernel, or a body that serves the dtype."""
        declared = registry[op]
        return self.has_row(op, d) or declared.core or declared.spec.view

    def _kernels(self) -> dict[str, list[str]]:
        """The ops that have kernels, and the dtypes that they have them for."""
        return {op.name: dtypes for op in registry.values()
                if (dtypes := [d.brief for d in op.dtypes if self.has_row(op.name, d)])}  # fmt: skip

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
            "kernels": self._kernels(),
            "dovetail": getattr(self.api, "__version__", "unknown"),
            "python": ".".join(map(str, sys.version_info[:3])),
            "numpy": np.__version__,
        }
