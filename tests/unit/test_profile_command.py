"""dovetail profile: it runs a program as Python would, and writes the trace however the program ends."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from dovetail import _core
from dovetail.cli.app import dovetail as command
from trace_events import check, names


def invoke(*args):
    return CliRunner().invoke(command, ["profile", *map(str, args)], prog_name="dovetail")


SCRIPT = """
import sys
import dovetail as dt
x = dt.full((4, 4), 1.0, dtype=dt.float32)
x + x
print("arguments", sys.argv[1:], __name__)
{end}
"""


@pytest.mark.parametrize(
    "end, code",
    [("", 0), ("sys.exit(5)", 5), ("sys.exit('bad')", 1), ("1 / 0", 1), ("raise KeyboardInterrupt", 130)],
)
def test_command(tmp_path, monkeypatch, end, code):
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text(SCRIPT.format(end=end))
    before = list(sys.argv), list(sys.path)
    result = invoke("script.py", "-x", "--json", "y")
    assert result.exit_code == code, result.output
    assert "arguments ['-x', '--json', 'y'] __main__" in result.output
    assert "host time" in result.output and "dovetail-profile.json" in result.output
    events = json.loads(Path("dovetail-profile.json").read_text())["traceEvents"]
    check(events)
    assert "add" in names(events, "op")
    assert ("ZeroDivisionError" in result.output) == (end == "1 / 0")
    assert (sys.argv, sys.path) == before
    assert not _core.profile_end(), "the recording goes on"


def test_command_line_mistakes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text("")
    assert "there is no file 'none.py'" in invoke("none.py").output
    result = invoke("-o", "none/t.json", "script.py")
    assert result.exit_code == 2 and "mkdir -p none" in result.output
    assert invoke("--json", "-o", "t.json", "script.py").exit_code == 0
