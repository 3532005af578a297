"""dovetail.compile: where the search for what a function reads goes: every way, unnamed code, large objects."""

import contextlib
import enum
import functools
import importlib.util
import sys
import warnings
from dataclasses import dataclass, field
from types import SimpleNamespace

import dovetail as dt
import pytest
from compiled_calls import array, same, traces
from dovetail import _captures

pytestmark = pytest.mark.usefixtures("home")


class Holder:
    w = None


def helper(x):
    return x


# ---- what is at several places -----------------------------------------------------------------------------------


class Dropout:
    def __init__(self):
        self.training, self.rate = True, 0.5

    def __call__(self, x):
        return x * self.rate if self.training else x


def layers_that_have_names_too():
    net = SimpleNamespace(first=Dropout(), second=Dropout())
    net.layers = [net.first, net.second]

    def f(x):
        for layer in net.layers:
            x = layer(x)
        return x

    return f, lambda: setattr(net.second, "training", False)


def settings_at_two_places():
    settings = SimpleNamespace(rate=2.0)
    model = SimpleNamespace(settings=settings, layer=SimpleNamespace(own=settings))
    return lambda x: x * model.layer.own.rate, lambda: setattr(settings, "rate", 3.0)


def behind_a_wrapper():
    layer = Dropout()

    @functools.wraps(layer)
    def wrapper(x):
        return layer(x)

    return lambda x: wrapper(x), lambda: setattr(layer, "rate", 3.0)


def behind_single_dispatch():
    settings = SimpleNamespace(rate=2.0)

    @functools.singledispatch
    def scaled(x):
        return x * settings.rate

    return lambda x: scaled(x), lambda: setattr(settings, "rate", 3.0)


def one_function_at_two_places():
    model = SimpleNamespace(first=helper, second=helper)
    return lambda x: model.second(model.first(x)), lambda: setattr(model, "second", lambda x: x + 1)


def a_variable_of_two_functions():
    def make(k):
        return [lambda x: x * k, lambda x: x + k]

    made = make(2.0)
    return lambda x: made[1](made[0](x)), lambda: made.__setitem__(1, make(3.0)[1])


def objects_as_keys():
    one, other = Holder(), Holder()
    held = {one: array(1), other: array(2)}
    return lambda x: x * held[one] - held[other], lambda: held.update({one: held.pop(one)})


def what_keys_hold():
    one = Dropout()
    held = {one: array(1)}

    def f(x):
        for key, value in held.items():
            x = key(x) + value
        return x

    return f, lambda: setattr(one, "rate", 3.0)


PLACES = [
    layers_that_have_names_too, settings_at_two_places, behind_a_wrapper, behind_single_dispatch,
    one_function_at_two_places, a_variable_of_two_functions, objects_as_keys, what_keys_hold,
]  # fmt: skip


@pytest.mark.parametrize("places", PLACES)
def test_what_is_at_several_places_is_looked_at(places):
    f, change = places()
    g = dt.compile(f)
    for _ in range(2):
        same(g(array(3)), f(array(3)))
    assert traces(g) == 1
    change()
    for _ in range(2):
        same(g(array(3)), f(array(3)))
    assert traces(g) == 2


# ---- code that is not named where it runs ------------------------------------------------------------------------


FACTOR = 2.0


class Base:
    training = True

    @property
    def factor(self):
        return FACTOR

    def run(self, x):
        return x * self.factor if self.training else x

    def make(self):
        return SimpleNamespace(rate=self.rate)


class Shifted(Base):
    def run(self, x):
        return super().run(x) + self.shift


class Doubled(Base):
    @property
    def factor(self):
        return super().factor * 2

    def run(self, x):
        return super().run(x) * self.times

    def make(self):
        return super().make()


class Mixed(Shifted, Doubled):
    @dt.compile
    def run(self, x):
        return super().run(x) * super(Shifted, self).make().rate


def test_code_that_super_reaches_is_looked_at(monkeypatch):
    m = Mixed()
    m.shift, m.times, m.rate = 1.0, 2.0, 3.0
    changes = [
        lambda: setattr(m, "shift", array(5)), lambda: setattr(m, "shift", array(6)),
        lambda: setattr(m, "times", 7.0), lambda: setattr(m, "rate", 8.0),
        lambda: monkeypatch.setitem(globals(), "FACTOR", 3.0), lambda: monkeypatch.setattr(Base, "training", False),
    ]  # fmt: skip
    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            same(m.run(array(3)), Mixed.run.__wrapped__(m, array(3)))
    ((_, compiled),) = [p for p in Mixed.run._state.methods.values() if p[0]() is m]
    assert traces(compiled) == 6


class Scaled:
    def __init__(self, settings):
        self.rate = settings.speed


class ScaledTwice(Scaled):
    def again(self, settings, x):
        return x * type(self)(settings).rate * Scaled(settings).rate


@dataclass
class Made:
    rate: float = field(default_factory=lambda: FACTOR)

    def __post_init__(self):
        self.shift = SETTINGS.shift


SETTINGS = SimpleNamespace(shift=1.0)


def test_what_objects_that_the_function_makes_read_is_looked_at(monkeypatch):
    settings = SimpleNamespace(speed=2.0)
    one = ScaledTwice(settings)
    f = dt.compile(lambda x: one.again(settings, x) * Made().rate + Made().shift)
    changes = [
        lambda: setattr(settings, "speed", 3.0), lambda: monkeypatch.setitem(globals(), "FACTOR", 3.0),
        lambda: monkeypatch.setattr(SETTINGS, "shift", 3.0),
    ]  # fmt: skip
    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            same(f(array(3)), f.__wrapped__(array(3)))
    assert traces(f) == 4


