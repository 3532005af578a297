"""Kernel packs as real installed wheels: rows of one wheel for another wheel's backend."""

import pytest

SQRT = "import dovetail as dv; print(dv.sqrt(dv.full(4, 9.0)).tolist(), dv.sqrt(dv.full(9, 9.0))[0].item())"
OPS = """
import dovetail
from dovetail.schema import Tensor, dtypes, op

@op(shape="same", dtype="same", dtypes=(dtypes.float32,), reference=lambda x: 2 * x, name="acme.double")
def double(x: Tensor) -> Tensor:
    "2 x."
    return x + x

double = dovetail.register_op(double)
"""


def test_its_rows_go_first(site, pack):
    site.pack("acme_fast", pack("libacme_fast.so"))
    assert site.python(SQRT).split() == "[-1.0, -1.0, -1.0, -1.0] 3.0".split()  # and its query may decline
    listed = site.devices()
    assert [(p["name"], p["status"], p["device"], p["version"]) for p in listed["packs"]] == [
        ("acme_fast", "ready", "cpu", "1.5")
    ]
    assert "+ acme_fast 1.5" in site.run("-m", "dovetail", "devices").stdout
    assert "acme_fast" in site.run("-m", "dovetail", "ops", "-k", "sqrt").stdout


def test_several_packs(site, pack):
    """On an op of both, the first by name is tried first, whatever the order of installation."""
    site.pack("beta", pack("libbeta.so", 'NAME="beta"', "ANSWER=-2"))
    site.pack("alpha", pack("libalpha.so", 'NAME="alpha"', "ANSWER=-3"))
    assert "-3.0" in site.python(SQRT)
    assert "-2.0" in site.python(SQRT, DOVETAIL_KERNELS="beta")
    assert site.python(SQRT, DOVETAIL_KERNELS="0").startswith("[3.0")
    listed = site.devices(DOVETAIL_KERNELS="beta")
    assert {p["name"]: p["status"] for p in listed["packs"]} == {"alpha": "left out", "beta": "ready"}


def test_several_devices_and_packs(site, plugin, pack):
    """Two devices and two packs of four wheels, at once."""
    for name in ("acme", "zeta"):
        site.backend(name, plugin(f"lib{name}.so", f'NAME="{name}"'))
    site.pack("first", pack("libfirst.so", 'NAME="first"'))
    site.pack("second", pack("libsecond.so", 'NAME="second"', "ANSWER=-2"), device="acme")
    listed = site.devices()
    assert [d["device"] for d in listed["devices"]] == site.found("acme:0", "zeta:0")
    assert {(p["name"], p["device"], p["status"]) for p in listed["packs"]} == {
        ("first", "cpu", "ready"), ("second", "acme", "ready"),
    }  # fmt: skip
    code = """
import dovetail as dv
dv.fallback("allow")
for name in ("cpu", "acme", "zeta"):
    print(dv.sqrt(dv.asarray([9.0], device=name))[0].item())
"""
    assert site.python(code).split() == ["-1.0", "-2.0", "-1.0"]  # zeta has none: the cpu runs it


def test_by_hand(site, pack):
    library = pack("libacme_fast.so")
    load = f"import dovetail as dv; dv.load_kernels({str(library)!r}, device='cpu')\n"
    assert "-1.0" in site.python(load + load + SQRT)
    site.pack("acme_fast", library)
    load = "import dovetail as dv; dv.load_kernels('acme_fast')\n"
    assert "-1.0" in site.python(load + SQRT, DOVETAIL_KERNELS="0")
    ended = site.run("-c", "import dovetail as dv; dv.load_kernels('acme_fat')")
    assert "no kernel pack 'acme_fat' is installed, did you mean 'acme_fast'?" in ended.stderr
    ended = site.run("-c", f"import dovetail as dv; dv.load_kernels({str(library)!r})")
    assert "expected device=" in ended.stderr


def test_the_op_of_a_pack_is_listed_and_conforms(site, pack):
    """The pack's op runs by its kernel, is listed, and the suite tests it; without its kernel the decomposition
    runs."""
    site.pack("acme_fast", pack("libacme_fast.so"), module="Backend.ops = 'dovetail_acme_fast.double'\n")
    (site.packages / "dovetail_acme_fast/double.py").write_text(OPS)
    use = "import dovetail as dv; from dovetail_acme_fast.double import double; print(double(dv.ones(2)).tolist())"
    for kernels in ("", "0"):
        assert site.python(use, DOVETAIL_KERNELS=kernels).strip() == "[2.0, 2.0]"
    listed = site.run("-m", "dovetail", "ops", "--device", "cpu", "-k", "acme.double", "--json")
    assert '"native"' in listed.stdout, listed.stderr
    ended = site.run("-m", "dovetail", "conform", "--device", "cpu", "-k", "acme.double")
    assert ended.returncode == 0 and " passed" in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("defines", "cause"),
    [
        (("DRAFT=77",), "built for draft 77 of the device protocol"),
        (("REFUSES",), "written for version 9 of this backend"),
        (("CRASH_IN_CONSTRUCTOR",), "crashed with SIGSEGV in its static constructors"),
        (("CRASH_IN_ENTRY",), "crashed with SIGABRT in dvt_kernels_v1"),
        (("ROWS_NOWHERE",), "crashed with SIGSEGV while its table was read"),
        (("BAD_ROW",), "row 2 of its kernel table 'dvt.sqrt': run is missing"),
        (('NAME="other"',), "registered as 'acme_fast' and calls itself 'other'"),
    ],
    ids=lambda value: value[0].split("=")[0] if isinstance(value, tuple) else "",
)
def test_a_broken_pack_is_quarantined(site, pack, defines, cause):
    """The backend works without it, and `dovetail devices` shows why."""
    site.pack("acme_fast", pack("libacme_fast.so", *defines))
    ended = site.run("-c", SQRT)
    assert ended.stdout.startswith("[3.0") and cause in ended.stderr
    assert "kernel pack 'acme_fast' of dovetail-acme_fast 1.0 is quarantined" in ended.stderr
    listed = site.devices()
    assert [d["device"] for d in listed["devices"]] == site.found()
    assert cause in listed["packs"][0]["cause"]
    ended = site.run("-c", "import dovetail as dv; dv.load_kernels('acme_fast')")
    assert ended.returncode and cause in ended.stderr


def test_an_entry_point_without_a_backend(site, pack):
    site.pack("acme_fast", pack("libacme_fast.so"), entry_name="acme_fast")
    assert "expected the backend's name first, as 'cpu.acme_fast'" in site.devices()["packs"][0]["cause"]


def test_a_pack_for_a_backend_that_is_not_there(site, pack):
    site.pack("acme_fast", pack("libacme_fast.so"), device="warp")
    assert site.python(SQRT).startswith("[3.0")
    assert "its backend 'warp' is not installed" in site.devices()["packs"][0]["cause"]
