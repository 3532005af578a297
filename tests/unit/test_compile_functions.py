"""dovetail.compile: what may be compiled, containers as arguments and results, copies and pickle."""

import abc
import collections
import copy
import functools
import inspect
import itertools
import pickle
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import dovetail as dt
import numpy as np
import pytest
from compiled_calls import array, same

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.usefixtures("home")


# ---- containers --------------------------------------------------------------------------------------------------


@dataclass
class Checked:
    x: Any
    n: int = 2
    made: Any = field(default=None, init=False)

    def __post_init__(self):
        self.x = self.x * 2
        self.made = "post_init"


@dataclass(frozen=True)
class Frozen:
    x: Any


@dataclass(slots=True)
class Slots:
    x: Any
    y: Any = None


@dataclass(frozen=True, slots=True)
class Both:
    x: Any


@dataclass
class Loud:
    x: Any

    def __setattr__(self, name, value):
        raise AssertionError("runs code of the user")

    @classmethod
    def of(cls, x):
        made = object.__new__(cls)
        vars(made)["x"] = x
        return made


class Pair(NamedTuple):
    x: Any
    y: Any


class Further(Pair):
    pass


class Stack(list):
    def __init__(self, *_):
        raise AssertionError("runs code of the user")


class Row(tuple):
    pass


class Table(dict):
    pass


def with_attribute(x, **attributes):
    vars(x).update(attributes)
    return x


def checked(x):
    made = Checked(x)
    made.further = x + 1
    return made


MADE = {
    "dataclass": checked,
    "frozen": lambda x: Frozen(Frozen(x)),
    "slots": lambda x: Slots(x, 3),
    "frozen slots": Both,
    "setattr": Loud.of,
    "namedtuple": lambda x: Pair(x, 2.0),
    "its subclass": lambda x: Further(x, 2.0),
    "ordered": lambda x: collections.OrderedDict(b=x, a=1),
    "default": lambda x: (d := collections.defaultdict(list), d.__setitem__("a", x))[0],
    "counter": lambda x: collections.Counter(a=x),
    "list": lambda x: (s := Stack.__new__(Stack), s.append(x))[0],
    "tuple": lambda x: Row((x, 1)),
    "dict": lambda x: Table(a=x),
}


def parts(x):
    """Its type, and everything in it."""
    if isinstance(x, dt.Array):
        return np.asarray(x).tolist()
    if isinstance(x, dict):
        return type(x), [(k, parts(v)) for k, v in x.items()], getattr(x, "default_factory", None)
    if isinstance(x, (list, tuple)):
        return type(x), [parts(v) for v in x]
    if hasattr(x, "__dataclass_fields__"):
        names = [*x.__dataclass_fields__, *(vars(x) if hasattr(x, "__dict__") else ())]
        return type(x), [(name, parts(getattr(x, name))) for name in names]
    return x


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_results_are_of_their_own_types(make):
    f = dt.compile(lambda x: make(x + 1))
    for k in (1, 2, 3):
        assert parts(f(array(k))) == parts(make(array(k + 1)))
    assert len(f._state.traces) == 1
    program = dt.export(lambda x: make(x + 1), array(1))
    assert parts(program(array(5))) == parts(make(array(6)))


def test_slices_sets_and_numbers_of_numpy_are_results_as_they_are():
    def f(x, n):
        return slice(x.shape[0], n), slice(x, None), frozenset({n, "a"}), (np.float32(3), n), [np.int8(n), None]

    g = dt.compile(f)
    for k, n in ((2, np.float32(0.1)), (3, np.float32(0.2)), (3, np.int16(7)), (2, np.float64(0.1)), (2, 4)):
        x = dt.arange(k)
        (one, two, *rest), (first, _, *others) = g(x, n), f(x, n)
        assert one == first and type(one.stop) is type(n) and two.start is x
        types, wanted = ([*map(type, numbers + tuple(more))] for _, numbers, more in (rest, others))
        assert rest == others and types == wanted


def test_returned_numbers_of_numpy_are_guards_by_type_alone():
    f = dt.compile(lambda x, n: (x * n, n))
    for n in (np.float32(0.1), np.float32(0.2), np.float64(0.3), np.float32(0.4)):
        m = f(array(1), n)[1]
        assert m == n and type(m) is type(n)
    assert len(f._state.traces) == 2


@pytest.mark.parametrize("text", [str, repr, lambda x: f"x is {x}", lambda x: {"a": [f"{x + 1:}"]}])
def test_the_text_of_a_traced_array_is_no_result(text):
    for traced in (lambda: dt.compile(text)(array(1)), lambda: dt.export(text, array(1))):
        with pytest.raises(TypeError, match=r"got the text '.*<traced float32\[1\] of .*make text of it outside"):
            traced()
    assert dt.compile(lambda x: (print(x), "<traced>")[1])(array(1)) == "<traced>"


