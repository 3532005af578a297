"""Tensors of torch as arrays, and back, without a copy: those of torch's CPU by DLPack's C exchange API, those of
dovetail:N with their buffers, so that streams stay ordered and packed weights are kept until a write."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import dovetail as dt
import torch
from dovetail import _core

__all__ = ["Place", "place_of"]


class Place(NamedTuple):
    """Where the tensors of a program are.

    device: that works there. as_array: the array that shares a tensor's memory. as_tensor: the tensor that shares
    an array's memory; on dovetail:N nothing else holds that.
    """

    device: Any
    as_array: Callable[[torch.Tensor], Any]
    as_tensor: Callable[[Any], torch.Tensor]


@cache
def place_of(device: torch.device) -> Place:
    """Of the tensors on a device of torch, the CPU or dovetail:N.

    Raises RuntimeError where no installed device works in the memory of torch's CPU.
    """
    if device.type == "cpu":
        return Place(_host_device(), _of_host, _to_host)
    from dovetail_torch import _bridge

    index, tensor_at = device.index, torch.ops.dovetail.tensor_at.default
    return Place(dt.device(_bridge.names[index]), _of_device, lambda x: tensor_at(_core.owned_at(x), index))


def _of_device(x: torch.Tensor) -> Any:
    if x.is_conj() or x.is_neg():
        x = x.resolve_conj().resolve_neg()
    return _core.array_at(torch.ops.dovetail.address_of.default(x))


# ---- tensors of torch's CPU --------------------------------------------------------------------------------------

_FUNCTIONS = 16  # bytes of DLPackExchangeAPI before its functions: the version and a pointer
_FROM_OBJECT, _TO_OBJECT = 1, 2  # places among the functions
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_release = ctypes.pythonapi.Py_DecRef
_release.restype, _release.argtypes = None, [ctypes.c_void_p]


def _function(kind: type, place: int, first: Any, second: Any) -> Any:
    """A function of the exchange API of a type; it raises Python's exceptions."""
    api = _pointer(kind.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    at = ctypes.c_void_p.from_address(api + _FUNCTIONS + place * ctypes.sizeof(ctypes.c_void_p)).value
    return ctypes.PYFUNCTYPE(ctypes.c_int, first, second)(at)


@cache
def _functions() -> tuple[Any, Any, Any, Any]:
    object_, address, out = ctypes.py_object, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
    return (
        _function(torch.Tensor, _FROM_OBJECT, object_, out),
        _function(dt.Array, _TO_OBJECT, address, out),
        _function(dt.Array, _FROM_OBJECT, object_, out),
        _function(torch.Tensor, _TO_OBJECT, address, out),
    )


def _exchanged(x: Any, give: Any, take: Any) -> Any:
    managed, made = ctypes.c_void_p(), ctypes.c_void_p()
    give(x, ctypes.byref(managed))
    take(managed, ctypes.byref(made))
    found = ctypes.cast(made, ctypes.py_object).value
    _release(made)  # `found` has a reference of its own
    return found


def _of_host(x: torch.Tensor) -> Any:  # the current device must work in its memory
    give, take, _, _ = _functions()
    return _exchanged(x.detach() if x.requires_grad else x, give, take)


def _to_host(x: Any) -> torch.Tensor:
    _, _, give, take = _functions()
    return _exchanged(x, give, take)


def _host_device() -> Any:
    for device in dt.devices():
        if dt.empty((1,), device=device).__dlpack_device__() == (1, 0):
            return device
    raise RuntimeError(
        "[dovetail] no installed device works in the memory of torch's CPU tensors; pip install dovetail-cpu"
    )
