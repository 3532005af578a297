"""Small models of the usual kinds: convolutions, attention, norms, a key-value cache."""

import torch
import torch.nn.functional as F
from torch import nn


class Basic(nn.Module):
    def __init__(self, channels_in, channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.down = None
        if stride != 1 or channels_in != channels:
            self.down = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self, width=8, classes=10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        layers, channels = [], width
        for i, out in enumerate((width, 2 * width, 4 * width, 8 * width)):
            layers += [Basic(channels, out, 1 if i == 0 else 2), Basic(out, out)]
            channels = out
        self.layers = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(torch.flatten(self.pool(self.layers(self.stem(x))), 1))


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, mask=None, causal=False, cache=None):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(d, -1))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal and cache is None)
        return self.out(y.transpose(1, 2).reshape(b, t, d)), (k, v)


class Block(nn.Module):
    def __init__(self, dim, heads, approximate="none"):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(dim), Attention(dim, heads), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(approximate), nn.Linear(4 * dim, dim))

    def forward(self, x, **kwargs):
        y, cache = self.attention(self.norm1(x), **kwargs)
        x = x + y
        return x + self.mlp(self.norm2(x)), cache


class Bert(nn.Module):
    def __init__(self, vocabulary=100, dim=32, heads=4, layers=2, length=16, dropout=0.0):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, dim, padding_idx=0), nn.Embedding(length, dim)
        self.kind, self.norm, self.dropout = nn.Embedding(2, dim), nn.LayerNorm(dim), nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.pool, self.head = nn.Linear(dim, dim), nn.Linear(dim, 3)

    def forward(self, ids, mask):
        x = (
            self.token(ids)
            + self.place(torch.arange(ids.shape[1], device=ids.device))[None]
            + self.kind(torch.zeros_like(ids))
        )
        x = self.dropout(self.norm(x))
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for block in self.blocks:
            x, _ = block(x, mask=bias)
        return self.head(torch.tanh(self.pool(x[:, 0])))


class Gpt(nn.Module):
    def __init__(self, vocabulary=100, dim=32, heads=4, layers=2, length=64):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, dim), nn.Embedding(length, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, "tanh") for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocabulary, bias=False)
        self.head.weight = self.token.weight

    def forward(self, ids, caches=None):
        before = 0 if caches is None else caches[0][0].size(2)
        x = self.token(ids) + self.place(torch.arange(before, before + ids.shape[1], device=ids.device))
        kept = []
        for i, block in enumerate(self.blocks):
            x, cache = block(x, causal=True, cache=None if caches is None else caches[i])
            kept.append(cache)
        return self.head(self.norm(x)), kept


def generate(model, ids, length):
    """Greedy and filtered steps in turn; the filtered step takes the most probable token of the top p."""
    logits, caches = model(ids)
    for i in range(length):
        last = logits[:, -1] / 0.8
        if i % 2:
            values, _ = torch.topk(last, 10)
            last = last.masked_fill(last < values[:, [-1]], -float("inf"))
            ordered, places = torch.sort(last, descending=True)
            removed = ordered.softmax(-1).cumsum(-1) > 0.9
            removed[:, 1:] = removed[:, :-1].clone()
            removed[:, 0] = False
            last = last.masked_fill(removed.scatter(1, places, removed), -float("inf"))
        token = last.argmax(-1, keepdim=True)
        ids = torch.cat([ids, token], 1)
        logits, caches = model(token, caches)
    return ids


class Vit(nn.Module):
    def __init__(self, dim=32, layers=2):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, 8, 8)
        self.cls, self.place = nn.Parameter(torch.zeros(1, 1, dim)), nn.Parameter(torch.randn(1, 17, dim))
        self.blocks = nn.ModuleList(Block(dim, 4) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.place
        for block in self.blocks:
            x, _ = block(x)
        return self.head(self.norm(x)[:, 0])


class Residual(nn.Module):
    def __init__(self, channels_in, channels):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, channels_in), nn.Conv2d(channels_in, channels, 3, padding=1)
        self.time = nn.Linear(16, channels)
        self.norm2, self.conv2 = nn.GroupNorm(4, channels), nn.Conv2d(channels, channels, 3, padding=1)
        self.skip = nn.Conv2d(channels_in, channels, 1) if channels_in != channels else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class UNet(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        c = channels
        self.first, self.time = nn.Conv2d(3, c, 3, padding=1), nn.Linear(16, 16)
        self.down1, self.down = Residual(c, c), nn.Conv2d(c, 2 * c, 3, 2, 1)
        self.middle, self.attention = Residual(2 * c, 2 * c), Attention(2 * c, 4)
        self.up, self.transposed = nn.Conv2d(2 * c, c, 3, padding=1), nn.ConvTranspose2d(c, c, 2, 2)
        self.up1, self.last = Residual(2 * c, c), nn.Conv2d(c, 3, 3, padding=1)

    def forward(self, x, t):
        frequencies = torch.exp(torch.arange(8, device=x.device) * -0.5)
        e = t[:, None].float() * frequencies[None]
        e = self.time(torch.cat([e.sin(), e.cos()], -1))
        h = self.down1(self.first(x), e)
        y = self.middle(self.down(h), e)
        b, c, height, width = y.shape
        attended, _ = self.attention(y.flatten(2).transpose(1, 2))
        y = y + attended.transpose(1, 2).reshape(b, c, height, width)
        y = self.up(F.interpolate(y, scale_factor=2, mode="nearest"))
        y = y + self.transposed(F.avg_pool2d(y, 2))
        return self.last(self.up1(torch.cat([y, h], 1), e))
