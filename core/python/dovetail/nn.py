"""Neural-network functions, named as in torch.nn.functional. See the op reference."""

from dovetail import _core
from dovetail._attention import sdpa_engine, sdpa_engines
from dovetail._detection import nms

_ops = _core.op_names("nn")
__all__ = [*_ops, "nms", "sdpa_engine", "sdpa_engines"]  # noqa: PLE0604 - strings
globals().update({name: _core.op_function(name) for name in _ops})
