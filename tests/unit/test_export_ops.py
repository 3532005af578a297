"""Each op's conformance samples, exported: the eager bits, or the eager error; and what the interpreter returns."""

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core
from dovetail.schema import dtypes as schema_dtypes
from dovetail.schema import registry
from dovetail.schema.dtypes import DType
from dovetail_conformance.interpret import check_program

SEED = 11
OF_ELEMENTS = {
    ("pow", "negative_power")
}  # eager calls look at the elements of an integer exponent, programs do not
DTYPES = ("float32", "int32", "bool", "uint32", "float16")


def typed(x):
    """Dtypes of the schema as names, which users write."""
    return x.name if isinstance(x, DType) else x


def arrays_of(args, kwargs):
    """The call with the arrays left out, and them."""
    given = []

    def take(x):
        if isinstance(x, np.ndarray):
            given.append(dt.asarray(x))
            return len(given) - 1, "array"
        return [take(v) for v in x] if isinstance(x, list) else typed(x)

    return [take(x) for x in args], {name: take(x) for name, x in kwargs.items()}, given


def filled(x, arrays):
    if isinstance(x, list):
        return [filled(v, arrays) for v in x]
    if isinstance(x, tuple) and len(x) == 2 and x[1] == "array":
        return arrays[x[0]]
    return x


def outcome(call, *arrays):
    """The results' bits, or the exception; and the results."""
    try:
        out = call(*arrays)
    except Exception as error:  # the types and texts are compared
        return (type(error), str(error)), None
    out = out if isinstance(out, tuple) else (out,)
    return [(x.dtype.name, x.shape, x.tobytes()) for x in out], out


def runs(op, sample, dtype):
    return dtype in op.dtypes and (sample.dtypes is None or dtype in sample.dtypes)


@pytest.mark.parametrize("name", sorted(registry))
def test_exported_samples_give_what_eager_calls_and_the_interpreter_give(name, tmp_path):
    op, function = registry[name], _core.op_function(name)
    rng = np.random.default_rng(SEED)
    print(f"seed {SEED}")
    by_name = {d.name: d for d in vars(schema_dtypes).values() if isinstance(d, DType)}
    tried = 0
    for sample in list(op.cases())[:24]:
        for dtype in (by_name[d] for d in DTYPES):
            if not runs(op, sample, dtype):
                continue
            args, kwargs = sample.make(rng, dtype)
            if sum(x.size for x in args if isinstance(x, np.ndarray)) > 100_000:
                continue
            args, kwargs, arrays = arrays_of(args, kwargs)

            def call(*xs, args=args, kwargs=kwargs):
                return function(*(filled(x, xs) for x in args), **{k: filled(x, xs) for k, x in kwargs.items()})

            def exported(*xs, call=call):
                program = dt.export(call, *xs)
                program.save(tmp_path / "m.dvt")
                return program(*xs)

            expected, _ = outcome(call, *arrays)
            got, results = outcome(exported, *arrays)
            if (name, sample.id) in OF_ELEMENTS:
                continue
            assert got == expected, (sample.id, dtype.name)
            if results:
                given = [x.numpy() for x in arrays]
                for output in check_program(tmp_path / "m.dvt", given, run=lambda _, results=results: results):
                    assert output.ok, (sample.id, dtype.name, output)
            tried += 1
            break
    assert tried or not any(runs(op, s, by_name[d]) for s in op.cases() for d in DTYPES)
