"""Submission packages as bytes: every change of the archive is found, and a hostile one does no harm."""

import gzip
import io
import random
import tarfile

import pytest
from conformance_packages import assembled, checked, compressed, made, refused
from dovetail_conformance.submission import Refused, archive


@pytest.fixture(scope="module")
def genuine():
    return assembled(made())


def test_any_changed_byte_is_noticed(tmp_path, genuine):
    """Except where a changed bit of the compressed form decompresses to the same bytes."""
    rng = random.Random(0)
    places = [*range(10), *rng.sample(range(10, len(genuine)), 300), *range(len(genuine) - 8, len(genuine))]
    content = gzip.decompress(genuine)
    for place in places:
        data = bytearray(genuine)
        data[place] ^= 1 << rng.randrange(8)
        try:
            checked(tmp_path, bytes(data))
        except Refused:
            continue
        assert place >= 10 and gzip.decompress(bytes(data)) == content, place


def test_any_changed_byte_of_the_tar_is_noticed(tmp_path, genuine):
    """Compressed anew, so that gzip's checksum is right."""
    rng = random.Random(1)
    tar = gzip.decompress(genuine)
    headers = [i for i in range(0, len(tar), 512) if tar[i + 257 : i + 262] == b"ustar"]
    assert len(headers) == 6
    places = [h + rng.randrange(512) for h in headers for _ in range(12)] + rng.sample(range(len(tar)), 100)
    for place in places:
        data = bytearray(tar)
        data[place] ^= 1 << rng.randrange(8)
        refused(tmp_path, compressed(bytes(data)), ".")


def test_any_missing_end_is_noticed(tmp_path, genuine):
    for end in {0, 1, 9, 10, 11, *range(20, len(genuine), len(genuine) // 40), len(genuine) - 1}:
        refused(tmp_path, genuine[:end], "truncated|another")


def hostile(change):
    """A tar file of the genuine members, written by another program."""

    def make(genuine):
        found, mtime = archive.unpack(genuine)
        found["MANIFEST"] = archive.manifest(found)
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for name in sorted(found):
                info = tarfile.TarInfo(name)
                info.size, info.mtime = len(found[name]), mtime
                change(tar, info, found)
        return compressed(out.getvalue())

    return make


def put(tar, info, found, content=None):
    info.size = len(found[info.name] if content is None else content)
    tar.addfile(info, io.BytesIO(found[info.name] if content is None else content))


def add(name, **fields):
    def change(tar, info, found):
        put(tar, info, found)
        if info.name == "log.txt":
            extra = tarfile.TarInfo(name)
            for field, value in fields.items():
                setattr(extra, field, value)
            tar.addfile(extra)

    return hostile(change)


def alter(**fields):
    def change(tar, info, found):
        for field, value in fields.items():
            setattr(info, field, value)
        tar.addfile(info, io.BytesIO(found[info.name]) if info.isreg() else None)

    return hostile(change)


def later(genuine):
    """A time that GNU tar can write and that does not fit into USTAR."""
    tar = bytearray(gzip.decompress(genuine))
    for at in [i for i in range(0, len(tar), 512) if tar[i + 257 : i + 262] == b"ustar"]:
        info = tarfile.TarInfo.frombuf(bytes(tar[at : at + 512]), "utf-8", "strict")
        info.mtime = 8**11
        tar[at : at + 512] = info.tobuf(tarfile.GNU_FORMAT)
    return compressed(bytes(tar))


def drop(name):
    return hostile(lambda tar, info, found: None if info.name == name else put(tar, info, found))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (hostile(put), None),
        (add("../../outside"), "leads out"),
        (add("/etc/passwd"), "leads out"),
        (add("log.txt"), "twice"),
        (add("more.txt"), "does not belong"),
        (add("a_link", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "not a plain file"),
        (add("log.txt", type=tarfile.LNKTYPE, linkname="results.json"), "not a plain file"),
        (add("folder", type=tarfile.DIRTYPE), "not a plain file"),
        (add("pipe", type=tarfile.FIFOTYPE), "not a plain file"),
        (alter(type=tarfile.SYMTYPE, size=0, linkname="log.txt"), "not a plain file"),
        (alter(uname="somebody"), "name, time or mode"),
        (alter(mode=0o755), "name, time or mode"),
        (later, "name, time or mode"),
        *((drop(name), f"{name} is missing") for name in (*archive.MEMBERS, archive.MANIFEST)),
        (lambda g: g + b"more", "4 bytes follow"),
        (lambda g: g + g, "bytes follow"),
        (lambda g: compressed(gzip.decompress(g) + bytes(512)), "name, time or mode"),
        (lambda g: compressed(b""), "is missing|not a tar"),
        (lambda g: compressed(b"no tar at all" * 99), "not a tar"),
        (lambda g: b"PK" + g, "another"),
        (lambda g: gzip.compress(gzip.decompress(g), mtime=1), "another"),
    ],
)
def test_hostile_archives(tmp_path, genuine, make, expected):
    data = make(genuine)
    if expected is None:  # the base of the others is valid
        checked(tmp_path, data)
    else:
        refused(tmp_path, data, expected)
    assert [p.name for p in tmp_path.iterdir()] == ["p.tgz"]


def test_bombs(tmp_path, genuine, monkeypatch):
    monkeypatch.setattr(archive, "MOST_CONTENT", 1 << 20)
    refused(tmp_path, compressed(bytes(2 << 20)), "unpacks to more than 1 MiB")
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 10)
    refused(tmp_path, genuine, "too large: more than")


def test_a_member_that_claims_to_be_larger_than_all_of_it(tmp_path, genuine):
    tar = bytearray(gzip.decompress(genuine))
    tar[124:135] = b"77777777777"
    tar[148:156] = b" " * 8
    tar[148:155] = f"{sum(tar[:512]):06o}\0".encode()
    refused(tmp_path, compressed(bytes(tar)), "truncated|not a tar")
