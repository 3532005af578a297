"""The entry point of the backend: the path of its library, and the folder of Intel's SYCL runtime."""

import os
import site
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["backend"]

_RUNTIME = "libsycl.so.9"  # its name changes with every version that is not compatible
_WHEEL = "intel-sycl-rt>=2026.2,<2027"


class Backend(NamedTuple):
    """The attributes that Dovetail's loader reads from an entry point."""

    library: str
    """The plugin's file."""
    search: list[str]
    """Folders of the libraries that it opens itself."""
    hint: str
    """How to get a device, for a machine without one."""


def _runtime_folder() -> Path:
    """The folder of SYCL's libraries: their wheel installs them in the prefix's lib, not in site-packages."""
    installed = Path(__file__).resolve().parents[3]  # lib of the prefix that this package is installed in
    folders = [installed, Path(sys.prefix, "lib"), Path(site.USER_BASE or site.getuserbase(), "lib")]
    for folder in folders:
        if (folder / _RUNTIME).exists():
            return folder
    raise ImportError(
        f"no {_RUNTIME} in {' or '.join(map(str, dict.fromkeys(folders)))}: expected Intel's SYCL runtime, "
        f"{_WHEEL}, {_installed()}; pip install '{_WHEEL}'"
    )


def _installed() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"but version {version('intel-sycl-rt')} is installed"
    except PackageNotFoundError:
        return "but it is not installed"


def _hint() -> str:
    if os.environ.get("DOVETAIL_XPU_ALLOW_CPU", "0") not in ("", "0"):
        return (
            "SYCL's CPU device, which DOVETAIL_XPU_ALLOW_CPU asks for, comes with: pip install 'dovetail-xpu[cpu]'"
        )
    return (
        "expected an Intel GPU that Level Zero finds: install its driver, and be allowed to open /dev/dri; "
        "for tests without a GPU there is SYCL's CPU device, with DOVETAIL_XPU_ALLOW_CPU=1"
    )


backend = Backend(str(Path(__file__).resolve().with_name(f"lib{__name__}.so")), [str(_runtime_folder())], _hint())
