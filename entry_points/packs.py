"""Kernel packs: wheels that add rows to the kernel table of another backend."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from .backend import BackendError, Failure, Pack, did_you_mean
from .installed import KERNELS as GROUP
from .installed import EntryPoint, check_file, claims, locate_only, names_a_file
from .settings import AUTOLOAD, KERNELS, NONE, Settings

# (backend, name or "" to take the pack's own, library, folders to search) -> name.
PackOpener = Callable[[str, str, str, list[str]], str]


def open_in_core(backend: str, name: str, library: str, search: list[str]) -> str:
    from dovetail import _core

    return _core.load_kernels(backend, name, library, search)


def notes_in_core(backend: str, name: str) -> list[str]:
    from dovetail import _core

    packs = (pack for b in _core.backends() if b["name"] == backend for pack in b["packs"])
    return next((pack["notes"] for pack in packs if pack["name"] == name), [])


class Packs:
    """The kernel packs found so far. The registry of backends owns it and locks for it."""

    def __init__(self, opener: PackOpener, notes: Callable[[str, str], list[str]]) -> None:
        self._opener = opener
        self._notes = notes
        self._packs: list[Pack] = []
        self._points: dict[Pack, list[EntryPoint]] = {}
        self._opening: set[Pack] = set()

    def all(self) -> tuple[Pack, ...]:
        return tuple(self._packs)

    def points(self) -> dict[Pack, list[EntryPoint]]:
        return self._points

    def read(self, points: Iterable[EntryPoint], settings: Settings) -> None:
        for full_name, found, owners in claims(points, GROUP):
            device, _, name = full_name.partition(".")
            pack = Pack(name or full_name, device, f"entry point {found[0].value}", distribution=owners)
            if not name:
                expected = f"expected the backend's name first, as 'cpu.{device}'"
                pack.quarantine(f"its entry point is called {full_name!r}: {expected}", f"correct {owners}")
            elif not settings.autoload:
                pack.leave_out(f"{AUTOLOAD}={settings.autoload_text}", f"dovetail.load_kernels({name!r}) opens it")
            elif not settings.includes_pack(name):
                pack.leave_out(f"{KERNELS}={settings.kernels_text} does not name it", "add it there")
            self._packs.append(pack)
            self._points[pack] = found

    def unknown(self, settings: Settings) -> list[str]:
        """Messages about names in DOVETAIL_KERNELS that no installed kernel pack has."""
        known = [pack.name for pack in self._packs]
        return [
            f"[loader] {KERNELS}: no kernel pack {name!r} is installed{did_you_mean(name, known)}"
            for name in settings.kernels
            if name not in known and name != NONE
        ]

    def open_for(self, device: str) -> None:
        """Opens those of a backend that is ready. Of several that serve an op, the first by name goes first."""
        for pack in reversed(self._packs):
            if pack.device == device and pack.status == "found" and pack not in self._opening:
                self._open(pack)

    def leave_out_rest(self, devices: set[str]) -> None:
        """Once every backend was found: what is for none of them."""
        for pack in self._packs:
            if pack.status == "found" and pack.device not in devices:
                cure = f"pip install dovetail-{pack.device}"
                pack.leave_out(f"its backend {pack.device!r} is not installed", cure)

    def find(self, name_or_path: str, device: str | None) -> Pack:
        """The pack to open by hand, of which open() takes note; ValueError where there is none."""
        if names_a_file(name_or_path):
            if device is None:
                raise ValueError(
                    f"[load_kernels] {name_or_path!r} is a library: expected device=, the backend that it is for"
                )
            library = os.path.abspath(name_or_path)
            stem = os.path.basename(library).partition(".")[0]
            return self._noted(Pack(stem.removeprefix("lib"), device, "load_kernels", library=library))
        named = [pack for pack in self._packs if pack.name == name_or_path]
        found = [pack for pack in named if device in (None, pack.device)]
        if len(found) == 1:
            return found[0]
        if named:
            devices = " and ".join(repr(pack.device) for pack in named)
            got = "none" if device is None else repr(device)
            expected = f"expected device= to name one, got {got}"
            raise ValueError(f"[load_kernels] kernel pack {name_or_path!r} is for {devices}: {expected}")
        known = did_you_mean(name_or_path, [pack.name for pack in self._packs])
        raise ValueError(f"[load_kernels] no kernel pack {name_or_path!r} is installed{known}")

    def _noted(self, pack: Pack) -> Pack:
        """The pack itself, or that of the same library and device that is there already."""
        same = (p for p in self._packs if p.library == pack.library and p.device == pack.device)
        return next(same, pack) if pack.library else pack

    def open(self, pack: Pack) -> Pack:
        pack = self._noted(pack)
        if pack not in self._packs:
            self._packs.append(pack)
        if pack.status != "ready":
            self._open(pack)
        if pack.status != "ready":
            pack.warned = True
            raise BackendError(pack.explain()) from pack.error
        return pack

    def _open(self, pack: Pack) -> None:
        if pack in self._opening:
            raise BackendError(
                f"[loader] kernel pack {pack.name!r} is asked for while it is being opened; "
                "its module must not load itself when it is imported"
            )
        self._opening.add(pack)
        try:
            pack.settle(lambda: self._opener(pack.device, *self._locate(pack)))
            if pack.status == "ready":
                for note in self._notes(pack.device, pack.name):
                    pack.note(note)
        finally:
            self._opening.discard(pack)

    def after_fork(self) -> None:
        self._opening.clear()

    def _locate(self, pack: Pack) -> tuple[str, str, list[str]]:
        if points := self._points.get(pack):
            library, pack.search = locate_only(points)
            if not isinstance(library, str):
                raise Failure("its entry point leads to a device: expected an object with .library", "")
            pack.library = library
            return pack.name, pack.library, pack.search
        check_file(pack.library, f"correct {pack.origin}")
        return "", pack.library, []

    def unreported(self) -> list[str]:
        return [message for pack in self._packs for message in pack.unreported()]
