"""The live view: a region that is redrawn on a terminal, plain lines elsewhere."""

import io
import re

import pytest
from dovetail_conformance.reporting.live import Live, Replay
from dovetail_conformance.results import Result, Status

REPLAY = Replay("acme", 5)
HEADLINE = "acme:0 (Acme A2), acme 1.4: L2, 40 cases, seed 5, 2 workers"
FAILED = Result("exp[f16,values]", Status.FAIL, 0.1, "1 of 65 elements wrong\nat 7: got 1, expected 2")
RUNNING = ["matmul[f32,m=64,k=64,n=64,layout=NT]", None, "softmax[f32,rows=100,layout=strided]"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")


def run(out):
    with Live(40, REPLAY, out) as live:
        live.begin(HEADLINE, lambda: RUNNING)
        for i in range(20):
            live.show(FAILED if i == 3 else Result(f"add[f32,{i}]", Status.PASS))
        if live._region:
            live._region.refresh()
    return out.getvalue()


def text_of(written):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)


def test_plain_lines_without_a_terminal():
    written = run(io.StringIO())
    assert "\x1b" not in written and "\r" not in written
    lines = written.splitlines()
    assert lines[0] == HEADLINE
    assert lines[1:5] == [
        "FAIL     exp[f16,values]",
        "         1 of 65 elements wrong",
        "         at 7: got 1, expected 2",
        f"         {REPLAY.command(FAILED.id)}",
    ]
    assert lines[5:] == ["8 of 40 cases: 7 passed, 1 failed", "16 of 40 cases: 15 passed, 1 failed"]


def test_terminal_shows_progress():
    shown = text_of(run(Terminal()))
    for expected in (
        "50 %",
        "20/40",
        "19 passed  1 failed",
        HEADLINE,
        "matmul[f32,m=64,k=64,n=64,layout=NT]  softmax",
    ):
        assert expected in shown, shown
    assert REPLAY.command(FAILED.id) in shown  # unbroken, so that it can be copied


@pytest.mark.parametrize("width", [24, 44, 80, 120])
def test_region_fits_the_terminal(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    out = Terminal()
    with Live(40, REPLAY, out) as live:
        live.begin(HEADLINE, lambda: RUNNING)
        live.show(FAILED)
        lines = live.console.render_lines(live._drawn(), pad=False)
    assert len(lines) == 4
    widths = [sum(segment.cell_length for segment in line) for line in lines]
    assert max(widths) <= width and widths[-1] <= width - 4  # ^C must not start a line


def test_terminal_is_left_clean():
    out = Terminal()
    with pytest.raises(KeyboardInterrupt), Live(40, REPLAY, out) as live:
        live.begin(HEADLINE, lambda: RUNNING)
        out.seek(0)
        out.truncate()
        raise KeyboardInterrupt
    written = out.getvalue()
    assert "\x1b[?25h" in written  # the cursor is visible again
    erased = written.rindex("\x1b[2K")
    assert text_of(written[erased:]).strip() == HEADLINE


def test_colours_are_left_out_where_they_are_not_wanted(monkeypatch):
    coloured = r"\x1b\[[0-9;]*3[1-7]m"
    assert re.search(coloured, run(Terminal()))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(coloured, run(Terminal()))


def test_a_dumb_terminal_gets_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert "16 of 40 cases: 15 passed, 1 failed" in run(Terminal())
