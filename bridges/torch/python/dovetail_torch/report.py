"""What ran by torch's kernels for the CPU, and whether it may."""

import contextlib
from collections.abc import Iterator

POLICIES = ("allow", "warn", "error")  # in the order of the library's enum


def _library():
    from dovetail_torch import _bridge

    if _bridge.library is None:
        raise RuntimeError("dovetail_torch: there is no device 'dovetail'; dovetail_torch.error has the cause")
    return _bridge.library


def check_policy(where: str, policy: str) -> None:
    if policy not in POLICIES:
        raise ValueError(f"{where}: got {policy!r}, expected one of {', '.join(POLICIES)}")


def fallback(policy: str) -> None:
    """What happens to a call that Dovetail does not serve: "allow" runs torch's kernel for the CPU, "warn" (the
    default) also warns, once for each op, "error" raises NotImplementedError. ValueError for another policy.
    The environment variable DOVETAIL_TORCH_FALLBACK sets it for the process.
    """
    check_policy("dovetail_torch.fallback", policy)
    _library().dovetail_torch_set_fallback(POLICIES.index(policy))


def fallback_report(*, reset: bool = False) -> dict[str, int]:
    """How often each op ran by torch's kernel for the CPU, since the start or the last reset."""
    lines = _library().dovetail_torch_fallbacks(int(reset)).decode().splitlines()
    return {name: int(count) for name, _, count in (line.rpartition(" ") for line in lines)}


@contextlib.contextmanager
def counting_calls() -> Iterator[dict[str, int]]:
    """The calls that Dovetail served in the block, as ["served"] of the dict, which is filled at its end."""
    library, counts = _library(), {"served": 0}
    library.dovetail_torch_served()
    library.dovetail_torch_count_calls(1)
    try:
        yield counts
    finally:
        library.dovetail_torch_count_calls(0)
        counts["served"] = library.dovetail_torch_served()
