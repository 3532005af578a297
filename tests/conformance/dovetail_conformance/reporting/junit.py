"""junit.xml, for the test pages of CI services: a testsuite per op and part of the device, a testcase per case."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as xml

# The JUnit element of each status that does not pass.
ELEMENTS = {
    "fail": "failure",
    "fallback": "failure",
    "crash": "error",
    "timeout": "error",
    "unsupported": "skipped",
    "waived": "skipped",
    "not-run": "skipped",
}
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(content: dict[str, Any]) -> str:
    """The file of a document."""
    root = xml.Element("testsuites", name=f"dovetail conform {content['device']['name']}")
    for group, cases in groupby(content["cases"], lambda case: case["id"].partition("[")[0]):
        _suite(root, group, list(cases), content)
    _count(root, content["cases"])
    xml.indent(root, " ")
    return xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: xml.Element, group: str, cases: list[dict[str, Any]], content: dict[str, Any]) -> None:
    suite = xml.SubElement(root, "testsuite", name=group, timestamp=content["run"]["started"])
    _count(suite, cases)
    for case in cases:
        seconds = f"{case['seconds']:.6f}"
        test = xml.SubElement(suite, "testcase", classname=group, name=_legal(case["id"]), time=seconds)
        if case["status"] in ELEMENTS:
            _why(test, case)


def _why(test: xml.Element, case: dict[str, Any]) -> None:
    status, message = case["status"], _legal(case.get("message", ""))
    first = message.partition("\n")[0]
    text = f"{status}: {first}" if first else status
    if status == "waived":
        text = f"waived ({_legal(case['waiver'])}): {first}"
    element = xml.SubElement(test, ELEMENTS[status], type=status, message=text)
    if "replay" in case:
        element.text = f"{message}\n{_legal(case['replay'])}"


def _count(element: xml.Element, cases: list[dict[str, Any]]) -> None:
    kinds = [ELEMENTS.get(case["status"]) for case in cases]
    counts = {"failures": kinds.count("failure"), "errors": kinds.count("error"), "skipped": kinds.count("skipped")}
    element.set("tests", str(len(cases)))
    for name, n in counts.items():
        element.set(name, str(n))
    element.set("time", f"{sum(case['seconds'] for case in cases):.6f}")


def _legal(text: str) -> str:
    """The text without characters that XML does not allow: a dying process may print any bytes."""
    return _NOT_XML.sub("\ufffd", text)
