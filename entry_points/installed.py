"""The entry points of installed wheels, and the library that each of them names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from .backend import Failure, did_you_mean, ends_the_program, error_text
from .python_device import is_device

BACKENDS, KERNELS, TOOLCHAINS = GROUPS = ("dovetail.backends", "dovetail.kernels", "dovetail.toolchains")


class EntryPoint:
    def __init__(
        self,
        name: str,
        value: str,
        distribution: str,
        group: str = BACKENDS,
        problem: Failure | None = None,
        content: str = "",
    ) -> None:
        self.problem = problem  # why it cannot be used
        self.content = content  # of a toolchain: changes with the files and the requirements of its wheel
        self.name = name  # "acme"; of a kernel pack "cpu.acme_fast": the backend that it is for comes first
        self.group = group
        self.value = value  # "dovetail_acme:backend"
        self.distribution = distribution  # "dovetail-acme 1.2"

    @property
    def package(self) -> str:
        return self.distribution.partition(" ")[0]


def entry_points() -> Iterator[EntryPoint]:
    """The entry points of our groups. Broken metadata of one wheel hides no other wheel."""
    import importlib_metadata

    seen = set()
    for dist in importlib_metadata.distributions():
        try:
            # Few wheels belong to Dovetail: search the text before parsing it.
            text = dist.read_text("entry_points.txt") or ""
        except (OSError, UnicodeError) as error:
            yield from _unreadable(dist, error)
            continue
        groups = [group for group in GROUPS if f"[{group}]" in text]
        if not groups:
            continue
        name, version, problem = _identity(dist)
        # The first copy of a wheel on sys.path hides the others.
        key = name.lower().replace("_", "-").replace(".", "-")
        if key in seen:
            continue
        seen.add(key)
        label = f"{name} {version}".strip()
        try:
            points = [(p.name, p.value, group) for group in groups for p in dist.entry_points.select(group=group)]
        except Exception as error:
            points = [(key.removeprefix("dovetail-"), f"<{error}>", groups[0])]
        content = _content(dist) if TOOLCHAINS in groups else ""
        for point, value, group in dict.fromkeys(points):
            yield EntryPoint(point, value, label, group, problem, content)


def _content(dist: Any) -> str:
    """The installed files of a wheel, with their hashes, and the versions of what it requires."""
    import importlib_metadata
    from importlib_metadata import PackageNotFoundError

    lines = [dist.read_text("RECORD") or ""]
    for requirement in dist.requires or ():
        name = re.match(r"[\w.-]*", requirement).group()
        try:
            lines.append(f"{name} {importlib_metadata.version(name)}")
        except PackageNotFoundError:
            lines.append(f"no {name}")
    return "\n".join(lines)


def _identity(dist: Any) -> tuple[str, str, Failure | None]:
    """The wheel's name and version. Without readable metadata both come from the folder's name, with a Failure.

    dist.metadata would import the parser of emails, which takes longer than all else here.
    """
    try:
        header = (dist.read_text("METADATA") or dist.read_text("PKG-INFO") or "").partition("\n\n")[0]
    except (OSError, UnicodeError):
        header = ""
    fields = dict(re.findall(r"^(Name|Version):[ \t]*(\S+)", header, re.MULTILINE))
    if len(fields) == 2:
        return fields["Name"], fields["Version"], None
    folder = _folder(dist)
    guess, _, version = folder.removesuffix(".dist-info").partition("-")
    name = guess.replace("_", "-")
    cure = f"reinstall it: pip install --force-reinstall {name}"
    return name, version, Failure(f"{folder}/METADATA is missing or names no wheel and version", cure)


def _unreadable(dist: Any, error: Exception) -> Iterator[EntryPoint]:
    """The wheel of a backend whose entry_points.txt cannot be read."""
    folder = _folder(dist)
    name = folder.partition("-")[0].replace("_", "-")
    if not name.startswith("dovetail-"):
        return
    cure = f"reinstall it: pip install --force-reinstall {name}"
    problem = Failure(f"{folder}/entry_points.txt cannot be read: {error_text(error)}", cure)
    yield EntryPoint(name.removeprefix("dovetail-"), "", name, BACKENDS, problem)


def _folder(dist: Any) -> str:
    """The name of its metadata folder: dovetail_acme-1.2.dist-info."""
    return os.path.basename(os.path.normpath(str(getattr(dist, "_path", ""))))


def claims(points: Iterable[EntryPoint], group: str) -> list[tuple[str, list[EntryPoint], str]]:
    """For each name, in order: the entry points that claim it, and their wheels as text."""
    by_name: dict[str, list[EntryPoint]] = {}
    for point in points:
        if point.group == group:
            by_name.setdefault(point.name, []).append(point)
    return [
        (name, found, " and ".join(sorted({point.distribution for point in found})))
        for name, found in sorted(by_name.items())
    ]


def locate_only(points: list[EntryPoint]) -> tuple[Any, list[str]]:
    """locate() of the only entry point. Raises Failure where there are several."""
    if problem := next((point.problem for point in points if point.problem), None):
        raise problem
    owners = {point.package for point in points}
    if len(owners) < len(points):
        values = " and ".join(repr(point.value) for point in points)
        raise Failure(f"its wheel declares it more than once: {values}", f"correct {points[0].distribution}")
    if len(points) > 1:
        packages = " or ".join(sorted(point.package for point in points))
        raise Failure(f"{len(points)} wheels claim its name", f"uninstall all but one: pip uninstall {packages}")
    return locate(points[0])


def locate(point: EntryPoint) -> tuple[Any, list[str]]:
    """The library and the folders to search that the entry point's object names, or a Python device's class.

    Raises Failure.
    """
    found = _load(point)
    if is_device(found):
        return found, []
    correct = f"correct {point.distribution}"
    try:
        library, search = found.library, getattr(found, "search", ())
    except AttributeError:
        raise Failure(
            f"entry point {point.value!r} leads to a {type(found).__name__} without .library: "
            "expected an object with .library, the plugin's absolute path, and .search, a list of folders, or a "
            "class derived from dovetail.prototype.PythonDevice",
            correct,
        ) from None
    except BaseException as error:
        if ends_the_program(error):
            raise
        raise Failure(f"reading .library of {point.value!r} raised {error_text(error)}", correct) from error
    if not _is_path(library) or not os.path.isabs(library):
        raise Failure(f".library of {point.value!r}: expected an absolute path, got {library!r}", correct)
    if _is_path(search) or not all(map(_is_path, search)):
        raise Failure(f".search of {point.value!r}: expected a list of folders, got {search!r}", correct)
    path = os.fspath(library)
    check_file(path, f"reinstall it: pip install --force-reinstall {point.package}")
    return path, [os.fspath(folder) for folder in search]


def hint(point: EntryPoint) -> str:
    """The entry point's hint to a user whose machine has no device of the backend's kind. Raises Failure."""
    found = _load(point)
    try:
        return str(getattr(found, "hint", ""))
    except BaseException as error:
        if ends_the_program(error):
            raise
        raise Failure(
            f"reading .hint of {point.value!r} raised {error_text(error)}", f"correct {point.distribution}"
        ) from error


def import_ops(point: EntryPoint) -> None:
    """Imports the modules that the entry point's object names in .ops: they register ops. Raises Failure."""
    found = _load(point)
    try:
        ops = getattr(found, "ops", ())
        modules = [ops] if isinstance(ops, str) else list(ops)
    except BaseException as error:
        if ends_the_program(error):
            raise
        raise Failure(
            f"reading .ops of {point.value!r} raised {error_text(error)}: expected a module's name, or several"
        ) from error
    for module in modules:
        try:
            import_module(module)
        except BaseException as error:
            if ends_the_program(error):
                raise
            raise Failure(f"importing {module!r}, its ops, raised {error_text(error)}") from error


