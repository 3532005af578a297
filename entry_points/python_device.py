"""Devices that are Python classes, from a wheel, a file or the caller. A class is a device if it has the method
__dovetail_backend__, which opens it."""

from __future__ import annotations

import sys
from typing import Any

from .backend import Failure, ends_the_program, error_text

SUFFIX = ".py"


def is_device(found: object) -> bool:
    return isinstance(found, type) and hasattr(found, "__dovetail_backend__")


def source(device: Any) -> str:
    """The file of the class, which is reported where other devices have a library."""
    import inspect

    try:
        return inspect.getsourcefile(device) or device.__qualname__
    except (TypeError, OSError):  # written at a prompt
        return str(device.__qualname__)


def in_file(path: str, name: str) -> Any:
    """The one device class that the file declares. Raises Failure."""
    from importlib.util import module_from_spec, spec_from_file_location

    module_name = f"dovetail_backend_{name}"
    spec = spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise Failure(f"{path} is no Python file", "give the path of one")
    module = sys.modules[module_name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[module_name]
        if ends_the_program(error):
            raise
        raise Failure(f"running {path} raised {error_text(error)}", "correct the file") from error
    own = [c for c in vars(module).values() if is_device(c) and c.__module__ == module_name and c.name]
    if len(own) != 1:
        names = ", ".join(c.__qualname__ for c in own) or "none"
        raise Failure(
            f"{path} declares {names}: expected one class derived from dovetail.prototype.PythonDevice, named",
            "correct the file",
        )
    return own[0]
