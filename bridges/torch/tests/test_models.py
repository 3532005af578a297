"""Whole models on each device: equal to torch's CPU, and served by Dovetail alone."""

import copy

import dovetail_torch
import pytest
import torch
import torch.nn.functional as F
from eager_models import Bert, Gpt, ResNet, UNet, Vit, generate

SEED = 20


def made(name):
    torch.manual_seed(SEED)
    print("seed", SEED)
    ids, mask = torch.randint(1, 100, (4, 16)), torch.ones(4, 16, dtype=torch.long)
    mask[:, 12:] = 0
    return {
        "resnet": lambda: (ResNet(), (torch.randn(4, 3, 64, 64),)),
        "bert": lambda: (Bert(), (ids, mask)),
        "gpt": lambda: (Gpt(), (ids[:, :8],)),
        "vit": lambda: (Vit(), (torch.randn(2, 3, 32, 32),)),
        "unet": lambda: (UNet(), (torch.randn(2, 3, 16, 16), torch.tensor([3, 500]))),
    }[name]()


def first(result):
    return result[0] if isinstance(result, tuple) else result


MODELS = ["resnet", "bert", "gpt", "vit", "unet"]


@pytest.mark.parametrize("name", MODELS)
def test_inference(name, device, no_fallback):
    model, inputs = made(name)
    model.eval()
    with torch.no_grad():
        expected = first(model(*inputs))
        got = first(dovetail_torch.to(model, device)(*(x.to(device) for x in inputs)))
    assert got.device == device
    assert (got.cpu() - expected).abs().max() <= 1e-5 * expected.abs().max()


def test_generated_tokens_are_equal(device, no_fallback):
    model, (ids,) = made("gpt")
    model.eval()
    with torch.no_grad():
        expected = generate(model, ids, 8)
        got = generate(dovetail_torch.to(model, device), ids.to(device), 8)
    assert got.cpu().tolist() == expected.tolist()


def loss_of(name, model, inputs):
    y = first(model(*inputs))
    if name == "gpt":
        return F.cross_entropy(y.flatten(0, 1), inputs[0].flatten())
    if name == "unet":
        return F.mse_loss(y, torch.zeros_like(y))
    return F.cross_entropy(y, torch.arange(y.shape[0], device=y.device) % y.shape[1])


@pytest.mark.parametrize("name", MODELS)
def test_gradients(name, device, no_fallback):
    model, inputs = made(name)
    other = dovetail_torch.to(copy.deepcopy(model), device)
    loss = loss_of(name, model, inputs)
    got = loss_of(name, other, [x.to(device) for x in inputs])
    loss.backward()
    got.backward()
    assert abs(got.item() - loss.item()) <= 1e-5 * abs(loss.item())
    for (label, a), (_, b) in zip(model.named_parameters(), other.named_parameters(), strict=True):
        scale = max(a.grad.abs().max().item(), 1e-3)
        assert (b.grad.cpu() - a.grad).abs().max() <= 1e-4 * scale, label


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.05, momentum=0.9, weight_decay=1e-4),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, 1e-3),
}


def train(model, x, y, optimizer, steps):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training(name, device, no_fallback):
    """50 steps of a classifier of 28x28 images: the losses stay equal."""
    torch.manual_seed(SEED)
    print("seed", SEED)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 5, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(576, 10)
    )
    x, y = torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))
    other = copy.deepcopy(model).to(device)
    expected = train(model, x, y, OPTIMIZERS[name](model.parameters()), 50)
    got = train(other, x.to(device), y.to(device), OPTIMIZERS[name](other.parameters()), 50)
    assert expected[-1] < 0.5 * expected[0]
    assert max(abs(a - b) for a, b in zip(got, expected, strict=True)) < 1e-4
