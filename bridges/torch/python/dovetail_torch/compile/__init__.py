"""Models of torch as programs of dovetail."""

from dovetail_torch.compile.exported import from_exported

__all__ = ["from_exported"]
