"""dovetail.autocast: products in a narrow dtype, sums and exponentials in float32, of a model as it is."""

from __future__ import annotations

from dovetail import _core
from dovetail._context_scope import ContextScope
from dovetail._core import Device, DType

TYPE_CHECKING = False  # importing typing would take longer than everything else
if TYPE_CHECKING:
    from typing import Any

__all__ = ["autocast"]


class autocast(ContextScope):
    """Within it, ops compute in the dtype that suits them: `with dovetail.autocast("bfloat16"):`.

    dtype: float16 or bfloat16; None: bfloat16, unless the device has kernels for products of float16 alone.
    device: the device whose calls it is about; None: all. enabled=False: operands stay as they are.

    Matrix products, convolutions and attention cast their float32, float16 and bfloat16 operands to it;
    exponentials, logarithms, powers, sums, norms, softmax and losses cast theirs to float32, and their results are
    float32. docs/autocast.md has the list; all other ops take operands as they are, and where dtypes meet the wider
    one wins. float64, float8, integers and bools are never cast.

    It also decorates functions. It holds for this thread's and task's calls, as a context variable does, and for
    what they trace: casts are nodes of programs. An inner scope replaces an outer one until it ends. A compiled
    function has programs of its own for each dtype. Raises ValueError for another dtype.
    """

    _variable = _core.autocast_scopes

    def __init__(
        self, dtype: DType | str | None = None, *, device: Device | str | None = None, enabled: bool = True
    ) -> None:
        if isinstance(dtype, bool):
            raise TypeError(
                "[autocast] dtype: got a bool, expected float16 or bfloat16; enabled=False switches it off"
            )
        if not isinstance(enabled, bool):
            raise TypeError(f"[autocast] enabled: got {enabled!r}, expected True or False")
        self.dtype = None if dtype is None else _core.to_dtype(dtype)
        if self.dtype is not None and self.dtype.name not in ("float16", "bfloat16"):
            raise ValueError(f"[autocast] dtype: got {self.dtype}, expected float16 or bfloat16")
        self.device, self.enabled = device, enabled

    def _entry(self) -> Any:
        return _core.Autocast(self.dtype, self.device, self.enabled)

    def __repr__(self) -> str:
        device = f", device={str(self.device)!r}" if self.device is not None else ""
        enabled = "" if self.enabled else ", enabled=False"
        return f"autocast({None if self.dtype is None else self.dtype.name!r}{device}{enabled})"
