"""Files that earlier versions wrote: each must load, and give the same results, for ever.

`python tests/unit/test_kept_programs.py NAME` writes a new one; none is ever changed. NAME says when: 0.1.
"""

import json
import sys
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail import _core
from dovetail_conformance.interpret import interpret

HERE = Path(__file__).parent / "kept_programs"
NAMES = sorted(p.stem for p in HERE.glob("*.dvt"))
W = (np.arange(12).reshape(4, 3) - 5).astype(np.float32) / 8  # in a file of its own
SMALL = np.array([-8, -3, 0, 7, 5], np.int8)
TURN = np.array([1 - 2j, 0.5j])
HALF = np.array([0.1, -0.25, 3.0])
FLAGS = np.array([True, False, True])
INPUT = (np.arange(20).reshape(5, 4) % 7 - 3).astype(np.float32)
IDS = np.array([2, 0, 4])


def everything(batch, scale, mode, constants):
    """Constants of many dtypes, control flow, sizes as numbers, a guard, containers, a decomposition."""
    w, small, turn, half, flags = constants
    x, ids = batch["x"], batch["ids"]
    y = dt.nn.softmax(x @ w, axis=-1)
    if x.shape[0] > 2:  # a guard
        y = y * scale
    y = dt.reshape(y, (x.shape[0] * 3,))[: x.shape[0] * 2]
    total = dt.scan(lambda carry, row: (carry + row, carry), dt.zeros((4,), device=x.device), x)[0]
    halved = dt.while_loop(lambda s: dt.max(dt.abs(s)) > 1.0, lambda s: s / 2, total)
    chosen = dt.cond(dt.sum(ids) > 3, lambda a: a + 1, lambda a: a, ids)
    rest = (small.astype("int32"), turn * 2, dt.astype(half, "float32"), dt.where(flags, 1, 0))
    return {"y": y, "halved": halved, "rows": x[chosen - 1], "rest": rest}


def expected() -> dict[str, object]:
    e = np.exp((INPUT.astype(np.float64) @ W) - (INPUT.astype(np.float64) @ W).max(-1, keepdims=True))
    y = (e / e.sum(-1, keepdims=True) * 0.5).reshape(-1)[:10]
    halved = INPUT.astype(np.float64).sum(0)
    while np.abs(halved).max() > 1:
        halved = halved / 2
    half = np.array([0.10009765625, -0.25, 3.0])  # as bfloat16 has them
    return {
        "y": y,
        "halved": halved,
        "rows": INPUT[IDS],
        "rest": (SMALL.astype(np.int32), TURN * 2, half, FLAGS * 1),
    }


def arguments(device: str) -> tuple[dict[str, dt.Array], dt.Array, str]:
    on = {"device": device}
    return {"x": dt.asarray(INPUT, **on), "ids": dt.asarray(IDS, **on)}, dt.asarray(np.float32(0.5), **on), "sum"


@pytest.mark.parametrize("name", NAMES)
def test_it_gives_the_same_results(name):
    program = dt.load(HERE / f"{name}.dvt")
    got, want = program(*arguments("cpu:0")), expected()
    for key in ("y", "halved", "rows"):
        np.testing.assert_allclose(got[key].numpy(), want[key], rtol=1e-5, atol=1e-6, err_msg=key)
    for a, b in zip(got["rest"], want["rest"], strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)
    with pytest.raises(ValueError, match=r"test_kept_programs.py:\d+"):  # the guard, with its line
        program({"x": dt.asarray(INPUT[:2]), "ids": dt.asarray(IDS)}, dt.asarray(np.float32(1)), "sum")


@pytest.mark.parametrize("name", NAMES)
def test_the_interpreter_reads_it(name):
    y, halved, rows, *rest = interpret(HERE / f"{name}.dvt", [INPUT, IDS, np.float32(0.5)])
    want = expected()
    for got, key in ((y, "y"), (halved, "halved"), (rows, "rows")):
        np.testing.assert_allclose(got, want[key], rtol=1e-6, atol=1e-7, err_msg=key)
    for a, b in zip(rest, want["rest"], strict=True):
        np.testing.assert_allclose(np.asarray(a).astype(b.dtype), b)


@pytest.mark.parametrize("name", NAMES)
def test_its_tensors_are_those_that_were_saved(name):
    tensors, _, without_hash, wrong = _core.verify_program(HERE / f"{name}.dvt")
    assert tensors >= 5 and not without_hash and not wrong


@pytest.mark.parametrize("name", NAMES)
def test_it_has_what_a_file_can_have(name):
    text = json.loads(_core.load_program(HERE / f"{name}.dvt").text())
    assert {
        "inputs",
        "numbers",
        "guards",
        "programs",
        "nodes",
        "outputs",
        "tensors",
        "decompositions",
        "signature",
    } <= set(text)
    ops = {node["op"] for node in text["nodes"]}
    assert {"scan", "while_loop", "cond"} <= ops
    assert {t["dtype"] for t in text["tensors"].values()} >= {"float32", "int4", "complex128", "bfloat16", "bool"}


def test_there_is_one_of_each_release():
    assert "0.1" in NAMES


if __name__ == "__main__":
    name = sys.argv[1]
    if (HERE / f"{name}.dvt").exists():
        sys.exit(f"{name}.dvt is there, and files are never changed")
    dt.save_safetensors({"w": dt.asarray(W, device="cpu:0")}, HERE / f"{name}.safetensors")
    kinds = ((W, "float32"), (SMALL, "int4"), (TURN, "complex128"), (HALF, "bfloat16"), (FLAGS, "bool"))
    arrays = [dt.asarray(x, device="cpu:0").astype(dtype) for x, dtype in kinds]
    batch = {"x": dt.spec(("rows", 4), "float32"), "ids": dt.spec((3,), "int64")}

    def captured(batch, scale, mode):
        return everything(batch, scale, mode, arrays)

    made = dt.export(captured, batch, dt.spec((), "float32"), "sum")
    made.save(HERE / f"{name}.dvt", portable=True, weights=[f"{name}.safetensors"])
