"""`out=` of the caller, with another shape, dtype or order, and ops in place that cannot hold their result."""

import pytest
import torch

SEED = 20261128


def normal(*size):
    print("seed", SEED)
    return torch.randn(*size, generator=torch.Generator().manual_seed(SEED)) * 3


def zeros(dtype, *size):
    return lambda: torch.zeros(*size, dtype=dtype)


def apart():
    return torch.zeros(6, 8)[::2, ::2]


CALLS = {
    "any": (lambda x, out: torch.any(x, 1, out=out), [zeros(torch.bool, 0), zeros(torch.uint8, 3, 4)]),
    "all": (
        lambda x, out: torch.all(x.abs().byte(), 0, out=out),
        [zeros(torch.uint8, 0), zeros(torch.uint8, 3, 4)],
    ),
    "cat": (lambda x, out: torch.cat([x, x], 1, out=out), [zeros(torch.float32, 0), zeros(torch.float64, 3, 8)]),
    "cat of empty ones": (lambda x, out: torch.cat([x[:, :0]] * 2, out=out), [zeros(torch.float32, 3, 0)]),
    "cumsum of a number": (lambda x, out: torch.cumsum(x[0, 0], 0, out=out), [zeros(torch.float32, 0)]),
    "gather of a number": (
        lambda x, out: torch.gather(x[0, 0], 0, torch.tensor(0, device=x.device), out=out),
        [zeros(torch.float32, 1)],
    ),
    "max of a number": (lambda x, out: torch.max(x[0, 0], 0, out=(out, out.long()))[0], [zeros(torch.float32, 3)]),
    "scatter": (
        lambda x, out: torch.scatter(x, 1, torch.tensor([[2]], device=x.device), 5.0, out=out),
        [zeros(torch.float32, 2, 3, 4), apart],
    ),
    "xlogy": (lambda x, out: torch.xlogy(x, x.abs(), out=out), [zeros(torch.float32, 2, 3, 4), apart]),
    "add of bool": (lambda x, out: torch.add(x > 0, x > 1, out=out), [zeros(torch.float32, 3, 4)]),
    "add of uint8": (lambda x, out: torch.add(x.abs().byte() + 200, 100, out=out), [zeros(torch.float32, 3, 4)]),
    "pow of int": (lambda x, out: torch.pow(x.long(), x.abs().long(), out=out), [zeros(torch.float32, 3, 4)]),
    "logical_and": (lambda x, out: torch.logical_and(x, x > 0, out=out), [zeros(torch.float32, 0), apart]),
    "floor_divide": (lambda x, out: torch.floor_divide(x, 0.1, out=out), [zeros(torch.float64, 0), apart]),
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("name", CALLS)
def test_out_is_as_on_torchs_cpu(device, name):
    call, outs = CALLS[name]
    x = normal(3, 4)
    for make in outs:
        expected, out = make(), make()
        place = torch.empty_strided(out.shape, out.stride(), dtype=out.dtype, device=device)
        result = call(x.to(device), place)
        call(x, expected)
        assert result is place
        assert place.dtype == expected.dtype and place.shape == expected.shape
        torch.testing.assert_close(place.cpu(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x[0].logical_or_(x),
        lambda x: x[0].floor_divide_(x),
        lambda x: x.long().floor_divide_(x),
        lambda x: torch.any(x, 1, out=x.new_empty(0)),
        lambda x: torch.clamp(x, -1, 1, out=x.new_empty(3, 4, dtype=torch.int64)),
        lambda x: torch.cat([x, x], out=x.new_empty(0, dtype=torch.int64)),
        lambda x: torch.cumsum(x, 0, dtype=torch.float64, out=x.new_empty(3, 4)),
    ],
)
def test_what_cannot_hold_the_result_is_refused(device, call):
    x = normal(3, 4)
    for where in (x, x.to(device)):
        with pytest.raises((RuntimeError, TypeError)):
            call(where)
    assert x.shape == (3, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_floor_division_of_floats_is_exact(device, dtype, no_fallback):
    edges = [float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 5.0, -5.0, 1.0, 0.3, -1e-3]
    x = torch.cat([torch.tensor(edges), normal(40).round()]).to(dtype)
    y = torch.tensor([0.1, -0.1, 0.3, 1.0, 0.0, float("inf"), -float("inf"), float("nan")], dtype=dtype)
    for got, expected in (
        (x.to(device)[:, None] // y.to(device), x[:, None] // y),
        (x.to(device).div(0.1, rounding_mode="floor"), x.div(0.1, rounding_mode="floor")),
    ):
        torch.testing.assert_close(
            got.cpu(), expected, rtol=2e-2 if x.element_size() == 2 else 0, atol=0, equal_nan=True
        )
        assert torch.equal(got.cpu().signbit() & (expected == 0), expected.signbit() & (expected == 0))


def test_numbers_keep_the_precision_of_the_tensor(device):
    x = normal(5).double()
    small = torch.tensor(1e-3)  # of float32
    assert torch.allclose(torch.xlogy(x.to(device), small).cpu(), torch.xlogy(x, small), rtol=1e-13, atol=0)
    y = torch.full((3,), 1.1, dtype=torch.float16)
    expected = torch.ones(3, dtype=torch.float64).addcmul_(y, y)
    assert torch.equal(
        torch.ones(3, dtype=torch.float64).to(device).addcmul_(y.to(device), y.to(device)).cpu(), expected
    )
    half = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float16)
    assert torch.allclose(torch.sinc(half.to(device)).cpu(), torch.sinc(half), atol=1e-6)


ON_ANOTHER_DEVICE = [
    lambda x, out: torch.add(x, x, out=out()),
    lambda x, out: torch.exp(x, out=out()),
    lambda x, out: torch.mm(x, x, out=out()),
    lambda x, out: torch.lgamma(x, out=out()),  # by torch's kernel for the CPU
    lambda x, out: torch.where(x > 0, x, x, out=out()),
    lambda x, out: torch.cat([x, x], out=out()),
    lambda x, out: torch.any(x, 1, out=out().bool()),
    lambda x, out: torch.kthvalue(x, 2, out=(out(), out().long())),
    lambda x, out: torch.complex(x, x, out=out().to(torch.complex64)),
    lambda x, out: torch.logit(x, out=out()),
    lambda x, out: torch.gather(x, 0, x.new_zeros(3, 3, dtype=torch.int64), out=out()),
    lambda x, out: out().add_(x),
    lambda x, out: out().lgamma_().add_(x),
]


@pytest.mark.parametrize("call", ON_ANOTHER_DEVICE)
def test_out_on_another_device_is_refused(device, call):
    x = normal(3, 3).abs().to(device)
    other = torch.device("dovetail", 0 if device.index else 1)
    for place in ("cpu", other):
        with pytest.raises(RuntimeError, match="same device"):
            call(x, lambda place=place: torch.zeros(3, 3, device=place))


def gather_by_int32(x, out):
    return torch.gather(x, 1, torch.zeros(2, 3, dtype=torch.int32, device=x.device), out=out)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: torch.neg(x, out=out),
        lambda x, out: torch.add(x, x[0], alpha=2, out=out),
        lambda x, out: torch.mul(x, 2.0, out=out),
        lambda x, out: torch.maximum(x, x[:, :1], out=out),
        lambda x, out: torch.clamp(x, -1, 1, out=out),
        lambda x, out: torch.pow(x, 1, out=out),
        lambda x, out: torch.addmm(x, x[:, :3], x, beta=0, out=out),
        lambda x, out: torch._C._nn.upsample_nearest1d(x[None], [8], out=out),
        lambda x, out: torch._C._nn.gelu(x, out=out),
        lambda x, out: torch.mean(x, 0, out=out),
        lambda x, out: torch.amax(x, 1, out=out),
        lambda x, out: torch.mm(x, x.mT, out=out),
        gather_by_int32,
    ]
    + [
        lambda x, out, dim=dim, keep=keep: torch.sum(x, dim, keepdim=keep, out=out)
        for dim in (0, [-1], [0, 1], None)
        for keep in (False, True)
    ],
)
def test_an_empty_out_is_served(call, device, no_fallback):
    x = normal(3, 4)
    expected = call(x, torch.empty(0))
    result = call(x.to(device), torch.empty(0, device=device))
    torch.testing.assert_close(result.cpu(), expected)


def test_an_empty_tensor_is_not_resized_in_place(device):
    x, mask = torch.empty(0, device=device), torch.ones(3, dtype=torch.bool, device=device)
    for value in (1.0, torch.tensor(1.0)):
        with pytest.raises(RuntimeError):
            x.masked_fill_(mask, value)
    for other in (torch.ones(3, device=device), torch.ones(2, 3, device=device)):
        with pytest.raises(RuntimeError):
            x.add_(other)
    assert x.shape == (0,)
