"""Signals: Fourier transforms of numbers whose real and imaginary parts are a last axis, windows, mel weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dovetail as dt
from dovetail import fft
from dovetail.onnx.registry import Node, onnx_op
from dovetail.onnx.values import constant, dtype_of_number, integer, scalar


def _complex(x: Any) -> Any:
    """x (..., 1 or 2) as complex numbers."""
    real = x[..., 0]
    real = real if real.dtype in ("float32", "float64") else dt.astype(real, "float32")
    return real + x[..., 1] * 1j if x.shape[-1] == 2 else real


def _parts(x: Any, dtype: Any) -> Any:
    return dt.astype(dt.stack([dt.real(x), dt.imag(x)], axis=-1), dtype)


@onnx_op("DFT", numbers=(1, 2))
def dft(node: Node, x: Any, length: Any = None, axis: Any = None) -> Any:
    if axis is not None:
        a = integer(axis)
    else:
        a = node.get("axis", 1) if node.opset < 20 else -2
    a = a + x.ndim if a < 0 else a
    n = int(integer(length)) if length is not None else None
    return transform(x, a, n, bool(node.get("inverse", 0)), bool(node.get("onesided", 0)))


def transform(x: Any, axis: int, n: int | None, inverse: bool, onesided: bool) -> Any:
    z = _complex(x)
    if inverse and onesided:
        half = z if z.dtype.kind == "complex floating" else z + z * 0j
        return dt.astype(dt.expand_dims(fft.irfft(half, n=n, axis=axis), axis=-1), x.dtype)
    if onesided:
        return _parts(fft.rfft(dt.real(z), n=n, axis=axis), x.dtype)
    z = z if z.dtype.kind == "complex floating" else z + z * 0j
    return _parts((fft.ifft if inverse else fft.fft)(z, n=n, axis=axis), x.dtype)


@onnx_op("STFT", numbers=(1, 3))
def stft(node: Node, x: Any, step: Any, window: Any = None, length: Any = None) -> Any:
    stride = integer(step)
    n = int(integer(length)) if length is not None else int(window.shape[0])
    x = x if x.ndim == 3 else x[..., None]
    frames = (x.shape[1] - n) // stride + 1
    places = dt.reshape(dt.arange(frames), (-1, 1)) * stride + dt.arange(n)
    rows = dt.take(x, places, axis=1)
    if window is not None:
        rows = rows * dt.reshape(window, (1, 1, -1, 1))
    return transform(rows, 2, None, False, bool(node.get("onesided", 1)))


@onnx_op("MelWeightMatrix", numbers=(0, 1, 2, 3, 4))
def mel_weight_matrix(node: Node, bins: Any, length: Any, rate: Any, low: Any, high: Any) -> Any:
    """Triangles on the mel scale, as columns over the bins of a spectrum."""
    n, size, sample_rate = (int(integer(v)) for v in (bins, length, rate))
    rows = size // 2 + 1
    ends = [2595.0 * math.log10(1.0 + float(scalar(f)) / 700.0) for f in (low, high)]
    mel = np.arange(n + 2) * (ends[1] - ends[0]) / (n + 2) + ends[0]
    hertz = 700.0 * (np.power(10.0, mel / 2595.0) - 1.0)
    places = ((size + 1) * hertz // sample_rate).astype(np.int64)
    made = np.zeros((rows, n), np.float64)
    for i in range(n):
        first, centre, last = places[i : i + 3]
        if centre == first:
            made[centre, i] = 1
        else:
            k = np.arange(first, centre + 1)
            made[k, i] = (k - first) / (centre - first)
        if last > centre:
            k = np.arange(centre, last)
            made[k, i] = (last - k) / (last - centre)
    return dt.astype(constant(made), dtype_of_number(node.get("output_datatype", 1)))


_WINDOWS = {"HannWindow": (0.5, -0.5, 0.0), "HammingWindow": (25 / 46, 25 / 46 - 1.0, 0.0),
            "BlackmanWindow": (0.42, -0.5, 0.08)}  # fmt: skip


@onnx_op(*_WINDOWS, numbers=(0,), may_grow=True)
def cosine_window(node: Node, size: Any) -> Any:
    """A sum of cosines over a period, which includes its end where the window is not periodic."""
    n = integer(size)
    a, b, c = _WINDOWS[node.op]
    turns = dt.arange(n, dtype="float64") * (2.0 * math.pi / (n if node.get("periodic", 1) else n - 1))
    made = dt.cos(turns) * b + a
    if c:
        made = made + dt.cos(turns * 2.0) * c
    return dt.astype(made, dtype_of_number(node.get("output_datatype", 1)))
