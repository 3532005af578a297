"""torch.compile(backend="dovetail"): results, gradients, partitions and sizes against torch on the CPU."""

import copy
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import models
import pytest
import torch
import torch.nn.functional as F
from compiling import compiled, expect_programs, fresh  # noqa: F401 - a fixture
from dovetail_torch.compile import report
from models import expect_equal

# ---- models ------------------------------------------------------------------------------------------------------


# The slow ones repeat what test_exported.py runs by the same lowerings, and what others compile.
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in ("t5", "unet"))) for n in sorted(models.MODELS)]
)
def test_a_model_is_one_program(name):
    model, args, _ = models.make(name)
    with torch.no_grad():
        expect_equal(compiled(model)(*args), model(*args))
    assert not expect_programs(1, 1).eager


def test_one_program_serves_twenty_lengths_and_other_batches():
    model, _, _ = models.make("gpt2")
    run = compiled(model, dynamic=True)
    with torch.no_grad():
        for n in range(3, 23):
            ids = torch.randint(0, 99, (2 + n % 3, n))
            expect_equal(run(ids), model(ids))
    made = expect_programs(1, 1)
    assert not made.eager


def losses_of_three_steps(run, trained, args) -> list[torch.Tensor]:
    optimiser = torch.optim.SGD(trained.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        loss = run(*args).square().mean()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.detach())
    return losses


@pytest.mark.parametrize("name", ["gpt2", pytest.param("bert", marks=pytest.mark.slow), "resnet18"])
def test_training_takes_the_same_steps(name):
    model, args, _ = models.make(name)
    if name == "resnet18":  # the others have dropout
        model.train()
    own, exact = copy.deepcopy(model), copy.deepcopy(model).double()
    losses = losses_of_three_steps(model, model, args)
    expect_equal(losses_of_three_steps(compiled(own), own, args), losses)
    assert not expect_programs(2, 2).eager
    # What training rounds differs between the instruction sets of torch by more than its float32 results show.
    losses_of_three_steps(exact, exact, [a.double() if a.is_floating_point() else a for a in args])
    for (key, e), theirs, ours in zip(
        exact.state_dict().items(), model.state_dict().values(), own.state_dict().values()
    ):
        size, usual, error = (x.abs().max().item() for x in (e, theirs - e, ours - e))
        assert error <= 4 * usual + 1e-6 * size, f"{key}: error {error}, torch's {usual}, of {size}"


def test_gradients_are_those_of_torch():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.SiLU(), torch.nn.AvgPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(64, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Softmax(-1),
    )  # fmt: skip
    own = copy.deepcopy(model)
    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    model(x).square().sum().backward()
    compiled(own)(y).square().sum().backward()
    expect_equal(y.grad, x.grad)
    for p, q in zip(own.parameters(), model.parameters()):
        assert (p.grad - q.grad).abs().max() <= 1e-6 * max(1.0, float(q.grad.abs().max()))
    assert not expect_programs(2, 2).eager


# ---- what torch runs ---------------------------------------------------------------------------------------------


def test_ops_without_a_lowering_run_in_torch_and_are_counted():
    def forward(x):
        y = torch.lgamma(x.abs().exp() + 1)
        return (y * 2).tanh() + x

    x = torch.randn(4, 5)
    expect_equal(compiled(forward)(x), forward(x))
    made = expect_programs(1, 2)
    assert made.eager == {("aten.lgamma.default", "there is no lowering of it"): 1}
    assert "torch runs aten.lgamma.default (1)" in str(made)


def test_an_operand_that_a_lowering_refuses_is_counted_with_its_reason():
    def forward(x):
        return x[x > 0].sum() * 2

    x = torch.randn(50)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        expect_equal(compiled(forward)(x), forward(x))
    assert any(op.startswith("aten.") and "depends on elements" in why for op, why in report().eager)


def test_eager_error_names_what_torch_would_run():
    run = compiled(lambda x: torch.lgamma(x) + torch.special.i0(x), options={"eager": "error"})
    with pytest.raises(Exception, match=r"(?s)aten\.lgamma.*aten\.i0"):
        run(torch.rand(3) + 1)


def test_unknown_options_are_refused():
    with pytest.raises(Exception, match="expected"):
        compiled(lambda x: x + 1, options={"speed": 2})(torch.randn(3))


def test_random_numbers_are_torchs():
    def forward(x):
        return F.dropout(x * 2, 0.5, training=True).exp()

    x = torch.randn(100)
    torch.manual_seed(1)
    got = compiled(forward)(x)
    assert 20 < int((got == 1).sum()) < 80
    torch.testing.assert_close(got[got != 1], (x * 4).exp()[got != 1])
    assert report().eager


# ---- memory ------------------------------------------------------------------------------------------------------


