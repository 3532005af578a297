"""torch.compile(backend="dovetail") for tensors on dovetail:N, against torch on the CPU."""

import copy

import dovetail_torch
import eager_models
import pytest
import torch
from compiling import compiled, expect_programs, fresh  # noqa: F401 - a fixture
from dovetail_torch.compile import report
from models import LARGEST
from torch import nn


def expect_equal(got, expected, device, largest=LARGEST):
    assert got.device == device and got.shape == expected.shape and got.dtype == expected.dtype
    got, expected = got.detach().cpu().double(), expected.detach().double()
    error, size = (got - expected).abs().max().item(), expected.abs().max().item()
    assert error <= largest * size, f"error {error} of {size}"


def expect_only_programs(graphs, programs):
    made = expect_programs(graphs, programs)
    assert not made.eager, str(made)


def moved(model, device):
    return dovetail_torch.to(copy.deepcopy(model), device)


def mlp():
    return nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5))


MODELS = {
    "gpt": (eager_models.Gpt, lambda: torch.randint(0, 100, (2, 9)), lambda out: out[0]),
    "resnet": (eager_models.ResNet, lambda: torch.randn(2, 3, 32, 32), lambda out: out),
    "vit": (eager_models.Vit, lambda: torch.randn(2, 3, 32, 32), lambda out: out),
}


# ---- models ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_model_is_one_program(name, device, no_fallback):
    make, arguments, result = MODELS[name]
    model, x = make().eval(), arguments()
    run, own = compiled(moved(model, device)), x.to(device)
    with torch.no_grad():
        for _ in range(3):
            expect_equal(result(run(own)), result(model(x)), device)
    expect_only_programs(1, 1)


def test_one_program_serves_twenty_lengths(device):
    model = eager_models.Gpt().eval()
    run = compiled(moved(model, device), dynamic=True)
    with torch.no_grad():
        for n in range(3, 23):
            ids = torch.randint(0, 100, (2, n))
            expect_equal(run(ids.to(device))[0], model(ids)[0], device)
    expect_only_programs(1, 1)


@pytest.mark.parametrize("optimiser", [torch.optim.SGD, torch.optim.AdamW])
def test_training_takes_the_same_steps(optimiser, device):
    model = mlp()
    own = moved(model, device)
    x, y = torch.randn(16, 12), torch.randn(16, 5)
    losses = []
    for run, parameters, at in ((model, model.parameters(), "cpu"), (compiled(own), own.parameters(), device)):
        steps = optimiser(parameters, lr=1e-2)
        losses.append([])
        for _ in range(6):
            loss = (run(x.to(at)) - y.to(at)).square().mean()
            loss.backward()
            steps.step()
            steps.zero_grad()
            losses[-1].append(loss.detach())
    for got, expected in zip(losses[1], losses[0]):
        expect_equal(got, expected, device)
    for p, q in zip(own.parameters(), model.parameters()):
        expect_equal(p, q, device, 1e-4)
    expect_only_programs(2, 2)


def test_gradients_are_those_of_torch(device):
    model = eager_models.ResNet(width=4).train()
    own, model = moved(model, device), model.double()
    x = torch.randn(8, 3, 32, 32)
    y = x.to(device).requires_grad_()
    x = x.double().requires_grad_()
    model(x).square().sum().backward()
    compiled(own)(y).square().sum().backward()
    expect_close(y.grad, x.grad)
    for p, q in zip(own.parameters(), model.parameters()):
        expect_close(p.grad, q.grad)
    for p, q in zip(own.buffers(), model.buffers()):  # running means and variances, and the number of batches
        expect_close(p, q)
    expect_only_programs(2, 2)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("at", ["cpu", "cpu:0", "sim:0"])
def test_gradients_of_a_batch_norm_that_reads_its_buffers(at, frozen):
    device = torch.device("cpu") if at == "cpu" else dovetail_torch.device(at)
    model = nn.BatchNorm1d(3).eval().requires_grad_(not frozen)
    model.running_mean.uniform_(), model.running_var.uniform_(1, 2)
    own, model = moved(model, device), model.double()
    x = torch.randn(4, 3, 5)
    y = x.to(device).requires_grad_()
    x = x.detach().double().requires_grad_()
    model(x).square().sum().backward()
    compiled(own)(y).square().sum().backward()
    for p, q in [(y, x)] if frozen else zip((y, *own.parameters()), (x, *model.parameters())):
        expect_close(p.grad, q.grad)
    expect_only_programs(2, 2)


@pytest.mark.parametrize("shape", [(5, 8), (3, 5, 8), (2, 4, 5, 8), (2, 2, 2, 5, 8)], ids=str)
@pytest.mark.parametrize("mask", [None, "float", "bool"])
def test_attention_and_its_gradients(shape, mask, device):
    def forward(q, k, v, mask):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)

    given = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    own = [x.detach().float().to(device).requires_grad_() for x in given]
    seen = torch.eye(5, dtype=torch.bool) | (torch.randn(5, 5) > 0)
    seen = {None: None, "float": torch.where(seen, 0.5, -2.0), "bool": seen}[mask]
    expected = forward(*given, seen if mask != "float" else seen.double())
    got = compiled(forward)(*own, seen if mask is None else seen.to(device))
    expect_close(got, expected)
    expected.square().sum().backward()
    got.square().sum().backward()
    for x, y in zip(own, given):
        expect_close(x.grad, y.grad)
    expect_only_programs(2, 2)


@pytest.mark.parametrize("dynamic", [False, True])
def test_attention_trains(dynamic, device):
    model = eager_models.Gpt()
    own, model = moved(model, device), model.double()
    run = compiled(own, dynamic=dynamic)
    for n in (5, 8) if dynamic else (6,):
        ids = torch.randint(0, 100, (2, n))
        for at, parameters in ((run, own), (model, model)):
            parameters.zero_grad()
            at(ids.to(next(parameters.parameters()).device))[0].square().mean().backward()
        for p, q in zip(own.parameters(), model.parameters()):
            expect_close(p.grad, q.grad)
    expect_only_programs(2, 2)


def test_a_checkpoint_with_dropout_has_one_mask(device):
    layer, x = moved(nn.Linear(12, 8, bias=False), device), torch.randn(50, 12).to(device).requires_grad_()

    def forward(x):
        return nn.functional.dropout(layer(x).relu(), 0.5, True)

    made = compiled(lambda x: torch.utils.checkpoint.checkpoint(forward, x, use_reentrant=False))(x)
    made.sum().backward()
    kept = (made != 0).float() * 2
    assert 50 < int((made != 0).sum()) < 150  # a half of the half that relu leaves of 400
    expect_close(x.grad, (kept @ layer.weight).cpu())


def expect_close(got, expected):
    got, expected = got.detach().cpu().double(), expected.detach().double()
    assert (got - expected).abs().max() <= 1e-4 * max(1e-3, expected.abs().max())


# ---- memory ------------------------------------------------------------------------------------------------------


def test_writes_to_weights_between_calls_are_seen(device):
    model = nn.Linear(64, 48, bias=False)
    own = moved(model, device)
    run, x = compiled(own), torch.randn(32, 64)
    y = x.to(device)

    def expect():
        for _ in range(4):  # weights are packed in the second call
            expect_equal(run(y), model(x), device)

    with torch.no_grad():
        expect()
        for m in (model, own):
            m.weight.mul_(2)
        expect()
        for m in (model, own):
            m.weight[0].zero_()
        expect()
        for m in (model, own):
            m.weight.data = torch.ones(48, 64, device=m.weight.device)
        expect()
    expect_only_programs(1, 1)


def test_results_have_memory_of_their_own(device):
    def forward(x):
        y = x + 1
        return y, x + 1, x.clone(), y[:2], torch.arange(4, device=x.device) * 2

    x = torch.randn(4, 4)
    own, run = x.to(device), compiled(forward)
    for _ in range(3):
        made = run(own)
        for got, expected in zip(made, forward(x)):
            expect_equal(got, expected, device)
        made[1].fill_(7)
        made[2].fill_(8)
        made[4].fill_(9)
        expect_equal(made[0], x + 1, device)
    expect_equal(own, x, device)


