"""The guides as files: excerpts match the sources, links resolve, no build is needed to read them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def test_excerpts_match_the_sources():
    ended = subprocess.run([sys.executable, ROOT / "docs/excerpts.py", "--check"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_read_as_a_file(page):
    text = (ROOT / page).read_text()
    assert "{literalinclude}" not in text and "{code-block}" not in text
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert re.match("https?:", target) or (ROOT / page).parent.joinpath(target).exists(), target
    # A link stands before everything that a build would include.
    for path in re.findall(r"^```\{(?:include|header-reference)\} (\S+)", text, re.MULTILINE):
        assert f"]({path})" in text, path


def test_a_stale_excerpt_is_found_and_refreshed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import excerpts

    monkeypatch.setattr(excerpts, "ROOT", tmp_path)
    (tmp_path / "a.cpp").write_text("void f() {\n  new();\n}\nvoid g() {\n}\n")
    page = "From `a.cpp`:\n\n```cpp\nvoid f() {\n  old();\n}\n```\n"
    assert excerpts.refreshed(page) == page.replace("old", "new")
    assert excerpts.refreshed(page.replace("From", "All of")).count("void") == 2
    with pytest.raises(ValueError, match="no line 'void h'"):
        excerpts.refreshed(page.replace("void f() {", "void h"))
