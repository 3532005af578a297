"""Linear algebra: the array API's linalg extension, and more.

Matrices are the last two axes. See the op reference.
"""

from dovetail import _core, _linalg
from dovetail._functions import tensordot

# The standard has these, and tensordot, in both namespaces.
_ops = {name: _core.op_function(name) for name in ("matmul", "matrix_transpose", "vecdot")}
_ops |= {name: _core.op_function(name) for name in _core.op_names("linalg")}
globals().update(_ops)
globals().update({name: getattr(_linalg, name) for name in _linalg.__all__})  # of several results: with names
__all__ = [tensordot.__name__, *_ops, *(n for n in _linalg.__all__ if n not in _ops)]  # noqa: PLE0604 - strings
