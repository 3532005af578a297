"""Writes a small convolutional network for deploy.py: python benchmarks/deploy_cnn.py FOLDER

    python benchmarks/deploy.py FOLDER/cnn.onnx:FOLDER/cnn.aot:b=1

A convolution with stride 2, one of groups of one channel and one of 1x1, each with another activation, as exporters
write them: batch norm is in the weights. Files: cnn.onnx, cnn.dvt, and cnn.aot for the CPU.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import dovetail.onnx
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS, FEATURES, CLASSES = 16, 32, 10


def network() -> onnx.ModelProto:
    rng = np.random.default_rng(20261129)
    weights: list[onnx.TensorProto] = []

    def drawn(name: str, *shape: int) -> str:
        values = rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
        weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def conv(x: str, y: str, *shape: int, **attributes: Any) -> onnx.NodeProto:
        operands = [x, drawn(f"{y}_w", *shape), drawn(f"{y}_b", shape[0])]
        return helper.make_node("Conv", operands, [y], kernel_shape=shape[2:], **attributes)

    weights += [numpy_helper.from_array(np.float32(v), f"bound_{v}") for v in (0, 6)]
    nodes = [
        conv("x", "a", CHANNELS, 3, 3, 3, strides=[2, 2], pads=[1] * 4),
        helper.make_node("Clip", ["a", "bound_0", "bound_6"], ["b"]),
        conv("b", "c", CHANNELS, 1, 3, 3, pads=[1] * 4, group=CHANNELS),
        helper.make_node("HardSwish", ["c"], ["d"]),
        conv("d", "e", FEATURES, CHANNELS, 1, 1),
        helper.make_node("Relu", ["e"], ["f"]),
        helper.make_node("GlobalAveragePool", ["f"], ["g"]),
        helper.make_node("Flatten", ["g"], ["h"]),
        helper.make_node("Gemm", ["h", drawn("y_w", CLASSES, FEATURES), drawn("y_b", CLASSES)], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes, "cnn", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", 3, 64, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["b", CLASSES])], weights,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(network(), folder / "cnn.onnx")
    dovetail.onnx.load(folder / "cnn.onnx").save(folder / "cnn.dvt")
    build = ["build", folder / "cnn.dvt", "--device", "cpu", "--out", folder / "cnn.aot", "--sizes", "b=1"]
    subprocess.run([sys.executable, "-m", "dovetail", *build], check=True)


if __name__ == "__main__":
    main()