class Kind(type):
    rate = 2.0

    def __getitem__(cls, k):
        return cls.shift * k


class Named(metaclass=Kind):
    shift = 1.0


class Mode(enum.Enum):
    FAST = 1

    @property
    def rate(self):
        return FACTOR

    def run(self, x):
        return x * self.scale


def test_code_of_enums_and_metaclasses_is_looked_at(monkeypatch):
    mode = Mode.FAST
    monkeypatch.setattr(Mode.FAST, "scale", 2.0, raising=False)
    f = dt.compile(lambda x: mode.run(x) * mode.rate + Named[2] * Named.rate)
    changes = [
        lambda: setattr(Mode.FAST, "scale", 3.0), lambda: monkeypatch.setitem(globals(), "FACTOR", 3.0),
        lambda: monkeypatch.setattr(Kind, "rate", 3.0), lambda: monkeypatch.setattr(Named, "shift", 3.0),
    ]  # fmt: skip
    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            same(f(array(3)), f.__wrapped__(array(3)))
    assert traces(f) == 5


def test_context_managers_are_looked_at():
    settings = SimpleNamespace(rate=2.0, w=array(1))

    @contextlib.contextmanager
    def scope():
        yield settings.rate, settings.w

    @dt.compile
    def f(x):
        with scope() as (rate, w):
            return x * rate + w

    same(f(array(3)), array(7))
    settings.rate = 3.0
    same(f(array(3)), array(10))
    settings.w = array(2)
    same(f(array(3)), array(11))
    assert traces(f) == 2


def imports_a_module(x):
    import users_package.part
    from users_package import k

    return x * users_package.part.rate + users_package.part.w + k


def imports_names(x):
    from users_package.part import rate, w

    return x * rate + w


def test_modules_that_are_imported_in_a_function_are_looked_at(tmp_path, monkeypatch):
    folder = tmp_path / "users_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "k = 1.0\ndef relative(x):\n    from . import part\n    from .part import w\n    return x * part.rate + w\n"
    )
    (folder / "part.py").write_text("rate = 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    import users_package
    import users_package.part

    users_package.part.w = array(1)
    try:
        for f in (imports_a_module, imports_names, users_package.relative):
            g = dt.compile(f)
            users_package.part.rate, users_package.k = 2.0, 1.0
            for change in ("rate", "w", "k"):
                same(g(array(3)), f(array(3)))
                module = users_package if change == "k" else users_package.part
                setattr(module, change, getattr(module, change) + 1)
            same(g(array(3)), f(array(3)))
            assert traces(g) == 2 + (f is imports_a_module)
    finally:
        for name in ("users_package", "users_package.part"):
            del sys.modules[name]


@pytest.mark.parametrize("name", ["profile.py", "contextlib.py", "numpy/layers.py"])
def test_files_of_the_users_with_names_of_libraries_are_looked_at(name, tmp_path, monkeypatch):
    text = (
        "rate = 2.0\nclass Layer:\n    def run(self, x):\n        return x * rate * self.k\n"
        "layer = Layer()\nlayer.k = 3.0\ndef helper(x):\n    return layer.run(x) + rate\n"
    )
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    f = dt.compile(lambda x: module.helper(x))
    same(f(array(1)), array(8))
    module.rate = 3.0
    same(f(array(1)), array(12))
    module.layer.k = 4.0
    same(f(array(1)), array(15))


# ---- very many objects -------------------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(_captures, "_MOST_OBJECTS", 1000)


class Trainer:
    def __init__(self):
        self.rows = [Holder() for _ in range(1001)]
        self.last = SimpleNamespace(more=SimpleNamespace(rate=2.0, w=array(1)))

    @dt.compile
    def step(self, x):
        return x * self.last.more.rate + self.last.more.w

    @dt.compile
    def rows_of(self, x):
        return x * self.rows[-1].rate * self.last.more.rate


def test_a_table_of_many_objects_hides_nothing_that_code_names(few, recwarn):
    t = Trainer()
    for change in ({}, {"rate": 3.0}, {"w": array(5)}):
        vars(t.last.more).update(change)
        same(t.step(array(3)), Trainer.step.__wrapped__(t, array(3)))
    assert not recwarn.list


def test_what_the_search_leaves_out_is_told_once(few):
    t = Trainer()
    t.rows[-1].rate = 2.0
    with pytest.warns(UserWarning, match=r"more than 1,000 objects: what self.rows\[9\d\d\]") as caught:
        same(t.rows_of(array(3)), array(12))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t.last.more.rate = 4.0
        same(t.rows_of(array(3)), array(24))
    assert "more than 1,000 objects" in t.rows_of.explain(array(3))


def test_the_name_of_an_object_that_is_nested_very_deep_is_short():
    """Names of all ways as long as the ways would take time by the square of the depth."""
    top = [array(1)]
    for _ in range(20_000):
        top = [top]

    def f(x):
        at = top
        while isinstance(at, list):
            at = at[0]
        return x + at

    g = dt.compile(f)
    same(g(array(1)), array(2))
    assert len(g.explain(array(1))) < 2000
