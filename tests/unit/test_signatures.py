"""`dovetail ops --signatures` and ops.md describe the calls that really reach kernels."""

import dovetail as dt
import numpy as np
import pytest
from dovetail.prototype import PythonDevice, kernel
from dovetail.schema import registry
from dovetail.schema.rules import NORMALISED
from dovetail.schema.signature import signature

NAME = "signatures"
ROWS = {
    "sum": "float32", "argmax": "float32->int64", "cumulative_sum": "float32", "softmax": "float32",
    "top_k": "float32->float32,int64", "flip": "float32", "roll": "float32", "diff": "float32", "concat": "float32",
    "stack": "float32", "take": "float32,int64->float32", "take_along_axis": "float32,int64->float32",
    "scatter": "float32,int64,float32->float32", "put_along_axis": "float32,int64,float32->float32",
    "repeat": "float32", "tile": "float32", "pad": "float32",
    "dynamic_slice": "float32,int64->float32", "dynamic_slice_axis": "float32,int64->float32",
    "dynamic_update_slice": "float32,float32,int64->float32",
    "matmul": "float32", "vecdot": "float32", "arange": "int64", "eye": "float32", "rms_norm": "float32",
    "conv2d": "float32",
    "scaled_dot_product_attention": "float32", "max_pool2d": "float32", "quantize": "float32,float32,int64->int8",
    "scaled_dot_product_attention_varlen": "float32,float32,float32,int32,int32->float32",
    "attention_scores": "float32", "block_attention": "float32,float32,float32,int32,bool,float32->float32,float32",
    "dequantize": "int8,float32,int64->float32", "conv_transpose2d": "float32", "conv_grad_input": "float32",
    "conv_grad_weight": "float32", "max_pool_grad": "float32", "avg_pool_grad": "float32",
    "rms_norm_grad": "float32,float32,float32->float32,float32",
    "scaled_dot_product_attention_grad": ",".join(["float32"] * 7) + ",uint32->float32,float32,float32",
}  # fmt: skip


def recording(op):
    def run(self, *operands, **attributes):
        self.seen[op] = attributes

    return kernel(op, ROWS[op])(run)


@pytest.fixture(scope="module")
def device():
    kernels = {op: recording(op) for op in ROWS}
    made = type("Signatures", (PythonDevice,), {"name": NAME, "seen": {}, **kernels})
    dt.load_backend(made)
    return made