def test_results_have_memory_of_their_own():
    def forward(x):
        return x.clone(), x * 2, x * 2, x[1:].clone(), (x + 0).view(-1)

    x = torch.randn(4, 4)
    before = x.clone()
    made = compiled(forward)(x)
    for i, tensor in enumerate(made):
        tensor.fill_(i)
    assert torch.equal(x, before)
    assert all((tensor == i).all() for i, tensor in enumerate(made))


def test_views_of_arguments_share_their_memory():
    x = torch.randn(4, 4)
    view, _ = compiled(lambda x: (x[1:].t(), x * 2))(x)
    view.fill_(3)
    assert torch.equal(x[1:], torch.full((3, 4), 3.0))


def test_writes_to_arguments_and_parameters_are_seen():
    def step(x, y):
        x.add_(y)
        return x * 2

    x, y = torch.randn(3), torch.randn(3)
    own = x.clone()
    expect_equal(compiled(step)(own, y), step(x, y))
    expect_equal(own, x)
    model = torch.nn.Linear(3, 2)
    run = compiled(model)
    with torch.no_grad():
        for _ in range(4):
            expect_equal(run(y), model(y))
            model.weight.data.mul_(2)
        model.weight.data = torch.randn(2, 3)
        expect_equal(run(y), model(y))


def test_strides_are_those_that_torch_has_planned():
    def transposed(x):
        return (x * 2).permute(2, 0, 1)

    x = torch.randn(2, 3, 4)
    got, expected = compiled(transposed)(x), transposed(x)
    expect_equal(got, expected)
    assert got.stride() == expected.stride()


def test_strided_and_channels_last_arguments():
    conv = torch.nn.Conv2d(3, 4, 3)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    with torch.no_grad():
        expect_equal(compiled(conv)(x), conv(x))
    y = torch.randn(6, 8)[::2, 1:].t()
    expect_equal(compiled(lambda y: y.softmax(0) @ y.t())(y), y.softmax(0) @ y.t())


# ---- sizes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: F.adaptive_avg_pool2d(x, 3),
        lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
        lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
        lambda x: x.repeat(1, x.shape[1], 2, 1) + torch.arange(x.shape[-1]),
        lambda x: x.reshape(x.shape[0], -1)[:, : x.shape[-1] // 2] * x.shape[2],
    ],
    ids=["adaptive_pool", "ceil_mode", "interpolate", "repeat", "size_arithmetic"],
)
def test_sizes_that_a_lowering_looks_at_lead_to_another_trace(fn):
    run = compiled(fn, dynamic=True)
    for shape in ((2, 3, 8, 9), (2, 3, 10, 12), (3, 4, 7, 7), (2, 3, 8, 9)):
        x = torch.randn(shape)
        expect_equal(run(x), fn(x))
    assert report().graphs == 1


def test_a_size_of_no_input_of_a_part_keeps_its_op_in_torch():
    def forward(x):  # torch itself computes a size of the first arange, which so is a part without x
        return F.unfold(x, 2, stride=2)

    run = compiled(forward, dynamic=True)
    for shape in ((1, 2, 6, 6), (2, 3, 7, 9)):
        x = torch.randn(shape)
        expect_equal(run(x), forward(x))
    made = report().eager
    assert {op for op, _ in made} == {"aten.arange.start_step"}
    assert all(why.endswith("which is no size of an input") for _, why in made)


def test_a_graph_break_leaves_two_programs():
    def forward(x):
        y = x.exp()
        torch._dynamo.graph_break()
        return y.sum(0)

    x = torch.randn(3, 4)
    expect_equal(compiled(forward)(x), forward(x))
    expect_programs(2, 2)


@pytest.mark.parametrize("name", ["float64", "bfloat16", "float16", "int64", "int32", "bool"])
def test_dtypes(name):
    dtype = getattr(torch, name)

    def forward(x, y):
        return x & y if dtype == torch.bool else (x * y + x).sum(0), torch.where(x > y, x, y), x.float() / 3

    x, y = (torch.randint(0, 5, (7, 6)).to(dtype) for _ in range(2))
    expect_equal(compiled(forward)(x, y), forward(x, y), 1e-2 if dtype in (torch.bfloat16, torch.float16) else 1e-6)
    assert not report().eager


def test_torch_finds_the_backend_by_its_entry_point(tmp_path):
    """As pip installs it: a package's metadata, and a process that names the backend."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    lines = [f"{name} = {target}" for name, target in project["entry-points"]["torch_dynamo_backends"].items()]
    metadata = tmp_path / "dovetail_torch_entry-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: dovetail-torch-entry\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text("\n".join(["[torch_dynamo_backends]", *lines, ""]))
    code = "import torch; x = torch.ones(3); print(torch.compile(lambda x: x.exp() + 1, backend='dovetail')(x))"
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    ended = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert ended.returncode == 0 and "3.7183" in ended.stdout, ended.stderr
