"""What torch expects of a device beyond its operators: the accelerator interface, streams, memory, errors."""

import copy
import io
import os

import dovetail_torch
import pytest
import torch

SIM = dovetail_torch.device("sim:0")
CPU = dovetail_torch.device("cpu:0")
DEVICES = ["cpu:0", "sim:0", *filter(None, [os.environ.get("DOVETAIL_TORCH_TEST_DEVICE")])]


def normal(*size, seed=3):
    print("seed", seed)
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))


# ---- devices
def test_names():
    assert dovetail_torch.devices() == DEVICES
    assert torch.dovetail.get_device_name(SIM) == "sim:0"
    assert dovetail_torch.device("sim") == torch.device("dovetail:1")
    with pytest.raises(ValueError, match="expected one of cpu:0, sim:0"):
        dovetail_torch.device("acme:0")


def test_accelerator():
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator().type == "dovetail"
    assert torch.accelerator.device_count() == torch.dovetail.device_count() == len(DEVICES)
    torch.accelerator.set_device_index(1)
    assert torch.empty(1, device="dovetail").device == SIM
    torch.accelerator.set_device_index(0)
    with torch.dovetail.device(SIM):
        assert torch.zeros(2, device="dovetail").device == SIM
    assert torch.dovetail.current_device() == 0


def test_errors_name_the_devices():
    expected = r"there is no device dovetail:5: expected one of dovetail:0 \(cpu:0\), dovetail:1 \(sim:0\)"
    for call in (
        lambda: torch.empty(1, device="dovetail:5"),
        lambda: torch.ones(2).to("dovetail:5"),
        lambda: torch.Generator("dovetail:5"),
        lambda: torch.Stream("dovetail:5"),
        lambda: torch.accelerator.set_device_index(5),
        lambda: torch.dovetail.set_device(5),
        lambda: torch.dovetail.get_device_name(5),
        lambda: torch.dovetail.get_rng_state(5),
        lambda: torch.dovetail.memory_allocated(5),
        lambda: torch.dovetail.synchronize(5),
    ):
        with pytest.raises(RuntimeError, match=expected):
            call()
    with pytest.raises(RuntimeError, match="there is no device dovetail:-2"):
        torch.dovetail.get_device_name(-2)
    with pytest.raises(ValueError, match="expected a dovetail device"):
        torch.dovetail.get_device_name("cpu")


def test_default_device_and_factories(device):
    with torch.device(device):
        x, layer = torch.zeros(3), torch.nn.Linear(2, 2)
    assert x.device == layer.weight.device == device
    assert torch.arange(5, 20, 3, device=device).tolist() == [5, 8, 11, 14, 17]
    assert torch.ones_like(x).device == device


def test_devices_are_not_mixed():
    x, y = torch.ones(3, device=CPU), torch.ones(3, device=SIM)
    for call in (lambda: x + y, lambda: torch.where(x > 0, x, y), lambda: x @ y, lambda: torch.lgamma(x).fmod(y)):
        with pytest.raises(RuntimeError, match="same device"):
            call()
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(3)
    assert (x + torch.tensor(2.0)).tolist() == [3, 3, 3]  # a number
    assert x.to(SIM).device == SIM


# ---- copies
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex64", "complex32"])
def test_copies_keep_values_and_strides(device, dtype):
    dtype = getattr(torch, dtype)
    x = (normal(4, 6) * 3).to(dtype)
    y = torch.zeros(6, 4, dtype=dtype).to(device)
    y[1:].copy_(x.t()[1:].to(device))
    for got, expected in ((x.to(device), x), (x.t().to(device), x.t()), (y[1:], x.t()[1:])):
        assert got.cpu().tolist() == expected.tolist()


def test_copies_convert(device):
    x = normal(5, 3) * 4
    y = torch.empty(5, 3, dtype=torch.int32, device=device)
    assert torch.equal(y.copy_(x).cpu(), x.to(torch.int32))
    assert torch.equal(torch.empty(5, 3).copy_(x.to(device).half()), x.half().float())
    z = torch.view_as_complex(normal(4, 2)).to(device)
    assert torch.equal(z.conj().cpu(), z.cpu().conj())
    assert torch.equal(z.clone().copy_(z.conj()).cpu(), z.cpu().conj())


def test_pinned_memory(device):
    x = normal(64).pin_memory()
    assert x.is_pinned()
    assert not torch.ones(3).is_pinned()
    y = x.to(device, non_blocking=True)
    back = torch.empty(64).pin_memory().copy_(y, non_blocking=True)
    torch.accelerator.synchronize(device)
    assert torch.equal(back, x)
    data = torch.utils.data.TensorDataset(torch.arange(32.0).reshape(16, 2))
    batches = [b for (b,) in torch.utils.data.DataLoader(data, 4, pin_memory=True)]
    assert all(b.is_pinned() for b in batches)
    assert sum(b.to(device).sum().item() for b in batches) == 496


