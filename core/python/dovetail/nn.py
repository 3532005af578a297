"""Neural-network functions, named as in torch.nn.functional. See the op reference."""

from dovetail import _core

__all__ = [*_core.op_names("nn")]  # noqa: PLE0604 - strings
globals().update({name: _core.op_function(name) for name in __all__})
