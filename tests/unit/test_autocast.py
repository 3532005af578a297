"""dovetail.autocast: which ops cast which operands, where a scope holds, and what is kept."""

import asyncio
import threading
from contextlib import nullcontext

import dovetail as dt
import numpy as np
import pytest
from dovetail import nn
from dovetail.schema import registry
from trace_events import names

DEVICES = "cpu:0", "sim:0"
LOWERED = {
    "matmul": lambda x, w: x @ w,
    "linear": lambda x, w: nn.linear(x, w, w[0]),
    "conv1d": lambda x, w: nn.conv1d(x[None], w[:, :, None]),
    "attention": lambda x, w: nn.scaled_dot_product_attention(x[None], x[None], x[None]),
}
IN_FLOAT32 = {
    "exp": lambda x, w: dt.exp(x),
    "pow": lambda x, w: abs(x) ** 1.5,
    "sum": lambda x, w: dt.sum(x, axis=-1),
    "softmax": lambda x, w: nn.softmax(x),
    "layer_norm": lambda x, w: nn.layer_norm(x, (8,), w[0], w[1]),
    "cross_entropy": lambda x, w: nn.cross_entropy(x, dt.zeros((x.shape[0],), dtype="int64", device=x.device)),
}
LEFT = {
    "add": lambda x, w: x + w,
    "gelu": lambda x, w: nn.gelu(x),
    "where": lambda x, w: dt.where(x > 0, x, w),
    "max": lambda x, w: dt.max(x, axis=0),
    "times a number": lambda x, w: x * 1.5,
}


def operands(device, dtype="float32"):
    random = np.random.default_rng(5)
    made = [dt.asarray(random.standard_normal((8, 8)).astype(np.float32), device=device) for _ in range(2)]
    return [dt.astype(x, dtype) for x in made]


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    assert np.array_equal(np.asarray(dt.astype(a, dt.float64)), np.asarray(dt.astype(b, dt.float64)))


def casts(function, *args):
    """How many casts a call runs."""
    with dt.profile() as p:
        function(*args)
    return names(p.events, "kernel").count("astype")


# ---- ops ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", LOWERED)
def test_products_are_lowered(op, dtype, device):
    """With the bits of operands that are cast by hand."""
    x, w = operands(device)
    with dt.autocast(dtype):
        got = LOWERED[op](x, w)
    assert got.dtype == dtype
    same(got, LOWERED[op](dt.astype(x, dtype), dt.astype(w, dtype)))


@pytest.mark.parametrize("op", IN_FLOAT32)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_sums_and_exponentials_are_float32(op, dtype):
    x, w = operands("cpu:0", dtype)
    with dt.autocast():
        got = IN_FLOAT32[op](x, w)
    assert got.dtype == "float32"
    same(got, IN_FLOAT32[op](dt.astype(x, "float32"), dt.astype(w, "float32")))


@pytest.mark.parametrize("op", LEFT)
def test_others_take_what_they_are_given(op):
    for dtype in ("float32", "bfloat16"):
        x, w = operands("cpu:0", dtype)
        with dt.autocast():
            got = LEFT[op](x, w)
        same(got, LEFT[op](x, w))
    narrow, (_, wide) = operands("cpu:0", "bfloat16")[0], operands("cpu:0")
    with dt.autocast():
        assert (narrow + wide).dtype == "float32"  # the wider one


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_what_is_never_cast(dtype):
    x, w = operands("cpu:0", dtype)
    with dt.autocast():
        assert (x @ w).dtype == dtype and dt.sum(x).dtype == dt.sum(x).dtype
    same(x @ w, dt.autocast()(lambda: x @ w)())


def test_every_op_has_a_policy():
    policies = {name: op.spec.autocast for name, op in registry.items()}
    assert set(policies.values()) == {"lower", "float32", "widest"}
    assert {name for name, policy in policies.items() if policy == "lower"} == {
        "matmul", "vecdot", "linear", "linear_with_activation", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
        "conv_transpose2d", "conv_transpose3d", "scaled_dot_product_attention",
        "scaled_dot_product_attention_with_logsumexp", "scaled_dot_product_attention_varlen",
        "scaled_dot_product_attention_grad", "conv_grad_input", "conv_grad_weight",
    }  # fmt: skip
    assert {name for name, policy in policies.items() if policy == "float32"} == set(
        """
        exp exp2 expm1 log log1p log2 log10 logaddexp logsumexp pow square reciprocal rsqrt sinh cosh tan asin acos
        asinh acosh atanh erfc sum prod mean var std cumulative_sum cumulative_prod segment_sum vector_norm softmax
        log_softmax layer_norm rms_norm batch_norm batch_norm_train group_norm softplus logsigmoid cross_entropy
        logcumsumexp cholesky lu_factor solve_triangular qr eigh svd softmax_grad log_softmax_grad layer_norm_grad
        rms_norm_grad batch_norm_train_grad cross_entropy_grad
        """.split()
    )


