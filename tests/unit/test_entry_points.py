"""Discovery and quarantine, with a test double for libdovetail's opener."""

import os
import subprocess
import sys
import threading
import types
import warnings

import pytest
from dovetail.entry_points import BackendError, BackendWarning
from dovetail.entry_points.installed import EntryPoint
from dovetail.entry_points.registry import Registry


class World:
    """Fake installed wheels, plugins and an environment; counts the calls of each."""

    def __init__(self, tmp_path, monkeypatch):
        self.folder, self.monkeypatch = tmp_path, monkeypatch
        self.points, self.environ = [], {}
        self.reads, self.opened = 0, []
        self.broken = {}
        self.absences = {}  # messages of plugins without a device
        self.notes = {}  # errors of plugins that work

    def wheel(self, name, *, value=None, distribution=None, **attributes):
        module = f"wheel_{name}_{len(self.points)}"
        library = self.plugin(f"libdovetail_{name}.so")
        backend = types.SimpleNamespace(**(attributes or {"library": library, "search": [self.folder]}))
        self.monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(backend=backend))
        value = value or f"{module}:backend"
        self.points.append(EntryPoint(name, value, distribution or f"dovetail-{name} 1.0"))

    def plugin(self, file):
        path = self.folder / file
        path.write_bytes(b"")
        return str(path)

    def open(self, name, library, search):
        self.opened.append((name, library, search))
        if (why := self.broken.get(os.path.basename(library))) is not None:
            raise why
        return name or os.path.basename(library).removeprefix("lib").partition(".")[0]

    def installed(self):
        self.reads += 1
        return list(self.points)

    def registry(self):
        return Registry(
            self.open,
            self.installed,
            self.environ,
            absence=lambda name: self.absences.get(name, ""),
            notes=lambda name: self.notes.get(name, []),
        )


@pytest.fixture
def world(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


def failure(cause, cure):
    """The error that libdovetail raises."""
    error = RuntimeError(f"{cause}; {cure}")
    error.cure = cure
    return error


def by_name(registry):
    return {backend.name: backend for backend in registry.backends()}


def test_a_plugins_reason_for_having_no_device_is_shown(world):
    world.wheel("acme")
    world.wheel("late", library=world.plugin("liblate.so"), search=[], hint="buy one")
    world.wheel("silent", library=world.plugin("libsilent.so"), search=[], hint="install its driver")
    world.absences = {"acme": "there is no driver", "late": "the driver is too old"}
    registry = world.registry()
    registry.discover()
    hint = {name: backend.hint for name, backend in by_name(registry).items()}
    assert hint == {"acme": "there is no driver", "late": "the driver is too old", "silent": "install its driver"}


def test_opens_everything_once(world):
    world.wheel("acme")
    world.wheel("zeta")
    registry = world.registry()
    assert (registry.backends(), world.reads) == ((), 0)
    registry.discover()
    registry.discover()
    assert world.reads == 1
    assert [name for name, _, _ in world.opened] == ["acme", "zeta"]
    assert world.opened[0][2] == [str(world.folder)]
    assert {b.status for b in registry.backends()} == {"ready"}


def test_opening_one_device_opens_no_other(world):
    world.wheel("acme")
    world.wheel("zeta")
    registry = world.registry()
    assert registry.names() == ("acme", "zeta")
    registry.discover("zeta")
    assert registry.require("zeta").status == "ready"
    assert [name for name, _, _ in world.opened] == ["zeta"]
    assert by_name(registry)["acme"].status == "found"


@pytest.mark.parametrize(
    ("make", "cause", "cure"),
    [
        (
            lambda w: w.wheel("bad", value="no_such_module_x:backend"),
            "importing 'no_such_module_x' raised Mod",
            "pip in",
        ),
        (lambda w: w.wheel("bad", value="not a module"), "malformed", "correct dovetail-bad 1.0"),
        (lambda w: w.wheel("bad", value="os:pth"), "'os' has no 'pth', did you mean 'path'?", "correct the entry"),
        (lambda w: w.wheel("bad", lib="x"), "without .library", "correct dovetail-bad"),
        (lambda w: w.wheel("bad", library="x.so"), "expected an absolute path, got 'x.so'", "correct dovetail-bad"),
        (lambda w: w.wheel("bad", library=None), "expected an absolute path, got None", "correct dovetail-bad"),
        (lambda w: w.wheel("bad", library="/nowhere/x.so"), "/nowhere/x.so does not exist", "--force-reinstall"),
        (lambda w: w.wheel("bad", library="/bin/sh", search="/tmp"), "expected a list of folders", "correct"),
        (
            lambda w: (
                w.wheel("bad"),
                w.broken.update({"libdovetail_bad.so": failure("draft 2", "rebuild it")}),
            ),
            "draft 2",
            "rebuild it",
        ),
        (lambda w: (w.wheel("bad"), w.broken.update({"libdovetail_bad.so": KeyError("k")})), "KeyError: 'k'", ""),
    ],
)
def test_a_failure_is_warned_about_once_and_raised_on_use(world, make, cause, cure):
    make(world)
    world.wheel("good")
    registry = world.registry()
    with pytest.warns(BackendWarning) as caught:
        registry.discover()
    assert len(caught) == 1 and cause in str(caught[0].message)
    bad = by_name(registry)["bad"]
    assert bad.status == "quarantined" and cause in bad.cause and cure in bad.cure
    assert bad.as_dict()["cause"] == bad.cause
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registry.discover()
        assert registry.require("good").status == "ready"
        with pytest.raises(BackendError) as raised:
            registry.require("bad")
    assert cause in str(raised.value) and cure in str(raised.value)


def test_asking_for_a_broken_device_raises_without_a_warning(world):
    world.wheel("bad", library="/nowhere/x.so")
    registry = world.registry()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BackendError, match="does not exist"):
            registry.require("bad")
        registry.discover()


