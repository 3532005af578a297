"""Discovery of kernel packs, with test doubles for libdovetail's openers."""

import os
import sys
import types
import warnings

import pytest
from dovetail.entry_points import BackendError, BackendWarning
from dovetail.entry_points.installed import KERNELS, EntryPoint
from dovetail.entry_points.registry import Registry
from test_entry_points import World, failure


class PackWorld(World):
    def __init__(self, tmp_path, monkeypatch):
        super().__init__(tmp_path, monkeypatch)
        self.packs_opened = []

    def pack(self, name, device="acme", **attributes):
        module = f"pack_{device}_{name}"
        found = types.SimpleNamespace(**{"library": self.plugin(f"lib{name}.so"), **attributes})
        self.monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(pack=found))
        self.points.append(EntryPoint(f"{device}.{name}", f"{module}:pack", f"{name} 1.0", KERNELS))

    def open_pack(self, backend, name, library, search):
        self.packs_opened.append((backend, os.path.basename(library)))
        if (why := self.broken.get(os.path.basename(library))) is not None:
            raise why
        return name or os.path.basename(library).removeprefix("lib").partition(".")[0]

    def registry(self):
        no_notes = {"notes": lambda name: [], "pack_notes": lambda device, name: []}
        return Registry(self.open, self.installed, self.environ, self.open_pack, lambda name: "", **no_notes)


@pytest.fixture
def world(tmp_path, monkeypatch):
    world = PackWorld(tmp_path, monkeypatch)
    world.wheel("acme")
    return world


def status(registry):
    return {(pack.device, pack.name): pack.status for pack in registry.packs()}


def test_they_open_with_their_backend(world):
    world.pack("beta")
    world.pack("alpha")
    world.pack("gamma", "warp")
    registry = world.registry()
    registry.discover()
    assert world.packs_opened == [("acme", "libbeta.so"), ("acme", "libalpha.so")]
    assert status(registry)["warp", "gamma"] == "left out"


def test_the_environment_names_one_that_is_not_there(world):
    world.pack("alpha")
    world.environ["DOVETAIL_KERNELS"] = " alfa , "
    registry = world.registry()
    with pytest.warns(BackendWarning, match=r"DOVETAIL_KERNELS: no kernel pack 'alfa' .*, did you mean 'alpha'\?"):
        registry.discover()
    assert registry.problems() and status(registry) == {("acme", "alpha"): "left out"}
    world.environ["DOVETAIL_KERNELS"] = "0"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world.registry().discover()


def test_a_library_for_a_backend_that_is_not_there(world):
    """The failed pack is not listed."""
    library = world.plugin("libfast.so")
    registry = world.registry()
    with pytest.raises(ValueError, match=r"no backend 'acne' is installed: did you mean 'acme'\?"):
        registry.load_kernels(library, "acne")
    assert registry.packs() == ()


def test_a_library_that_fails_is_opened_once_and_not_warned_of(world):
    library = world.plugin("libfast.so")
    world.broken["libfast.so"] = failure("busy", "wait")
    registry = world.registry()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BackendError, match="busy; wait"):
            registry.load_kernels(library, "acme")
    assert len(world.packs_opened) == 1
    world.broken.clear()
    assert registry.load_kernels(library, "acme").status == "ready"
    assert registry.load_kernels(library, "acme").status == "ready"
    assert len(world.packs_opened) == 2 and len(registry.packs()) == 1


def test_one_name_for_two_backends(world):
    world.wheel("warp")
    world.pack("fast", "acme")
    world.pack("fast", "warp")
    world.pack("slow")
    world.environ["DOVETAIL_KERNELS"] = "0"
    registry = world.registry()
    with pytest.raises(ValueError, match="'fast' is for 'acme' and 'warp': expected device= to name one, got none"):
        registry.load_kernels("fast", None)
    with pytest.raises(ValueError, match="'slow' is for 'acme': expected device= to name one, got 'warp'"):
        registry.load_kernels("slow", "warp")
    assert registry.load_kernels("fast", "warp").device == "warp"
    assert world.packs_opened == [("warp", "libfast.so")]


def test_ctrl_c_while_a_pack_is_opened(world):
    """It is opened at the next use of its backend."""
    world.pack("alpha")
    world.broken["libalpha.so"] = KeyboardInterrupt()
    registry = world.registry()
    with pytest.raises(KeyboardInterrupt):
        registry.discover()
    world.broken.clear()
    assert status(registry) == {("acme", "alpha"): "found"}
    registry.require("acme")
    assert status(registry) == {("acme", "alpha"): "ready"}


def test_a_module_that_loads_its_own_pack(world):
    world.pack("alpha")
    registry = world.registry()
    plain, seen = world.open_pack, []

    def open_again(*args):
        registry.discover()
        try:
            registry.load_kernels("alpha", None)
        except BackendError as error:
            seen.append(str(error))
        return plain(*args)

    registry._packs._opener = open_again
    assert registry.require("acme").status == "ready"
    assert "while it is being opened" in seen[0] and status(registry) == {("acme", "alpha"): "ready"}


class Raises:
    library = ""

    @property
    def ops(self):
        raise OSError("no disk")


@pytest.mark.parametrize(
    ("ops", "cause"),
    [
        (5, "reading .ops of 'pack_acme_alpha:pack' raised TypeError"),
        ([5], "importing 5, its ops, raised AttributeError"),
        ("no_such_module", "importing 'no_such_module', its ops, raised ModuleNotFoundError"),
        (Raises(), "raised OSError: no disk: expected a module's name, or several"),
    ],
    ids=["number", "numbers", "absent", "raises"],
)
def test_invalid_ops_modules(world, monkeypatch, ops, cause):
    world.pack("alpha", ops=ops)
    if isinstance(ops, Raises):
        monkeypatch.setattr(sys.modules["pack_acme_alpha"], "pack", ops)
    with pytest.warns(BackendWarning, match="kernel pack 'alpha'") as caught:
        world.registry().import_ops()
    assert cause in str(caught[0].message)