def test_in_place_operators_keep_the_dtype_of_their_target():
    x, w = operands("cpu:0")
    expected = dt.astype(dt.astype(x, "bfloat16") @ dt.astype(w, "bfloat16"), "float32")
    with dt.autocast():
        x @= w
    same(x, expected)


# ---- scopes ------------------------------------------------------------------------------------------------------


def test_nesting():
    x, w = operands("cpu:0")
    with dt.autocast("bfloat16"):
        with dt.autocast("float16"):
            assert (x @ w).dtype == "float16"
            with dt.autocast(enabled=False):
                assert (x @ w).dtype == "float32"
        with pytest.raises(ZeroDivisionError), dt.autocast("float16"):
            raise ZeroDivisionError
        assert (x @ w).dtype == "bfloat16"
    assert (x @ w).dtype == "float32"


def test_scopes_that_end_in_another_order():
    """A generator that is closed later takes its own scope away, and leaves the caller's."""
    x, w = operands("cpu:0")

    def generator():
        with dt.autocast("float16"):
            yield (x @ w).dtype

    values = generator()
    assert next(values) == "float16"
    with dt.autocast("bfloat16"):
        values.close()
        assert (x @ w).dtype == "bfloat16"
    assert (x @ w).dtype == "float32"


def test_one_device_alone():
    cpu, sim = operands("cpu:0"), operands("sim:0")
    with dt.autocast("bfloat16"), dt.autocast("float16", device="sim:0"):
        assert (cpu[0] @ cpu[1]).dtype == "bfloat16" and (sim[0] @ sim[1]).dtype == "float16"
        with dt.autocast(device="cpu:0", enabled=False):
            assert (cpu[0] @ cpu[1]).dtype == "float32" and (sim[0] @ sim[1]).dtype == "float16"


