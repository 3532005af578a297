"""torch.dovetail: what torch.cuda has, for the devices of Dovetail."""

from collections import OrderedDict
from typing import NamedTuple

import torch

from dovetail_torch import _bridge

_initialized = True  # torch.utils.checkpoint saves the state of generators only where this is true


def _index(device=None) -> int:
    """RuntimeError where there is no such device, ValueError for a device of another type."""
    if device is None:
        return current_device()
    index = device
    if not isinstance(device, int):
        device = torch.device(device)
        if device.type != "dovetail":
            raise ValueError(f"torch.dovetail: got the device {device}, expected a dovetail device")
        index = current_device() if device.index is None else device.index
    if not 0 <= index < len(_bridge.names):
        names = ", ".join(f"dovetail:{i} ({name})" for i, name in enumerate(_bridge.names))
        raise RuntimeError(f"there is no device dovetail:{index}: expected one of {names}")
    return index


def is_available() -> bool:
    return bool(_bridge.names)


def is_initialized() -> bool:
    return _initialized


def _lazy_init() -> None:
    pass


def _is_in_bad_fork() -> bool:
    """Generators work in a forked process; a device that cannot raises its own error when it is used there."""
    return False


def device_count() -> int:
    return len(_bridge.names)


def current_device() -> int:
    return torch._C._accelerator_getDeviceIndex()


def set_device(device) -> None:
    """-1 leaves the current device as it is, as for torch.cuda."""
    if device != -1:
        torch._C._accelerator_setDeviceIndex(_index(device))


def get_device_name(device=None) -> str:
    """Dovetail's name of the device: "sim:0"."""
    return _bridge.names[_index(device)]


class DeviceProperties(NamedTuple):
    name: str  # Dovetail's
    total_memory: int  # bytes


def get_device_properties(device=None) -> DeviceProperties:
    return DeviceProperties(get_device_name(device), mem_get_info(device)[1])


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.bfloat16, torch.float16]


def synchronize(device=None) -> None:
    torch.accelerator.synchronize(_index(device))


class device:
    """A context in which the device is the current one; -1: the one that is."""

    def __init__(self, device):
        self.index = device if device == -1 else _index(device)

    def __enter__(self):
        self.before = current_device()
        set_device(self.index)

    def __exit__(self, *error):
        set_device(self.before)


# ---- streams and events
def current_stream(device=None) -> torch.Stream:
    return torch.accelerator.current_stream(_index(device))


def set_stream(stream: torch.Stream) -> None:
    torch.accelerator.set_stream(stream)


def stream(stream: torch.Stream) -> torch.Stream:
    """A context in which the stream is the current one; a torch.Stream is one itself."""
    return stream


def Stream(device=None, priority: int = 0) -> torch.Stream:
    return torch.Stream(f"dovetail:{_index(device)}", priority=priority)


def Event(enable_timing: bool = False, **kwargs) -> torch.Event:
    return torch.Event("dovetail", enable_timing=enable_timing, **kwargs)


# ---- memory
def memory_allocated(device=None) -> int:
    return torch.accelerator.memory_allocated(_index(device))


def max_memory_allocated(device=None) -> int:
    return torch.accelerator.max_memory_allocated(_index(device))


def memory_reserved(device=None) -> int:
    return torch.accelerator.memory_reserved(_index(device))


_COUNTED = (
    "active_bytes.all.current",
    "active_bytes.all.peak",
    "allocated_bytes.all.current",
    "allocated_bytes.all.peak",
    "num_device_alloc",
    "num_device_free",
    "reserved_bytes.all.current",
)


def memory_stats(device=None) -> OrderedDict[str, int]:
    """Those figures of torch.cuda.memory_stats that Dovetail counts, under their names there."""
    stats = torch.accelerator.memory_stats(_index(device))
    return OrderedDict((name, stats[name]) for name in _COUNTED)


def reset_peak_memory_stats(device=None) -> None:
    torch.accelerator.reset_peak_memory_stats(_index(device))


def mem_get_info(device=None) -> tuple[int, int]:
    """The free and all bytes of the device's memory."""
    return torch.accelerator.get_memory_info(_index(device))


def empty_cache() -> None:
    torch.accelerator.empty_cache()


# ---- random numbers
default_generators = tuple(torch.ops.dovetail.default_generator(i) for i in range(len(_bridge.names)))


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator. The same seed gives the same numbers on every device of Dovetail."""
    default_generators[current_device()].manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    for generator in default_generators:
        generator.manual_seed(seed)


def initial_seed() -> int:
    return default_generators[current_device()].initial_seed()


def get_rng_state(device=None) -> torch.Tensor:
    return default_generators[_index(device)].get_state()


def set_rng_state(state: torch.Tensor, device=None) -> None:
    default_generators[_index(device)].set_state(state)


def get_rng_state_all() -> list[torch.Tensor]:
    return [generator.get_state() for generator in default_generators]


def set_rng_state_all(states: list[torch.Tensor]) -> None:
    for generator, state in zip(default_generators, states, strict=True):
        generator.set_state(state)
