"""A wheel that is broken in one way: the CPU works, and `dovetail devices` shows the error and its cure."""

import json
import re

import pytest

# A user who does not need the broken device, and then one who does.
USE = """
import json, warnings
import dovetail as dv

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    values = (dv.asarray([1.0, 2.0, 3.0], dtype=dv.float32, device="cpu") + 1.0).tolist()
    names = [d.name for d in dv.devices()]
    dv.devices()
try:
    dv.device("acme")
    error = None
except Exception as e:
    error = [type(e).__name__, str(e)]
again = (dv.asarray([1.0, 2.0], device="cpu") * 2.0).tolist()
print(json.dumps([values, names, [str(w.message) for w in caught], error, again]))
"""

REINSTALL = "reinstall or update dovetail-acme"
REBUILD = "install the dovetail-acme built for dovetail .*, or rebuild it"


def check(site, cause, cure):
    """The CPU works next to the broken wheel, which is explained once, listed, and raises when it is used."""
    values, names, caught, error, again = json.loads(site.python(USE))
    assert (values, again) == ([2.0, 3.0, 4.0], [2.0, 4.0])
    assert "cpu:0" in names and not any(name.startswith("acme") for name in names)
    assert len(caught) == 1, caught
    assert error[0] == "BackendError"
    for text in (caught[0], error[1]):
        assert re.search(cause, text) and re.search(cure, text), text

    listed = site.devices()
    assert [device["device"] for device in listed["devices"]] == site.found()
    (acme,) = [backend for backend in listed["backends"] if backend["name"] == "acme"]
    assert acme["status"] == "quarantined" and acme["distribution"].startswith("dovetail-acme")
    assert re.search(cause, acme["cause"] + acme["cure"]) and re.search(cure, acme["cause"] + acme["cure"]), acme


@pytest.mark.parametrize(
    ("defines", "cause", "cure"),
    [
        pytest.param(["NO_TABLE"], "has no symbol dvt_backend_v1", "DVT_EXPORT", id="no-entry-symbol"),
        pytest.param(["UNDEFINED_SYMBOL"], "acme_driver_symbol_nobody_has", REINSTALL, id="undefined-symbol"),
        pytest.param(["MAJOR=2"], "built for version 2 of the device protocol", REBUILD, id="abi-major"),
        pytest.param(["DRAFT=99"], "built for draft 99 of the device protocol", REBUILD, id="draft"),
        pytest.param(["PROBE_SAYS_NO"], "there is no acme driver 7 on this machine", "provide", id="probe-says-no"),
        pytest.param(["COUNT_FAILS"], "the acme driver is from 1999: update it", "", id="count-fails"),
        pytest.param(["CRASH_IN_CONSTRUCTOR"], "SIGSEGV in its static constructors", REINSTALL, id="constructor"),
        pytest.param(["CRASH_IN_PROBE"], "SIGSEGV in dvt_probe_v1", REINSTALL, id="crash-in-probe"),
        pytest.param(["CRASH_IN_COUNT"], "SIGSEGV in device_count", REINSTALL, id="crash-in-device-count"),
        pytest.param(["EXIT_IN_COUNT"], "exit code 0 in device_count", REINSTALL, id="exit-in-device-count"),
        pytest.param(
            ['NAME="other"'], "registered as 'acme' and calls itself 'other'", "author", id="another-name"
        ),
    ],
)
def test_broken_library(site, plugin, defines, cause, cure):
    site.backend("acme", plugin("libacme.so", *defines))
    check(site, cause, cure)


def test_missing_library(site):
    site.backend("acme", None)
    check(site, r"its library .*libacme\.so does not exist", "pip install --force-reinstall dovetail-acme")


def test_library_that_is_no_library(site, tmp_path):
    library = tmp_path / "libacme.so"
    library.write_text("<html>404</html>")
    site.backend("acme", library)
    check(site, r"libacme\.so: (file too short|invalid ELF header)", REINSTALL)