def test_messages_about_results_and_arrays_are_those_of_compile_and_array():
    class Row(tuple):
        pass

    def row(x):
        made = Row((x,))
        made.name = "a"
        return made

    for wrong in (lambda x: {1: x}, lambda x: {"\ud800": x}, row):
        with pytest.raises((TypeError, ValueError), match=r"^\[compile\] .*result: got"):
            dt.compile(wrong)(array(1))
    for wrong in (lambda x: x.foo, lambda x: hash(x), lambda x: x + object(), lambda x: x < "a"):
        with pytest.raises((TypeError, AttributeError)) as eager:
            wrong(array(1))
        with pytest.raises(eager.type) as compiled:
            dt.compile(wrong)(array(1))
        assert str(compiled.value) == str(eager.value)


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_arguments_are_of_their_own_types(make):
    seen = []

    def f(p, x):
        seen.append(type(p))
        values = p.values() if isinstance(p, dict) else p if isinstance(p, (list, tuple)) else [p]
        for v in values:
            while hasattr(v, "__dataclass_fields__"):
                v = v.x
            x = x + v
        return x + getattr(p, "further", 0.0)

    g = dt.compile(f)
    for k in (1, 2, 3):
        p = make(array(k))
        same(g(p, array(1)), f(p, array(1)))
        assert set(seen) == {type(p)}


def test_attributes_that_would_be_lost_are_an_error():
    for made in (Stack.__new__(Stack), Row((1,)), Table(), Further(1, 2)):
        with_attribute(made, further=1)
        with pytest.raises(TypeError, match="with the attribute 'further'"):
            dt.compile(lambda x, made=made: (x, copy.copy(made)))(array(1))
    p = with_attribute(Further(array(1), array(2)), k=3.0)
    f = dt.compile(lambda p: p.x * p.k)
    same(f(p), array(3))
    p.k = 4.0
    same(f(p), array(4))


def test_attributes_beside_the_fields_are_looked_at():
    p = checked(array(1))
    f = dt.compile(lambda p: p.x + getattr(p, "later", 0.0))
    same(f(p), array(2))
    p.later = 5.0
    same(f(p), array(7))
    p.later = 6.0
    same(f(p), array(8))
    assert len(f._state.traces) == 2


# ---- functions ---------------------------------------------------------------------------------------------------


def doubled(fn):
    @functools.wraps(fn)
    def wrapper(x, *rest, scale=2.0):
        return fn(x, *rest) * scale

    return wrapper


def test_decorated_functions_have_the_signature_of_what_is_called():
    @dt.compile
    @doubled
    def f(x):
        """What it does."""
        return x + 1

    for scale in (3.0, 4.0):
        same(f(array(1), scale=scale), array(2 * scale))
    assert (f.__name__, f.__doc__) == ("f", "What it does.")
    same(f.graph(array(1), scale=3.0)(array(2)), array(9))

    @dt.compile(donate="x")
    @doubled
    def g(y):
        return y + 1

    same(g(array(1)), array(4))
    same(dt.export(doubled(lambda x: x), array(1))(array(3)), array(6))


class Methods:
    w = array(1)

    @dt.compile
    @staticmethod
    def static_above(x):
        return x + 1

    @staticmethod
    @dt.compile
    def static_below(x):
        return x + 2

    @dt.compile
    @classmethod
    def class_above(cls, x):
        return x + cls.w

    @classmethod
    @dt.compile
    def class_below(cls, x):
        return x * 10 + cls.w

    @property
    @dt.compile
    def prop(self):
        return self.w + 3


class Derived(Methods):
    w = array(5)


def test_an_abstract_method_stays_one():
    class Layer(abc.ABC):
        @dt.compile
        @abc.abstractmethod
        def forward(self, x): ...

    with pytest.raises(TypeError, match=r"abstract method '?forward"):
        Layer()


def test_static_and_class_methods():
    Methods.w, Derived.w = array(1), array(5)
    for owner in (Methods, Derived, Methods(), Derived()):
        for _ in range(2):
            w = owner.w
            same(owner.static_above(array(1)), array(2))
            same(owner.static_below(array(1)), array(3))
            same(owner.class_above(array(1)), array(1) + w)
            same(owner.class_below(array(1)), array(10) + w)
            if not isinstance(owner, type):
                same(owner.prop, w + 3)
    Derived.w = array(7)
    same(Derived.class_below(array(1)), array(17))
    same(Derived.class_above(array(1)), array(8))


class Callable_:
    def __init__(self):
        self.w = array(2)

    def __call__(self, x, k=1.0):
        return x * self.w * k


