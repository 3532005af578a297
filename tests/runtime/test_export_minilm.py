"""One program of MiniLM's forward pass: the eager bits for any batch and length on each device, from its file also
in a C program without Python."""

import json
import subprocess
import sys
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from c_programs import compiled
from dovetail_conformance.interpret import check_program

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/minilm"
SIZES = [(1, 5), (2, 16), (8, 128), (5, 1)]
CONFIG = {"num_hidden_layers": 2, "num_attention_heads": 12, "layer_norm_eps": 1e-12}  # of six, which are alike
WIDTH, WORDS = 384, 1000
SEED = 3


def weights() -> dict[str, np.ndarray]:
    """Random weights of MiniLM's shapes, with fewer words and layers."""
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    shapes = {
        "embeddings.word_embeddings": (WORDS, WIDTH),
        "embeddings.position_embeddings": (512, WIDTH),
        "embeddings.token_type_embeddings": (2, WIDTH),
    }
    linear = {"attention.self.query": 1, "attention.self.key": 1, "attention.self.value": 1}
    linear |= {"attention.output.dense": 1, "intermediate.dense": (4, 1), "output.dense": (1, 4)}
    made = {f"{name}.weight": rng.standard_normal(shape) * 0.05 for name, shape in shapes.items()}
    norms = ["embeddings.LayerNorm"]
    for layer in range(CONFIG["num_hidden_layers"]):
        prefix = f"encoder.layer.{layer}"
        norms += [f"{prefix}.attention.output.LayerNorm", f"{prefix}.output.LayerNorm"]
        for name, widths in linear.items():
            rows, columns = (WIDTH * n for n in (widths if isinstance(widths, tuple) else (widths, widths)))
            made[f"{prefix}.{name}.weight"] = rng.standard_normal((rows, columns)) * 0.05
            made[f"{prefix}.{name}.bias"] = rng.standard_normal(rows) * 0.05
    for name in norms:
        made[f"{name}.weight"] = 1 + rng.standard_normal(WIDTH) * 0.1
        made[f"{name}.bias"] = rng.standard_normal(WIDTH) * 0.1
    return {name: value.astype(np.float32) for name, value in made.items()}


def model_on(device: str, values: dict[str, np.ndarray]):
    """The example's model with these weights, without its tokenizer."""
    pytest.importorskip("tokenizers")
    pytest.importorskip("safetensors")
    sys.path.insert(0, str(EXAMPLE))
    try:
        from model import MiniLM
    finally:
        sys.path.remove(str(EXAMPLE))
    model = MiniLM.__new__(MiniLM)
    model.device, model.config = dt.device(device), CONFIG
    model.weights = {name: dt.asarray(value, device=device) for name, value in values.items()}
    return model


def inputs(batch: int, tokens: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(batch * 1000 + tokens)
    mask = (rng.random((batch, tokens)) < 0.8) | (np.arange(tokens) == 0)
    return rng.integers(0, WORDS, (batch, tokens)), mask.astype(np.int64)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Runs a .dvt file in a process that has libdovetail and one device, and fails where libpython is mapped."""
    return compiled("run_program", tmp_path_factory.mktemp("run_program"))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The values, the program for all sizes, and its file."""
    values = weights()
    ids, mask = (dt.asarray(x, device="cpu:0") for x in inputs(2, 16))
    sizes = {0: "b", 1: "t"}
    made = dt.export(model_on("cpu:0", values).embed, ids, mask, dynamic={"ids": sizes, "mask": sizes})
    text = json.loads(made.text())
    print(f"{len(text['nodes'])} nodes")
    assert "guards" not in text
    file = tmp_path_factory.mktemp("minilm") / "minilm.dvt"
    made.save(file)
    return values, made, file


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_one_program_gives_the_eager_bits_for_all_sizes_in_python_and_c(exported, program, device, tmp_path):
    library = pytest.importorskip(f"dovetail_{device}").backend.library
    values, made, file = exported
    model, loaded = model_on(f"{device}:0", values), dt.load(file)
    for size in SIZES:
        given = inputs(*size)
        arrays = [dt.asarray(x, device=model.device) for x in given]
        expected = model.embed(*arrays).numpy()
        assert made(*arrays).numpy().tobytes() == expected.tobytes(), size
        assert loaded(*arrays).numpy().tobytes() == expected.tobytes(), (size, "from the file")
        files = [tmp_path / f"{name}.npy" for name in ("ids", "mask", "embeddings")]
        for path, array in zip(files, given, strict=False):
            np.save(path, array)
        ended = subprocess.run(
            [program, f"{device}:0", library, file, *files], capture_output=True, text=True, timeout=300
        )
        assert ended.returncode == 0 and ended.stdout == "ok\n", (size, ended.stderr)
        got = np.load(files[2])
        assert got.dtype == expected.dtype and got.shape == expected.shape, size
        assert got.tobytes() == expected.tobytes(), (size, "in C")


def test_the_interpreter_agrees(exported):
    _, made, file = exported
    given = inputs(2, 16)
    for output in check_program(file, given, run=lambda xs: [made(*map(dt.asarray, xs))]):
        assert output.ok, output
