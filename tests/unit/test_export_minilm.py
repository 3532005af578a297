"""One program of MiniLM's forward pass: the eager bits for any batch and length, on each device, from a file."""

import json
import subprocess
import sys
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/minilm"
SIZES = [(1, 5), (2, 16), (8, 128), (5, 1)]
CONFIG = {"num_hidden_layers": 6, "num_attention_heads": 12, "layer_norm_eps": 1e-12}
WIDTH, WORDS = 384, 1000
SEED = 3


def weights() -> dict[str, np.ndarray]:
    """Random weights of MiniLM's shapes, with fewer words."""
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


FROM_FILE = """
import sys
import dovetail as dt, numpy as np
program = dt.load(sys.argv[1])
given = np.load(sys.argv[2])
for k in range(len(given) // 2):
    out = program(given[f"ids{k}"], given[f"mask{k}"], device=sys.argv[3])
    np.save(f"{sys.argv[4]}.{k}.npy", out.numpy())
"""


def test_one_program_gives_the_eager_bits_for_all_sizes_and_devices(tmp_path):
    values = weights()
    devices = [d.name for d in dt.devices() if d.name in ("cpu:0", "sim:0")]
    models = {name: model_on(name, values) for name in devices}
    ids, mask = (dt.asarray(x, device=devices[0]) for x in inputs(2, 16))
    program = dt.export(
        models[devices[0]].embed, ids, mask, dynamic={"ids": {0: "b", 1: "t"}, "mask": {0: "b", 1: "t"}}
    )
    text = json.loads(program.text())
    print(f"{len(text['nodes'])} nodes, {len(text.get('guards', []))} guards")
    assert text.get("guards", []) == []
    program.save(tmp_path / "minilm.dvt")
    np.savez(
        tmp_path / "given.npz",
        **{f"{n}{k}": x for k, s in enumerate(SIZES) for n, x in zip(("ids", "mask"), inputs(*s))},
    )
    for name, model in models.items():
        command = [sys.executable, "-c", FROM_FILE, "minilm.dvt", "given.npz", name, f"out.{name}"]
        subprocess.run(command, check=True, cwd=tmp_path, timeout=600)
        for k, size in enumerate(SIZES):
            arrays = [dt.asarray(x, device=name) for x in inputs(*size)]
            expected = model.embed(*arrays).numpy().tobytes()
            assert program(*arrays).numpy().tobytes() == expected, (name, size)
            assert np.load(tmp_path / f"out.{name}.{k}.npy").tobytes() == expected, (name, size, "from the file")
