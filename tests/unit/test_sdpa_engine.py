"""Engines of attention, chosen with sdpa_engine, on a device that has two of them and the decomposition."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import dovetail as dt
import numpy as np
import pytest
from dovetail.nn import scaled_dot_product_attention as sdpa
from dovetail.nn import sdpa_engine, sdpa_engines
from dovetail.prototype import kernel
from dovetail.schema import Tensor, op, registry
from python_devices import Copies

ATTENTION = "scaled_dot_product_attention"
F32 = "float32,float32,float32,any->float32"
pytestmark = pytest.mark.filterwarnings("ignore::dovetail.FallbackWarning")


class Attending(Copies):
    """Each engine returns its own number instead of attention; the decomposition needs the cpu for its ops."""

    name = "attending"

    @kernel(ATTENTION, f"{F32} float16", engine="fused")
    def fused(self, query, key, value, attn_mask, out, **attributes):
        out.numpy()[...] = 1

    @fused.query
    def fused(self, query, key, value, attn_mask, out, **attributes):
        return "its head size is above 8" if query.shape[-1] > 8 else True

    @kernel(ATTENTION, F32, engine="flash")
    def flash(self, query, key, value, attn_mask, out, **attributes):
        out.numpy()[...] = 2

    @flash.query
    def flash(self, query, key, value, attn_mask, out, **attributes):
        return "it has no masks" if attn_mask is not None else True


FUSED, FLASH = 1.0, 2.0


@pytest.fixture(scope="module", autouse=True)
def device() -> dt.Device:
    return dt.load_backend(Attending)[0]


def operands(*shape: int, dtype: str = "float32", device: str = "attending:0") -> list[dt.Array]:
    """Operands of one number, which attention returns and no engine does."""
    return [dt.asarray(np.full(shape or (2, 4), 3.0), dtype=dtype, device=device) for _ in range(3)]


def served(*shape: int, **options) -> float:
    """The number of the kernel that served the call: 1 and 2 are the engines, 3 is attention."""
    mask = options.pop("mask", None)
    out = np.asarray(sdpa(*operands(*shape, **options), mask).to_device("cpu").astype("float64"))
    assert (out == out.flat[0]).all()
    return float(out.flat[0])


def test_without_a_choice_the_table_decides():
    assert served() == FUSED
    assert served(2, 16) == FLASH
    mask = dt.asarray(np.ones((2, 2), bool), device="attending:0")
    assert served(2, 16, mask=mask) == 3.0


@pytest.mark.parametrize(
    ("engines", "result"),
    [("fused", FUSED), ("flash", FLASH), ("math", 3.0), (["flash", "fused"], FLASH), (("math", "flash"), 3.0)],
)
def test_the_engine_that_is_named_serves(engines, result):
    with sdpa_engine(engines):
        assert served() == result
        assert served() == result
    assert served() == FUSED


def test_the_next_engine_serves_what_the_first_refuses():
    with sdpa_engine(["fused", "flash"]):
        assert (served(2, 4), served(2, 16)) == (FUSED, FLASH)


def test_an_engine_that_refuses_is_an_error_and_no_other_serves():
    mask = dt.asarray(np.ones((2, 2), bool), device="attending:0")
    with sdpa_engine(["fused", "flash"]), pytest.raises(NotImplementedError) as raised:
        served(2, 16, mask=mask)
    assert str(raised.value) == (
        "[scaled_dot_product_attention] no chosen engine serves this call on attending:0: "
        "fused: its head size is above 8; flash: it has no masks"
    )
    with sdpa_engine("flash"), pytest.raises(NotImplementedError, match=r"flash: no kernel of it takes float16"):
        served(dtype="float16")
    with (
        sdpa_engine("flash"),
        pytest.raises(NotImplementedError, match=r"this device has no engine 'flash': it has own, math"),
    ):
        served(device="cpu:0")


def test_kernels_without_a_name_are_own():
    q, k, v = (dt.asarray(np.random.default_rng(i).normal(size=(3, 8)), dtype="float32") for i in range(3))
    with sdpa_engine("own"):
        own = sdpa(q, k, v).numpy()
    with sdpa_engine("math"):
        decomposition = sdpa(q, k, v).numpy()
    np.testing.assert_allclose(own, decomposition, rtol=1e-5)
    with sdpa_engine("own"), pytest.raises(NotImplementedError, match="no engine 'own': it has fused, flash, math"):
        served()


def test_unknown_engines_are_refused_with_the_nearest():
    for engines, hint in [
        ("fusd", "[sdpa_engine] no device has an engine 'fusd', did you mean 'fused'?"),
        (["math", "Flash"], "[sdpa_engine] no device has an engine 'Flash', did you mean 'flash'?"),
    ]:
        with pytest.raises(ValueError) as raised, sdpa_engine(engines):
            raise AssertionError("entered")
        assert str(raised.value) == hint
    assert served() == FUSED


@pytest.mark.parametrize("engines", [None, 3, [], ["math", 3], b"math"])
def test_invalid_engine_names_are_refused(engines):
    with pytest.raises(TypeError, match=r"\[sdpa_engine\] expected an engine's name"):
        sdpa_engine(engines)


def test_choices_nest_and_end_with_an_exception():
    with sdpa_engine("math"):
        with sdpa_engine(["flash"]):
            assert served() == FLASH
        assert served() == 3.0
        with pytest.raises(ZeroDivisionError), sdpa_engine("flash"):
            _ = 1 / 0
        assert served() == 3.0
    assert served() == FUSED
    twice = sdpa_engine("flash")
    with twice, twice:
        assert served() == FLASH
    assert served() == FUSED


def test_it_decorates_functions():
    @sdpa_engine("flash")
    def inner(depth: int) -> float:
        return served() if depth == 0 else inner(depth - 1)

    assert inner(2) == FLASH
    assert served() == FUSED

    async def later():
        return served()

    def parts():
        yield served()

    for function in (later, parts):
        with pytest.raises(TypeError, match="runs after its call has returned"):
            sdpa_engine("flash")(function)


def test_each_thread_and_task_has_its_own():
    with sdpa_engine("flash"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(served).result() == FUSED
        assert served() == FLASH

    async def task(engine: str) -> list[float]:
        found = []
        with sdpa_engine(engine):
            for _ in range(3):
                found.append(served())
                await asyncio.sleep(0)
        return found

    async def both() -> list[list[float]]:
        return await asyncio.gather(task("flash"), task("math"), task("fused"))

    assert asyncio.run(both()) == [[FLASH] * 3, [3.0] * 3, [FUSED] * 3]


def test_calls_inside_decompositions(leave_the_schema_as_it_was):
    @op(shape="same", dtype="float", name="sdpa_engine_test.layer", tol=4, reference=lambda x: x)
    def layer(x: Tensor) -> Tensor:
        """Attention of x to itself."""
        return registry[ATTENTION](x, x, x)

    function = dt.register_op(layer)
    (x, *_) = operands()
    run = lambda: float(function(x).to_device("cpu")[0, 0])  # noqa: E731
    assert run() == FUSED
    with sdpa_engine("flash"):
        assert run() == FLASH
    with sdpa_engine("math"):
        assert run() == 3.0
    assert run() == FUSED


def test_other_ops_are_not_touched():
    with sdpa_engine("flash"):
        x = dt.asarray([[1.0, 2.0]], device="attending:0")
        assert (x + x).to_device("cpu").tolist() == [[2.0, 4.0]]


def test_the_engines_of_a_call():
    mask = dt.asarray(np.ones((2, 2), bool), device="attending:0")
    assert sdpa_engines(*operands()) == ["fused", "flash", "math"]
    assert sdpa_engines(*operands(2, 16)) == ["flash", "math"]
    assert sdpa_engines(*operands(2, 16), mask) == ["math"]
    assert sdpa_engines(*operands(), attn_mask=mask) == ["fused", "math"]
    assert sdpa_engines(*operands(device="cpu:0"), is_causal=True)[-1] == "math"
    assert sdpa_engines(*operands(), op="scaled_dot_product_attention_with_logsumexp") == ["math"]
    with pytest.raises(ValueError, match=r"op: expected .*_with_logsumexp or .*_varlen, got 'attention'"):
        sdpa_engines(*operands(), op="attention")
    q, k, _ = operands()
    with pytest.raises(ValueError, match="second last axes to be equal"):
        sdpa_engines(q, k, operands(3, 4)[0])
    with pytest.raises(TypeError, match="causal"):
        sdpa_engines(*operands(), causal=True)
    with pytest.raises(TypeError, match="expected dovetail arrays"):
        sdpa_engines(q, k, "value")


def test_the_log_names_the_engine():
    code = f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import test_sdpa_engine as t
t.dt.load_backend(t.Attending)
t.served(2, 16)
with t.sdpa_engine("math"):
    t.served()
"""
    printed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"DOVETAIL_LOGS": "+dispatch"},
    ).stderr
    lines = [line for line in printed.splitlines() if "debug: scaled_dot_product_attention" in line]
    assert lines == [
        "dovetail[dispatch] debug: scaled_dot_product_attention on attending:0 by flash; "
        "fused: its head size is above 8",
        "dovetail[dispatch] debug: scaled_dot_product_attention on attending:0 by math",
    ]
    assert (
        "info: scaled_dot_product_attention(float32, float32, float32) on attending:0: kernel fused, flash"
        in printed
    )
