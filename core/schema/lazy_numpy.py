"""NumPy for the oracles of ops. Decompositions need none, so declaring an op does not import it."""

from __future__ import annotations

import sys


class _Deferred:
    """numpy.<name>, looked up when it is called."""

    def __init__(self, name: str):
        self.__name__ = name

    def __call__(self, *args, **kwargs):
        import numpy

        return getattr(numpy, self.__name__)(*args, **kwargs)


class _LazyNumpy:
    def __getattr__(self, name: str):
        numpy = sys.modules.get("numpy")
        return getattr(numpy, name) if numpy and hasattr(numpy, name) else _Deferred(name)


# Inside an oracle this is numpy itself (its arguments are arrays); at module level a name of it can only be called.
np = _LazyNumpy()
