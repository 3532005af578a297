"""The outer form of a package: a .tgz of a few plain files. The same content always gives the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from . import Refused

MANIFEST = "MANIFEST"
LOG, RESULTS, STATEMENT, STATEMENT_TEXT, WHEELS = MEMBERS = (
    "log.txt",
    "results.json",
    "statement.toml",
    "statement.md",
    "wheels.json",
)
MOST_BYTES = 32 << 20  # of the file; a full run takes about 2 MB
# Bytes of each member: at least twice the size after an L2 run with many failures.
MOST = {
    LOG: 8 << 20,
    RESULTS: 32 << 20,
    STATEMENT: 1 << 20,
    STATEMENT_TEXT: 1 << 20,
    WHEELS: 4 << 20,
    MANIFEST: 1 << 10,
}
MOST_CONTENT = sum(MOST.values()) + (1 << 16)  # unpacked, headers included
GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"  # no name, no time


def pack(members: Mapping[str, bytes], mtime: int) -> bytes:
    """`mtime`: seconds since 1970, for every member."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=out, mtime=0) as compressed:
        compressed.write(_tar({**members, MANIFEST: manifest(members)}, mtime))
    return out.getvalue()


def manifest(members: Mapping[str, bytes]) -> bytes:
    """The manifest, in the form that sha256sum writes and reads."""
    return "".join(f"{hashlib.sha256(members[n]).hexdigest()}  {n}\n" for n in sorted(members)).encode()


def _tar(members: Mapping[str, bytes], mtime: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(members):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(members[name]), mtime
            tar.addfile(member, io.BytesIO(members[name]))
    return out.getvalue()


def read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise Refused(f"too large: more than {MOST_BYTES >> 20} MiB")
    return data


def unpack(data: bytes) -> tuple[dict[str, bytes], int]:
    """The members, complete and matching the manifest, and their time. Writes no files."""
    tar = _decompressed(data)
    found: dict[str, bytes] = {}
    mtime = -1
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as archive:
            for member in archive:
                content = archive.extractfile(_checked(member, found, len(tar)))
                assert content
                found[member.name], mtime = content.read(), int(member.mtime)
    except (tarfile.TarError, ValueError, OverflowError) as error:
        raise Refused(f"not a tar archive: {error}") from error
    for name in sorted({*MEMBERS, MANIFEST} - set(found)):
        raise Refused(f"{name} is missing")
    _check_manifest(found)
    if not 0 <= mtime < 8**11 or tar != _tar(found, mtime):  # fits into the header
        raise Refused("its members are right, but something else was changed: a name, time or mode")
    del found[MANIFEST]
    return found, mtime


def _decompressed(data: bytes) -> bytes:
    if data[: len(GZIP_HEADER)] != GZIP_HEADER:
        cure = "send the file as it was written"
        raise Refused(f"not a package of `dovetail conform --package`: its gzip header is another: {cure}")
    unzip = zlib.decompressobj(wbits=31)
    try:
        tar = unzip.decompress(data, MOST_CONTENT + 1)
    except zlib.error as error:
        raise Refused(f"damaged: {error}") from error
    if len(tar) > MOST_CONTENT:
        raise Refused(f"too large: unpacks to more than {MOST_CONTENT >> 20} MiB")
    if not unzip.eof:
        raise Refused("truncated: its end is missing")
    if unzip.unused_data:
        raise Refused(f"{len(unzip.unused_data)} bytes follow its end")
    return tar


def _checked(member: tarfile.TarInfo, found: Mapping[str, bytes], size: int) -> tarfile.TarInfo:
    name = member.name
    if name.startswith("/") or ".." in name.split("/"):
        raise Refused(f"member {name!r} leads out of the archive")
    if not member.isreg() or member.issparse():
        raise Refused(f"member {name!r} is not a plain file")
    if name not in (*MEMBERS, MANIFEST):
        raise Refused(f"member {name!r} does not belong into it")
    if name in found:
        raise Refused(f"member {name!r} is there twice")
    if member.size > size:
        raise Refused(f"member {name!r} is truncated")
    if member.size > MOST[name]:
        raise Refused(f"member {name!r} is too large: {member.size:,} bytes, expected at most {MOST[name]:,}")
    return member


def _check_manifest(found: Mapping[str, bytes]) -> None:
    rest = {name: content for name, content in found.items() if name != MANIFEST}
    expected = manifest(rest)
    if found[MANIFEST] == expected:
        return
    stated, right = found[MANIFEST].splitlines(), expected.splitlines()
    for line, name in zip(right, sorted(rest)):
        if line not in stated:
            raise Refused(f"{name} was changed: its SHA-256 is not the one in {MANIFEST}")
    raise Refused(f"{MANIFEST} names what is not there")
