"""Legal calls of the rules of gradients: those of the forward op, and a gradient of its result.

All values are finite. Where one of them is not, kernels differ lawfully: a weight or a difference of 0 is
multiplied by it, or skipped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from dovetail.schema import dtypes as dt

from . import legal_sums
from .legal import Drawing, legal
from .operand import Operand


def _finite(given: dict[str, Any]) -> dict[str, Any]:
    return {
        n: legal_sums.finite(a) if isinstance(a, Operand) and a.dtype.kind == "f" else a for n, a in given.items()
    }


def _grad(m: Drawing, shape: tuple[int, ...]) -> Operand:
    return legal_sums.finite(m.operand(shape))


@legal("layer_norm_grad")
def layer_norm_grad(m: Drawing) -> dict[str, Any]:
    given = _finite(legal_sums.layer_norm(m))
    return given | {"grad": _grad(m, given["x"].shape)}


@legal("batch_norm_train_grad")
def batch_norm_train_grad(m: Drawing) -> dict[str, Any]:
    given = _finite(legal_sums.batch_norm_train(m))
    return {n: a for n, a in given.items() if n != "bias"} | {"grad": _grad(m, given["x"].shape)}


@legal("cross_entropy_grad")
def cross_entropy_grad(m: Drawing) -> dict[str, Any]:
    given = _finite(legal_sums.cross_entropy(m))
    reduction = m.pick(("mean", "sum", "none"))
    of_loss = given["target"].shape if reduction == "none" else ()
    return given | {"grad": _grad(m, of_loss), "reduction": reduction}


@legal("attention_grad")
def attention_grad(m: Drawing) -> dict[str, Any]:
    """Scores are small, and no weight is much larger than a softmax's: a kernel may round it to float16."""
    given = _finite(legal_sums.attention(m))
    given |= {
        n: a._replace(low=-1.0, high=1.0)
        for n, a in given.items()
        if n in ("query", "key", "attn_mask") and a.dtype.kind == "f"
    }
    shape = (*given["query"].shape[:-1], given["value"].shape[-1])
    given |= {"out": _grad(m, shape), "grad": _grad(m, shape)}
    of = dt.float64 if m.dtype is dt.float64 else dt.float32
    return given | {
        "logsumexp": Operand(shape[:-1], of, "uniform", m.integer(0, 255), m.layout(shape[:-1]), 3.0, 6.0)
    }


# ---- windows -----------------------------------------------------------------------------------------------------


def _convolution(m: Drawing) -> tuple[dict[str, Any], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Attributes, and the shapes of x, of the weight and of the result."""
    given = legal_sums.convolution(m, m.pick((2, 1, 3)))
    x, weight = given.pop("x").shape, given.pop("weight").shape
    del given["bias"]
    return given, x, weight, (x[0], weight[0], *_places(x[2:], weight[2:], given))


def _places(sizes: tuple[int, ...], taps: tuple[int, ...], how: dict[str, Any]) -> list[int]:
    n = len(sizes)
    stride, padding, dilation = (legal_sums.spread(how.get(k, 1), n) for k in ("stride", "padding", "dilation"))
    reach = np.multiply(dilation, np.subtract(taps, 1)) + 1
    return [int(v) for v in (np.add(sizes, np.multiply(2, padding)) - reach) // stride + 1]


@legal("conv_grad_input")
def conv_grad_input(m: Drawing) -> dict[str, Any]:
    given, x, weight, result = _convolution(m)
    return given | {"weight": _grad(m, weight), "grad": _grad(m, result), "input_size": x}


@legal("conv_grad_weight")
def conv_grad_weight(m: Drawing) -> dict[str, Any]:
    given, x, weight, result = _convolution(m)
    return given | {"x": _grad(m, x), "grad": _grad(m, result), "weight_size": weight}


@legal("max_pool_grad", "avg_pool_grad")
def pool_grad(m: Drawing) -> dict[str, Any]:
    given = legal_sums.pooling(m, m.pick((2, 1, 3)))
    x = given.pop("x").shape
    taps = tuple(legal_sums.spread(given["kernel_size"], len(x) - 2))
    how = given if given["stride"] is not None else given | {"stride": taps}
    grad = _grad(m, (*x[:2], *_places(x[2:], taps, how)))
    of_x = {"input_size": x} if "input_size" in m.names else {"x": _finite({"x": m.operand(x)})["x"]}
    return {**of_x, "grad": grad, **given}
