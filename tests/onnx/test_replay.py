"""Cases of onnx.backend.test that a C program replays from .dvt files, and a list of the others, with reasons."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import replay  # noqa: E402

sys.path.remove(str(HERE))

NOT_REPLAYED = json.loads((HERE / "not_replayed.json").read_text())  # {case: reason}


@pytest.mark.slow
def test_all_cases_but_those_of_the_list():
    made = replay.results("cpu:0")
    rest = {name: why for name, why in made.items() if why != "equal"}
    assert len(made) == 2033, "not_replayed.json is for onnx 1.23"
    assert len(made) - len(rest) >= 1850
    assert not {name: why for name, why in rest.items() if name not in NOT_REPLAYED}
    assert not NOT_REPLAYED.keys() - rest.keys(), "cases of not_replayed.json that are equal: take them out"


def test_some_cases(home):
    wanted = {
        "node/test_layer_normalization_2d_axis1": "equal",
        "node/test_cast_FLOAT_to_INT4": "equal",  # elements that share bytes
        "node/test_dft": "equal",  # complex numbers, of which the library has few decompositions
        "node/test_top_k": "equal",  # made for the value of k
        "node/test_nonzero_example": "the size of its result depends on elements",
    }
    made = replay.results(home, ",".join(wanted))
    assert {name: made[name] for name in wanted} == wanted


def test_what_differs_is_found(tmp_path, home):
    """Another element, shape, dtype or number of results."""
    import numpy as np
    import onnx

    proto = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 21]> g (float[n] x) => (float[n] y) { y = Add (x, x) }'
    )
    x = np.array([1, 2, 3], "float32")
    replay.write(proto, [x], home, tmp_path / "case")
    assert replay.replayed([tmp_path / "case"], home, tmp_path) == ["equal"]
    for results, why in (
        ([np.array([2, 4, 7], "float32")], "result 0 differs at byte 10 of 12"),  # 6: 00 00 c0 40, 7: 00 00 e0 40
        ([x[:2] * 2], "result 0 has another dtype or shape"),
        ([(x * 2).astype("int32")], "result 0 has another dtype or shape"),
        ([x * 2, x], "another number of results"),
    ):
        replay._save(tmp_path / "case/results.dvt", results, home)
        (answer,) = replay.replayed([tmp_path / "case"], home, tmp_path)
        assert answer == why
    (tmp_path / "case/program.dvt").unlink()
    (answer,) = replay.replayed([tmp_path / "case"], home, tmp_path)
    assert answer.startswith("program.dvt: [program.dvt] no such file")
