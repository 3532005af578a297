"""Linear algebra, as in the array API's linalg extension. See the op reference."""

from dovetail import _core

__all__ = [*_core.op_names("linalg")]  # noqa: PLE0604 - strings
globals().update({name: _core.op_function(name) for name in __all__})
