"""Tensors of dovetail:N as arrays of Dovetail, and for other processes."""

import pickle
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions


def as_array(x: torch.Tensor) -> Any:
    """The Array that shares the tensor's memory; None for a tensor of another device.

    Raises BufferError for a tensor that requires a gradient, TypeError for a dtype that Dovetail does not have.
    """
    if x.device.type != "dovetail":
        return None
    if x.requires_grad:
        raise BufferError("[from_dlpack] the tensor requires a gradient, which an array has not; pass x.detach()")
    from dovetail import _core

    return _core.array_at(torch.ops.dovetail.address_of.default(x.resolve_conj().resolve_neg()))


def rebuilt(kind: type, host: torch.Tensor, device: str, requires_grad: bool) -> torch.Tensor:
    x = host.to(device)
    return torch.nn.Parameter(x, requires_grad) if kind is torch.nn.Parameter else x.requires_grad_(requires_grad)


def reduced(x: torch.Tensor) -> tuple:
    """What torch.multiprocessing sends: the values, through shared memory of the host. A process that is being made
    gets them in its pickle, as it maps shared memory only after the host's copy is freed."""
    if x.device.type != "dovetail" or x.layout != torch.strided:
        return reductions.reduce_tensor(x)
    if x.requires_grad and not x.is_leaf:
        raise RuntimeError(
            "a tensor of autograd's graph cannot be sent to another process, as its graph stays here; send "
            "tensor.detach()"
        )
    if get_spawning_popen() is not None:
        return pickle.loads, (pickle.dumps(x, pickle.HIGHEST_PROTOCOL),)
    return rebuilt, (type(x), x.detach().cpu(), str(x.device), x.requires_grad)


def register() -> None:
    torch.Tensor.__dovetail_array__ = as_array
    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, reduced)
