"""LSTMs and GRUs with their gradients, against torch on the CPU."""

import copy

import pytest
import torch

SEED = 20261128


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
def test_layers(device, kind, bias, no_fallback):
    print("seed", SEED)
    torch.manual_seed(SEED)
    reference = kind(5, 7, num_layers=2, bias=bias, bidirectional=True, batch_first=True)
    model = copy.deepcopy(reference).to(device)
    x = torch.randn(3, 4, 5)
    ours, expected = x.to(device).requires_grad_(), x.clone().requires_grad_()
    (y, state), (z, expected_state) = model(ours), reference(expected)
    for result, states in ((y, state), (z, expected_state)):
        last = states if isinstance(states, torch.Tensor) else states[1]  # of an LSTM the cells
        (result.square().sum() + last.sin().sum()).backward()
    torch.testing.assert_close(y.cpu(), z, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.grad.cpu(), expected.grad, rtol=1e-3, atol=1e-4)
    for p, q in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(p.grad.cpu(), q.grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", [torch.nn.LSTMCell, torch.nn.GRUCell])
def test_cells_in_float64_have_the_right_gradient(device, kind):
    print("seed", SEED)
    torch.manual_seed(SEED)
    cell = kind(3, 4).double().to(device)
    x = torch.randn(2, 3, dtype=torch.float64, device=device, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: cell(x)[0] if kind is torch.nn.LSTMCell else cell(x), (x,))
