"""Tensors of torch as arrays, and back, without a copy: both have DLPack's C exchange API."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import dovetail as dt
import torch

__all__ = ["as_array", "as_tensor", "host_device"]

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


def as_array(x: torch.Tensor) -> Any:
    """The array that shares a tensor's memory; the current device must work in it."""
    give, take, _, _ = _functions()
    return _exchanged(x.detach() if x.requires_grad else x, give, take)


def as_tensor(x: Any) -> torch.Tensor:
    """The tensor that shares an array's memory."""
    _, _, give, take = _functions()
    return _exchanged(x, give, take)


@cache
def host_device() -> Any:
    """The device that works in the memory of torch's CPU tensors.

    Raises RuntimeError where none is installed.
    """
    for device in dt.devices():
        if dt.empty((1,), device=device).__dlpack_device__() == (1, 0):
            return device
    raise RuntimeError(
        "[dovetail] no installed device works in the memory of torch's CPU tensors; pip install dovetail-cpu"
    )
