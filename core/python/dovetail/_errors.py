"""Exceptions and warnings of the package."""


class AxisError(ValueError, IndexError):
    """An axis that the array does not have. As in NumPy it is both: libraries catch either."""


class DeviceLostError(RuntimeError):
    """The device stopped working and its memory is lost. Other devices still work."""


class FallbackWarning(UserWarning):
    """An op ran on another device because its own has no kernel for it."""


def warn(text: str) -> None:
    """Called by the runtime."""
    import warnings

    warnings.warn(text, FallbackWarning, stacklevel=2)
