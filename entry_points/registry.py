"""Discovers installed backends once, on first need, opens them, and quarantines those that fail."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from .backend import Backend, BackendError, BackendWarning, Failure, Pack, cleaned, did_you_mean, nearest
from .installed import (
    BACKENDS,
    EntryPoint,
    check_file,
    claims,
    entry_points,
    hint,
    import_ops,
    locate_only,
    names_a_file,
)
from .packs import PackOpener, Packs
from .packs import notes_in_core as pack_notes_in_core
from .packs import open_in_core as open_pack_in_core
from .python_device import SUFFIX, in_file, is_device, source
from .settings import AUTOLOAD, ONLY, PATHS, Settings
from .toolchains import toolchains

# (name, or "" to take the plugin's own; library; folders to search) -> name. Raises RuntimeError, whose message
# ends in "; " and its attribute `cure` where it has that.
Opener = Callable[[str, str, list[str]], str]

KINDS = ("gpu", "npu")  # kinds of devices: no spelling suggestion for these


def open_in_core(name: str, library: str, search: list[str]) -> str:
    from dovetail import _core

    return _core.load_backend(name, library, search)


def absence_in_core(name: str) -> str:
    from dovetail import _core

    return _core.absence(name)


def notes_in_core(name: str) -> list[str]:
    from dovetail import _core

    return next((b["notes"] for b in _core.backends() if b["name"] == name), [])


def toolchain_in_core(name: str, command: list[str], fingerprint: str, problem: str) -> None:
    from dovetail import _core

    _core.set_toolchain(name, command, fingerprint, problem)


class Registry:
    def __init__(
        self,
        opener: Opener,
        installed: Callable[[], Iterable[EntryPoint]] = entry_points,
        environ: Mapping[str, str] = os.environ,
        pack_opener: PackOpener = open_pack_in_core,
        absence: Callable[[str], str] = absence_in_core,
        notes: Callable[[str], list[str]] = notes_in_core,
        pack_notes: Callable[[str, str], list[str]] = pack_notes_in_core,
        set_toolchain: Callable[[str, list[str], str, str], None] = toolchain_in_core,
    ) -> None:
        self._opener = opener
        self._absence = absence
        self._notes = notes
        self._set_toolchain = set_toolchain
        self._installed = installed
        self._environ = environ
        # Re-entrant, because the module behind an entry point may itself use dovetail while it is imported.
        self._lock = threading.RLock()
        self._settings: Settings | None = None
        self._backends: list[Backend] = []
        self._points: dict[Backend, list[EntryPoint]] = {}  # several: their wheels claim one name
        self._packs = Packs(pack_opener, pack_notes)
        self._classes: dict[Backend, Any] = {}  # given to load_backend
        self._problems: list[str] = []  # of the environment variables
        self._metadata_read = False
        self._opening: set[Backend] = set()
        self._complete = False  # everything that discovery finds was opened or quarantined
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    # ---- the public functions ------------------------------------------------------------------------------------

    def discover(self, name: str | None = None) -> None:
        if self._complete:
            return
        with self._lock:
            warnings = self._read()
            for backend in list(self._backends):
                # The name of a library given by path is only known after opening it.
                if name is None or name == backend.name or backend.origin == PATHS:
                    warnings += self._open_once(backend)
            self._complete = name is None and not self._opening
            if self._complete:
                self._packs.leave_out_rest({b.name for b in self._backends})
        self._warn(warnings)

    def require(self, name: str) -> Backend:
        with self._lock:
            warnings = self._read()
            for backend in [b for b in self._backends if b.origin == PATHS and b.name != name]:
                warnings += self._open_once(backend)
            backend = self._find(name)
            if backend and backend.status == "found":
                self._open(backend)
            elif backend and backend.status == "ready":
                self._packs.open_for(backend.name)
            if backend and backend.status == "ready":
                warnings += backend.unreported()
        self._warn(warnings)
        if backend is None:
            raise ValueError(self._unknown(name))
        if backend.status == "left out":
            raise ValueError(backend.explain())
        return self._ready(backend)

    def load_backend(self, what: str | os.PathLike[str] | type) -> Backend:
        with self._lock:
            warnings = self._read()
            backend = self._by_class(what) if isinstance(what, type) else self._by_name_or_path(os.fspath(what))
            if backend and backend.status != "ready":
                self._open(backend)
            if backend and backend.status == "ready":
                warnings += backend.unreported()
        self._warn(warnings)
        if backend is None:
            raise ValueError(self._unknown(os.fspath(what)))
        return self._ready(backend)

    def load_kernels(self, name_or_path: str, device: str | None) -> Pack:
        with self._lock:
            warnings = self._read()
            self._read_metadata(self._settings or Settings(self._environ))
            pack = self._packs.find(os.fspath(name_or_path), device)
        self._warn(warnings)
        self.require(pack.device)
        with self._lock:
            return self._packs.open(pack)

    def import_ops(self, backend: str | None = None, packs: Collection[str] | None = None) -> None:
        with self._lock:
            warnings = self._read()
            owners = [
                *((b, points) for b, points in self._points.items() if backend in (None, b.name)),
                *(
                    (p, points)
                    for p, points in self._packs.points().items()
                    if backend in (None, p.device) and (packs is None or p.name in packs)
                ),
            ]
        for owner, points in owners:
            for point in points if owner.status != "left out" else ():
                try:
                    import_ops(point)
                except Failure as failure:
                    who = f"{owner.what} {owner.name!r} of {owner.distribution}"
                    warnings.append(f"[loader] {who}: {failure.cause}")
        self._warn(warnings)

    def packs(self) -> tuple[Pack, ...]:
        return self._packs.all()

    def names(self) -> tuple[str, ...]:
        with self._lock:
            warnings = self._read()
        self._warn(warnings)
        return tuple(b.name for b in self._backends if b.status != "left out")

    def backends(self) -> tuple[Backend, ...]:
        return tuple(self._backends)

    def problems(self) -> tuple[str, ...]:
        return tuple(self._problems)

    def why_none(self) -> str:
        settings = self._settings or Settings(self._environ)
        reasons = [_without_device(b) if b.status == "ready" else b.explain() for b in self._backends]
        if reasons:
            return "no device can be used: " + ". ".join(reasons)
        if not settings.autoload:
            return f"no device: {AUTOLOAD}={settings.autoload_text}; dovetail.load_backend() opens a backend"
        return "no device is installed: pip install dovetail-cpu"

    # ---- reading -------------------------------------------------------------------------------------------------

    def _read(self) -> list[str]:
        """Reads the environment and, with autoload, the metadata, once. Returns warnings."""
        if self._settings is not None:
            return []
        settings = Settings(self._environ)
        problems = list(settings.problems)
        by_path = [Backend(_name_of(path), PATHS, library=path) for path in settings.paths]
        if settings.autoload:
            self._read_metadata(settings)
            known = [b.name for b in [*by_path, *self._backends]]
            for name in settings.only:
                if name not in known:
                    problems.append(f"[loader] {ONLY}: no backend {name!r} is installed{did_you_mean(name, known)}")
            problems += self._packs.unknown(settings)
        self._backends[:0] = by_path
        self._settings, self._problems = settings, problems
        return list(problems)

    def _read_metadata(self, settings: Settings) -> None:
        if self._metadata_read:
            return
        installed = list(self._installed())
        for name, points, owners in claims(installed, BACKENDS):
            backend = Backend(name, f"entry point {points[0].value}", distribution=owners)
            if not settings.autoload:
                cure = f"dovetail.load_backend({name!r}) opens it"
                backend.leave_out(f"{AUTOLOAD}={settings.autoload_text}", cure)
            elif not settings.includes(name):
                backend.leave_out(f"{ONLY}={settings.only_text} does not name it", "add it there")
            self._backends.append(backend)
            self._points[backend] = points
        self._packs.read(installed, settings)
        for toolchain in toolchains(installed):
            self._set_toolchain(*toolchain)
        self._metadata_read = True

    def _by_class(self, device: Any) -> Backend:
        if not is_device(device):
            raise TypeError(
                f"[loader] {device.__qualname__} is no device: expected a class derived from "
                "dovetail.prototype.PythonDevice"
            )
        for backend, known in self._classes.items():
            if known is device:
                return backend
        backend = Backend(device.name or device.__qualname__, "load_backend", library=source(device))
        self._classes[backend] = device
        self._backends.append(backend)
        return backend

    def _by_name_or_path(self, text: str) -> Backend | None:
        if names_a_file(text, SUFFIX):
            return self._by_path(os.path.abspath(text))
        self._read_metadata(self._settings or Settings(self._environ))
        return self._find(text)

    def _by_path(self, path: str) -> Backend:
        for backend in self._backends:
            if backend.library == path and backend not in self._classes:
                return backend
        backend = Backend(_name_of(path), "load_backend", library=path)
        self._backends.append(backend)
        return backend

    def _find(self, name: str) -> Backend | None:
        found = [b for b in self._backends if b.name == name]
        # A library given by path takes precedence over the wheel of the same name.
        return min(found, key=lambda b: (b.status != "ready", b in self._points), default=None)

    def _unknown(self, name: str) -> str:
        settings = self._settings
        if settings and not settings.autoload and not self._metadata_read:
            why = f"{AUTOLOAD}={settings.autoload_text}, so none was discovered"
            return f"[loader] no backend {name!r}: {why}; dovetail.load_backend({name!r}) opens it"
        known = sorted(b.name for b in self._backends)
        installed = f"installed: {', '.join(known)}" if known else "none is installed"
        if name in KINDS:
            return (
                f"[loader] no backend {name!r}, which is a kind of device: expected a backend's name; {installed}"
            )
        near = nearest(name, known, cutoff=0.6)
        if not re.fullmatch("[a-z][a-z0-9_]*", name):
            cure = f", did you mean {near!r}?" if near else f"; {installed}"
            return f"[loader] no backend {name!r}: expected lower-case letters, digits and _{cure}"
        package = f"dovetail-{name.replace('_', '-')}"
        if near:
            cure = f"did you mean {near!r}? If not: pip install {package}"
            return f"[loader] no backend {name!r} is installed: {cure}"
        return f"[loader] no backend {name!r} is installed ({installed}); pip install {package}"

    # ---- opening -------------------------------------------------------------------------------------------------

    def _open_once(self, backend: Backend) -> list[str]:
        """Opens it unless it is open. Returns warnings not given yet."""
        if backend.status == "found" and backend not in self._opening:
            self._open(backend)
        elif backend.status == "ready":  # Ctrl-C may have come before all of its packs were open
            self._packs.open_for(backend.name)
        return backend.unreported()

    def _open(self, backend: Backend) -> None:
        if backend in self._opening:
            raise BackendError(
                f"[loader] backend {backend.name!r} is asked for while it is being opened; "
                "its module must not use its own device when it is imported"
            )
        started = time.perf_counter()
        self._opening.add(backend)
        try:
            self._settle(backend)
        finally:
            self._opening.discard(backend)
            backend.seconds = time.perf_counter() - started

    def _settle(self, backend: Backend) -> None:
        def open_it() -> str:
            name, found, backend.search = self._locate(backend)
            if isinstance(found, str):
                backend.library = found
                return self._opener(name, found, backend.search)
            backend.library = source(found)
            opened: str = found.__dovetail_backend__(name)
            return opened

        backend.settle(open_it)
        if backend.status == "ready":
            points = self._points.get(backend)
            try:
                backend.hint = cleaned(self._absence(backend.name) or (hint(points[0]) if points else ""))
            except Failure as failure:  # its devices work: the hint is for a user who has none
                backend.note(f"{failure.cause}; {failure.cure}")
            for note in self._notes(backend.name):
                backend.note(note)
            self._shadow(backend)
            self._packs.open_for(backend.name)

    def _locate(self, backend: Backend) -> tuple[str, Any, list[str]]:
        """Its name ("": take the plugin's own), its library or Python class, and the folders to search."""
        if backend in self._classes:
            return "", self._classes[backend], []
        if points := self._points.get(backend):
            return backend.name, *locate_only(points)
        if not os.path.isabs(backend.library):
            full = os.path.abspath(backend.library)
            raise Failure(f"{PATHS}: expected absolute paths, got {backend.library!r}", f"write {full}")
        check_file(backend.library, f"correct {backend.origin}")
        if backend.library.endswith(SUFFIX):
            return "", in_file(backend.library, backend.name), []
        return "", backend.library, []

    def _shadow(self, ready: Backend) -> None:
        """A library given by path takes precedence over the wheel of the same name."""
        for other in self._backends:
            covered = other.status == "found" or (other.status == "quarantined" and other.origin != PATHS)
            if other is not ready and other.name == ready.name and covered:
                other.leave_out(f"{ready.library} ({ready.origin}) has taken its name")

    def _ready(self, backend: Backend) -> Backend:
        if backend.status != "ready":
            backend.warned = True
            error = BackendError(backend.explain())
            error.cure = backend.cure
            raise error from backend.error
        return backend

    def _warn(self, messages: list[str]) -> None:
        """Called last, because a filter may turn a warning into an exception: the state must be complete by
        then."""
        messages = [*messages, *self._packs.unreported()]
        if not messages:
            return
        import warnings

        level, frame = 1, sys._getframe()
        while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "dovetail":
            level, frame = level + 1, frame.f_back
        for message in messages:
            warnings.warn(message, BackendWarning, stacklevel=level)

    def _after_fork(self) -> None:
        # A thread that does not exist in the child may have held the lock.
        self._lock = threading.RLock()
        self._opening.clear()
        self._packs.after_fork()


def _without_device(backend: Backend) -> str:
    if backend.hint:
        return f"{backend.name} has none: {backend.hint}"
    return f"{backend.name} finds none of its kind on this machine"


def _name_of(path: str) -> str:
    stem = os.path.basename(path).partition(".")[0]
    return stem.removeprefix("lib").removeprefix("dovetail_") or path
