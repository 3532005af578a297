"""dovetail.compile: what a function's code names is looked at in every call; nothing traced stays behind."""

import collections
import contextlib
import enum
import functools
import importlib.util
import sys
import time
import warnings
from dataclasses import dataclass, field
from types import SimpleNamespace

import dovetail as dt
import numpy as np
import pytest
from dovetail import _captures


@pytest.fixture(params=["cpu:0", "sim:0"], autouse=True)
def home(request):
    before = dt.default_device()
    dt.set_default_device(request.param)
    yield request.param
    dt.set_default_device(before)


def array(*values, dtype="float32"):
    return dt.asarray(list(values), dtype=dtype)


def traces(f) -> int:
    return len(f._state.traces)


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


class Holder:
    w = None

    def read(self, x):
        return x + self.w


def helper(x):
    return x


# ---- what code names is looked at --------------------------------------------------------------------------------


class Model:
    def __init__(self):
        self.training, self.scale, self.w = True, 2.0, array(3)
        self.bias = None
        self.layers = [array(1)]
        self.config = {"n": 2}
        self.act = dt.exp
        self.steps = 0

    @dt.compile
    def run(self, x):
        self.steps += 1
        for layer in self.layers:
            x = x + layer
        for name in ("w",):
            x = x * getattr(self, name) if self.training else x
        if self.bias is not None:
            x = x + self.bias
        for _ in range(self.config["n"]):
            x = x * self.scale
        return self.act(x)


def checked(model, x):
    same(model.run(x), type(model).run.__wrapped__(model, x))


CHANGES = {
    "bool": lambda m: setattr(m, "training", False),
    "float": lambda m: setattr(m, "scale", 3.0),
    "int for float": lambda m: setattr(m, "scale", 2),
    "None to array": lambda m: setattr(m, "bias", array(7)),
    "array to None": lambda m: setattr(m, "bias", None),
    "longer list": lambda m: m.layers.append(array(2)),
    "shorter list": lambda m: m.layers.clear(),
    "value in a dict": lambda m: m.config.update(n=1),
    "function": lambda m: setattr(m, "act", dt.abs),
    "array to float": lambda m: setattr(m, "w", 2.0),
}


def test_values_that_the_code_names_are_looked_at():
    m = Model()
    for name, change in CHANGES.items():
        checked(m, array(1, 2)), checked(m, array(1, 2))
        ((_, compiled),) = [p for p in Model.run._state.methods.values() if p[0]() is m]
        before = traces(compiled)
        change(m)
        checked(m, array(1, 2))
        assert traces(compiled) <= before + 1, name
        m.unrelated = name
        checked(m, array(1, 2))
        if traces(compiled) >= 6:
            m = Model()


def test_what_the_trace_changes_itself_is_not_looked_at():
    m = Model()
    m.run(array(1)), m.run(array(1))
    ((_, compiled),) = [p for p in Model.run._state.methods.values() if p[0]() is m]
    assert traces(compiled) == 1
    assert m.steps == 1
    log = []
    f = dt.compile(lambda x: (log.append(len(log)), x + 1)[1])
    f(array(1)), f(array(1))
    assert traces(f) == 1
    assert log == [0]


def test_the_reason_names_what_changed():
    m = Model()
    m.run(array(1))
    m.training = False
    m.run(array(1))
    ((_, compiled),) = [p for p in Model.run._state.methods.values() if p[0]() is m]
    assert compiled._state.reasons == ["self.training, which the function reads, is not what it was"]


N = 1


def test_globals_closures_and_classes_of_plain_values():
    global N
    kind = type("Config", (), {"n": 2})
    k, flags, names = 3, {"a", "b"}, collections.OrderedDict(z=1)

    def helper(x):
        return x * k

    def f(x):
        y = helper(x) + N + kind.n + len(flags) + (1 if "a" in flags else 0)
        return y * next(iter(names.values()))

    g = dt.compile(f)
    same(g(array(1)), f(array(1)))
    for change in (lambda: setattr(kind, "n", 5), flags.clear,
                   lambda: names.update(z=4), lambda: names.update(y=4)):  # fmt: skip
        change()
        same(g(array(1)), f(array(1)))
    N += 10
    same(g(array(1)), f(array(1)))
    k = 7
    same(g(array(1)), f(array(1)))
    N = 1


def test_the_order_of_a_dict_is_looked_at():
    parts = {"a": array(1), "b": array(2)}

    def f(x):
        for p in parts.values():
            x = x * 10 + p
        return x

    g = dt.compile(f)
    same(g(array(0)), f(array(0)))
    parts["a"] = parts.pop("a")
    same(g(array(0)), f(array(0)))
    parts["c"] = array(3)
    same(g(array(0)), f(array(0)))


def test_the_order_of_an_ordered_dict_is_looked_at():
    parts = collections.OrderedDict(a=2.0, b=3.0)

    def f(x):
        for p in parts.values():
            x = x * 10 + p
        return x

    g = dt.compile(f)
    for name in ("a", "a", "b", "a"):
        same(g(array(0)), f(array(0)))
        parts.move_to_end(name)
    assert traces(g) == 2


def test_objects_of_another_type_are_another_trace():
    class Twice(Holder):
        def read(self, x):
            return x + self.w * 2

    box = [Holder()]
    box[0].w = array(1)
    f = dt.compile(lambda x: box[0].read(x))
    same(f(array(1)), array(2))
    box[0] = Twice()
    box[0].w = array(1)
    same(f(array(1)), array(3))
    box[0] = Holder()
    box[0].w = array(5)
    same(f(array(1)), array(6))
    assert traces(f) == 2


