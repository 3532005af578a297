"""dovetail.compile: the ways to what a function reads by itself, and what calls expect there."""

import collections
import enum
import functools
import gc
import sys
import time
import types
import warnings
import weakref
from dataclasses import dataclass
from types import SimpleNamespace

import dovetail as dt
import pytest
from compiled_calls import array, same, traces

pytestmark = pytest.mark.usefixtures("home")


# ---- ways to arrays ----------------------------------------------------------------------------------------------


class Behind:
    """A property in front of the instance's own attribute."""

    def __init__(self):
        vars(self)["w"] = array(1)

    @property
    def w(self):
        return vars(self)["w"] * 10

    @w.setter
    def w(self, value):
        vars(self)["w"] = value

    @dt.compile
    def run(self, x):
        return x + self.w


class Renamed:
    """__getattribute__ and __getattr__ of its own."""

    def __init__(self):
        vars(self)["w"], vars(self)["v"] = array(1), array(5)

    def __getattribute__(self, name):
        return object.__getattribute__(self, "v" if name == "w" else name)

    def __getattr__(self, name):
        return self.v * 2

    @dt.compile
    def run(self, x):
        return x + self.w + self.further


def test_attributes_are_not_read_through_the_users_code_twice():
    for made in (Behind(), Renamed()):
        for value in (1, 2, 3):
            vars(made)["w"] = array(value)
            vars(made)["v"] = array(10 * value)
            for _ in range(2):
                same(made.run(array(1)), type(made).run.__wrapped__(made, array(1)))
        ((_, compiled),) = [m for m in type(made).run._state.methods.values() if m[0]() is made]
        assert traces(compiled) == 1


class Color(enum.Enum):
    RED = 1


class Slotted:
    __slots__ = ("__weakref__", "inner", "w")


class Holder:
    w = None

    def read(self, x):
        return x + self.w


def helper_with_defaults(x, w=None, *, v=None):
    return x if w is None else x + w + v


def deep(levels):
    x = SimpleNamespace(w=None)
    top = x
    for _ in range(levels):
        top = SimpleNamespace(inner=top)
    return top, x


def deep_read(top):
    while hasattr(top, "inner"):
        top = top.inner
    return top.w


def _set(x, name):
    return lambda w: setattr(x, name, w)


def way_deep():
    top, last = deep(40)
    return lambda x: x + deep_read(top), _set(last, "w")


def way_deque():
    held = collections.deque([array(0), None])
    return lambda x: x + held[1], lambda w: held.__setitem__(1, w)


def way_enum_key():
    held = {Color.RED: [None], (1, "a"): 3, 2.5: 4}
    return lambda x: x + held[Color.RED][0], lambda w: held.__setitem__(Color.RED, [w])


def way_object_key():
    key = Holder()
    held = {key: None}
    return lambda x: x + held[key], lambda w: held.__setitem__(key, w)


def way_set():
    one = Holder()
    held = {one}
    return lambda x: x + next(iter(held)).w, _set(one, "w")


def way_module():
    module = types.ModuleType("a_users_module")
    exec("W = None\ndef helper(x):\n    return x + W", vars(module))
    return lambda x: module.helper(x), _set(module, "W")


def way_defaults():
    def helper(x, w=None):
        return x + w

    return lambda x: helper(x), lambda w: setattr(helper, "__defaults__", (w,))


def way_keyword_defaults():
    def helper(x, *, w=None):
        return x + w

    return lambda x: helper(x), lambda w: setattr(helper, "__kwdefaults__", {"w": w})


def way_partial():
    box = [functools.partial(dt.add, None)]
    return lambda x: box[0](x), lambda w: box.__setitem__(0, functools.partial(dt.add, w))


def way_closure_of_a_helper():
    w = None

    def helper(x):
        return x + w

    def put(value):
        nonlocal w
        w = value

    held = {"f": helper}
    return lambda x: held["f"](x), put


def way_bound_method():
    held = Holder()
    read = held.read
    return lambda x: read(x), _set(held, "w")


def way_class_attribute():
    kind = type("Kind", (Holder,), {})
    held = kind()
    return lambda x: x + held.w, _set(kind, "w")


def way_attribute_of_a_named_class():
    kind = type("Kind", (), {"w": None})
    return lambda x: x + kind.w, _set(kind, "w")


def way_slots():
    held = Slotted()
    held.inner = Slotted()
    return lambda x: x + held.inner.w, _set(held.inner, "w")