def names_a_file(text: str, *suffixes: str) -> bool:
    """Whether the text is a path and not the name of a backend. `suffixes`: more than those of libraries."""
    return os.sep in text or text.endswith((".so", ".dylib", ".dll", *suffixes))


def check_file(path: str, cure: str) -> None:
    if not os.path.isfile(path):
        raise Failure(f"its library {path} does not exist", cure)


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


def _load(point: EntryPoint) -> object:
    reference = point.value.partition("[")[0]  # extras may follow: "dovetail_acme:backend [fast]"
    module_name, _, attributes = (part.strip() for part in reference.partition(":"))
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise Failure(
            f"entry point {point.name} = {point.value!r} is malformed: expected 'module:object'",
            f"correct {point.distribution}",
        )
    try:
        found: object = import_module(module_name)
    except BaseException as error:
        if ends_the_program(error):
            raise
        raise Failure(
            f"importing {module_name!r} raised {error_text(error)}",
            f"update or reinstall it: pip install --upgrade --force-reinstall {point.package}",
        ) from error
    path = module_name
    for attribute in filter(None, attributes.split(".")):
        try:
            found = getattr(found, attribute)
        except AttributeError:
            public = [name for name in dir(found) if not name.startswith("_")]
            raise Failure(
                f"entry point {point.value!r}: {path!r} has no {attribute!r}{did_you_mean(attribute, public)}",
                f"correct the entry point in {point.distribution}",
            ) from None
        path += f".{attribute}"
    return found
