"""Neural-network functions, named as in torch.nn.functional. See the op reference."""

from dovetail import (
    _core,
    _nn_ctc,
    _nn_detection,
    _nn_flex_attention,
    _nn_grid,
    _nn_layers,
    _nn_losses,
    _nn_padding,
    _nn_random,
    _nn_recurrent,
    _nn_resize,
    _nn_unpool,
    _nn_windows,
)
from dovetail._attention import sdpa_engine, sdpa_engines

_ops = {name: _core.op_function(name) for name in _core.op_names("nn")}
_modules = (
    _nn_ctc, _nn_detection, _nn_flex_attention, _nn_grid, _nn_layers, _nn_losses, _nn_padding, _nn_random,
    _nn_recurrent, _nn_resize, _nn_unpool, _nn_windows,
)  # fmt: skip
_written = {name: getattr(module, name) for module in _modules for name in module.__all__}
globals().update(_ops | _written)  # a written function of an op's name takes more arguments than the op
__all__ = [*_ops, *(name for name in _written if name not in _ops), "sdpa_engine", "sdpa_engines"]  # noqa: PLE0604 - strings