def calls():
    """(op, its arguments, the attributes that the call replaces, as its kernel gets them)."""

    def x(*shape, dtype=dt.float32):
        return dt.asarray(np.zeros(shape), dtype=dtype, device=NAME)

    def ints(*values, dtype=dt.int64):
        return dt.asarray(np.array(values), dtype=dtype, device=NAME)

    heads = x(1, 2, 4, 16)
    rows, ends = x(4, 2, 16), ints(0, 4, dtype=dt.int32)
    yield "sum", (x(2, 3, 4),), {}, {"axis": (0, 1, 2)}
    yield "sum", (x(2, 3, 4),), {"axis": (-1, 0), "keepdims": True}, {"axis": (0, 2)}
    yield "argmax", (x(2, 3),), {"axis": -1}, {"axis": 1}
    yield "argmax", (x(2, 3),), {}, {"axis": None}
    yield "cumulative_sum", (x(2, 3),), {"axis": -1}, {"axis": 1}
    yield "softmax", (x(2, 3),), {}, {"axis": 1}
    yield "top_k", (x(2, 3), 2), {}, {"axis": 1}
    yield "flip", (x(2, 3),), {}, {"axis": (0, 1)}
    yield "roll", (x(2, 3), 1), {"axis": (-1, 0)}, {"axis": (1, 0), "shift": (1, 1)}
    yield "roll", (x(2, 3), 1), {}, {"axis": None, "shift": (1,)}
    yield "diff", (x(2, 3),), {}, {"axis": 1}
    yield "concat", ([x(2, 3), x(2, 3)],), {"axis": -1}, {"axis": 1}
    yield "concat", ([x(2, 3), x(2, 3)],), {"axis": None}, {"axis": None}
    yield "stack", ([x(2, 3), x(2, 3)],), {"axis": -1}, {"axis": 2}
    yield "take", (x(2, 3), ints(1)), {"axis": -1}, {"axis": 1}
    yield "take_along_axis", (x(2, 3), ints([1], [1])), {}, {"axis": 1}
    yield "scatter", (x(2, 3), ints(1), x(2, 1)), {"axis": -1}, {"axis": 1}
    yield "put_along_axis", (x(2, 3), ints([1], [1]), x(2, 1)), {}, {"axis": 1}
    yield "dynamic_slice", (x(2, 3), ints(1), 2), {"axis": -1}, {"axis": (1,), "sizes": (2,)}
    yield "dynamic_slice", (x(2, 3), ints(1, 0), (1, 2)), {}, {"axis": (0, 1)}
    yield "dynamic_slice_axis", (x(2, 3), ints(1), 2), {"axis": -1}, {"axis": 1}
    yield "dynamic_update_slice", (x(2, 3), x(2, 1), ints(1)), {"axis": -1}, {"axis": (1,)}
    yield "repeat", (x(2, 3), 2), {"axis": -1}, {"axis": 1}
    yield "repeat", (x(2, 3), 2), {}, {"axis": None}
    yield "tile", (x(2, 3), 2), {}, {"repetitions": (1, 2)}
    yield "pad", (x(2, 3), 1), {}, {"pad_width": (1, 1, 1, 1)}
    yield "pad", (x(2, 3), (1, 2)), {}, {"pad_width": (1, 2, 1, 2)}
    yield "matmul", (x(2, 3), x(3)), {"dtype": dt.float32}, {"dtype": None}
    yield "vecdot", (x(2, 3), x(3)), {}, {"axis": 1}
    yield "arange", (5,), {"device": NAME}, {"start": 0, "stop": 5}
    yield "eye", (3,), {"device": NAME}, {"n_cols": 3}
    yield "rms_norm", (x(2, 3), (3,)), {}, {"eps": float(np.finfo(np.float32).eps)}
    yield "rms_norm_grad", (x(2, 3), x(2, 3), (3,)), {}, {"eps": float(np.finfo(np.float32).eps)}
    images, grad, one = x(1, 1, 4, 4), x(1, 1, 3, 3), {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)}
    yield "conv2d", (images, x(1, 1, 2, 2)), {}, one
    yield "conv_grad_input", (x(1, 1, 2, 2), grad, images.shape), {}, one
    yield "conv_grad_weight", (images, grad, (1, 1, 2, 2)), {}, one
    pool = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1)}
    yield "max_pool2d", (images, 2), {}, pool
    yield "max_pool_grad", (images, x(1, 1, 2, 2), 2), {}, pool
    pool = {name: values for name, values in pool.items() if name != "dilation"}
    yield "avg_pool_grad", (x(1, 1, 2, 2), images.shape, 2), {}, pool
    spread = {"stride": (2, 2), "padding": (0, 0), "output_padding": (1, 1), "dilation": (1, 1)}
    given = {"stride": 2, "output_padding": 1}
    yield "conv_transpose2d", (x(1, 1, 4, 4), x(1, 1, 3, 3)), given, spread
    yield "scaled_dot_product_attention", (heads, heads, heads), {}, {"scale": 0.25}
    yield "scaled_dot_product_attention_grad", (heads, heads, heads, heads, x(1, 2, 4), heads), {}, {"scale": 0.25}
    yield "scaled_dot_product_attention_varlen", (rows, rows, rows, ends, ends), {}, {"scale": 0.25}
    yield "attention_scores", (heads, heads), {}, {"scale": 0.25}
    yield "block_attention", (heads, heads, heads), {}, {"scale": 0.25}
    yield "quantize", (x(2, 3), x(3)), {"axis": -1, "dtype": dt.int8}, {"axis": 1}
    yield "quantize", (x(2, 3), x()), {"dtype": dt.int8}, {"axis": None}
    yield "dequantize", (x(2, 3, dtype=dt.int8), x(3)), {"axis": -1}, {"axis": 1}


def plain(value):
    return tuple(value) if isinstance(value, list) else value


def test_normalised_attributes_are_documented(device):
    """Each documented attribute is seen replaced, no other is, and None only occurs where that is documented."""
    covered = set()
    for op, args, kwargs, expected in calls():
        dt._core.op_function(op)(*args, **kwargs)
        declared = registry[op]
        seen = {name: plain(value) for name, value in device.seen[op].items()}
        words = NORMALISED[declared.spec.shape]
        assert list(seen) == [a.name for a in signature(declared).attributes], op
        assert {name: seen[name] for name in expected} == expected, op
        assert expected.keys() <= words.keys(), op
        given = declared.bind(*args, **{k: v for k, v in kwargs.items() if k != "device"})
        for a in signature(declared).attributes:
            if seen[a.name] is None:
                assert a.kind.endswith(" or NONE"), (op, a)
            if a.name not in words and a.kind != "DTYPE":
                assert seen[a.name] in (given[a.name], (given[a.name],)), (op, a)
        covered |= {(declared.spec.shape, name) for name in expected}
    documented = {(rule, name) for rule, words in NORMALISED.items() for name in words}
    assert documented == covered, documented ^ covered


def test_rows_are_named_whatever_the_namespace():
    assert str(signature(registry["layer_norm"])).startswith("dvt.layer_norm(x, weight?, bias?) attr: ")
    assert str(signature(registry["take"])) == "dvt.take(x, indices: i64) attr: 0 axis I64 (counted from 0)"
    assert str(signature(registry["where"])) == "dvt.where(condition: bool, x1, x2)"
    assert "dvt.concat(arrays...)" in str(signature(registry["concat"]))
    assert "dvt.top_k(x) -> 2 outputs attr: 0 k I64" in str(signature(registry["top_k"]))
    assert signature(registry["reshape"]) is signature(registry["set_slice"]) is None
