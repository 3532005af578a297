"""python docs/excerpts.py [--check]: keeps the excerpts of sources in the guides as the sources are.

An excerpt is a code block below a line "All of `path`:" or "From `path`:". The latter is taken again from the line
that it begins with to the one that it ends with. --check writes nothing, and fails where one differs.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXCERPT = re.compile(
    r"^(?P<how>All of|From) `(?P<path>[^`\n]+)`:\n\n```\w+\n(?P<code>.*?\n)```$", re.MULTILINE | re.DOTALL
)


def current(path: str, code: str, *, whole: bool) -> str:
    """What the excerpt would be now. ValueError where the source lacks the line that it begins or ends with."""
    text = (ROOT / path).read_text()
    if whole:
        return text
    lines, old = text.splitlines(), code.splitlines()
    if old[0] not in lines:
        raise ValueError(f"{path} has no line {old[0]!r}, with which the excerpt begins")
    begin = lines.index(old[0])
    if old[-1] not in lines[begin:]:
        raise ValueError(f"{path} has no line {old[-1]!r}, with which the excerpt ends")
    # A closing brace, say, may stand there more than once: the one that leaves the length nearest to what it was.
    ends = [i for i in range(begin, len(lines)) if lines[i] == old[-1]]
    end = min(ends, key=lambda i: abs(i - begin + 1 - len(old)))
    return "\n".join(lines[begin : end + 1]) + "\n"


def refreshed(text: str) -> str:
    def again(found: re.Match) -> str:
        now = current(found["path"], found["code"], whole=found["how"] == "All of")
        return found[0].replace(found["code"], now)

    return EXCERPT.sub(again, text)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where an excerpt is stale")
    options = parser.parse_args(argv)
    stale = []
    for page in sorted((ROOT / "docs").glob("*.md")):
        old = page.read_text()
        new = refreshed(old)
        if new != old:
            stale.append(page.name)
            if not options.check:
                page.write_text(new)
    if options.check and stale:
        print(f"stale excerpts in {', '.join(stale)}: run `python docs/excerpts.py`", file=sys.stderr)
    return options.check and bool(stale)


if __name__ == "__main__":
    sys.exit(main())
