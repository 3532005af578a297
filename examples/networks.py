"""Parts of well-known networks as plain functions, with random weights: what compiled functions are measured on.

Each network is a class with `inputs()`, arrays for one call, and `__call__`. Weights have the dtype that it is made
with; `seed` makes them again.
"""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
from dovetail import nn


class Network:
    def __init__(self, device: str | dt.Device, dtype: dt.DType = dt.float32, seed: int = 0):
        self.device, self.dtype = dt.device(device), dtype
        self._random = np.random.default_rng(seed)
        self.make()

    def make(self) -> None:
        """Sets the weights."""

    def normal(self, *shape: int, scale: float = 1.0, offset: float = 0.0) -> dt.Array:
        values = offset + scale * self._random.standard_normal(shape)
        return dt.astype(dt.asarray(values.astype(np.float32), device=self.device), self.dtype)

    def weight(self, *shape: int) -> dt.Array:
        """Scaled so that what goes through it keeps its size."""
        return self.normal(*shape, scale=float(np.prod(shape[1:])) ** -0.5)


class Gpt(Network):
    """A decoder: rms_norm, rotary positions, causal attention over a cache, a gated feed-forward network."""

    width, heads, layers, length = 64, 4, 4, 64

    def make(self) -> None:
        size = self.width // self.heads
        angles = np.arange(self.length)[:, None] * 10000.0 ** (-np.arange(size // 2) / (size // 2))
        self.cos, self.sin = (
            dt.asarray(f(angles).astype(np.float32), device=self.device) for f in (np.cos, np.sin)
        )
        self.blocks = [
            {
                "norm1": self.normal(self.width, scale=0.1, offset=1.0),
                "qkv": self.weight(3 * self.width, self.width),
                "out": self.weight(self.width, self.width),
                "norm2": self.normal(self.width, scale=0.1, offset=1.0),
                "gate": self.weight(2 * self.width, self.width),
                "up": self.weight(2 * self.width, self.width),
                "down": self.weight(self.width, 2 * self.width),
            }
            for _ in range(self.layers)
        ]

    def norm(self, x: dt.Array, weight: dt.Array) -> dt.Array:
        mean = dt.mean(x * x, axis=-1, keepdims=True)
        return x / dt.sqrt(mean + 1e-6) * weight

    def split(self, x: dt.Array) -> list[dt.Array]:
        """(B, T, 3 width) to three of (B, heads, T, size)."""
        batch, tokens, _ = x.shape
        parts = dt.reshape(x, (batch, tokens, 3, self.heads, self.width // self.heads))
        return [dt.permute_dims(parts[:, :, i], (0, 2, 1, 3)) for i in range(3)]

    def feed_forward(self, x: dt.Array, w: dict[str, dt.Array]) -> dt.Array:
        y = self.norm(x, w["norm2"])
        y = nn.silu(nn.linear(y, w["gate"])) * nn.linear(y, w["up"])
        return x + nn.linear(y, w["down"])

    def block(self, x: dt.Array, w: dict[str, dt.Array], attend: Any) -> dt.Array:
        q, k, v = self.split(nn.linear(self.norm(x, w["norm1"]), w["qkv"]))
        y = dt.permute_dims(attend(q, k, v), (0, 2, 1, 3))
        x = x + nn.linear(dt.reshape(y, x.shape), w["out"])
        return self.feed_forward(x, w)

    def inputs(self) -> tuple[Any, ...]:
        return (self.normal(2, 16, self.width),)

    def __call__(self, x: dt.Array) -> dt.Array:
        tokens = x.shape[1]

        def attend(q: dt.Array, k: dt.Array, v: dt.Array) -> dt.Array:
            q, k = (nn.rotary_embedding(y, self.cos[:tokens], self.sin[:tokens]) for y in (q, k))
            return nn.scaled_dot_product_attention(q, k, v, is_causal=True)

        for w in self.blocks:
            x = self.block(x, w, attend)
        return x


class GrowingCache(Gpt):
    """One token of Gpt at a time; keys and values of earlier ones grow by concatenation."""

    def inputs(self) -> tuple[Any, ...]:
        size = self.width // self.heads
        cache = [(self.normal(1, self.heads, 7, size), self.normal(1, self.heads, 7, size)) for _ in self.blocks]
        return self.normal(1, 1, self.width), cache

    def __call__(self, x: dt.Array, cache: Any) -> Any:
        grown = []
        position = cache[0][0].shape[2]
        for w, (keys, values) in zip(self.blocks, cache, strict=True):

            def attend(q: dt.Array, k: dt.Array, v: dt.Array, keys: Any = keys, values: Any = values) -> dt.Array:
                cos, sin = self.cos[position : position + 1], self.sin[position : position + 1]
                q, k = nn.rotary_embedding(q, cos, sin), nn.rotary_embedding(k, cos, sin)
                keys, values = dt.concat([keys, k], axis=2), dt.concat([values, v], axis=2)
                grown.append((keys, values))
                return nn.scaled_dot_product_attention(q, keys, values)

            x = self.block(x, w, attend)
        return x, grown


class StaticCache(Gpt):
    """One token of Gpt at a time; keys and values go into a cache of fixed length, at a position on the device."""

    def inputs(self) -> tuple[Any, ...]:
        shape = 1, self.heads, self.length, self.width // self.heads
        cache = [(self.normal(*shape), self.normal(*shape)) for _ in self.blocks]
        return self.normal(1, 1, self.width), dt.asarray(7, device=self.device), cache

    def __call__(self, x: dt.Array, position: dt.Array, cache: Any) -> Any:
        updated = []
        cos, sin = (dt.dynamic_slice(table, position, (1,), axis=(0,)) for table in (self.cos, self.sin))
        for w, (keys, values) in zip(self.blocks, cache, strict=True):

            def attend(q: dt.Array, k: dt.Array, v: dt.Array, keys: Any = keys, values: Any = values) -> dt.Array:
                q, k = nn.rotary_embedding(q, cos, sin), nn.rotary_embedding(k, cos, sin)
                keys = dt.dynamic_update_slice(keys, k, position, axis=(2,))
                values = dt.dynamic_update_slice(values, v, position, axis=(2,))
                updated.append((keys, values))
                return nn.scaled_dot_product_attention(q, keys, values, kv_length=position + 1)

            x = self.block(x, w, attend)
        return x, updated


class ResNet(Network):
    """Two residual blocks of ResNet-18, with batch normalisation by its running statistics."""

    channels = 32

    def make(self) -> None:
        c = self.channels
        self.convs = [self.weight(c, c, 3, 3) for _ in range(4)]
        self.norms = [
            (
                self.normal(c, scale=0.1),
                dt.abs(self.normal(c, scale=0.1, offset=1.0)),
                self.normal(c, scale=0.1, offset=1.0),
                self.normal(c, scale=0.1),
            )
            for _ in range(4)
        ]

    def inputs(self) -> tuple[Any, ...]:
        return (self.normal(2, self.channels, 28, 28),)

    def conv(self, x: dt.Array, i: int) -> dt.Array:
        return nn.batch_norm(nn.conv2d(x, self.convs[i], padding=1), *self.norms[i])

    def __call__(self, x: dt.Array) -> dt.Array:
        for i in (0, 2):
            x = nn.relu(x + self.conv(nn.relu(self.conv(x, i)), i + 1))
        return dt.mean(x, axis=(2, 3))


class UNet(Network):
    """A residual block of a diffusion UNet: group_norm, silu, convolutions, a time embedding, a skip connection."""

    channels, groups = 32, 8

    def make(self) -> None:
        c = self.channels
        self.norm1 = self.normal(2 * c, scale=0.1, offset=1.0), self.normal(2 * c, scale=0.1)
        self.norm2 = self.normal(c, scale=0.1, offset=1.0), self.normal(c, scale=0.1)
        self.conv1, self.conv2 = self.weight(c, 2 * c, 3, 3), self.weight(c, c, 3, 3)
        self.time, self.skip = self.weight(c, 64), self.weight(c, 2 * c, 1, 1)

    def inputs(self) -> tuple[Any, ...]:
        c = self.channels
        return self.normal(1, c, 16, 16), self.normal(1, c, 16, 16), self.normal(1, 64)

    def group_norm(self, x: dt.Array, weight: dt.Array, bias: dt.Array) -> dt.Array:
        y = dt.reshape(x, (x.shape[0], self.groups, -1))
        centred = y - dt.mean(y, axis=-1, keepdims=True)
        y = centred / dt.sqrt(dt.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)
        return dt.reshape(y, x.shape) * weight[:, None, None] + bias[:, None, None]

    def __call__(self, x: dt.Array, skip: dt.Array, time: dt.Array) -> dt.Array:
        x = dt.concat([x, skip], axis=1)
        y = nn.conv2d(nn.silu(self.group_norm(x, *self.norm1)), self.conv1, padding=1)
        y = y + nn.linear(nn.silu(time), self.time)[:, :, None, None]
        y = nn.conv2d(nn.silu(self.group_norm(y, *self.norm2)), self.conv2, padding=1)
        return y + nn.conv2d(x, self.skip)


class Composed(Network):
    """Elementwise ops and reductions alone: layer_norm, gelu and softmax as people write them."""

    width = 256

    def make(self) -> None:
        w = self.width
        self.scale, self.shift, self.bias = (self.normal(w, scale=0.1, offset=o) for o in (1.0, 0.0, 0.0))

    def inputs(self) -> tuple[Any, ...]:
        return (self.normal(64, self.width),)

    def __call__(self, x: dt.Array) -> dt.Array:
        centred = x - dt.mean(x, axis=-1, keepdims=True)
        variance = dt.mean(centred * centred, axis=-1, keepdims=True)
        y = centred / dt.sqrt(variance + 1e-5) * self.scale + self.shift
        y = 0.5 * y * (1.0 + dt.tanh(0.7978845608 * (y + 0.044715 * y * y * y))) + self.bias
        e = dt.exp(y - dt.max(y, axis=-1, keepdims=True))
        return x + e / dt.sum(e, axis=-1, keepdims=True)


NETWORKS = (Gpt, GrowingCache, StaticCache, ResNet, UNet, Composed)
