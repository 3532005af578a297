"""dovetail.compile: what a function's code names is looked at in every call; nothing traced stays behind."""

import collections
import copy
import functools
from types import SimpleNamespace

import dovetail as dt
import pytest
from compiled_calls import array, same, traces
from dovetail._attributes import attributes

pytestmark = pytest.mark.usefixtures("home")


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


class Layers(list):
    def __call__(self, x):
        for layer in self:
            x = layer(x)
        return x


@pytest.mark.parametrize("key", [None, 0, "held"])
@pytest.mark.parametrize(
    "held, change",
    [
        (collections.deque([1.0]), lambda d: d.append("b")),
        (collections.OrderedDict(a=1.0), lambda d: d.update(b=1.0)),
        (collections.OrderedDict(a=1.0, b=1.0), lambda d: d.move_to_end("a")),
        (collections.defaultdict(int, a=1.0), lambda d: d.update(b=1.0)),
        (collections.Counter("a"), lambda d: d.update("b")),
        ({1: 1.0}, lambda d: d.update(b=1.0)),
        ({1.0}, lambda d: d.add("b")),
    ],
)
def test_what_an_argument_holds_is_looked_at(held, change, key):
    """Its number of elements and its keys, whatever the kind of container, by itself and in others."""
    held = copy.copy(held)
    argument = held if key is None else (held,) if key == 0 else {key: held}

    def f(c, x):
        c = c if key is None else c[key]
        return x + len(c) + 10 * ("b" in c) + 100 * (next(iter(c)) == "b")

    compiled = dt.compile(f)
    same(compiled(argument, array(1)), f(argument, array(1)))
    change(held)
    same(compiled(argument, array(1)), f(argument, array(1)))


def test_what_the_compiled_object_itself_holds_is_looked_at():
    layers = Layers([lambda x: x + 1])
    compiled = dt.compile(layers)
    same(compiled(array(1)), layers(array(1)))
    layers.append(lambda x: x * 10)
    same(compiled(array(1)), layers(array(1)))


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

    before = [collections.deque(), None, None, "none", "none"]
    for _ in range(2):  # what was there is there again
        with pytest.raises(TypeError, match="leaves a traced value in"):
            f(array(1))
        assert [box.d, box.n, box.deep, *(getattr(x, "left", "none") for x in (Holder, helper))] == before


class Cache:
    """Attributes of each kind that a trace may write to."""

    __slots__ = ("__dict__", "keys", "none", "slot")

    def __init__(self):
        self.keys, self.slot, self.plain, self.listed, self.table = array(1), 2.0, "text", [array(2)], {"a": 1}

    def run(self, x):
        self.keys = dt.concat([self.keys[None], x[None]])
        self.none, self.slot, self.plain, self.new = x, x, x, x
        self.listed[0] = x
        self.listed += [x, x]
        self.table.update(a=x, b=x)
        return x + self.made

    @functools.cached_property
    def made(self):
        return dt.sum(self.listed[0])


def test_what_a_refused_trace_wrote_is_as_before():
    cache, untouched = Cache(), Cache()
    compiled = dt.compile(Cache.run)
    with pytest.raises(TypeError, match="leaves a traced value in"):
        compiled(cache, array(1))
    assert repr(attributes(cache)) == repr(attributes(untouched))
    same(cache.run(array(1)), untouched.run(array(1)))


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
