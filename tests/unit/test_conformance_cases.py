import re
import tomllib
import zlib

import numpy as np
import pytest
from dovetail.schema import Draw, Sample, registry
from dovetail.schema import dtypes as dt
from dovetail_conformance.cases import all_cases
from dovetail_conformance.cases.inputs import generator, lay_out, layouts, place_as
from dovetail_conformance.cases.samples import SampleCase
from dovetail_conformance.judging import oracle
from dovetail_conformance.judging.compare import compare
from dovetail_conformance.levels.must_pass import must_pass, parse

OPS = {"permute_dims": np.transpose, "broadcast_to": np.broadcast_to}
# Every published list: version -> hash. A change of the list needs a new version.
PUBLISHED = {1: "5791744e6db2179accbcb1104b068b20350b1b8945c55dff935feda6e40fb44d"}


def test_ids_are_readable_and_unique():
    cases = all_cases()
    assert len(cases) > 5000
    for id, case in cases.items():
        assert id == case.id
        assert re.fullmatch(r"[a-z0-9_.]+\[[^\[\]\s']+\]", id), id
        assert case.group == (case.op or id.partition("[")[0])
    assert "matmul[f32,m=64,k=64,n=64,layout=NT]" in cases
    assert "device.memory[out_of_memory]" in cases
    assert "add[f32,values]" in cases


def test_levels_of_cases():
    cases = all_cases()
    assert cases["device.copies[every_size]"].level == "L0"
    assert cases["add[i32,vectors]"].level == "L1"
    assert cases["add[i8,vectors]"].level == "L2"
    assert cases["nextafter[f32,vectors]"].level == "L2"


def test_must_pass_is_the_published_list():
    assert must_pass().hash() == must_pass().sha256 == PUBLISHED[must_pass().version]


def test_must_pass_hash_depends_on_the_meaning():
    def of(groups: str):
        return parse(tomllib.loads('version = 3\nsha256 = ""\ndtypes = "f32"\n' + groups), "a.toml")

    one = of('[[group]]\ndtypes = "f32 i32"\nops = "add sub"\n')
    two = of('# note\n[[group]]\ndtypes="i32  f32"\nops="""\n sub\n add"""\n')
    other = of('[[group]]\ndtypes = "f32 i32"\nops = "add"\n')
    assert one.hash() == two.hash() != other.hash()
    with pytest.raises(ValueError, match=r"a\.toml names add twice"):
        of('[[group]]\ndtypes = "f32"\nops = "add add"\n')


def test_must_pass_names_existing_ops():
    listed = must_pass()
    tested = {(c.op, c.dtype.brief) for c in all_cases().values() if c.dtype and c.level == "L1"}
    for op, dtypes in listed.ops.items():
        assert op in registry, op
        for brief in dtypes:
            assert brief in listed.dtypes
            assert (op, brief) in tested, f"{op}[{brief}] has no case"
    missing = [op.name for op in registry.values() if op.tier == "must" and op.name not in listed.ops]
    assert not missing


def test_inputs_depend_on_seed_and_case_alone():
    case = all_cases()["add[f32,vectors]"]
    one, _ = case.sample.make(generator(7, case.id), case.dtype)
    again, _ = case.sample.make(generator(7, case.id), case.dtype)
    other, _ = case.sample.make(generator(8, case.id), case.dtype)
    assert one[0].tobytes() == again[0].tobytes() != other[0].tobytes()
    # The same on every machine and in every release: a replay uses the inputs that failed.
    assert generator(0, "add[f32,vectors]").integers(0, 1 << 32, 3).tolist() == [3147780365, 1761543775, 1930295883]


def test_layouts_that_make_a_difference():
    def of(rule, *shapes, error=None):
        return layouts(Sample("s", tuple(Draw(s) for s in shapes), {}, error), rule)

    assert of("broadcast", (5,), (5,)) == ("strided", "offset")
    assert of("reduce", (3, 4)) == ("strided", "offset", "T")
    assert of("broadcast", (), (1,)) == ()
    assert of("broadcast", (0, 3)) == ()
    assert of("broadcast", (3, 4), error=ValueError) == ()
    assert of("matmul", (3, 4), (4, 5)) == ("NT", "TN", "TT", "strided", "offset")
    assert of("matmul", (3, 4), (4,)) == ("strided", "offset", "T")


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, dt.bfloat16.numpy])
@pytest.mark.parametrize("how", ["", "strided", "offset", "T", "rows", "F", "repeated"])
def test_every_layout_holds_the_same_values(how, dtype):
    for shape in ((), (1,), (5,), (3, 4), (2, 3, 5), (0, 3), (3, 0)):
        a = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
        made = []

        def asarray(x, made=made):
            made.append(x.copy())
            return made[-1]

        a = np.array(np.broadcast_to(a[:1], shape)) if how == "repeated" and shape else a
        placed = place_as(a, how, asarray, OPS.__getitem__)
        assert placed.shape == shape and placed.dtype == a.dtype and np.array_equal(placed, a)
        assert len(made) == 1
        if how == "T" and min(shape[-2:], default=0) > 1 and len(shape) > 1:
            assert placed.strides[-1] > placed.strides[-2]
        if how == "strided" and a.size > 1:
            assert not placed.flags.c_contiguous
        if how == "offset" and a.ndim and a.size:
            assert placed.base is not None and placed.ctypes.data != made[0].ctypes.data


