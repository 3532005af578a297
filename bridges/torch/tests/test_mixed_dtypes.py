"""Calls whose operands have several dtypes: the values and the dtype are those of torch's CPU."""

import pytest
import torch
import torch.nn.functional as F

NARROW = [torch.float16, torch.bfloat16]
SEED = 20261129


def normal(*size):
    print("seed", SEED)
    return torch.randn(*size, generator=torch.Generator().manual_seed(SEED))


def equal(got, expected):
    assert got.dtype == expected.dtype
    torch.testing.assert_close(got.cpu(), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", NARROW)
def test_numbers_that_16_bits_cannot_hold(device, dtype):
    """torch computes with them in float32."""
    x = torch.tensor([1e-3, 100.0, 1e4, 1e-4, 0.0, -3.0]).to(dtype)
    for number in (65536.0, 1e-8, 1e10, 1e300, 0.1, 3, torch.tensor(0.1)):
        for call in (lambda x, n: x * n, lambda x, n: x / n, lambda x, n: x.clone().mul_(n), lambda x, n: n * x):
            equal(call(x.to(device), number), call(x, number))
        out = torch.empty(0, dtype=dtype, device=device)
        equal(torch.mul(x.to(device), number, out=out), torch.mul(x, number))


NORMS = {
    "layer_norm": lambda x, w, b: F.layer_norm(x, (4,), w, b),
    "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
    "batch_norm in evaluation": lambda x, w, b: F.batch_norm(x, w.detach() * 0, w.detach() * 0 + 2, w, b),
    "group_norm": lambda x, w, b: F.group_norm(x, 2, w, b),
    "instance_norm": lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
}


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_16_bits_with_parameters_of_float32(device, name, dtype):
    x, w, b = normal(3, 4, 4), normal(4) + 2, normal(4)
    results = []
    for d in ("cpu", device):
        operands = [t.detach().clone().to(d).requires_grad_() for t in (x.to(dtype), w, b)]
        y = NORMS[name](*operands)
        y.float().square().sum().backward()
        results.append([y.detach(), *(t.grad for t in operands)])
    for got, expected in zip(*reversed(results), strict=True):
        assert got.dtype == expected.dtype
        torch.testing.assert_close(got.cpu(), expected, rtol=5e-2, atol=5e-2)


def test_norms_refuse_wider_parameters(device):
    with pytest.raises(RuntimeError, match="mixed dtype"):
        F.layer_norm(normal(3, 4).to(device), (4,), normal(4).double().to(device))


def test_histogram_of_integers(device):
    """torch has it for GPUs; models with experts count their tokens so."""
    x = torch.tensor([0, 1, 1, 5, 3], dtype=torch.int32)
    counts = torch.histc(x.to(device), bins=6, min=0, max=5)
    assert counts.dtype == torch.int32
    assert counts.tolist() == [1, 2, 0, 1, 0, 1]
