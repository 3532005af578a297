"""Bytes copied to the device, back, and within it, whatever the strides."""

from __future__ import annotations

import numpy as np
from dovetail.schema import dtypes

from . import check, expect


def same(t, array, host, what):
    got, host = t.numpy(array), np.array(host, order="C")
    expect(got.dtype == host.dtype, f"{what}: dtype {got.dtype} instead of {host.dtype}")
    expect(got.shape == host.shape, f"{what}: shape {got.shape} instead of {host.shape}")
    expect(got.tobytes() == host.tobytes(), f"{what}: other bytes came back")


@check
def every_dtype(t, rng):
    """All bit patterns survive, NaN payloads included."""
    for d in dtypes.ALL:
        if d.kind == "b":
            host = rng.integers(0, 2, 77).astype(np.bool_)
        elif d.bits < 8:
            host = rng.integers(0, 2**d.bits, 77, dtype=np.uint8).view(d.numpy)
            host = host.astype(np.float32).astype(d.numpy)  # bits beyond an element's own are its sign
        else:
            host = rng.integers(0, 256, 77 * d.itemsize, dtype=np.uint8).view(d.numpy)
        same(t, t.asarray(host), host, d.name)


@check
def every_size(t, rng):
    for size in (*range(140), 1023, 1025, 65535, 65537, 1 << 20):
        host = rng.integers(0, 256, size, dtype=np.uint8)
        same(t, t.asarray(host), host, f"{size} bytes")


def strided(host):
    """Views of a host array of shape (6, 7, 8): name and index or function."""
    yield "every second column", host[..., ::2]
    yield "a block inside", host[1:5, 2:6, 3:7]
    yield "one element", host[3:4, 2:3, 1:2]
    yield "transposed", host.transpose(2, 0, 1)
    yield "steps on every axis", host[1::2, ::3, 2::2]
    yield "an axis repeated", np.broadcast_to(host[:, :1], host.shape)
    yield "one value repeated", np.broadcast_to(host[1, 2, 3], (5, 4))
    yield "nothing", host[2:2, ::2]


@check
def strided_to_device(t, rng):
    host = rng.integers(0, 1 << 30, (6, 7, 8), dtype=np.int32)
    for name, view in (*strided(host), ("backwards", host[::-1, ::-2]), ("one column", host[:, 3, 1])):
        same(t, t.asarray(view), view, f"to the device, {name}")


@check
def strided_to_host(t, rng):
    host = rng.integers(0, 1 << 30, (6, 7, 8), dtype=np.int32)
    x = t.asarray(host)
    for name, view in views(t, x, host):
        same(t, view[0], view[1], f"to the host, {name}")


def views(t, x, host):
    """The same views of an array and of its values."""
    permute, broadcast = t.function("permute_dims"), t.function("broadcast_to")
    yield "every second column", (x[..., ::2], host[..., ::2])
    yield "a block inside", (x[1:5, 2:6, 3:7], host[1:5, 2:6, 3:7])
    yield "steps on every axis", (x[1::2, ::3, 2::2], host[1::2, ::3, 2::2])
    yield "transposed", (permute(x, (2, 0, 1)), host.transpose(2, 0, 1))
    yield "a view of a view", (permute(x[1:, ::2], (1, 2, 0))[1:, 3:], host[1:, ::2].transpose(1, 2, 0)[1:, 3:])
    yield "one row", (x[4, 5], host[4, 5])
    yield "one element", (x[4, 5, 6], host[4, 5, 6])
    yield "an axis repeated", (broadcast(x[:, :1], host.shape), np.broadcast_to(host[:, :1], host.shape))
    yield "a row repeated", (broadcast(x[2, 3], (3, 8)), np.broadcast_to(host[2, 3], (3, 8)))
    yield "nothing", (x[2:2, ::2], host[2:2, ::2])


@check
def within_device(t, rng):
    copy = t.function("copy")
    for d in (dtypes.uint8, dtypes.int16, dtypes.float32, dtypes.float64, dtypes.complex128):
        host = rng.integers(0, 256, 6 * 7 * 8 * d.itemsize, dtype=np.uint8).view(d.numpy).reshape(6, 7, 8)
        x = t.asarray(host)
        for name, (view, expected) in views(t, x, host):
            same(t, copy(view), expected, f"{d.name} within the device, {name}")
        same(t, x, host, f"{d.name}, the array that was copied from")


@check
def into_views(t, rng):
    """Values put into a part of an array: the rest stays."""
    host = rng.standard_normal((6, 7, 8)).astype(np.float32)
    new = rng.standard_normal((6, 7, 8)).astype(np.float32)
    for name, key in {
        "columns": np.s_[..., ::2],
        "a block": np.s_[1:5, 2:6, 3:7],
        "one element": np.s_[1, 2, 3],
        "a row": np.s_[4],
        "from a place on": np.s_[3:],
        "nothing": np.s_[2:2],
    }.items():
        x, expected = t.asarray(host), host.copy()
        x[key] = t.asarray(new)[key]
        expected[key] = new[key]
        same(t, x, expected, f"{name} replaced")
    x, expected = t.asarray(host), host.copy()
    x[:, 1:3] = 5.0
    expected[:, 1:3] = 5.0
    same(t, x, expected, "a number put into two columns")


@check
def values_stay(t, rng):
    """A change of a copy, a view or the host's array never changes another array."""
    host = rng.standard_normal((5, 6)).astype(np.float32)
    original = host.copy()
    x = t.asarray(host)
    host[:] = -1
    same(t, x, original, "the host's array was written after it had been handed over")
    view, copied = x[1:4], t.function("copy")(x)
    x[2] = 0.0
    same(t, view, original[1:4], "a view of an array that was written later")
    same(t, copied, original, "a copy of an array that was written later")
    out = t.numpy(copied)
    out[:] = 7
    same(t, copied, original, "an array whose copy on the host was written")


@check
def other_devices(t, rng):
    """To every other device at hand and back."""
    host = rng.integers(0, 1 << 30, (9, 11), dtype=np.int32)
    x = t.asarray(host)
    for other in t.api.devices():
        there = x[:, ::2].to_device(other)
        expect(there.device == other, f"to_device({other.name}) gave an array on {there.device.name}")
        back = there.to_device(t.device)
        same(t, back, host[:, ::2], f"by way of {other.name}")