def test_library_whose_own_library_is_missing(site, plugin, tmp_path):
    plugin("libacmedriver.so", "MAJOR=9")
    library = plugin("libacme.so", flags=(f"-L{tmp_path}", "-Wl,--no-as-needed", "-lacmedriver"))
    (tmp_path / "libacmedriver.so").unlink()
    site.backend("acme", library)
    check(site, r"libacmedriver\.so: cannot open shared object file", "install the library that it needs")


def test_import_that_raises(site):
    site.backend("acme", None, module="raise OSError('no license for acme found')")
    check(site, "importing 'dovetail_acme' raised OSError: no license for acme found", "pip install --upgrade")


def test_import_of_something_absent(site):
    site.backend("acme", None, module="import acme_runtime_that_is_absent")
    check(site, "ModuleNotFoundError: No module named 'acme_runtime_that_is_absent'", "pip install --upgrade")


def test_entry_point_with_a_typo(site, plugin):
    site.backend("acme", plugin("libacme.so"), entry="dovetail_acme:bakend")
    check(site, "has no 'bakend', did you mean 'backend'?", "correct the entry point in dovetail-acme 1.0")


def test_entry_point_without_a_library(site):
    site.backend("acme", None, module="def backend(): return 'libacme.so'")
    check(site, r"leads to a function without \.library", "correct dovetail-acme 1.0")


def test_entry_points_file_that_cannot_be_parsed(site, plugin):
    site.backend("acme", plugin("libacme.so"))
    (file,) = site.packages.glob("dovetail_acme-*/entry_points.txt")
    file.write_text(file.read_text() + "this is no entry point\n")
    check(site, "malformed", "correct dovetail-acme 1.0")


@pytest.mark.parametrize(
    ("file", "content", "cause"),
    [
        ("METADATA", b"", "METADATA is missing or names no wheel"),
        ("entry_points.txt", b"[dovetail.backends]\nacme = \xff\xfe", "entry_points.txt cannot be read: Unicode"),
    ],
)
def test_metadata_that_is_broken(site, plugin, file, content, cause):
    site.backend("acme", plugin("libacme.so"))
    (found,) = site.packages.glob(f"dovetail_acme-*/{file}")
    found.write_bytes(content)
    check(site, cause, "pip install --force-reinstall dovetail-acme")


def test_two_wheels_claim_one_name(site, plugin, wheel):
    library = plugin("libacme.so")
    site.backend("acme", library)
    other = wheel(
        "acme-for-dovetail", {"acme_two.py": "backend = None"}, {"acme": "acme_two:backend"}, version="3.1"
    )
    site.install(other)
    listed = site.devices()
    (acme,) = [backend for backend in listed["backends"] if backend["name"] == "acme"]
    assert acme["distribution"] == "acme-for-dovetail 3.1 and dovetail-acme 1.0"
    assert acme["cure"] == "uninstall all but one: pip uninstall acme-for-dovetail or dovetail-acme"
    error = site.run("-c", "import dovetail; dovetail.device('acme:0')").stderr
    assert "acme-for-dovetail 3.1 and dovetail-acme 1.0" in error and "2 wheels claim its name" in error
    assert site.python("import dovetail; print(dovetail.asarray([1], device='cpu') + 1)").strip() == "[2]"


def test_a_crash_is_not_remembered_as_good(site, plugin):
    """Every process checks again, and a repaired library of the same name is used at once."""
    site.backend("acme", plugin("libacme.so", "CRASH_IN_COUNT"))
    for _ in range(2):
        (acme,) = [backend for backend in site.devices()["backends"] if backend["name"] == "acme"]
        assert acme["status"] == "quarantined"
    repaired = plugin("repaired.so")
    (site.packages / "dovetail_acme/libacme.so").write_bytes(repaired.read_bytes())
    assert "acme:0" in [device["device"] for device in site.devices()["devices"]]