def test_an_import_that_exits_is_a_failure_too(world):
    (world.folder / "exits_at_import.py").write_text("import sys; sys.exit(3)")
    world.monkeypatch.syspath_prepend(world.folder)
    world.wheel("bad", value="exits_at_import:backend")
    registry = world.registry()
    with pytest.raises(BackendError, match="SystemExit: 3"):
        registry.require("bad")


class Panic(BaseException):
    """Rust's modules and pytest's outcomes raise it: a BaseException, not an Exception."""


class Mute(Exception):
    def __str__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize("error", [Panic("rust"), Mute(), GeneratorExit("odd")])
def test_odd_exceptions_at_import_cost_one_backend(world, error):
    class Module(types.ModuleType):
        def __getattr__(self, name):
            raise error

    world.monkeypatch.setitem(sys.modules, "odd_module", Module("odd_module"))
    world.wheel("bad", value="odd_module:backend")
    world.wheel("good")
    registry = world.registry()
    with pytest.warns(BackendWarning, match=f"'bad' .* quarantined: .*{type(error).__name__}"):
        registry.discover()
    assert registry.require("good").status == "ready"


def test_ctrl_c_at_import_stops_the_program_and_nothing_else(world):
    world.wheel("acme")
    world.broken["libdovetail_acme.so"] = KeyboardInterrupt()
    registry = world.registry()
    with pytest.raises(KeyboardInterrupt):
        registry.discover()
    world.broken.clear()
    registry.discover()
    assert by_name(registry)["acme"].status == "ready"


def test_a_hint_that_raises_is_reported(world):
    class Hint:
        def __str__(self):
            raise ZeroDivisionError("no hint")

    world.wheel("acme", library=world.plugin("libacme.so"), hint=Hint())
    world.wheel("good")
    registry = world.registry()
    with pytest.warns(BackendWarning, match=r"'acme': reading .hint of .* raised ZeroDivisionError: no hint"):
        registry.discover()
    assert {backend.status for backend in registry.backends()} == {"ready"}


def test_a_cure_is_not_guessed_from_the_text(world):
    world.wheel("bad")
    world.broken["libdovetail_bad.so"] = RuntimeError("CUDA error 999; driver says: retry")
    with pytest.raises(BackendError) as raised:
        world.registry().require("bad")
    assert raised.value.cure == "" and "999; driver says: retry" in str(raised.value)
    world.broken["libdovetail_bad.so"] = failure("error 999; driver says: retry", "pip install it; restart")
    with pytest.raises(BackendError) as raised:
        world.registry().require("bad")
    assert raised.value.cure == "pip install it; restart"


def test_errors_of_a_working_backend_are_one_warning(world):
    world.wheel("acme")
    world.notes["acme"] = ["its row \033[31m is odd"]
    registry = world.registry()
    with pytest.warns(BackendWarning, match=r"\[loader\] backend 'acme': its row \?\[31m is odd") as caught:
        registry.require("acme")
        registry.discover()
    assert len(caught) == 1
    assert by_name(registry)["acme"].as_dict()["notes"] == ["its row ?[31m is odd"]


def test_texts_are_fit_for_a_terminal(world):
    world.wheel("bad")
    world.broken["libdovetail_bad.so"] = failure("\033]0;title\a \x9b red" + "x" * 5000, "")
    with pytest.raises(BackendError) as raised:
        world.registry().require("bad")
    text = str(raised.value)
    assert "?]0;title? ? red" in text and not any(c in text for c in "\033\a\x9b") and len(text) < 4300


