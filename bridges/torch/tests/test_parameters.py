"""Parameters of a module that moves to a device stay the same objects, so that shared ones stay shared."""

import copy

import pytest
import torch
import torch.nn.functional as F
from eager_models import Gpt
from torch.nn.utils import parametrize


def gpt():
    torch.manual_seed(20261129)
    return Gpt()  # its head has the weight of its embedding


MOVES = {
    "to": lambda model, device: model.to(device),
    "dovetail": lambda model, device: model.dovetail(device.index),
    "other dtype": lambda model, device: model.to(device, torch.float64),
    "half": lambda model, device: model.to(device).half(),
    "back": lambda model, device: model.to(device).cpu(),
    "float": lambda model, device: model.half().to(device).float(),
    "from nothing": lambda model, device: model.to_empty(device=device).to(device),
}


@pytest.mark.parametrize("name", MOVES)
def test_shared_parameters_stay_shared(name, device):
    model = gpt()
    weight, values = model.token.weight, model.token.weight.detach().clone()
    assert MOVES[name](model, device) is model
    assert model.token.weight is model.head.weight is weight and weight.requires_grad and weight.is_leaf
    assert weight.device.type == ("cpu" if name == "back" else "dovetail")
    if name != "from nothing":
        assert torch.allclose(weight.cpu().float(), values, atol=1e-3)


def steps(model, optimizer, ids, n=2):
    losses = []
    for _ in range(n):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids)[0].flatten(0, 1), ids.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("made", ["before", "after"])
def test_training_there_and_back(made, device):
    model, ids = gpt(), torch.arange(24).reshape(2, 12) * 7 % 100
    other = copy.deepcopy(model)
    optimizers = [torch.optim.SGD(m.parameters(), 0.5) for m in (model, other)]
    expected = steps(model, optimizers[0], ids, 4)
    got = []
    for place in (device, torch.device("cpu")):
        other.to(place)
        if made == "after":
            optimizers[1] = torch.optim.SGD(other.parameters(), 0.5)
        got += steps(other, optimizers[1], ids.to(place))
    assert expected[3] < 0.8 * expected[0]
    assert got == pytest.approx(expected, rel=1e-5)


def test_parameters_keep_gradients_attributes_and_hooks(device):
    layer, seen = torch.nn.Linear(3, 3), []
    layer(torch.ones(3)).sum().backward()
    layer.weight.label = "w"
    layer.weight.register_hook(lambda grad: seen.append("before"))
    layer.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.device))
    layer.to(device)
    layer.weight.register_hook(lambda grad: seen.append("after"))
    assert layer.weight.label == "w" and layer.weight.grad.device == layer.bias.grad.device == device
    layer(torch.ones(3, device=device)).sum().backward()
    assert layer.weight.grad.tolist() == [[2] * 3] * 3
    assert seen == ["before", "after", device]


def test_recurrent_layers_that_share_a_weight(device):
    model = torch.nn.ModuleList([torch.nn.GRU(3, 4), torch.nn.GRU(3, 4)])
    model[1].weight_ih_l0 = model[0].weight_ih_l0
    x = torch.ones(2, 3)
    expected = model[1](x)[0]
    model.to(device)
    with torch.no_grad():
        assert torch.allclose(model[1](x.to(device))[0].cpu(), expected, atol=1e-6)
        model[0].weight_ih_l0.zero_()
        assert not torch.allclose(model[1](x.to(device))[0].cpu(), expected, atol=1e-3)


class Symmetric(torch.nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


def test_parametrized_layers_that_share_a_parameter(device):
    torch.manual_seed(20261129)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4))
    for layer in (model[0], model[2]):
        parametrize.register_parametrization(layer, "weight", Symmetric())
    model[2].parametrizations.weight.original = model[0].parametrizations.weight.original
    x, names = torch.randn(2, 4), [name for name, _ in model.named_parameters()]
    expected = model(x)
    model.to(device)
    assert torch.allclose(model(x.to(device)).cpu(), expected, atol=1e-5)
    assert [name for name, _ in model.named_parameters()] == names and len(names) == 3


def test_functional_calls_replace_a_shared_parameter(device):
    model, ids = gpt(), torch.arange(12).reshape(1, 12)
    new = {"token.weight": model.token.weight.detach() * 2}
    expected = torch.func.functional_call(model, new, (ids,))[0]
    model.to(device)
    new = {name: x.to(device) for name, x in new.items()}
    got = torch.func.functional_call(model, new, (ids.to(device),))[0]
    assert torch.allclose(got.cpu(), expected, atol=1e-4)


def test_lazy_layers(device):
    layer = torch.nn.LazyLinear(3).to(device)
    assert layer(torch.ones(2, 5, device=device)).device == device and layer.weight.shape == (3, 5)


def test_a_failing_move_leaves_whole_parameters(device):
    layer = torch.nn.Linear(2, 2)
    weight, bias = layer.weight, layer.bias

    def move(x):
        if x is bias:
            raise MemoryError
        return x.to(device)

    with pytest.raises(MemoryError):
        layer._apply(move)
    assert layer.weight is weight and weight.device == device and layer.bias is bias and bias.is_cpu


def test_flags_of_torch_and_fake_tensors(device):
    layer = torch.nn.Linear(2, 2)
    weight = layer.weight
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        assert layer.to(device).weight is not weight and weight.is_cpu
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    weight = layer.weight
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        assert layer.cpu().weight is weight and weight.is_cpu
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(layer.to(device).weight, torch._subclasses.FakeTensor)
    assert type(weight) is torch.nn.Parameter and weight.is_cpu


def test_traced_modules(device):
    model, x = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)), torch.ones(1, 2)
    model[1].weight = model[0].weight
    expected = model(x)
    traced = torch.jit.trace(model, x).to(device)
    assert torch.allclose(traced(x.to(device)).cpu(), expected, atol=1e-6)
    assert {p.device for p in traced.parameters()} == {device}