def test_views_and_in_place(device):
    x = torch.arange(12.0, device=device).reshape(3, 4)
    x[1:, ::2] *= 10
    x[x > 50] = -1
    x.t()[0] += 1
    expected = torch.arange(12.0).reshape(3, 4)
    expected[1:, ::2] *= 10
    expected[expected > 50] = -1
    expected.t()[0] += 1
    assert torch.equal(x.cpu(), expected)
    y = torch.arange(4.0, device=device)
    assert y.add_(y.sum()).tolist() == [6, 7, 8, 9]  # the result overlaps an operand
    assert torch.mm(x, x.t(), out=torch.empty(3, 3, device=device)).device == device
    assert y.resize_(6).shape == (6,) and y.tolist()[:4] == [6, 7, 8, 9]


def test_weights_that_change_are_packed_anew(device):
    layer = torch.nn.Linear(64, 64).to(device)
    x = normal(8, 64).to(device)
    for _ in range(4):
        layer(x)
    with torch.no_grad():
        layer.weight.mul_(2)
        layer.weight[0].zero_()
    expected = x.cpu() @ layer.weight.cpu().t() + layer.bias.cpu()
    assert torch.allclose(layer(x).cpu(), expected, atol=1e-4)


# ---- streams and events
def test_streams_and_events():
    s = torch.Stream(SIM)
    begin, end = (torch.Event(SIM, enable_timing=True) for _ in range(2))
    x = normal(64, 64).to(SIM)
    with s:
        assert torch.accelerator.current_stream(SIM) == s
        begin.record()
        y = x @ x
        end.record()
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) >= 0
    assert torch.accelerator.current_stream(SIM) != s
    torch.accelerator.current_stream(SIM).wait_event(end)
    assert torch.allclose(y.cpu(), x.cpu() @ x.cpu(), atol=1e-4)
    y.record_stream(s)
    s.synchronize()
    assert s.query()


# ---- random numbers
def test_seeds_give_equal_numbers_on_every_device():
    draws = []
    for device in (CPU, SIM, CPU):
        torch.manual_seed(7)
        draws.append([torch.rand(33, device=device).cpu(), torch.randint(0, 9, (5,), device=device).cpu()])
    for again in draws[1:]:
        assert all(torch.equal(a, b) for a, b in zip(draws[0], again, strict=True))
    x = torch.randn(20_000, device=SIM)
    assert abs(x.mean().item()) < 0.03 and abs(x.std().item() - 1) < 0.03


def test_generators(device):
    g = torch.Generator(device=device).manual_seed(5)
    assert g.device == device and g.initial_seed() == 5
    state = g.get_state()
    a = torch.rand(9, device=device, generator=g)
    assert not torch.equal(a, torch.rand(9, device=device, generator=g))
    g.set_state(state)
    assert torch.equal(a, torch.rand(9, device=device, generator=g))
    kept = torch.dovetail.get_rng_state(device)
    b = torch.rand(4, device=device)
    torch.dovetail.set_rng_state(kept, device)
    assert torch.equal(b, torch.rand(4, device=device))
    assert torch.dovetail.default_generators[device.index].device == device
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(4, device=device, generator=torch.Generator())


def test_dropout_and_bernoulli(device):
    x = torch.ones(4000, device=device, requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    kept = (y != 0).float().mean().item()
    assert abs(kept - 0.75) < 0.05 and y.max().item() == pytest.approx(1 / 0.75)
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), y.detach().cpu())
    assert abs(torch.bernoulli(torch.full((4000,), 0.3, device=device)).mean().item() - 0.3) < 0.05
    p = torch.tensor([0.0, 0.5, 0.5, 0.0], device=device)
    assert set(torch.multinomial(p, 2).tolist()) == {1, 2}


# ---- autocast, checkpoints, profiles
def test_autocast(device):
    x = normal(4, 4).to(device)
    with torch.autocast("dovetail", dtype=torch.bfloat16):
        y = x @ x
        z = y.softmax(-1)
        total = y.sum()
    assert y.dtype == torch.bfloat16 and z.dtype == torch.float32 and total.dtype == torch.float32
    assert torch.allclose(y.float().cpu(), x.cpu() @ x.cpu(), atol=0.1)


def test_grad_scaler(device):
    model = torch.nn.Linear(4, 4).to(device)
    optimizer, scaler = (
        torch.optim.SGD(model.parameters(), 0.1),
        torch.amp.GradScaler("dovetail", init_scale=1024.0),
    )
    before = model.weight.detach().clone()
    with torch.autocast("dovetail", dtype=torch.float16):
        loss = model(normal(2, 4).to(device)).float().sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 1024 and not torch.equal(before, model.weight)


