"""The installed software: the files of each wheel that took part in a run, by their SHA-256."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from dovetail import entry_points

WHEEL, CHANGED, DEVELOPMENT, NO_WHEEL = "wheel", "changed", "development", "no wheel"
SUITE = "dovetail-conformance"
HOW = {
    WHEEL: "installed from a wheel, its files as they came",
    CHANGED: "installed from a wheel, but files of it were changed since",
    DEVELOPMENT: "in development mode: its files are not those of a wheel",
    NO_WHEEL: "not from a wheel: given by its path",
}


class Wheel(NamedTuple):
    part: str  # "dovetail", "backend cpu", "kernel pack fast"
    name: str  # of the distribution; "" without one
    version: str
    installed: str  # a key of HOW
    archive: str  # SHA-256 of the .whl where the installer noted it
    sha256: str  # of `files`
    files: dict[str, str]  # path in the wheel -> SHA-256 of the file as it is

    @property
    def label(self) -> str:
        """`dovetail-acme 1.2 (backend acme)`"""
        named = f"{self.name} {self.version}".strip()
        return f"{named} ({self.part})" if named and self.name != self.part else named or self.part


def parts(document: dict[str, Any]) -> list[str]:
    """The software that took part in a run, by its results.json."""
    packs = [f"kernel pack {pack.rpartition(' ')[0]}" for pack in document["packs"]]
    return ["dovetail", SUITE, f"backend {document['backend']['name']}", *packs]


def installed(document: dict[str, Any]) -> list[Wheel]:
    """In this process's environment, which the run's workers had too."""
    _, _, backend, *packs = parts(document)
    name = document["backend"]["name"]
    brought = {p.name: p for p in entry_points.packs() if p.device == name}
    known = [b for b in entry_points.backends() if b.status != "left out"]
    # In the order of discovery: a library given by its path goes before the wheel of the same name.
    mine = sorted((b for b in known if b.name == name), key=lambda b: bool(b.distribution))
    by_path = [b for b in known if not b.distribution]
    return [
        _of_distribution("dovetail", "dovetail-runtime", "dovetail"),
        installed_suite(),
        _brought(backend, (mine or by_path or [None])[0]),
        *(_brought(pack, brought.get(pack.removeprefix("kernel pack "))) for pack in packs),
    ]


def installed_suite() -> Wheel:
    return _of_distribution(SUITE, SUITE, __name__.partition(".")[0])


def _brought(part: str, found: entry_points.Backend | None) -> Wheel:
    if found is None or not found.distribution:
        library = Path(found.library) if found and found.library else None
        files = {library.name: _hash(library)} if library and library.is_file() else {}
        return Wheel(part, "", "", NO_WHEEL, "", digest(files), files)
    module = found.origin.removeprefix("entry point ").partition(":")[0].partition(".")[0]
    return _of_distribution(part, found.distribution.partition(" ")[0], module)


def _of_distribution(part: str, name: str, module: str) -> Wheel:
    try:
        dist = distribution(name)
    except PackageNotFoundError:
        return Wheel(part, name, "", DEVELOPMENT, "", digest({}), {})
    recorded = dict(_recorded(dist))
    spec = find_spec(module)
    origin = Path(spec.origin).resolve() if spec and spec.origin else None
    if origin not in {path.resolve() for path, _ in recorded.values()}:
        return Wheel(part, name, dist.version, DEVELOPMENT, "", digest({}), {})
    files = {inside: _hash(path) for inside, (path, _) in recorded.items() if path.is_file()}
    as_they_came = files == {inside: recorded_hash for inside, (_, recorded_hash) in recorded.items()}
    how = WHEEL if as_they_came else CHANGED
    return Wheel(part, name, dist.version, how, _archive(dist), digest(files), files)


def _recorded(dist: Distribution) -> Iterator[tuple[str, tuple[Path, str]]]:
    """The files of the wheel's packages, without the installer's own records."""
    for file in dist.files or ():
        inside = file.as_posix()
        if (
            file.hash
            and file.hash.mode == "sha256"
            and not inside.startswith("../")
            and ".dist-info/" not in inside
        ):
            padded = file.hash.value + "=" * (-len(file.hash.value) % 4)
            yield inside, (Path(str(file.locate())), base64.urlsafe_b64decode(padded).hex())


def _archive(dist: Distribution) -> str:
    noted = json.loads(dist.read_text("direct_url.json") or "{}")
    return str(noted.get("archive_info", {}).get("hashes", {}).get("sha256", ""))


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(files: dict[str, str]) -> str:
    return hashlib.sha256("".join(f"{files[n]}  {n}\n" for n in sorted(files)).encode()).hexdigest()
