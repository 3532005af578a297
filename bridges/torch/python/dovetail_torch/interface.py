"""What torch.compile needs of a device: streams, events and indices. register() imports torch._dynamo."""

import torch
from torch._dynamo import device_interface

from dovetail_torch import _module


class DovetailInterface(device_interface.DeviceInterface):
    """The functions of torch.dovetail under the names that torch._dynamo uses."""

    Event = torch.Event
    Stream = torch.Stream
    device = _module.device

    class Worker:
        set_device = staticmethod(_module.set_device)
        current_device = staticmethod(_module.current_device)

    current_device = staticmethod(_module.current_device)
    set_device = staticmethod(_module.set_device)
    device_count = staticmethod(_module.device_count)
    is_available = staticmethod(_module.is_available)
    stream = staticmethod(_module.stream)
    current_stream = staticmethod(_module.current_stream)
    set_stream = staticmethod(_module.set_stream)
    synchronize = staticmethod(_module.synchronize)
    memory_allocated = staticmethod(_module.memory_allocated)

    @staticmethod
    def exchange_device(device: int) -> int:
        before = _module.current_device()
        if device >= 0:
            _module.set_device(device)
        return before

    maybe_exchange_device = exchange_device

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return True

    @staticmethod
    def is_dtype_supported(dtype: torch.dtype, including_emulation: bool = False) -> bool:
        return True


def register() -> None:
    """Makes torch._dynamo know the device. Calling it again does nothing."""
    if "dovetail" not in device_interface.device_interfaces:
        device_interface.register_interface_for_device("dovetail", DovetailInterface)
