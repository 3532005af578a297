"""NaN, infinities and zeros of both signs, as torch's CPU has them, in eager mode and in compiled models."""

import dovetail_torch
import pytest
import torch
from dovetail_torch.compile import backend

INF, NAN = float("inf"), float("nan")
MIXED = [1.0, NAN, 3.0, -INF, INF, NAN, 0.0, -0.0, -2.0, 3.0, -NAN]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def equal(got, expected):
    torch.testing.assert_close(got.detach().cpu(), expected.detach(), rtol=0, atol=0, equal_nan=True)


def rows(dtype):
    x = torch.tensor([MIXED, MIXED[::-1], [2.0, 5.0, 5.0, -1.0, *MIXED[4:]]]).to(dtype)
    x[1, 2:5] = INF
    return x


# ---- order: NaN is the largest value
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_nan_is_the_largest_value(device, dtype, how):
    def run(x):
        ordered = [f for d in (True, False) for f in torch.sort(x, dim=1, descending=d, stable=True)]
        columns = torch.argsort(x, dim=0, descending=True, stable=True)
        return (
            *ordered,
            columns,
            *(x.topk(k, 1)[0] for k in (1, 3, 9)),
            x.topk(4, 1, largest=False)[0],
            x.topk(2, 0)[0],
        )

    x = rows(dtype)
    f = run if how == "eager" else torch.compile(run, backend=backend)
    for got, expected in zip(f(x.to(device)), run(x), strict=True):
        equal(got, expected)
    values, indices = x.to(device).topk(5, 1)
    equal(x.gather(1, indices.cpu()), values.cpu())  # of equal elements torch may name any
    assert all(len(set(row)) == 5 for row in indices.tolist())


def test_sorting_what_has_no_nan(device, no_fallback):
    for x in (torch.tensor([[3, -1, 7, 7, 0]]), torch.tensor([[True, False, True]])):
        for d in (True, False):
            for got, expected in zip(
                torch.sort(x.to(device), dim=1, descending=d, stable=True),
                torch.sort(x, dim=1, descending=d, stable=True),
            ):
                equal(got, expected)


# ---- gradients: a comparison with NaN is false, and its gradient passes
@pytest.mark.parametrize(
    "name",
    ["relu", "relu6", "hardtanh", "elu", "selu", "celu", "leaky_relu", "hardshrink", "softshrink", "hardsigmoid"],
)
def test_gradients_at_special_values(device, name):
    f = getattr(torch.nn.functional, name)
    x = torch.tensor([NAN, INF, -INF, 0.0, 3.0, -3.0, 6.0, 0.5, -0.5])
    grads = [torch.autograd.grad(f(y).sum(), y)[0] for y in (t.requires_grad_() for t in (x.to(device), x.clone()))]
    torch.testing.assert_close(grads[0].cpu(), grads[1], equal_nan=True)


# ---- statistics
def test_spread_with_infinities(device):
    x = torch.tensor([[1.0, INF, 2.0], [INF, INF, 0.0], [-INF, 1.0, 0.0], [NAN, 1.0, 2.0], [1.0, 2.0, 4.0]])
    for f in (torch.var, torch.std):
        for dim in (0, 1, None):
            torch.testing.assert_close(f(x.to(device), dim).cpu(), f(x, dim), equal_nan=True)


# ---- where Dovetail has a limit, and torch's formula the product of 0 and infinity (docs/torch.md)
@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "hardswish"])
def test_gates_have_their_limit(device, name, no_fallback):
    y = getattr(torch.nn.functional, name)(torch.tensor([-INF, -1e30, INF, NAN], device=device)).cpu()
    equal(y, torch.tensor([-0.0, -0.0, INF, NAN]))
    assert y[0].signbit()


def test_softmax_of_infinity_is_nan_there(device, no_fallback):
    x = torch.tensor([[1.0, INF, 2.0], [-INF, -INF, -INF], [-INF, 1.0, 1.0], [NAN, 1.0, 2.0]])
    y = x.to(device).softmax(1).cpu()
    assert y[0, 1].isnan() and y[[1, 3]].isnan().all() and y[2].tolist() == [0, 0.5, 0.5]
    assert x.to(device).log_softmax(1).cpu()[0].isnan().tolist() == [False, True, False]


# ---- numbers keep their precision
@pytest.mark.parametrize("dtype", [*FLOATS, torch.bool, torch.uint8, torch.int16, torch.int64, torch.complex64])
def test_fills_convert_as_torch_does(device, dtype, no_fallback):
    def result(x, value):
        try:
            return x.fill_(value)
        except RuntimeError as error:
            return str(error)

    for value in (True, 3, -1, 2.75, 300, 1e300, 2**62, INF, 1 + 2j):
        got, expected = (
            result(torch.zeros(5, dtype=dtype, device=device)[::2], value),
            result(torch.zeros(5, dtype=dtype)[::2], value),
        )
        if isinstance(expected, str):
            assert isinstance(got, str) and got.splitlines()[0] == expected.splitlines()[0]
        else:
            equal(got, expected)


def test_first_powers_are_copies(device):
    x = torch.tensor([1.5, NAN, INF, -0.0])
    equal(x.to(device).pow(1), x)
    assert torch.arange(3, device=device).pow(1.0).tolist() == [0, 1, 2]
    out = torch.empty(4, dtype=torch.float64, device=device)
    equal(torch.pow(x.to(device), 1, out=out), x.double())


def test_python_numbers_are_not_rounded(device):
    x = torch.tensor([0.0, 1.1, 2.5, NAN, INF], dtype=torch.float64)
    for f in (
        lambda x: torch.xlogy(x, 0.1),
        lambda x: torch.xlogy(0.1, x),
        lambda x: torch.special.xlog1py(x, 0.1),
        lambda x: torch.add(x, 0.1, alpha=3),
        lambda x: torch.sub(x[1], 0.1, alpha=0.3),
        lambda x: torch.rsub(x, 0.1, alpha=3),
    ):
        torch.testing.assert_close(f(x.to(device)).cpu(), f(x), rtol=1e-15, atol=0, equal_nan=True)
        compiled = torch.compile(f, backend=backend)(x.to(device))
        torch.testing.assert_close(compiled.cpu(), f(x), rtol=1e-15, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("at", ["cpu", "cpu:0", "sim:0"])
def test_compiled_products_with_numbers_are_rounded_once(at, dtype):
    device = torch.device("cpu") if at == "cpu" else dovetail_torch.device(at)

    def run(x, *arrays):
        numbers = (65536.0, 1e10, 1e-8, 1e300, -INF, NAN, 2**40, 0.1, 3, 0, True, 1e-7)
        plain = [f(n) for n in numbers for f in (x.mul, x.__rmul__, x.div, x.clone().mul_, x.clone().div_)]
        whole = [x.div(n, rounding_mode=m) for n in (65536.0, 1e-8, *arrays) for m in ("trunc", "floor")]
        return *plain, *whole, *(f for n in arrays for f in (x * n, x / n, n * x, x[0] * n))

    x = torch.tensor([1e-3, 100.0, 0.0, 1e-4, INF, NAN, -3.0]).to(dtype)
    arrays = [torch.tensor(65536.0), torch.tensor(1e10, dtype=torch.float64), torch.tensor(10**6)]
    torch._dynamo.reset()
    compiled = torch.compile(run, backend=backend, fullgraph=True)
    for got, expected in zip(compiled(x.to(device), *(n.to(device) for n in arrays)), run(x, *arrays), strict=True):
        equal(got, expected)
