"""The engine that serves attention: the choice of torch.nn.attention.sdpa_kernel, among a device's kernels."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail import _core
from dovetail._context_scope import ContextScope
from dovetail._core import Array
from dovetail._devices import devices

TYPE_CHECKING = False  # importing typing would take longer than everything else
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["sdpa_engine", "sdpa_engines"]

OPS = (
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_with_logsumexp",
    "scaled_dot_product_attention_varlen",
)


class sdpa_engine(ContextScope):
    """Within it, only these engines serve scaled_dot_product_attention: `with dovetail.nn.sdpa_engine("flash"):`.
    The same holds for scaled_dot_product_attention_with_logsumexp and scaled_dot_product_attention_varlen.

    engines: a name, or several in the order of preference: the first that takes a call serves it. A device names
        its engines in its kernel table (`dovetail ops -k attention`), as "cudnn" or "flash"; "own" are kernels
        without a name, and "math" is the op's decomposition, which every device has.

    A call that none of them takes raises NotImplementedError, with the reason of each; no other engine
    takes their place. Entering raises ValueError for a name that no device's kernel table has.

    It also decorates functions. It holds for this thread's and task's calls, as a context variable does, also for
    those inside the decompositions of other ops; an inner one replaces an outer one until it ends. Without any,
    the table of the device decides.
    """

    _variable = _core.engine_choices

    def __init__(self, engines: str | Sequence[str]) -> None:
        names = [engines] if isinstance(engines, str) else list(engines) if isinstance(engines, Iterable) else []
        if not names or not all(isinstance(name, str) for name in names):
            raise TypeError(f"[sdpa_engine] expected an engine's name or several, got {engines!r}")
        self.engines = tuple(names)

    def _entry(self) -> Any:
        devices()  # opens the backends, whose kernel tables name the engines
        try:
            return _core.EngineChoice(OPS, self.engines)
        except ValueError as error:
            raise ValueError(f"[sdpa_engine] {error}") from None

    def __repr__(self) -> str:
        return f"sdpa_engine({list(self.engines)!r})"


def sdpa_engines(query: Array, key: Array, value: Array, *args: Any, op: str = OPS[0], **kwargs: Any) -> list[str]:
    """The engines that would serve this call of scaled_dot_product_attention, in the order of their turn.

    op: the name of another op that sdpa_engine governs, for a call of that one.

    It takes what the op takes and computes nothing; the first engine is the one that serves the call where nothing
    is chosen. Raises what the op raises for operands that do not fit, and ValueError for an op without engines.
    """
    if op not in OPS:
        raise ValueError(f"[sdpa_engines] op: expected {', '.join(OPS[:-1])} or {OPS[-1]}, got {op!r}")
    return _core.serving_engines(_core.op_function(op), query, key, value, *args, **kwargs)