def test_strides_are_those_that_torch_has_planned(device):
    def forward(x):
        return (x * 2).permute(2, 0, 1), (x * 3).transpose(0, 1).contiguous(), x * 4

    x = torch.randn(2, 3, 4)
    for given in (x, torch.randn(4, 3, 2).permute(2, 1, 0)):
        for got, expected in zip(compiled(forward)(given.to(device)), forward(given)):
            expect_equal(got, expected, device)
            assert got.stride() == expected.stride()
    conv, x = nn.Conv2d(3, 4, 3), torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    with torch.no_grad():
        expect_equal(compiled(moved(conv, device))(x.to(device)), conv(x), device)


def test_a_conjugate_view_as_argument(device):
    x = torch.randn(3, 4, dtype=torch.complex64)
    got = compiled(lambda x: (x * 2).real)(x.to(device).conj())
    expect_equal(got, (x.conj() * 2).real, device)


# ---- indices -----------------------------------------------------------------------------------------------------

ROWS = torch.ones(2, 3)
INDEXED = {
    "embedding": lambda x, i: nn.functional.embedding(i, x),
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "scatter": lambda x, i: x.scatter(0, i[:, None], 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None], ROWS.to(x)),
    "index_add": lambda x, i: x.index_add(0, i, ROWS.to(x)),
    "index_copy": lambda x, i: x.index_copy(0, i, ROWS.to(x)),
    "cross_entropy": lambda x, i: nn.functional.cross_entropy(x[:2], i),
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("at", ["cpu", "cpu:0", "sim:0"])
def test_no_index_counts_from_the_end_where_torch_has_none(at, name):
    device = torch.device("cpu") if at == "cpu" else dovetail_torch.device(at)
    run, x = INDEXED[name], torch.randn(4, 3)
    own = compiled(run)
    for dtype in (torch.int64, torch.int32) if name in ("embedding", "index_select") else (torch.int64,):
        good, bad = (torch.tensor(i, dtype=dtype) for i in ([1, 2], [2, -1]))
        expect_equal(own(x.to(device), good.to(device)), run(x, good), device)
        with pytest.raises((IndexError, RuntimeError), match=r"out of (range|bounds)"):
            run(x, bad)
        with pytest.raises(IndexError, match="out of range"):
            own(x.to(device), bad.to(device)).cpu()


# ---- devices and streams -----------------------------------------------------------------------------------------


def test_each_device_has_a_part_of_a_graph_that_uses_two():
    first, second = dovetail_torch.device("cpu:0"), dovetail_torch.device("sim:0")

    def forward(x):
        y = (x.exp() + 1).to(second)
        return (y * 2).sum(0)

    x = torch.randn(3, 4)
    expect_equal(compiled(forward)(x.to(first)), (x.exp() + 1).mul(2).sum(0), second)
    made = report()
    assert (made.graphs, made.programs) == (1, 2), str(made)
    assert made.eager == {("aten._to_copy.default", "tensors on dovetail:0 and dovetail:1"): 1}, str(made)


def test_a_number_on_the_cpu_keeps_its_op_in_torch(device):
    x, n = torch.randn(3, 4), torch.tensor(2.5)
    run = compiled(lambda x, n: (x.exp() * n).tanh())
    expect_equal(run(x.to(device), n), (x.exp() * 2.5).tanh(), device)
    assert [why for _, why in report().eager] == [f"tensors on cpu and {device}"]


def test_programs_run_on_the_current_stream_of_torch():
    device = dovetail_torch.device("sim:0")
    model, x = mlp(), torch.randn(16, 12)
    run, own = compiled(moved(model, device)), x.to(device)
    stream = torch.Stream(device)
    with torch.no_grad():
        for _ in range(5):
            with stream:
                made = run(own)
            expect_equal(made, model(x), device)  # .cpu() is on the default stream
            own.add_(1), x.add_(1)
    expect_only_programs(1, 1)