def test_products_are_laid_out_one_by_one():
    placed = []
    args = (np.zeros((2, 3)), np.zeros((3, 4)), 5)
    got, keywords = lay_out(args, {"axis": 1}, "NT", lambda a, how: placed.append((a.shape, how)) or how)
    assert got == ("", "T", 5) and keywords == {"axis": 1}
    assert placed == [((2, 3), ""), ((3, 4), "T")]


def test_variadic_operands_are_placed():
    args = ([np.zeros(2), np.zeros(3)],)
    got, _ = lay_out(args, {}, "strided", lambda a, how: (a.size, how))
    assert got == ([(2, "strided"), (3, "strided")],)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("f32", "f32", "f32"),
        ("bool", "i8", "i8"),
        ("i8", "i64", "i64"),
        ("u8", "i8", "i16"),
        ("u32", "i8", "i64"),
        ("u8", "i32", "i32"),
        ("i64", "f16", "f16"),
        ("f16", "bf16", "f32"),
        ("bf16", "f32", "f32"),
        ("f32", "f64", "f64"),
        ("f32", "c64", "c64"),
        ("f64", "c64", "c128"),
    ],
)
def test_promotion(a, b, expected):
    for pair in ((a, b), (b, a)):
        assert oracle.promote(*(dt.by_name[x] for x in pair)).brief == expected


def test_promotion_that_is_refused():
    with pytest.raises(TypeError):
        oracle.promote(dt.uint64, dt.int8)


def test_numbers_are_weak():
    i16, f16 = np.zeros(1, np.int16), np.zeros(1, np.float16)
    assert oracle.promoted([i16, 3]).brief == "i16"
    assert oracle.promoted([i16, 3.0]).brief == "f32"
    assert oracle.promoted([f16, 3.0]).brief == "f16"
    assert oracle.promoted([np.zeros(1, bool), True]).brief == "bool"
    assert oracle.promoted([f16, 1j]).brief == "c64"


@pytest.mark.parametrize(
    ("op", "args", "kwargs", "expected"),
    [
        ("add", ("i32", "i32"), {}, "i32"),
        ("divide", ("i32", "i32"), {}, "f32"),
        ("less", ("f32", "f32"), {}, "bool"),
        ("isnan", ("f32",), {}, "bool"),
        ("sum", ("i32",), {}, "i64"),
        ("sum", ("u8",), {}, "u64"),
        ("sum", ("bool",), {}, "i64"),
        ("sum", ("bf16",), {}, "bf16"),
        ("sum", ("i32",), {"dtype": dt.float32}, "f32"),
        ("argmax", ("f32",), {}, "i64"),
        ("where", ("bool", "i8", "i8"), {}, "i8"),
        ("take", ("f16", "i64"), {}, "f16"),
        ("concat", (["i8", "i32"],), {}, "i32"),
        ("astype", ("f32", dt.int8), {}, "i8"),
    ],
)
def test_result_dtypes(op, args, kwargs, expected):
    def made(a):
        return (
            [made(x) for x in a]
            if isinstance(a, list)
            else np.zeros(3, dt.by_name[a].numpy)
            if isinstance(a, str)
            else a
        )

    given = registry[op].bind(*map(made, args), **kwargs)
    assert oracle.result_dtype(registry[op], given).brief == expected


def test_result_dtype_of_arrays_made_from_numbers():
    full = registry["full"]
    for value, expected in ((1, "i64"), (True, "bool"), (1.0, "f32"), (1j, "c64")):
        assert oracle.result_dtype(full, full.bind((2,), value)).brief == expected


def test_float16_errs_by_its_own_rounding():
    assert oracle.tolerance(registry["tanh"], dt.float32) > 1
    assert oracle.tolerance(registry["tanh"], dt.bfloat16) == 1
    assert oracle.tolerance(registry["add"], dt.float16) == registry["add"].spec.tol


@pytest.mark.parametrize("d", dt.COMPLEX, ids=str)
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "sum", "matmul"])
def test_complex_results_are_near_numpys(op, d):
    """NumPy computes in the dtype itself, the oracle in a wider one."""
    cases = [c for c in all_cases().values() if isinstance(c, SampleCase) and c.op == op and c.dtype is d]
    for case in (c for c in cases if not c.layout):
        args, kwargs = case.sample.make(generator(0, case.id), d)
        (answer,) = oracle.answers(registry[op], args, kwargs)
        near = getattr(np, op)(*args, **{k: getattr(v, "numpy", v) for k, v in kwargs.items()})
        assert compare(near, answer.value, answer.dtype, answer.tol, answer.scale).ok, case.id
        off = near * d.numpy.type(1 + 64 * dt.PART[d].eps)
        assert not np.any(near) or op in ("sum", "matmul") or not compare(off, answer.value, d, answer.tol).ok


def test_the_oracle_computes_every_sample():
    """One dtype of each op here; all of them are within their own rounding."""
    seen = set()
    for case in all_cases().values():
        if (
            not isinstance(case, SampleCase)
            or case.layout
            or case.sample.error
            or (case.op, case.sample.id) in seen
        ):
            continue
        if zlib.crc32(case.id.encode()) % 3:
            continue
        seen.add((case.op, case.sample.id))
        args, kwargs = case.sample.make(generator(0, case.id), case.dtype)
        for answer in oracle.answers(registry[case.op], args, kwargs):
            assert isinstance(answer.value, np.ndarray) and answer.dtype.kind in "biufc", case.id
