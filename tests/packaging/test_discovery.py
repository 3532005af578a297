"""The cost and the look-ups of importing, and the variables of discovery, with real installed wheels."""

import json

import pytest

# Record every file opened, module imported and process started from here on.
WATCH = """
import json, sys
seen = []
def watch(event, args):
    if event == "open" and isinstance(args[0], str):
        seen.append(["open", args[0]])
    elif event == "import":
        seen.append(["import", args[0]])
    elif event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "ctypes.dlopen"):
        seen.append(["run", event])
sys.addaudithook(watch)
"""


@pytest.fixture
def three(site, plugin):
    for name in ("acme", "beta", "zeta"):
        site.backend(name, plugin(f"lib{name}.so", f'NAME="{name}"'))
    return site


def test_import_looks_nothing_up(three):
    code = WATCH + "import dovetail\nprint(json.dumps([seen, sorted(sys.modules), open('/proc/self/maps').read()]))"
    seen, modules, maps = json.loads(three.python(code))
    names = [name for kind, name in seen if kind == "import"]
    assert "dovetail" in names  # checks that the recording works
    for module in ("importlib_metadata", "importlib.metadata", "click", "rich", "dovetail_cpu", "dovetail_acme"):
        assert module not in names and module not in modules
    for kind, what in seen:
        assert kind != "run", what
        assert "dist-info" not in what and "entry_points.txt" not in what and "libacme" not in what, what
    for library in ("libacme", "libbeta", "libzeta", "libdovetail_cpu"):
        assert library not in maps
    found = json.loads(three.python(WATCH + "import dovetail; dovetail.devices(); print(json.dumps(seen))"))
    assert any("entry_points.txt" in str(name) for _, name in found)  # discovery is recorded


def test_a_library_path_does_not_replace_the_runtime(site):
    """LD_LIBRARY_PATH goes before DT_RUNPATH, and after DT_RPATH."""
    (site.folder / "libdovetail.so").write_bytes(b"no library")
    ended = site.run("-c", "import dovetail; print(dovetail._core)", LD_LIBRARY_PATH=str(site.folder))
    assert ended.returncode == 0, ended.stderr


def test_first_need_opens_all(three):
    names = json.loads(
        three.python("import dovetail, json; print(json.dumps([d.name for d in dovetail.devices()]))")
    )
    assert names == three.found("acme:0", "beta:0", "zeta:0")


def test_one_device_by_name_opens_only_its_backend(three):
    code = "import dovetail; dovetail.device('zeta:0'); print(open('/proc/self/maps').read())"
    maps = three.python(code)
    assert "libzeta" in maps and "libacme" not in maps and "libdovetail_cpu" not in maps


def test_autoload_off(three):
    code = """
import dovetail as dv
assert dv.devices() == []
try:
    dv.device("acme")
except ValueError as error:
    print(error)
print([d.name for d in dv.load_backend("acme")], [d.name for d in dv.devices()])
"""
    first, second = three.python(code, DOVETAIL_BACKEND_AUTOLOAD="0").splitlines()
    assert "DOVETAIL_BACKEND_AUTOLOAD=0" in first and "load_backend('acme')" in first
    assert second == "['acme:0'] ['acme:0']"


def test_only_some(three):
    ended = three.run(
        "-c", "import dovetail as dv; print([d.name for d in dv.devices()])", DOVETAIL_BACKENDS="cpu,acme,zetta"
    )
    assert ended.stdout.strip() == "['acme:0', 'cpu:0']"
    assert "no backend 'zetta' is installed, did you mean 'zeta'?" in ended.stderr
    listed = three.devices(DOVETAIL_BACKENDS="cpu,acme,zetta")
    statuses = {b["name"]: b["status"] for b in listed["backends"]}
    assert {name for name, status in statuses.items() if status == "ready"} == {"acme", "cpu"}
    assert {status for name, status in statuses.items() if name not in ("acme", "cpu")} == {"left out"}
    assert "zetta" in listed["problems"][0]


def test_libraries_without_a_wheel(site, plugin):
    first, second = plugin("libone.so", 'NAME="one"'), plugin("whatever.so", 'NAME="two"', "DEVICES=2")
    code = "import dovetail as dv; print(dv.device('two:1'), [d.name for d in dv.devices()])"
    out = site.python(code, DOVETAIL_BACKEND_PATH=f"{first}:{second}")
    assert out.strip().startswith("two:1") and all(name in out for name in ("'one:0'", "'two:0'", "'cpu:0'"))


def test_load_backend_by_path(site, plugin):
    library = plugin("libone.so", 'NAME="one"')
    code = f"import dovetail as dv; print([d.name for d in dv.load_backend({str(library)!r})])"
    assert site.python(code).strip() == "['one:0']"


def test_a_development_build_stands_in_for_the_wheel(site, plugin):
    site.backend("acme", plugin("libacme.so"))
    mine = plugin("mine.so", "DEVICES=3")
    listed = site.devices(DOVETAIL_BACKEND_PATH=str(mine))
    assert [d["device"] for d in listed["devices"] if d["backend"] == "acme"] == ["acme:0", "acme:1", "acme:2"]
    assert sorted(b["status"] for b in listed["backends"] if b["name"] == "acme") == ["left out", "ready"]


@pytest.mark.parametrize("devices", [0, 4])
def test_any_number_of_devices(site, plugin, devices):
    site.backend("acme", plugin("libacme.so", f"DEVICES={devices}"))
    listed = site.devices()
    assert sum(device["backend"] == "acme" for device in listed["devices"]) == devices


def test_unknown_device(three):
    ended = three.run("-c", "import dovetail; dovetail.device('acne:0')")
    assert "did you mean 'acme'?" in ended.stderr
    ended = three.run("-m", "dovetail", "ops", "--device", "acne")
    assert ended.returncode == 3 and "did you mean 'acme'?" in ended.stderr