def test_partials_objects_and_lambdas():
    f = dt.compile(functools.partial(lambda w, x, k=1.0: w * x * k, array(3), k=2.0))
    same(f(array(2)), array(12))
    same(f(array(2), k=1.0), array(6))
    model = Callable_()
    g = dt.compile(model)
    same(g(array(2)), array(4))
    model.w = array(5)
    same(g(array(2), k=2.0), array(20))
    assert len(g._state.traces) == 1
    same(dt.compile(model.__call__)(array(2)), array(10))
    same(dt.compile(dt.exp)(array(0)), array(1))
    cached = functools.lru_cache(lambda k: k + 1)
    same(dt.compile(lambda x: x * cached(2))(array(2)), array(6))


def test_what_a_call_does_not_run_is_refused():
    async def coroutine(x):
        return x

    async def stream(x):
        yield x

    def generator(x):
        yield x

    class Object:
        async def __call__(self, x):
            return x

    for fn in (coroutine, stream, generator, Object(), functools.partial(generator)):
        with pytest.raises(TypeError, match="async or a generator"):
            dt.compile(fn)
    with pytest.raises(TypeError, match="expected a function, got the class Object: pass its method"):
        dt.compile(Object)


# ---- copies ------------------------------------------------------------------------------------------------------


@dt.compile
def of_the_module(x):
    return x + 1


class Kept:
    def __init__(self):
        self.w, self.f = array(2), of_the_module

    @dt.compile
    def run(self, x):
        return self.f(x) * self.w


def test_what_only_one_call_could_take_values_from_is_refused():
    f = dt.compile(lambda x, values: x + next(iter(values)))
    for values in ((v for v in (1.0, 2.0)), iter([1.0]), map(float, "1"), itertools.count(), enumerate([1])):
        with pytest.raises(TypeError, match=r"values: got a \w+, .* expected a list or tuple of them; list\(x\)"):
            f(dt.ones(2), values)

    class Ones:
        def __init__(self):
            self.w = dt.ones(2)

        def __iter__(self):
            return self

        def __next__(self):
            return self.w

    same(f(dt.ones(2), Ones()), dt.full((2,), 2.0))


class Bound:
    def __init__(self):
        self.w = array(2)
        self.f = dt.compile(self.run, numerics="eager")
        self.g = dt.compile(functools.partial(self.run, array(5)))

    def run(self, x):
        return x * self.w


def test_a_deep_copy_of_a_bound_method_is_bound_to_the_copy():
    for copied in (copy.deepcopy, lambda one: copy.deepcopy(one.f).__wrapped__.__self__):
        one = Bound()
        one.f.note = "a note"
        same(one.f(array(1)), array(2))
        other = copied(one)
        other.w = array(10)
        same(other.f(array(1)), array(10))
        same(other.g(), array(50))
        same(one.f(array(1)), array(2))
        assert other.f is not one.f
        assert other.f._state.options == one.f._state.options
        assert other.f.note == "a note"
    alone = copy.deepcopy(one.f)
    assert alone is alone.__wrapped__.__self__.f
    program = dt.compile(dt.export(lambda x: x + 1, array(1)))
    assert copy.deepcopy(program) is program


def test_copies_and_pickle():
    for again in (copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))):
        assert again(of_the_module) is of_the_module
        assert again(Kept.run) is Kept.run
        kept = Kept()
        same(kept.run(array(1)), array(4))
        other = again(kept)
        other.w = array(10)
        same(other.run(array(1)), array(20))
        same(kept.run(array(1)), array(4))
        if again is not copy.deepcopy:
            same(again(other.run)(array(1)), array(20))
    local = dt.compile(lambda x: x)
    assert copy.deepcopy({"f": local})["f"] is local
    with pytest.raises(TypeError, match=r"\[compile\] pickle: .*lambda"):
        pickle.dumps(local)
    assert inspect.signature(of_the_module).parameters.keys() == {"x"}


# ---- the guide ---------------------------------------------------------------------------------------------------


def test_the_examples_of_the_guide_run(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/compile.md").read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    space: dict = {}
    for block in blocks:
        exec(compile(block, "docs/compile.md", "exec"), space)
    layer, total, step = space["layer"], space["total"], space["step"]
    assert "captured: layer.w" in capsys.readouterr().out
    program = step.graph(layer, total, dt.ones((2, 8)))
    got, wanted = program(total, dt.ones((2, 8))), step(layer, dt.asarray(total, copy=True), dt.ones((2, 8)))
    same(got[0], wanted[0])
    same(got[1], wanted[1])
    assert step.explain(layer, wanted[1], dt.ones((2, 8))) and dt.compile_report()
    step.warmup(layer, dt.spec(()), dt.spec((2, 8)))


def test_the_graph_of_a_function_of_objects():
    model = SimpleNamespace(w=array(3))
    f = dt.compile(lambda model, x, *, k: x * model.w * k, dynamic={"x": {0: "n"}})
    same(f.graph(model, array(1, 2), k=2.0)(array(1)), array(6))
