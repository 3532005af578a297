"""Gradients against PyTorch's backward: python benchmarks/gradients.py [--threads 1 2] [--seconds 0.5] [name ...]

Milliseconds of the backward pass alone, the least of many, the two taking turns of a few calls each:
PyTorch's threads keep spinning after a call. `ratio` is ours over PyTorch's; `difference` the largest one between
results, over the largest result. Names choose cases by their beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from turns import least, main

Case = tuple[
    str, Callable, Callable, tuple[np.ndarray, ...]
]  # ours(grad, out, *arrays), torch's forward, its operands


def cases() -> Iterator[Case]:
    import dovetail as dt
    import torch
    import torch.nn.functional as F
    from dovetail import nn

    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    def norm(name: str, *shape: int) -> Case:
        n, parameters = shape[-1:], (floats(shape[-1]), floats(shape[-1]))[: 2 if name == "layer_norm" else 1]
        ours = getattr(nn, f"{name}_grad")
        return (
            f"{name} {shape[0]}x{shape[1]}",
            lambda g, y, x, w, *_: ours(x, g, n, w, eps=1e-5),
            lambda x, *parameters: getattr(F, name)(x, n, *parameters, eps=1e-5),
            (floats(*shape), *parameters),
        )

    def attention(*shape: int) -> Case:
        arrays = tuple(floats(*shape) for _ in range(3))
        out, total = nn.scaled_dot_product_attention_with_logsumexp(*map(dt.asarray, arrays), is_causal=True)
        return (
            f"attention {shape}",
            lambda g, y, q, k, v: nn.scaled_dot_product_attention_grad(q, k, v, out, total, g, is_causal=True),
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            arrays,
        )

    def convolution(name: str, x: np.ndarray, weight: np.ndarray, stride: int) -> Case:
        how = {"stride": stride, "padding": 1}

        def ours(g: Any, y: Any, x: Any, weight: Any, bias: Any) -> tuple:
            by_x = nn.conv_grad_input(weight, g, x.shape, **how)
            return by_x, nn.conv_grad_weight(x, g, weight.shape, **how), dt.sum(g, axis=(0, 2, 3))

        return name, ours, lambda x, w, b: F.conv2d(x, w, b, **how), (x, weight, floats(weight.shape[0]))

    square, rows = floats(512, 512), floats(2048, 64)
    labels = rng.integers(0, 256, 512)
    ours_labels, torch_labels = dt.asarray(labels), torch.tensor(labels)
    yield "gelu", lambda g, y, x: nn.gelu_grad(x, g), F.gelu, (square,)
    yield (
        "gelu_tanh",
        lambda g, y, x: nn.gelu_grad(x, g, "tanh"),
        lambda x: F.gelu(x, approximate="tanh"),
        (square,),
    )
    yield "silu", lambda g, y, x: nn.silu_grad(x, g), F.silu, (square,)
    yield "relu", lambda g, y, x: dt.where(x > 0, g, 0), F.relu, (square,)
    by_tanh = dt.compile(lambda g, y: g * (1 - y * y))
    yield "tanh, compiled", lambda g, y, x: by_tanh(g, y), torch.tanh, (square,)
    yield "softmax", lambda g, y, x: nn.softmax_grad(y, g), partial(F.softmax, dim=-1), (rows,)
    yield (
        "log_softmax",
        lambda g, y, x: nn.log_softmax_grad(y, g),
        lambda x: F.log_softmax(x, -1),
        (floats(2048, 64),),
    )
    yield norm("layer_norm", 512, 128)
    yield norm("layer_norm", 4096, 1024)
    yield norm("rms_norm", 512, 128)
    yield attention(8, 4, 64, 32)
    yield attention(2, 8, 512, 64)
    yield (
        "cross_entropy 512x256",
        lambda g, y, x: nn.cross_entropy_grad(x, ours_labels, g),
        lambda x: F.cross_entropy(x, torch_labels),
        (floats(512, 256),),
    )
    for n in (256, 30_000):
        places = rng.integers(0, n, 512)
        ours_places, torch_places = dt.asarray(places), torch.tensor(places)
        zeros = dt.zeros((n, 128), dtype=dt.float32)
        yield (
            f"embedding {n}x128",
            lambda g, y, w, at=ours_places, zeros=zeros: dt.scatter(zeros, at, g, axis=0, mode="add"),
            lambda w, at=torch_places: F.embedding(at, w),
            (floats(n, 128),),
        )
    images = floats(8, 32, 28, 28)
    yield convolution("conv2d", images, floats(32, 32, 3, 3), 1)
    yield convolution("conv2d stride 2", images, floats(64, 32, 3, 3), 2)
    yield "max_pool2d", lambda g, y, x: nn.max_pool_grad(x, g, 2), lambda x: F.max_pool2d(x, 2), (images,)
    yield "avg_pool2d", lambda g, y, x: nn.avg_pool_grad(g, x.shape, 2), lambda x: F.avg_pool2d(x, 2), (images,)


def measure(names: list[str], seconds: float, threads: int) -> None:
    import dovetail as dt
    import torch

    torch.set_num_threads(threads)
    print(f"{'ms, threads: ' + str(threads):28} {'ours':>8} {'torch':>8} {'ratio':>6}  difference")
    for name, ours, forward, arrays in cases():
        if names and not any(name.startswith(n) for n in names):
            continue
        leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
        out = forward(*leaves)
        grad = torch.randn(out.shape)
        given = [dt.asarray(a) for a in (grad.numpy(), out.detach().numpy(), *arrays)]

        def run(ours: Callable = ours, given: list = given) -> Any:
            return ours(*given)

        def theirs(out: Any = out, leaves: list = leaves, grad: Any = grad) -> tuple:
            return torch.autograd.grad(out, leaves, grad, retain_graph=True)

        made = run()
        pairs = zip(made if isinstance(made, tuple) else (made,), theirs(), strict=True)
        difference = max(
            np.abs(np.asarray(a) - b.numpy()).max() / max(float(b.abs().max()), 1e-30) for a, b in pairs
        )
        a, b = least([run, theirs], seconds)
        print(f"{name:28} {a * 1e3:8.3f} {b * 1e3:8.3f} {a / b:6.2f}  {difference:.0e}", flush=True)


if __name__ == "__main__":
    main(__doc__, measure)