def test_one_array_as_two_arguments_is_another_trace():
    w = array(5)
    f = dt.compile(lambda a, b: a + b if a is b else a * b)
    g = dt.compile(lambda a, rest: a + 1 if a is rest[3] else a * sum(rest[1:], rest[0]))
    for x, y in ((array(2), array(3)), (w, w), (array(4), array(4)), (w, w)):
        same(f(x, y), f.__wrapped__(x, y))
        many = [array(i) for i in range(12)]
        same(g(x, many), g.__wrapped__(x, many))
        same(g(many[3], many), g.__wrapped__(many[3], many))
        same(g(x, [*many, many[11]]), g.__wrapped__(x, [*many, many[11]]))
    assert traces(f) == 2


def test_other_functions_in_a_variable():
    def make(k):
        return lambda x: x * k

    act = make(2)
    f = dt.compile(lambda x: act(x))
    same(f(array(1)), array(2))
    act = make(2)  # the same code and values
    same(f(array(1)), array(2))
    assert traces(f) == 1
    act = make(3)
    same(f(array(1)), array(3))
    act = lambda x: x + 100  # noqa: E731
    same(f(array(1)), array(101))


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
    with pytest.warns(UserWarning, match=r"more than 1,000 objects: what self.rows\[9\d\d\]") as told:
        same(t.rows_of(array(3)), array(12))
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t.last.more.rate = 4.0
        same(t.rows_of(array(3)), array(24))
    assert "more than 1,000 objects" in t.rows_of.explain(array(3))


def test_an_object_that_is_nested_very_deep_is_searched_in_time():
    top = [array(1)]
    for _ in range(20_000):
        top = [top]

    def f(x):
        at = top
        while isinstance(at, list):
            at = at[0]
        return x + at

    g = dt.compile(f)
    start = time.thread_time()
    same(g(array(1)), array(2))
    assert time.thread_time() - start < 2
    assert len(g.explain(array(1))) < 2000


# ---- what is left behind -----------------------------------------------------------------------------------------


def left_in_deque(box, x):
    box.d.append(x)


def left_in_class(box, x):
    Holder.left = x


def left_in_function(box, x):
    helper.left = x


def left_in_size(box, x):
    box.n = x.shape[0]


def left_in_nested(box, x):
    box.deep = [{"a": (x,)}]


@pytest.mark.parametrize("leave", [left_in_deque, left_in_class, left_in_function, left_in_size, left_in_nested])
def test_traced_values_that_are_left_behind(leave):
    box = SimpleNamespace(d=collections.deque(), n=None, deep=None)

    @dt.compile
    def f(x):
        leave(box, x * 2)
        return x

    with pytest.raises(TypeError, match="leaves a traced value in"):
        f(array(1))
    left = box.d or [getattr(Holder, "left", None) if leave is left_in_class else box.n]
    if left[0] is not None:
        with pytest.raises(TypeError, match=r"traced value of .*f is used at .*test_compile_watched.py:\d+, after"):
            left[0] + 1
    if hasattr(Holder, "left"):
        del Holder.left


def test_a_traced_value_has_an_end():
    def holds():
        held = None
        while True:
            given = yield held
            held = held if given is None else given

    hold = holds()
    next(hold)
    send = hold.send
    g = dt.compile(lambda x, k: (send(x * k), x)[1])
    g(array(1), 2.0)
    y = hold.send(None)
    ended = r"\[compile\] a traced value of .* is used at .*test_compile_watched.py:\d+, after its trace"
    for use in (lambda: y + 1, lambda: y[0], lambda: dt.sum(y), lambda: y.__setitem__(0, 1), lambda: array(1) + y,
                lambda: y.reshape(-1)):  # fmt: skip
        with pytest.raises(TypeError, match=ended):
            use()
    with pytest.raises(TypeError, match=ended):
        dt.compile(lambda x: x + y)(array(1))
    inner = []
    dt.compile(lambda x: dt.cond(dt.sum(x) > 0, lambda v: (hold.send(v), v)[1], lambda v: v, x))(array(1))
    inner.append(hold.send(None))
    with pytest.raises(TypeError, match=ended):
        inner[0] * 2


# ---- what is not looked at ---------------------------------------------------------------------------------------


def test_what_a_trace_changes_does_not_part_the_programs():
    m = Model()
    for _ in range(6):
        for x in (array(1), array(1, dtype="float64")):
            m.run(x)
    ((_, compiled),) = [p for p in Model.run._state.methods.values() if p[0]() is m]
    assert traces(compiled) == 2
    assert m.steps == 2


def test_what_only_makes_an_object_is_not_looked_at():
    size = 2

    class Sized:
        def __init__(self):
            self.w = dt.ones((size,))

        @dt.compile
        def run(self, x):
            return x + self.w

    m = Sized()
    m.run(array(1))
    size = 3
    m.run(array(1))
    ((_, compiled),) = Sized.run._state.methods.values()
    assert traces(compiled) == 1
    f = dt.compile(lambda x: x + Sized().w)  # here it is
    same(f(array(1)), array(2, 2, 2))
    size = 1
    same(f(array(1)), array(2))


def test_ways_to_one_object_are_looked_at_whatever_their_names():
    one = SimpleNamespace(w=array(1))
    model = SimpleNamespace(a=one, b=one)
    f = dt.compile(lambda x: x + getattr(model, chr(98)).w)
    same(f(array(1)), array(2))
    model.b = SimpleNamespace(w=array(5))
    same(f(array(1)), array(6))
