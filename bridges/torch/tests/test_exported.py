"""dovetail.from_exported: models of torch.export against torch on the CPU."""

import shutil
import subprocess
import sys
from pathlib import Path

import dovetail as dt
import models
import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree
from dovetail_torch.compile import from_exported
from models import LARGEST

SEED = 20261128


def tensors(tree):
    return [x for x in pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


def arrays(tree):
    return [dt.from_dlpack(x) for x in tensors(tree)]


def expect_equal(got, expected, what=""):
    """The leaves of two trees are equal, up to LARGEST of the largest."""
    got, expected = pytree.tree_leaves(got), tensors(expected)
    assert len(got) == len(expected), what
    for g, e in zip(got, expected):
        e = e.detach().double().numpy()
        g = np.asarray(g)
        assert g.shape == e.shape, what
        error, size = np.abs(g.astype(np.float64) - e).max(initial=0), np.abs(e).max(initial=1e-30)
        assert error <= LARGEST * size, f"{what}: error {error} of {size}"


def exported(model, *args, **how):
    with torch.no_grad():
        return torch.export.export(model, args, **how)


class Of(torch.nn.Module):
    """A model of a function."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


@pytest.mark.parametrize("name", sorted(models.MODELS))
def test_a_model_gives_what_torch_gives(name, tmp_path):
    model, args, dynamic = models.make(name)
    program = from_exported(exported(model, *args, dynamic_shapes=dynamic))
    with torch.no_grad():
        expected = model(*args)
    expect_equal(program(*arrays(args)), expected, name)
    program.save(tmp_path / "model.dvt")
    expect_equal(dt.load(tmp_path / "model.dvt")(*arrays(args)), expected, f"{name}, loaded")


def test_one_program_serves_other_batches_and_lengths():
    model, args, dynamic = models.make("gpt2")
    program = from_exported(exported(model, *args, dynamic_shapes=dynamic))
    for batch, tokens in ((1, 1), (3, 5), (1, 16)):
        ids = torch.randint(0, 99, (batch, tokens), generator=torch.Generator().manual_seed(tokens))
        with torch.no_grad():
            expect_equal(program(dt.from_dlpack(ids)), model(ids), f"{batch} of {tokens}")


def test_generation_with_a_cache_gives_torchs_tokens():
    model, (ids, cache), dynamic = models.make("llama_with_cache")
    program = from_exported(exported(model, ids, cache, dynamic_shapes=dynamic))
    token, own = dt.from_dlpack(ids), arrays(cache)
    for step in range(6):
        with torch.no_grad():
            logits, cache = model(ids, cache)
        got, kept = program(token, *own)
        own = [x for pair in kept for x in pair]
        ids, token = logits[:, -1:].argmax(-1), dt.argmax(got[:, -1:], axis=-1)
        assert np.array_equal(np.asarray(token), ids.numpy()), step
        expect_equal(own, cache, f"step {step}")


def test_sizes_keep_their_range():
    x = torch.randn(6, 4)
    rows = torch.export.Dim("rows", min=4, max=10)
    program = from_exported(exported(Of(lambda x: x * 2), x, dynamic_shapes=(({0: rows},),)))
    assert program(dt.ones((10, 4))).shape == (10, 4)
    for n in (3, 11):
        with pytest.raises(ValueError, match="range of s"):
            program(dt.ones((n, 4)))


def test_a_smallest_size_of_two_is_none():
    """torch.export writes the same range for Dim(min=2) and for Dim.AUTO, and its own module runs smaller sizes."""
    for rows in (torch.export.Dim("rows", min=2), torch.export.Dim.AUTO):
        model = exported(Of(lambda x: x * 2), torch.randn(6, 4), dynamic_shapes=(({0: rows},),))
        program = from_exported(model)
        for n in (0, 1, 2):
            assert program(dt.ones((n, 4))).shape == model.module()(torch.ones(n, 4)).shape == (n, 4)


def test_sizes_that_follow_from_others():
    n = torch.export.Dim("n", min=2, max=50)
    x, y = torch.randn(3, 4), torch.randn(6)
    model = Of(lambda x, y: (y.reshape(2, -1)[:, :, None] + x, y.shape[0] // 2))
    program = from_exported(exported(model, x, y, dynamic_shapes=(({0: n}, {0: 2 * n}),)))
    x, y = torch.randn(5, 4), torch.randn(10)
    sums, half = program(*arrays((x, y)))
    expect_equal(sums, model(x, y)[0])
    assert int(half) == 5
    with pytest.raises(ValueError, match=r"torch\.export"):
        program(dt.ones((5, 4)), dt.ones((12,)))


def test_constants_have_their_names_and_share_memory():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).eval()
    program = from_exported(exported(model, torch.randn(4, 3)))
    text = str(program)
    for name in ("0.weight", "0.bias", "1.running_mean"):
        assert f"{name}: float32" in text
    assert "num_batches_tracked" not in text  # nothing reads it
    assert text.startswith("program Sequential(input: float32[4, 3])")


def test_nodes_have_the_lines_of_the_model():
    program = from_exported(exported(Of(lambda x: x.exp()), torch.randn(3)))
    assert "test_exported.py" in str(program)


def test_results_keep_their_structure():
    model = Of(lambda x: {"a": (x + 1, [x * 2]), "n": x.shape[0], "none": None, "k": 3})
    x = torch.randn(5, 2)
    program = from_exported(exported(model, x, dynamic_shapes=(({0: torch.export.Dim.DYNAMIC},),)))
    made = program(dt.from_dlpack(x))
    assert set(made) == {"a", "n", "none", "k"} and made["none"] is None and made["k"] == 3
    assert isinstance(made["a"], tuple) and isinstance(made["a"][1], list) and int(made["n"]) == 5
    expect_equal(made["a"], (x + 1, [x * 2]))


def test_all_ops_without_a_lowering_are_named_at_once():
    def forward(x):
        return torch.linalg.svdvals(x), torch.special.i0(x), x.sum()

    with pytest.raises(NotImplementedError) as error:
        from_exported(exported(Of(forward), torch.randn(3, 3)))
    text = str(error.value)
    assert "aten._linalg_svd" in text and "aten.i0" in text and "test_exported.py" in text
    assert "aten.sum" not in text


def test_masks_as_indices_are_refused_with_a_cure():
    with pytest.raises(NotImplementedError, match=r"torch\.where"):
        from_exported(exported(Of(lambda x: x[x > 0].sum()), torch.randn(3, 3)))


def test_writes_to_buffers_and_arguments_are_refused_by_name():
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count += 1
            return x * self.count

    with pytest.raises(NotImplementedError, match="buffer 'count'"):
        from_exported(exported(Counts(), torch.randn(3)))
    with pytest.raises(NotImplementedError, match="argument"):
        from_exported(exported(Of(lambda x: x.add_(1)), torch.randn(3)))


def test_what_is_no_exported_program():
    with pytest.raises(TypeError, match=r"torch\.export\.export"):
        from_exported(torch.nn.Linear(2, 2))


def test_the_function_of_dovetail_is_the_same():
    x = torch.randn(3)
    expect_equal(dt.from_exported(exported(Of(lambda x: x.exp()), x))(dt.from_dlpack(x)), x.exp())


def test_without_the_package_the_error_names_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "dovetail_torch.compile", None)
    monkeypatch.setitem(sys.modules, "dovetail_torch", None)
    with pytest.raises(ImportError, match="pip install dovetail-torch"):
        dt.from_exported(1)


def test_from_torch_to_c(tmp_path):
    """As in docs/torch_export.md: a program in C opens the file, and the folder that `dovetail build` makes."""
    import dovetail_cpu

    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    torch.manual_seed(SEED)
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.GELU(), torch.nn.Linear(16, 3)).eval()
    rows = torch.export.Dim("rows", min=1, max=64)
    path, folder, example = tmp_path / "model.dvt", tmp_path / "model.aot", tmp_path / "infer"
    from_exported(exported(model, torch.randn(5, 4), dynamic_shapes=({0: rows},))).save(path, portable=True)
    runtime = Path(dt.__file__).parent
    source = Path(__file__).parents[3] / "examples/c/infer.c"
    build = [compiler, "-std=c11", source, "-o", example, f"-I{runtime / 'include'}", f"-L{runtime}", "-ldovetail"]
    run(*build, f"-Wl,-rpath,{runtime}", "-lm")
    run(sys.executable, "-m", "dovetail", "build", path, "--device", "cpu", "--out", folder)
    for file in (path, folder):
        out = run(example, "cpu:0", dovetail_cpu.backend.library, file, 3)
        got = np.array([[float(x) for x in line.split()] for line in out.split("\n") if line.strip()])
        expected = model(torch.arange(3.0)[:, None] + torch.arange(4.0) / 8)  # what fill_rows of example.h makes
        np.testing.assert_allclose(got, expected.detach().numpy(), rtol=1e-4, atol=1e-5)


def run(*command):
    ended = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout
