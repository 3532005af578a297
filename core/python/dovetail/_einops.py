"""einops on arrays: `einops.rearrange(x, "b c -> c b")`, whichever of the two packages is imported first.

einops looks for classes derived from its AbstractBackend. So that importing dovetail does not import einops, the
class is made when a program imports it.
"""

from __future__ import annotations

import sys

_MODULE = "einops._backends"
_made: list[type] = []  # einops has weak references alone


class _WhenImported:
    """A finder of modules that waits for einops, and then makes the backend."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != _MODULE or cls not in sys.meta_path:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(cls)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module):
                run(module)
                _register(module)

            spec.loader.exec_module = run_and_register
        return spec


def _register(backends):
    import dovetail
    from dovetail._core import Array
    from dovetail._trace import Tracer

    class DovetailBackend(backends.AbstractBackend):
        framework_name = "dovetail"

        def is_appropriate_type(self, tensor):
            return isinstance(tensor, (Array, Tracer))

        def from_numpy(self, x):
            return dovetail.asarray(x)

        def to_numpy(self, x):
            return x.numpy()

        def arange(self, start, stop):
            return dovetail.arange(start, stop)

        def transpose(self, x, axes):
            return dovetail.permute_dims(x, tuple(axes))

        def reduce(self, x, operation, axes):
            return getattr(dovetail, operation)(x, axis=tuple(axes))

        def stack_on_zeroth_dimension(self, tensors):
            return dovetail.stack(tensors)

        def concat(self, tensors, axis):
            return dovetail.concat(tensors, axis=axis)

        def add_axis(self, x, new_position):
            return dovetail.expand_dims(x, axis=new_position)

        def add_axes(self, x, n_axes, pos2len):
            for position in sorted(pos2len):
                x = dovetail.expand_dims(x, axis=position)
            return dovetail.broadcast_to(x, tuple(pos2len.get(i, n) for i, n in enumerate(x.shape)))

        def tile(self, x, repeats):
            return dovetail.tile(x, tuple(repeats))

        def is_float_type(self, x):
            return "floating" in x.dtype.kind

        def einsum(self, pattern, *x):
            return dovetail.einsum(pattern, *x)

    _made.append(DovetailBackend)


if _MODULE in sys.modules:
    _register(sys.modules[_MODULE])
else:
    sys.meta_path.insert(0, _WhenImported)
