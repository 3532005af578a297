"""Indices that torch refuses: negative ones where it counts from 0, those behind the end, and other dtypes."""

import pytest
import torch
import torch.nn.functional as F

ROWS = 3


def index(*values):
    return torch.tensor(values)


COUNTED_FROM_0 = {
    "embedding": lambda x, i: F.embedding(i, x),
    "index_select": lambda x, i: x.index_select(0, i),
    "index_add": lambda x, i: x.index_add(0, i, x[: len(i)]),
    "index_copy": lambda x, i: x.index_copy(0, i, x[: len(i)]),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "scatter": lambda x, i: x.scatter(0, i[:, None], 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None], x),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i[:, None], x, "amax"),
    "cross_entropy": lambda x, i: F.cross_entropy(x[: len(i), :ROWS], i),
    "one_hot": lambda x, i: F.one_hot(i, ROWS),
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("name", COUNTED_FROM_0)
def test_negative_indices_are_errors(device, name, dtype):
    call = COUNTED_FROM_0[name]
    x = torch.arange(12.0).reshape(ROWS, 4)
    good, bad = index(0, 2).to(dtype), index(0, -1).to(dtype)
    try:
        expected = call(x, good)
    except (RuntimeError, IndexError) as refused:
        pytest.skip(f"torch's CPU refuses it with {dtype}: {refused}")
    torch.testing.assert_close(call(x.to(device), good.to(device)).cpu(), expected)
    with pytest.raises((IndexError, RuntimeError)):
        call(x, bad)
    with pytest.raises((IndexError, RuntimeError), match=r"is out of (range|bounds)"):
        call(x.to(device), bad.to(device)).cpu()
    with pytest.raises((IndexError, RuntimeError), match=r"is out of (range|bounds)"):
        call(x.to(device), index(0, 7).to(dtype).to(device)).cpu()


def test_an_error_names_a_negative_index_and_the_range():
    x = torch.arange(6.0).reshape(3, 2).to("dovetail")
    with pytest.raises(IndexError, match=r"index -2 is out of range: axis 0 has 3 elements(, expected 0 to 2)?$"):
        x.index_select(0, index(1, -2).to("dovetail")).cpu()


def test_indices_that_count_from_the_end(device):
    x, i = torch.arange(6.0).reshape(3, 2), index(-1, 0)
    on_device = x.to(device)
    for call in (lambda x, i: x[i], lambda x, i: x.index_fill(0, i, 5.0), lambda x, i: x.take(i)):
        torch.testing.assert_close(call(on_device, i.to(device)).cpu(), call(x, i))
    on_device[i.to(device)] = 7.0
    x[i] = 7.0
    torch.testing.assert_close(on_device.cpu(), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.int16])
def test_indices_of_other_dtypes_are_refused(device, dtype):
    x, i = torch.arange(3.0, device=device), torch.tensor([1], dtype=dtype, device=device)
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool"):
        x[i]
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool"):
        x[i] = 1.0