def test_serialization(device):
    x = normal(3, 4).to(device)
    file = io.BytesIO()
    torch.save({"x": x, "view": x[1:]}, file)
    for where in (None, "cpu", "dovetail:0", "dovetail:1"):
        file.seek(0)
        back = torch.load(file, map_location=where, weights_only=True)
        assert back["x"].device == (x.device if where is None else torch.device(where))
        assert torch.equal(back["view"].cpu(), x.cpu()[1:])
    back["x"][1] = 5  # views share their storage again
    assert back["view"][0].tolist() == [5] * 4


def test_a_checkpoint_of_the_accelerator_loads_on_the_cpu():
    model = torch.nn.Linear(3, 3).to(SIM)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = torch.nn.Linear(3, 3)
    other.load_state_dict(torch.load(file, map_location="cpu"))
    assert torch.equal(other.weight, model.weight.cpu())


def test_to_keeps_shared_parameters(device):
    model = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)])
    model[1].weight = model[0].weight
    assert dovetail_torch.to(model, device)[1].weight is model[0].weight
    assert copy.deepcopy(model)[0].weight.device == device


def test_profiler(device):
    with torch.profiler.profile() as profile:
        (normal(8, 8).to(device) @ normal(8, 8).to(device)).sum().item()
    assert "aten::mm" in {e.key for e in profile.key_averages()}
    with torch.autograd.profiler.profile(use_device="dovetail") as profile, torch.dovetail.device(device):
        torch.ones(8, 8, device=device) @ torch.ones(8, 8, device=device)
    assert len(profile.function_events) > 1


def test_functional_transforms(device):
    x = normal(3, 4).to(device)
    assert torch.allclose(torch.func.vmap(lambda row: row.sum())(x).cpu(), x.cpu().sum(1), atol=1e-5)
    assert torch.allclose(torch.func.jvp(torch.sin, (x,), (x,))[1].cpu(), x.cpu().cos() * x.cpu(), atol=1e-5)


@pytest.mark.parametrize(("n", "among"), [(7, 0), (0, 3), (51865, 100), (300, 20000)])
def test_isin(n, among, device, no_fallback):
    """No values, those of a vocabulary, and more pairs than are compared at once."""
    x = torch.arange(n)
    values = torch.randint(0, 400, (among,), generator=torch.Generator().manual_seed(20261129))
    for invert in (False, True):
        got = torch.isin(x.to(device), values.to(device), invert=invert)
        assert torch.equal(got.cpu(), torch.isin(x, values, invert=invert))


# ---- memory
def test_memory():
    torch.dovetail.empty_cache()
    before = torch.dovetail.memory_allocated(SIM)
    x = torch.empty(1 << 20, device=SIM)
    assert torch.dovetail.memory_allocated(SIM) >= before + (4 << 20)
    assert torch.dovetail.max_memory_allocated(SIM) >= torch.dovetail.memory_allocated(SIM)
    del x
    assert torch.dovetail.memory_allocated(SIM) < before + (4 << 20)
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 45, device=SIM)


# ---- errors and fallbacks
def test_a_bad_index_is_an_index_error(device):
    table = torch.nn.Embedding(4, 2).to(device)
    with pytest.raises(IndexError, match="index 9 is out of range"):
        table(torch.tensor([9], device=device))
        torch.accelerator.synchronize(device)


def test_torch_words_the_errors(device):
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        torch.ones(2, 3, device=device) @ torch.ones(2, 3, device=device)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.ones(2, device=device).sum(3)


def test_fallbacks_are_counted_and_can_be_forbidden(device):
    x = normal(4).abs().to(device)
    dovetail_torch.fallback_report(reset=True)
    y = torch.lgamma(x)
    assert dovetail_torch.fallback_report() == {"aten::lgamma.out": 1}
    assert torch.equal(y.cpu(), torch.lgamma(x.cpu())) and y.device == device
    dovetail_torch.fallback("error")
    try:
        with pytest.raises(NotImplementedError, match=r"aten::lgamma\.out"):
            torch.lgamma(x)
    finally:
        dovetail_torch.fallback("allow")
    with pytest.raises(ValueError, match="expected one of allow, warn, error"):
        dovetail_torch.fallback("never")
    with dovetail_torch.counting_calls() as counts:
        x + x
    assert counts["served"] == 1


def test_in_place_fallbacks_write_to_the_device(device):
    x = normal(3, 4).abs().to(device).t()
    expected = x.cpu().lgamma()
    assert torch.equal(x.lgamma_().cpu(), expected)


# ---- compilers
def test_aot_eager_and_the_device_interface(device):
    from dovetail_torch import interface
    from torch._dynamo.device_interface import get_interface_for_device

    interface.register()
    interface.register()
    found = get_interface_for_device("dovetail")
    assert found.is_available() and found.device_count() == len(DEVICES)
    assert found.exchange_device(1) == 0 and found.exchange_device(0) == 1
    compiled = torch.compile(lambda x: (x * 2).relu().sum(), backend="aot_eager")
    x = normal(4).to(device)
    assert compiled(x).item() == pytest.approx((x.cpu() * 2).relu().sum().item())
