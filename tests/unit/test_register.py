"""An op that is registered at run time: decomposition, kernel, oracle and samples, as a third party adds them."""

from __future__ import annotations

import itertools

import dovetail as dt
import numpy as np
import pytest
from dispatch_kernel import float32_kernel
from dovetail.schema import op as declare
from dovetail.schema.declare import Tensor
from dovetail.schema.ops._float import magnitude as abs_

pytestmark = pytest.mark.usefixtures("leave_the_schema_as_it_was")
names = (f"acme.softsign_{i}" for i in itertools.count())


def softsign(name: str):
    @declare(
        name=name, shape="same", dtype="float", reference=lambda x, scale=1.0: scale * x / (1 + np.abs(x)), tol=3
    )
    def decomposition(x: Tensor, scale: float = 1.0) -> Tensor:
        """scale * x / (1 + |x|)."""
        return x * scale / (abs_(x) + 1.0)

    return decomposition


@pytest.fixture
def x() -> dt.Array:
    return dt.asarray(np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6))


def test_a_decomposition_serves_a_new_op(x):
    op = softsign(next(names))
    f = dt.register_op(op)
    np.testing.assert_allclose(f(x, scale=2.0).numpy(), op.expected(x.numpy(), scale=2.0), rtol=1e-6)
    assert f(dt.astype(x, dt.float16)).dtype == dt.float16
    assert f.__doc__ == f"{op.name}(x, scale=1.0)\n\nscale * x / (1 + |x|)."


@pytest.mark.parametrize("policy", ["lower", "float32", "widest"])
def test_a_new_op_states_its_autocast_policy(policy):
    @declare(name=next(names), shape="same", dtype="float", autocast=policy)
    def copied(x: Tensor) -> Tensor:
        """x."""
        return x + 0.0

    f = dt.register_op(copied)
    given = {dtype: dt.ones((2,), dtype=dtype, device="cpu") for dtype in ("float32", "float16", "float64")}
    with dt.autocast("bfloat16"):
        got = {dtype: str(f(x).dtype) for dtype, x in given.items()}
    narrow = {"lower": ["bfloat16"] * 2, "float32": ["float32"] * 2, "widest": ["float32", "float16"]}[policy]
    assert [name.removeprefix("dovetail.") for name in got.values()] == [*narrow, "float64"]


def test_autocast_policies_that_the_core_refuses():
    for like, flags in (("sigmoid", ("autocast_lower", "autocast_float32")), ("zeros", ("autocast_lower",))):
        with pytest.raises(ValueError, match="expected one autocast policy, of an op with operands"):
            dt._core.register_op({**dt._core.describe_op(like), "name": next(names), "flags": flags})


def test_a_kernel_replaces_the_decomposition(x):
    op = softsign(name := next(names))
    f = dt.register_op(op)
    f(x)

    def compute(values):
        return values / (1 + np.abs(values))

    dt._core.add_kernel("cpu:0", float32_kernel(name, 1, compute))
    np.testing.assert_allclose(f(x).numpy(), op.expected(x.numpy()), rtol=1e-6)
    assert compute.calls == 1
    np.testing.assert_allclose(f(x[:, ::2]).numpy(), op.expected(x.numpy()[:, ::2]), rtol=1e-6)
    assert compute.calls == 2
    assert f(dt.astype(x, dt.float64)).dtype == dt.float64  # no row for it: the decomposition
    assert compute.calls == 2


def test_a_row_of_version_1_serves_only_calls_without_newer_attributes(x):
    @declare(name=(name := next(names)), shape="same", dtype="float", version=2, since={"turns": 2})
    def turned(x: Tensor, turns: int = 1) -> Tensor:
        """x + turns."""
        return x + turns

    f = dt.register_op(turned)
    compute = lambda values: values + 1  # noqa: E731
    dt._core.add_kernel("cpu:0", float32_kernel(name, 1, compute))
    assert [p["since"] for p in dt._core.describe_op(name)["params"]] == [1, 2]
    with dt.device("cpu:0"):
        np.testing.assert_array_equal(f(x, turns=3).numpy(), x.numpy() + 3)
        np.testing.assert_array_equal(f(x).numpy(), x.numpy() + 1)


def test_a_decomposition_that_captures_an_array_is_refused(x):
    scales = dt.ones((4, 6))

    @declare(name=(name := next(names)), shape="same", dtype="float")
    def scaled(x: Tensor) -> Tensor:
        """x * scales."""
        return x * scales

    with pytest.raises(TypeError, match=rf"\[{name}\] its decomposition uses an array .* \(4, 6\), expected"):
        dt.register_op(scaled)(x)


def test_samples_of_a_new_op_are_those_of_any_elementwise_op():
    op = softsign(next(names))
    assert list(op.cases())


def test_a_taken_name_and_an_unknown_rule_are_refused():
    op = softsign(next(names))
    dt.register_op(op)
    with pytest.raises(ValueError, match="registered already"):
        dt.register_op(op)

    @declare(name=next(names), shape="spiral", dtype="float")
    def bad(x: Tensor) -> Tensor:
        """x"""
        return abs_(x)

    with pytest.raises(ValueError, match="shape rule 'spiral'"):
        dt.register_op(bad)


def test_an_op_without_kernel_and_decomposition_raises(x):
    @declare(name=next(names), shape="same", dtype="float", tier="must")
    def nothing(x: Tensor) -> Tensor:
        """x"""

    f = dt.register_op(nothing)
    with pytest.raises(NotImplementedError, match=r"float32 is not supported on cpu:0: .* no decomposition"):
        f(x)


def test_help_has_the_whole_declaration():
    form, summary, *more = dt.nn.scaled_dot_product_attention.__doc__.split("\n\n")
    assert form.endswith(
        "(query, key, value, attn_mask=None, *, is_causal=False, scale=None, enable_gqa=False, kv_length=None)"
    )
    assert summary.startswith("softmax(query @ key.T") and "enable_gqa" in more[0]
    assert dt.negative.__doc__.startswith("negative(x)\n\n-x; ")