def way_function_attribute():
    def helper(x):
        return x + helper.w

    return lambda x: helper(x), _set(helper, "w")


def way_property():
    kind = type("Kind", (), {"w": property(lambda self: self._parts[-1] * 2)})
    held = kind()
    held._parts = [None]
    return lambda x: x + held.w, lambda w: held._parts.__setitem__(0, w)


def way_user_dict():
    held = collections.UserDict()
    return lambda x: x + held["w"], lambda w: held.__setitem__("w", w)


def way_compiled_helper():
    held = [None]
    helper = dt.compile(lambda x: x + held[0])
    return lambda x: helper(x) * 1, lambda w: held.__setitem__(0, w)


WAYS = [value for name, value in list(globals().items()) if name.startswith("way_")]


@pytest.mark.parametrize("way", WAYS, ids=lambda f: f.__name__[4:])
def test_another_array_in_its_place_is_seen(way):
    f, put = way()
    put(array(1))
    g = dt.compile(f)
    for value in (1, 5, 7):
        w = array(value)
        put(w)
        same(g(array(1)), array(value + 1) if way is not way_property else array(2 * value + 1))
        w[0] = 100
        same(g(array(1)), f(array(1)))
    assert traces(g) == 1
    assert not g._state.traces[0].notes


class Plain:
    pass


def test_attributes_that_move_within_their_dict_are_found():
    o = Plain()
    o.a, o.b = array(1), array(2)
    f = lambda x: x * o.a + o.b  # noqa: E731
    g = dt.compile(f)
    y = array(5)
    for n in range(60):  # few keys lie in front of them, then many
        mapping = o.__dict__
        for name in ("b", "a"):
            mapping[name] = mapping.pop(name) + 1
        if n % 3 == 1:
            mapping[f"n{n}"] = n
        if n == 40:
            rest = dict(mapping)
            mapping.clear()
            mapping.update({"a": rest.pop("b"), "b": rest.pop("a")} | rest)
        same(g(y), f(y))
    assert traces(g) == 1
    del o.a
    Plain.a = array(11)
    try:
        same(g(y), f(y))
    finally:
        del Plain.a


# ---- nothing is kept alive ---------------------------------------------------------------------------------------


class Fluent:
    def __init__(self):
        self.w = array(1)
        self.parts = {self_key(self): array(2)}

    @dt.compile
    def run(self, x):
        return self, x + self.w + next(iter(self.parts.values()))


def self_key(x):
    return x


def test_objects_are_not_kept_alive():
    m = Fluent()
    first, y = m.run(array(1))
    assert first is m
    assert m.run(array(1))[0] is m
    same(y, array(4))
    gone = weakref.ref(m)
    del m, first
    gc.collect()
    assert gone() is None

    f = dt.compile(lambda model, x: (model, x + model.w))
    for k in range(12):  # more than a function has traces
        h = Holder()
        h.w = array(k)
        for _ in range(2):
            got, y = f(h, array(1))
            assert got is h
            same(y, array(k + 1))
        gone = weakref.ref(h)
        del h, got
        gc.collect()
        assert gone() is None
    assert traces(f) <= 2
    assert f._state.eager_calls == 0


def test_another_object_in_each_call_is_told_once():
    f = dt.compile(lambda model, x: x + model.w)

    def call():
        h = Holder()
        h.w = array(1)
        f(h, array(1))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(32):
            call()
    with pytest.warns(
        UserWarning, match=r"traced for 32 objects that are gone since.*pass a tuple, dict"
    ) as caught:
        call()
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(40):
            call()
    assert f._state.gone == 72
    assert "1 trace and 72 for objects that are gone" in dt.compile_report()
    h = Holder()
    h.w = array(1)
    assert "1 trace and 73 for objects that are gone" in f.explain(h, array(1))


@dataclass
class Point:
    x: object
    y: float = 1.0


def test_a_property_in_front_of_a_dataclass_field():
    class Double(Point):
        pass

    Double.x = property(lambda self: vars(self)["x"] * 2)
    p = object.__new__(Double)
    vars(p).update(x=array(3), y=2.0)
    f = dt.compile(lambda p: p.x * p.y)
    for _ in range(2):
        same(f(p), array(12))


def test_sys_modules_are_searched_by_name():
    module = types.ModuleType("further_users_module")
    sys.modules[module.__name__] = module
    module.N, module.w = 1, array(1)

    def f(x):
        import further_users_module

        return x + further_users_module.w

    g = dt.compile(f)
    same(g(array(1)), array(2))
    del sys.modules[module.__name__]