def test_threads_and_tasks_have_their_own():
    x, w = operands("cpu:0")
    seen = {}

    def work():
        seen["thread"] = (x @ w).dtype

    async def inner():
        with dt.autocast("float16"):
            await asyncio.sleep(0)
            seen["inner"] = (x @ w).dtype

    async def outer():
        await asyncio.gather(inner(), asyncio.to_thread(lambda: seen.update(copied=(x @ w).dtype)))
        seen["outer"] = (x @ w).dtype

    with dt.autocast("bfloat16"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        asyncio.run(outer())
    assert {k: str(v).removeprefix("dovetail.") for k, v in seen.items()} == {
        "thread": "float32", "inner": "float16", "copied": "bfloat16", "outer": "bfloat16",
    }  # fmt: skip


def test_decorator():
    scope = dt.autocast("float16")

    @scope
    def product(x, w, depth=2):
        """Of two."""
        return product(x, w, depth - 1) if depth else x @ w

    assert product(*operands("cpu:0")).dtype == "float16" and product.__doc__ == "Of two."
    with pytest.raises(TypeError, match=r"\[autocast\] .* runs after its call has returned"):

        @scope
        def generator():
            yield


def test_what_it_refuses():
    with pytest.raises(ValueError, match=r"\[autocast\] dtype: got float64, expected float16 or bfloat16"):
        dt.autocast("float64")
    with pytest.raises(TypeError, match="enabled=False switches it off"):
        dt.autocast(False)
    with pytest.raises(TypeError, match=r"\[autocast\] enabled: got 1"):
        dt.autocast(enabled=1)
    with pytest.raises(ValueError, match="no backend 'nowhere'"), dt.autocast(device="nowhere"):
        pass
    assert repr(dt.autocast("float16", device="cpu", enabled=False)) == (
        "autocast('float16', device='cpu', enabled=False)"
    )


# ---- kept casts --------------------------------------------------------------------------------------------------


def casts_by_hand(x, w):
    """Of a product whose first operand is cast; a device without kernels for bfloat16 casts, too."""
    w = dt.astype(w, "bfloat16")
    return casts(lambda: dt.astype(x, "bfloat16") @ w)


@pytest.mark.parametrize("device", DEVICES)
def test_weights_are_cast_once(device):
    w = operands(device)[1]
    with dt.autocast("bfloat16"):
        for _ in range(3):
            operands(device)[0] @ w
        assert casts(lambda x: x @ w, operands(device)[0]) == casts_by_hand(*operands(device))
    assert casts(lambda x: x @ w, operands(device)[0]) == 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shared", [False, True])
def test_a_write_to_a_weight_is_seen(device, shared):
    x, w = operands(device)
    holder = w[:] if shared else None
    with dt.autocast("bfloat16"):
        for _ in range(3):
            x @ w
        w[0] = 100.0
        got = x @ w
        w *= 2.0
        doubled = x @ w
    cast = dt.astype(x, "bfloat16")
    assert np.asarray(w)[0].tolist() == [200.0] * 8
    same(doubled, cast @ dt.astype(w, "bfloat16"))
    same(got, cast @ dt.astype(w * 0.5, "bfloat16"))
    assert holder is None or not np.array_equal(np.asarray(holder), np.asarray(w))


def test_views_of_one_weight_are_told_apart():
    x, w = operands("cpu:0")
    with dt.autocast("bfloat16"):
        for _ in range(3):
            a, b, c = x[:, :4] @ w[:4], x[:, :4] @ w[4:], x @ dt.permute_dims(w, (1, 0))
    x, w = (dt.astype(v, "bfloat16") for v in (x, w))
    same(a, x[:, :4] @ w[:4])
    same(b, x[:, :4] @ w[4:])
    same(c, x @ dt.permute_dims(w, (1, 0)))


# ---- traces ------------------------------------------------------------------------------------------------------


def model(x, w):
    return nn.softmax(nn.gelu(x @ w)) + dt.sum(w)


def test_a_compiled_function_has_a_program_for_each_dtype():
    x, w = operands("cpu:0")
    f = dt.compile(model, numerics="eager")
    scopes = [nullcontext(), dt.autocast("bfloat16"), dt.autocast("float16"), dt.autocast(enabled=False)]
    for _ in range(3):
        for scope in scopes:
            with scope:
                same(f(x, w), model(x, w))
    assert len(f._state.traces) == 3
    with dt.autocast("float16"):
        text = f.explain(x, w)
    assert "autocast to float16" in text
    assert "traced again: dovetail.autocast lowers to bfloat16, and lowered to nothing" in text


def test_a_scope_within_a_compiled_function():
    x, w = operands("cpu:0")

    def function(x, w):
        with dt.autocast("bfloat16"):
            y = x @ w
        return y, x @ w

    narrow, wide = dt.compile(function, numerics="eager")(x, w)
    same(narrow, dt.astype(x, "bfloat16") @ dt.astype(w, "bfloat16"))
    same(wide, x @ w)


@pytest.mark.parametrize("device", DEVICES)
def test_a_compiled_function_casts_weights_once(device):
    x, w = operands(device)
    f = dt.compile(lambda x: x @ w)
    with dt.autocast("bfloat16"):
        for _ in range(3):
            f(operands(device)[0])
        assert casts(f, operands(device)[0]) == casts_by_hand(*operands(device))
        w[0] = 100.0
        same(f(x), x @ w)


def test_exported_programs_have_the_casts():
    x, w = operands("cpu:0")
    with dt.autocast("bfloat16"):
        program = dt.export(model, x, w)
        expected = model(x, w)
    same(program(x, w), expected)
    assert "astype(x, dtype=bfloat16)" in str(program)


def test_functions_of_control_ops():
    x, w = operands("cpu:0")

    def function(x, w):
        start = dt.asarray(0), dt.astype(x, "bfloat16")
        return dt.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, v[1] @ w), start)[1]

    with dt.autocast("bfloat16"):
        got, expected = dt.compile(function)(x, w), function(x, w)
    same(got, expected)
    with pytest.raises(TypeError, match="bfloat16"):
        function(x, w)  # a round would give float32


def test_registered_ops_state_a_policy():
    from dovetail.schema import op

    with pytest.raises(ValueError, match="autocast: expected lower, float32 or widest, got 'narrow'"):

        @op(shape="same", dtype="float", name="acme.bad", autocast="narrow", reference=np.exp)
        def bad(x, /):
            """e to the x."""
            return registry["exp"](x)
