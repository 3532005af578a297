"""What `dovetail bench --against` prints and draws."""

import xml.etree.ElementTree as ElementTree

from dovetail.cli import output
from dovetail.cli.comparison import command as comparison
from dovetail.cli.comparison import figures, plot


def test_the_plot_escapes_and_marks():
    row = {"op": "exp", "dtype": "float32", "shape": [2, 3]} | {
        "label": "<2x3>",
        "threads": 1,
        "ratio": 9.0,
        "best_peer": "torch",
        "ceiling_percent": 120.0,
    }
    rows = [row | {"loaded": False}, row | {"op": "log", "ratio": None, "loaded": True, "ceiling_percent": None}]
    contenders = {"dovetail": "1", "torch": "2 & more"}
    drawn = plot.svg({"points": rows, "contenders": contenders, "summary": {"1": figures.summary(rows)}})
    texts = [element.text for element in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert "exp  float32  <2x3>" in texts and any("torch 2 & more" in text for text in texts)
    empty = {"points": [], "contenders": {"dovetail": "1"}, "summary": {}}
    assert ElementTree.fromstring(plot.svg(empty)) is not None


def test_the_table_has_remarks():
    row = {"differs": ["torch"], "errors": {"numpy": "x"}, "loaded": True}
    assert comparison.remarks(row) == "torch differs, numpy failed, loaded"
    assert [comparison.duration({"min": s}) for s in (2e-7, 2.5e-6, 1.5e-3, 2.0)] == [
        "200 ns", "2.50 us", "1.50 ms", "2000.00 ms",
    ]  # fmt: skip


def test_a_narrow_terminal_leaves_the_times_of_peers_out(capsys, monkeypatch):
    """Not letters of remarks and names; the ratio is to the best peer."""
    times = {name: {"min": 1.234e-5} for name in ("dovetail", "numpy", "torch", "onnxruntime")}
    row = {"op": "transpose", "dtype": "float32", "label": "8x16x32x4 perm=3,1,0,2", "threads": 1, "times": times}
    row |= {"ratio": 0.79, "ceiling_percent": 14.0, "differs": [], "errors": {}, "loaded": True}
    report = {"device": "cpu:0", "contenders": dict.fromkeys(times, "1.0"), "points": [row]}
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    for columns, names in ((80, []), (140, ["numpy", "torch", "onnxruntime"])):
        monkeypatch.setenv("COLUMNS", str(columns))
        comparison.show(report | {"ceilings": {}, "summary": {}})
        text = capsys.readouterr().out
        head, _, *lines = [line for line in text.splitlines() if line.strip()][1:]
        assert head.split() == f"op dtype shape threads dovetail {' '.join(names)} ratio ceiling remarks".split()
        assert "8x16x32x4 perm=3,1,0,2" in lines[0] and lines[0].rstrip().endswith("loaded")
        assert max(map(len, lines)) <= columns
        assert ("not shown, as the terminal is narrow: numpy, torch, onnxruntime" in text) == (not names)