def test_an_entry_point_twice_and_with_extras(world):
    world.wheel("acme", library=world.plugin("libacme.so"))
    world.points[0].value += " [fast, small]"
    assert world.registry().require("acme").status == "ready"
    world.wheel("acme", library=world.plugin("libother.so"))
    with pytest.raises(
        BackendError, match=r"its wheel declares it more than once: .* and .*; correct dovetail-acme"
    ):
        world.registry().require("acme")


def test_warnings_as_errors_leave_everything_settled(world):
    world.wheel("bad", library="/nowhere/x.so")
    world.wheel("good")
    registry = world.registry()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BackendWarning):
            registry.discover()
        registry.discover()
    assert {n: b.status for n, b in by_name(registry).items()} == {"bad": "quarantined", "good": "ready"}


def test_two_wheels_with_one_name(world):
    world.wheel("acme", distribution="dovetail-acme 1.0")
    world.wheel("acme", distribution="acme-for-dovetail 2.0")
    world.wheel("good")
    registry = world.registry()
    with pytest.raises(BackendError) as raised:
        registry.require("acme")
    assert "acme-for-dovetail 2.0 and dovetail-acme 1.0" in str(raised.value)
    assert "pip uninstall acme-for-dovetail or dovetail-acme" in str(raised.value)
    with pytest.raises(BackendError):
        registry.load_backend("acme")
    assert registry.require("good").status == "ready"


@pytest.mark.parametrize("off", ["0", "off", "False", "no"])
def test_autoload_off(world, off):
    world.environ["DOVETAIL_BACKEND_AUTOLOAD"] = off
    world.wheel("acme")
    registry = world.registry()
    registry.discover()
    assert (registry.names(), world.reads, world.opened) == ((), 0, [])
    with pytest.raises(ValueError, match=f"AUTOLOAD={off}, so none was discovered; dovetail.load_backend"):
        registry.require("acme")
    assert registry.load_backend("acme").status == "ready"
    assert registry.require("acme").status == "ready"


def test_autoload_misspelled(world):
    world.environ["DOVETAIL_BACKEND_AUTOLOAD"] = "nope"
    world.wheel("acme")
    registry = world.registry()
    with pytest.warns(BackendWarning, match="expected 0 or 1, got 'nope'"):
        registry.discover()
    assert by_name(registry)["acme"].status == "ready"


def test_only_some(world):
    world.environ["DOVETAIL_BACKENDS"] = "acme, zetta"
    world.wheel("acme")
    world.wheel("zeta")
    registry = world.registry()
    with pytest.warns(BackendWarning, match="no backend 'zetta' is installed, did you mean 'zeta'"):
        registry.discover()
    assert [name for name, _, _ in world.opened] == ["acme"]
    with pytest.raises(ValueError, match="DOVETAIL_BACKENDS=acme, zetta does not name it; add it there"):
        registry.require("zeta")


def test_libraries_by_path(world):
    first, second = world.plugin("libone.so"), world.plugin("libtwo.so")
    world.environ["DOVETAIL_BACKEND_PATH"] = f"{first}:{second}"
    registry = world.registry()
    assert registry.require("one").library == first
    registry.discover()
    assert sorted(world.opened) == [("", first, []), ("", second, [])]


def test_a_path_must_be_absolute_and_exist(world):
    world.environ["DOVETAIL_BACKEND_PATH"] = "libone.so:/nowhere/libtwo.so"
    with pytest.warns(BackendWarning) as caught:
        world.registry().discover()
    texts = [str(warning.message) for warning in caught]
    assert f"got 'libone.so'; write {os.path.abspath('libone.so')}" in texts[0] and "does not exist" in texts[1]


def test_a_wheel_does_not_hide_that_a_path_is_relative(world):
    world.wheel("one")
    world.environ["DOVETAIL_BACKEND_PATH"] = "libone.so"
    registry = world.registry()
    with pytest.warns(BackendWarning, match="expected absolute paths, got 'libone.so'"):
        registry.discover()
    assert [b.status for b in registry.backends()] == ["quarantined", "ready"]


def test_a_library_by_path_stands_in_for_the_wheel(world):
    world.wheel("one")
    path = world.plugin("libone.so")
    world.environ["DOVETAIL_BACKEND_PATH"] = path
    registry = world.registry()
    registry.discover()
    assert registry.require("one").library == path
    assert [b.status for b in registry.backends()] == ["ready", "left out"]


