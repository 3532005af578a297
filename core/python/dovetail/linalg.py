"""Linear algebra, as in the array API's linalg extension without its decompositions. See the op reference."""

from dovetail import _core
from dovetail._functions import tensordot

# The standard has these, and tensordot, in both namespaces.
_ops = {name: _core.op_function(name) for name in ("matmul", "matrix_transpose", "vecdot")}
_ops |= {name: _core.op_function(name) for name in _core.op_names("linalg")}
globals().update(_ops)
__all__ = [tensordot.__name__, *_ops]  # noqa: PLE0604 - strings
