"""The directive header-reference: a C header as a page, one section for each of its own.

    ```{header-reference} ../core/include/dovetail/abi.h
    ```

What stands in the header is the reference: its first comment becomes text, a comment like `/* ---- tensors ---- */`
begins a section, and the code, whose comments explain it, is shown as it is. What such a comment says behind a
colon is the section's first sentence: `/* ---- streams: a NULL group is absent ---- */`.
"""

import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

SECTION = re.compile(r"^/\* (?:-{4}|={4}) (?P<title>.+?)(?: (?:-{4,}|={4,}))? \*/\n", re.MULTILINE | re.DOTALL)
LITERAL = re.compile(r"`([^`]+)`|(\b\w+(?:->\w+|_\w+)+\b(?:=\d+)?)")  # `data`, host->fail, DVT_O_ALIAS
RULE = re.compile(r"^ \* (?P<name>[A-Z][a-z-]+(?: \([^)]*\))?)  +(?P<text>\S.*)$")


def sections(text: str) -> list[tuple[str, list[str]]]:
    """(title, lines) of each; what comes before the first section has the title ""."""
    before, *rest = SECTION.split(text)
    titles = [re.sub(r"\n \* ", " ", title) for title in rest[::2]]
    return [("", before.splitlines()), *zip(titles, [code.splitlines() for code in rest[1::2]], strict=True)]


def prose(text: str) -> nodes.paragraph:
    """A paragraph in which the header's names look like code."""
    paragraph = nodes.paragraph()
    at = 0
    for match in LITERAL.finditer(text):
        paragraph += nodes.Text(text[at : match.start()])
        name = match[1] or match[2]
        paragraph += nodes.literal(name, name)
        at = match.end()
    paragraph += nodes.Text(text[at:])
    return paragraph


def rules(lines: list[str]) -> list[tuple[str, str]]:
    """The definitions of the first comment: a word at the margin, then its text over several lines."""
    found: list[tuple[str, str]] = []
    for line in lines:
        if line.startswith(" */"):
            break
        match = RULE.match(line)
        if match:
            found.append((match["name"], match["text"]))
        elif found and line.startswith(" *    "):
            name, text = found[-1]
            found[-1] = (name, f"{text} {line[2:].strip()}")
    return found


class HeaderReference(Directive):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        path = Path(env.doc2path(env.docname)).parent / self.arguments[0]
        env.note_dependency(str(path.resolve()))
        (_, opening), *rest = sections(path.read_text())
        definitions = rules(opening)
        if not definitions or not rest:
            raise self.error(f"{path.name}: expected rules in its first comment and sections after it")
        return [self._rules(definitions), *(self._code(title, lines) for title, lines in rest)]

    def _rules(self, definitions: list[tuple[str, str]]) -> nodes.Node:
        section = self._section("rules")
        listed = nodes.definition_list()
        for name, text in definitions:
            term = nodes.term(name, name)
            listed += nodes.definition_list_item("", term, nodes.definition("", prose(text)))
        section += listed
        return section

    def _code(self, comment: str, lines: list[str]) -> nodes.Node:
        title, _, sentence = comment.partition(": ")
        section = self._section(title)
        if sentence:
            section += prose(sentence[:1].upper() + sentence[1:] + ".")
        code = "\n".join(lines).strip("\n")
        section += nodes.literal_block(code, code, language="c")
        return section

    def _section(self, title: str) -> nodes.section:
        heading = title[:1].upper() + title[1:]
        section = nodes.section(ids=[nodes.make_id(title)], names=[nodes.fully_normalize_name(heading)])
        section += nodes.title(heading, heading)
        self.state.document.note_implicit_target(section)
        return section


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("header-reference", HeaderReference)
    return {"parallel_read_safe": True}
