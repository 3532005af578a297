"""The current stream of each thread and device."""

from __future__ import annotations

from _thread import _local

from dovetail import _core
from dovetail._core import Device, Stream

_entered = _local()  # .stacks: device name -> streams entered


def _stack(device: Device) -> list[Stream]:
    stacks = _entered.__dict__.setdefault("stacks", {})
    return stacks.setdefault(device.name, [])


def current(device: Device) -> Stream:
    """The stream on which this thread's calls on the device run."""
    stack = _stack(device)
    return stack[-1] if stack else _core.default_stream(device)


def enter(stream: Stream) -> Stream:
    _stack(stream.device).append(stream)
    _core.use_stream(stream.device, stream)
    return stream


def leave(stream: Stream) -> None:
    stack = _stack(stream.device)
    stack.pop()
    _core.use_stream(stream.device, stack[-1] if stack else None)