def test_of_installed_packages_only_those_that_import_dovetail_are_searched(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    (folder / "plain_library.py").write_text(
        "class Node:\n    pass\n"
        "nodes = [Node() for _ in range(40_000)]\n"
        "for i, node in enumerate(nodes):\n    node.next, node.table = nodes[i - 1], {'factor': 2.0}\n"
        "def double(x):\n    return x * nodes[0].table['factor']\n"
    )
    (folder / "layer_library.py").write_text(
        "import dovetail as dt\ndef scale(x):\n    return x * weight\nweight = dt.asarray(2.0)\n"
    )
    import layer_library
    import plain_library

    f = dt.compile(lambda x: plain_library.double(x))
    start = time.thread_time()
    same(f(array(3)), array(6.0))
    assert time.thread_time() - start < 0.5
    g = dt.compile(lambda x: layer_library.scale(x))
    same(g(array(3.0)), array(6.0))
    layer_library.weight = array(5.0)
    same(g(array(3.0)), array(15.0))
    for name in ("plain_library", "layer_library"):
        del sys.modules[name]


# ---- sizes of captured arrays ------------------------------------------------------------------------------------


def test_sizes_of_captured_arrays_are_not_those_of_the_trace():
    held = SimpleNamespace(w=array(1))

    def f(x):
        w = held.w
        y = x + w.reshape((w.shape[0], -1))[:, 0] + w.size
        return y * len(w) + (1 if w.shape[0] > 4 else 0), dt.zeros(held.w.shape), [row * 2 for row in w]

    g = dt.compile(f)
    for n in (7, 7, 3, 7, 3, 1, 6):
        held.w = dt.ones((n,))
        x = array(1)
        for a, b in zip(g(x), f(x)):
            for one, other in zip(a, b, strict=True):
                same(one, other)
    n_traces = traces(g)
    held.w = dt.ones((7,))
    same(g(array(1))[1], dt.zeros((7,)))
    assert traces(g) == n_traces

    h = dt.compile(lambda x: x + held.w.shape[0])
    for n in (2, 5, 2, 9):
        held.w = dt.ones((n,))
        same(h(array(1)), array(n + 1))
    assert traces(h) == 1
    p = dt.compile(lambda x: dt.cond(dt.sum(x) > 0, lambda v: v + held.w.shape[0], lambda v: v, x))
    for n in (2, 5, 2):
        held.w = dt.ones((n,))
        same(p(array(1)), array(n + 1))


# ---- the search --------------------------------------------------------------------------------------------------


class Lying:
    """What the search must not ask."""

    @property
    def __class__(self):
        raise AssertionError("runs code of the user")

    def __getattribute__(self, name):
        if name == "w":
            return object.__getattribute__(self, "w")
        raise AssertionError("runs code of the user")


class Counted(list):
    def __len__(self):
        raise AssertionError("runs code of the user")

    __iter__ = __len__

    def first(self):
        return list.__getitem__(self, 0)


def test_the_search_runs_no_code_of_the_users():
    held, counted = Lying(), Counted()
    object.__setattr__(held, "w", array(1))
    counted.append(array(10))
    f = dt.compile(lambda x: x + held.w + counted.first())
    for k in (1, 2):
        object.__setattr__(held, "w", array(k))
        counted[0] = array(10 * k)
        same(f(array(1)), array(1 + 11 * k))
    assert traces(f) == 1


def test_large_objects_are_searched_in_time():
    held = SimpleNamespace(many=list(range(300_000)), table={i: str(i) for i in range(100_000)}, w=array(1))
    held.others = [SimpleNamespace(w=i, up=held) for i in range(5_000)]
    f = dt.compile(lambda x: x + held.w + len(held.many))
    start = time.perf_counter()
    same(f(array(1)), array(300_002))
    assert time.perf_counter() - start < 5
    held.many.append(1)
    same(f(array(1)), array(300_003))
    first = last = SimpleNamespace(w=array(1))
    for _ in range(3_000):
        last.next = SimpleNamespace(w=None)
        last = last.next
    last.w = array(5)

    def end(x):
        at = first
        while hasattr(at, "next"):
            at = at.next
        return x + at.w

    g = dt.compile(end)
    same(g(array(1)), array(6))
    last.w = array(7)
    same(g(array(1)), array(8))
    assert traces(g) == 1
