"""The expected output of the MiniLM example: a forward pass in NumPy float64."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from math import erf
from pathlib import Path

import numpy as np

EXAMPLE = Path(__file__).parents[2] / "examples" / "minilm"
SENTENCES = ["A man is playing a guitar.", "Hardware for linear algebra got a lot quicker, says the vendor.", "rye"]


def forward(w: dict[str, np.ndarray], config: dict, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """BERT, mean pooling and normalisation, all in float64."""

    def norm(x, name):
        d = x - x.mean(-1, keepdims=True)
        x = d / np.sqrt((d * d).mean(-1, keepdims=True) + config["layer_norm_eps"])
        return x * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    batch, tokens = ids.shape
    heads, width = config["num_attention_heads"], config["hidden_size"]
    e = "embeddings"
    x = w[f"{e}.word_embeddings.weight"][ids] + w[f"{e}.position_embeddings.weight"][:tokens]
    x = norm(x + w[f"{e}.token_type_embeddings.weight"][0], f"{e}.LayerNorm")
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}"
        q, k, v = (
            linear(x, f"{layer}.attention.self.{p}").reshape(batch, tokens, heads, -1).swapaxes(1, 2)
            for p in ("query", "key", "value")
        )
        s = q @ k.swapaxes(-1, -2) / np.sqrt(width // heads)
        s = np.where(mask[:, None, None, :] > 0, s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        y = (p / p.sum(-1, keepdims=True) @ v).swapaxes(1, 2).reshape(batch, tokens, width)
        x = norm(x + linear(y, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm")
        y = linear(x, f"{layer}.intermediate.dense")
        y = y * 0.5 * (1 + np.vectorize(erf)(y / np.sqrt(2)))
        x = norm(x + linear(y, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    mean = (x * mask[..., None]).sum(1) / mask.sum(1)[:, None]
    return mean / np.linalg.norm(mean, axis=-1, keepdims=True)


EMBED = """
import json, sys
sys.path.insert(0, {example!r})
from model import MiniLM
model = MiniLM({device!r})
ids, mask = model.tokenize({sentences!r})
print(json.dumps([ids.tolist(), mask.tolist(), *(model({sentences!r}).tolist() for _ in range(2))]))
"""


def embed(device: str, **environment: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids, mask and embeddings from a new process, because kernels are chosen once per process."""
    code = EMBED.format(example=str(EXAMPLE), device=device, sentences=SENTENCES)
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    ids, mask, got, again = map(np.array, json.loads(run.stdout))
    assert np.allclose(got, again, rtol=0, atol=1e-6), (
        f"two runs in one process differ:\n{differences(got)}\n{differences(again)}"
    )
    return ids, mask, got


@cache
def expected_embeddings() -> np.ndarray:
    """The embeddings of SENTENCES."""
    sys.path.insert(0, str(EXAMPLE))
    from model import model_folder
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder = model_folder()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(SENTENCES)
    ids, mask = (np.array([getattr(e, key) for e in encoded]) for key in ("ids", "attention_mask"))
    weights = {k: v.astype(np.float64) for k, v in load_file(folder / "model.safetensors").items()}
    return forward(weights, json.loads((folder / "config.json").read_text()), ids, mask)


def differences(got: np.ndarray) -> np.ndarray:
    """The largest difference of each sentence's embedding from the expected one."""
    return np.abs(got - expected_embeddings()).max(-1)


def assert_agrees(got: np.ndarray) -> None:
    assert differences(got).max() < 1e-5, f"difference of each sentence: {differences(got)}"
