"""Parameters stay the same objects where a module moves between the CPU and a device, as they do for CUDA.

Where both devices have a compatible type of tensors, as the CPU and CUDA, torch gives a parameter new values. For a
device of PrivateUse1 it makes a new Parameter at each place instead: that unties shared parameters, and an
optimizer made before keeps the old ones.
"""

import functools

import torch


def is_moved(old: torch.nn.Parameter | None, new: torch.nn.Parameter | None) -> bool:
    """Whether `new` is what torch made of `old` on the way to or from the device. Subclasses with a dispatch of
    their own, as FakeTensor, stay as torch leaves them."""
    return (
        new is not old is not None
        and type(new) is torch.nn.Parameter
        and type(old).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
        and "dovetail" in (old.device.type, new.device.type)
    )


def exchange(old: torch.nn.Parameter, new: torch.nn.Parameter) -> None:
    """Exchanges values and gradients; `old` keeps its hooks: setting them again attaches them to the new values."""
    torch._C._swap_tensor_impl(old, new)
    for hooks in ("_backward_hooks", "_post_accumulate_grad_hooks"):
        if (kept := getattr(old, hooks)) is not None:
            setattr(old, hooks, kept)


def register() -> None:
    apply = torch.nn.Module._apply

    @functools.wraps(apply)
    def _apply(self, fn, recurse=True):
        before = dict(self._parameters.items())  # a ScriptModule's table is no dict
        try:
            return apply(self, fn, recurse)
        finally:
            if before and not torch.__future__.get_overwrite_module_params_on_conversion():
                for name, new in list(self._parameters.items()):
                    old = before.get(name)
                    if is_moved(old, new):
                        exchange(old, new)
                        self._parameters[name] = old

    torch.nn.Module._apply = _apply