def test_load_backend(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = world.plugin("libnew.so")
    registry = world.registry()
    assert registry.load_backend("./libnew.so").library == path
    assert registry.load_backend(path).name == "new"
    assert len(world.opened) == 1
    with pytest.raises(BackendError, match="does not exist"):
        registry.load_backend("/nowhere/libx.so")


def test_load_backend_tries_again(world):
    world.wheel("acme")
    world.broken["libdovetail_acme.so"] = failure("busy", "wait")
    registry = world.registry()
    with pytest.raises(BackendError, match="busy; wait"):
        registry.load_backend("acme")
    world.broken.clear()
    assert registry.load_backend("acme").status == "ready"
    assert registry.require("acme").cause == ""


def test_unknown_name(world):
    with pytest.raises(
        ValueError, match=r"no backend 'cpu' is installed \(none is installed\); pip install dovetail-cpu"
    ):
        world.registry().require("cpu")
    world.wheel("acme")
    with pytest.raises(ValueError, match=r"'acne' is installed: did you mean 'acme'.* pip install dovetail-acne"):
        world.registry().require("acne")
    with pytest.raises(ValueError, match=r"no backend 'ACME': .*, did you mean 'acme'"):
        world.registry().require("ACME")
    with pytest.raises(
        ValueError, match=r"'big_chip' is installed \(installed: acme\); pip install dovetail-big-chip"
    ):
        world.registry().load_backend("big_chip")
    with pytest.raises(
        ValueError, match="no backend 'Q x': expected lower-case letters, digits and _; installed: acme"
    ):
        world.registry().load_backend("Q x")
    world.wheel("cpu")
    with pytest.raises(ValueError, match=r"no backend 'gpu', which is a kind of device: .*; installed: acme, cpu"):
        world.registry().require("gpu")
    with pytest.raises(
        ValueError, match=r"'cuda' is installed \(installed: acme, cpu\); pip install dovetail-cuda"
    ):
        world.registry().require("cuda")


def test_a_variable_that_is_misspelt(world):
    world.environ |= {"DOVETAIL_BACKEND": "acme", "DOVETAIL_ACME_FAULT": "none", "DOVETAIL_DEVICE": "acme"}
    with pytest.warns(
        BackendWarning, match="nothing reads DOVETAIL_BACKEND, did you mean DOVETAIL_BACKENDS?"
    ) as caught:
        world.registry().discover()
    assert len(caught) == 1


def test_threads_open_once(world):
    for name in ("acme", "bad", "zeta"):
        world.wheel(name)
    registry = world.registry()
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        registry.discover()
        registry.require("acme")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert world.reads == 1 and len(world.opened) == 3


def test_a_module_that_uses_its_own_device(world):
    world.wheel("acme")
    registry = world.registry()
    plain = world.open
    seen = []

    def open_again(name, library, search):
        registry.discover()  # returns: all others are open
        try:
            registry.require("acme")
        except BackendError as error:
            seen.append(str(error))
        return plain(name, library, search)

    registry._opener = open_again
    assert registry.require("acme").status == "ready"
    assert "while it is being opened" in seen[0]


def test_why_there_is_no_device(world):
    assert world.registry().why_none() == "no device is installed: pip install dovetail-cpu"
    world.environ["DOVETAIL_BACKEND_AUTOLOAD"] = "0"
    assert "DOVETAIL_BACKEND_AUTOLOAD=0; dovetail.load_backend() opens" in world.registry().why_none()
    world.environ.clear()
    world.wheel("acme")
    world.environ["DOVETAIL_BACKENDS"] = "other"
    registry = world.registry()
    with pytest.warns(BackendWarning):
        registry.discover()
    assert "'acme' of dovetail-acme 1.0 is left out: DOVETAIL_BACKENDS=other" in registry.why_none()
    world.environ.clear()
    registry = world.registry()
    registry.discover()
    assert registry.why_none() == "no device can be used: acme finds none of its kind on this machine"
    world.absences["acme"] = "there is no driver"
    registry = world.registry()
    registry.discover()
    assert registry.why_none() == "no device can be used: acme has none: there is no driver"


def test_variables_of_the_runtime_report_what_they_expected(tmp_path):
    switches = ("DOVETAIL_PACKING", "DOVETAIL_POISON_CALLS", "DOVETAIL_GUARD_MEMORY")
    numbers = ("DOVETAIL_PROBE_TIMEOUT", "DOVETAIL_NUM_THREADS")
    every = [*switches, *numbers, "DOVETAIL_EXIT_TIMEOUT"]
    environ = os.environ | dict.fromkeys(every, "may\033be") | {"XDG_CACHE_HOME": str(tmp_path)}
    code = "import dovetail; dovetail.ones(3); dovetail.devices(); dovetail._core.num_threads()"
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=120, check=True
    )
    for name in switches:
        assert f"{name} is ignored: expected 0 or 1, got 'may?be'; correct it or unset {name}" in ended.stderr
    for name in numbers:
        assert f"{name} is ignored: expected a whole number from 1 to " in ended.stderr
    name = "DOVETAIL_EXIT_TIMEOUT"  # read at the end, once for all devices
    expected = f"{name} is ignored: expected seconds from 0 to 1000000, got 'may?be'; correct it or unset {name}"
    assert ended.stderr.count(expected) == 1 and "\033" not in ended.stderr
