"""Which of torch's decompositions are applied before a graph is lowered: those of ops that have no lowering."""

from __future__ import annotations

from typing import Any

from dovetail_torch.compile import lower  # noqa: F401 - it fills the table
from dovetail_torch.compile.table import overloads

__all__ = ["for_aot", "for_export"]


def for_export() -> dict[Any, Any]:
    """For ExportedProgram.run_decompositions."""
    from torch.export import default_decompositions

    return _without_lowered(default_decompositions())


def for_aot() -> dict[Any, Any]:
    """For AOTAutograd."""
    from torch._decomp import core_aten_decompositions

    return _without_lowered(core_aten_decompositions())


def _without_lowered(table: Any) -> Any:
    for overload in overloads():
        table.pop(overload, None)
    return table
