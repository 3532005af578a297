"""The directive header-reference: a C header as a page, one section for each of its own.

    ```{header-reference} ../core/include/dovetail/abi.h
    ```

What stands in the header is the reference: its first comment becomes text, a line like `/* ---- tensors ---- */`
begins a section, and the code, whose comments explain it, is shown as it is.
"""

import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

SECTION = re.compile(r"^/\* (?:-{4}|={4}) (?P<title>.+?)(?: (?:-{4,}|={4,}))? ?(?:\*/)?$")
RULE = re.compile(r"^ \* (?P<name>[A-Z][a-z-]+(?: \([^)]*\))?)  +(?P<text>\S.*)$")


def sections(text: str) -> list[tuple[str, list[str]]]:
    """(title, lines) of each; what comes before the first section has the title ""."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        match = SECTION.match(line)
        if match:
            found.append((match["title"].strip(" -="), []))
        else:
            found[-1][1].append(line)
    return found


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
        return [self._rules(definitions), *(self._section(title, lines) for title, lines in rest)]

    def _rules(self, definitions: list[tuple[str, str]]) -> nodes.Node:
        listed = nodes.definition_list()
        for name, text in definitions:
            term = nodes.term(name, name)
            body = nodes.definition("", nodes.paragraph(text, text))
            listed += nodes.definition_list_item("", term, body)
        return listed

    def _section(self, title: str, lines: list[str]) -> nodes.Node:
        heading = title[:1].upper() + title[1:]
        section = nodes.section(ids=[nodes.make_id(title)], names=[nodes.fully_normalize_name(heading)])
        section += nodes.title(heading, heading)
        code = "\n".join(lines).strip("\n")
        section += nodes.literal_block(code, code, language="c")
        self.state.document.note_implicit_target(section)
        return section


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("header-reference", HeaderReference)
    return {"parallel_read_safe": True}
