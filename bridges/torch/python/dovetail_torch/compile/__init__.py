"""Models of torch as programs of dovetail: torch.compile(model, backend="dovetail") and from_exported()."""

from dovetail_torch import _bridge
from dovetail_torch.compile.dynamo import Report, backend, report
from dovetail_torch.compile.exported import from_exported

__all__ = ["Report", "backend", "from_exported", "report"]

if _bridge.names:  # torch has the devices: torch.compile must know their streams before it looks at a model
    from dovetail_torch import interface

    interface.register()
