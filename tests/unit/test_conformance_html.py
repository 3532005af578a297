"""index.html: one self-contained file, whatever the document has or lacks."""

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser

import conformance_document as documents
import pytest
from dovetail_conformance.reporting import html, summary
from dovetail_conformance.results import Status

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
FETCHING = {"src", "srcset", "action", "poster", "data", "background", "formaction"}


class Page(HTMLParser):
    """Read a page strictly: elements are closed in order, ids are unique, references resolve."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts, self.references = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open
        ids = [a["id"] for _, a in self.elements if "id" in a]
        assert len(ids) == len(set(ids)), sorted(i for i in ids if ids.count(i) > 1)
        wanted = {a["aria-labelledby"] for _, a in self.elements if "aria-labelledby" in a} - {"panel-title"}
        wanted |= {a["href"][1:] for _, a in self.elements if a.get("href", "").startswith("#")}
        assert wanted <= set(ids), wanted - set(ids)
        self.ids = set(ids)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:], self.getpos())
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.texts))

    def all(self, tag):
        return [a for t, a in self.elements if t == tag]


def unpacked(text):
    packed = re.search(r'id="packed">([^<]*)<', text)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


@pytest.fixture(scope="module")
def everything():
    document = documents.with_everything()
    return document, html.render(document, documents.difference(document))


@pytest.fixture(scope="module")
def page(everything):
    return Page(everything[1])


def test_every_section_is_present(page):
    sections = {"failures", "changes", "matrix", "checks", "exceptions", "accuracy", "performance", "reproduce"}
    assert sections <= page.ids
    for expected in (
        "Acme Accelerator A2", "Level L0 reached; L2 was asked for", "34 of 322 cases did not pass",  # the verdict
        "signal SIGSEGV", "dovetail conform --device acme:0 --case 'gelu[f32,tanh]' --seed 7",  # failures
        "Became worse", "Became slower", "+100 %",  # changes
        "one waits for another", "the device declares that it has one stream",  # checks
        "unexpected pass", "expired", "where ran on another device", "declares no kernel",  # exceptions
        "894 GB/s", "14,200 GFLOP/s", "event",  # performance
        "dovetail conform --device acme:0 --level L2 --seed 7", "2026-03-01 10:00:00 UTC", "57" * 32,  # reproduce
    ):  # fmt: skip
        assert expected in page.text, expected


def test_a_failure_during_timing_is_a_failure_too():
    document = documents.with_everything(("add[f64",))
    (case,) = [c for c in document["cases"] if c["id"] == "copy[f32,perf,large]"]
    case |= {"status": "crash", "message": "signal SIGBUS", "time_s": None}
    groups = summary.failures(document, summary.cells(document))["groups"]
    assert [(g["name"], g["total"], g["dtypes"]) for g in groups] == [("copy", 1, {})]
    assert "signal SIGBUS" in Page(html.render(document)).text


def test_the_culprit_is_listed_before_its_consequences():
    """The order is the terminal's: one wrong kernel fails more cases of decompositions than of its own op."""
    document = documents.with_everything()
    for case in document["cases"]:
        wrong = case["id"].startswith(("device.memory", "matmul[f32,m=3", "softmax"))
        case["status"] = "fail" if wrong else "pass"
    document["native"] = ["add", "matmul"]
    groups = summary.failures(document, summary.cells(document))["groups"]
    assert [g["name"] for g in groups] == ["device.memory", "matmul", "softmax"]
    assert groups[1]["total"] < groups[2]["total"]


def test_partly_declined_ops_do_not_look_supported():
    cell = summary.Cell("remainder", "f64", [{"status": "pass"}] + 18 * [{"status": "unsupported"}])
    assert cell.state("decomposition").name == "unsupported"
    assert cell.label(cell.state("decomposition")) == "remainder f64: unsupported, 1 passed, 18 unsupported"


def test_matrix_has_the_outcome_of_each_op_and_dtype(everything, page):
    signs = {a["aria-label"].partition(",")[0] for a in page.all("button") if "cell" in a.get("class", "")}
    assert {
        "exp f16: failed", "matmul f64: failed", "where bool: failed", "softmax f64: waived",
        "add u16: unsupported", "add i8: not-run", "matmul f32: native", "reshape f32: core", "add f32: failed",
    } <= signs  # fmt: skip
    fewer = {op: dtypes for op, dtypes in everything[0]["kernels"].items() if op != "add"}
    assert "add f64: decomposition, " in html.render(everything[0] | {"kernels": fewer})


def test_nothing_of_the_document_becomes_markup(page):
    assert "</script><img src=x onerror=" in page.text  # as text
    assert not page.all("img") and len(page.all("script")) == 2
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
    links = {a["href"] for a in page.all("a") if not a["href"].startswith("#")}
    assert links == {"https://acme.example/issues/12"}  # not javascript:


def test_page_makes_no_network_requests(everything, page):
    _, text = everything
    assert not [(t, a) for t, a in page.elements if FETCHING & a.keys()]
    assert [a["href"] for a in page.all("link")] == ["data:,"]
    assert not re.search(r"@import|url\((?!#)", text)
    (policy,) = (a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    script = text[text.rindex("<script>") + len("<script>") : text.rindex("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'" in policy and f"script-src 'sha256-{digest}'" in policy


def test_cells_hold_every_case(everything):
    document, text = everything
    data = unpacked(text)
    found = {}
    for op, by_dtype in data["cells"].items():
        for dtype, cell in by_dtype.items():
            for name, letter, ulp in zip(cell["names"], cell["status"], cell["ulp"], strict=True):
                found[f"{op}[{','.join(filter(None, (dtype, name)))}]"] = (data["statuses"][letter], ulp)
    words = {Status(s): html.WORDS[Status(s)] for s in Status}
    expected = {c["id"]: (words[c["status"]], c.get("ulp")) for c in document["cases"] if c["level"] != "P"}
    assert found == expected
    exp = data["cells"]["exp"]["f16"]
    assert exp["more"]["0"]["replay"] == "dovetail conform --device acme:0 --case 'exp[f16,values]' --seed 7"
    listed = [c for c in document["cases"] if c["id"].startswith("exp[f16,")]
    assert exp["errors"] == [sum(bins) for bins in zip(*(c["errors"] for c in listed if "errors" in c))]


@pytest.mark.slow
def test_full_run_is_small_and_reproducible():
    document = documents.document(documents.full_ids())
    text = html.render(document)
    assert len(document["cases"]) > 20_000 and len(text.encode()) < 1_500_000
    assert text == html.render(document)
    assert "failures" not in Page(text).ids


def test_a_device_that_fails_everything_has_a_page_too():
    document = documents.document(documents.full_ids()[::4])
    for i, case in enumerate(document["cases"]):
        case |= {"status": "fail", "message": f"{i} elements wrong", "replay": f"replay '{case['id']}'"}
    document["counts"] = {"fail": len(document["cases"])}
    document["level"] |= {"reached": None, "text": "no level"}
    text = html.render(document)
    assert len(text.encode()) < 1_500_000
    shown = Page(text).text
    assert "No level reached; L2 was asked for" in shown and "Also failing:" in shown


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"complete": False, "stopped_by": "Ctrl-C"}, "The run is not complete: Ctrl-C. "),
        ({"expression": "matmul and not T"}, "Only a selection of cases was run (-k 'matmul and not T')"),
        ({"cases": ["add[f32,values]"]}, "Only a selection of cases was run (1 case)"),
        ({"shard": "2/4"}, "This is shard 2/4 of a run"),
        ({"quick": True}, "claims nothing above L1"),
    ],
)
def test_a_partial_run_is_labelled(run, expected):
    document = documents.document(("add[",))
    document["run"] |= run
    (reservation,) = summary.reservations(document)
    assert expected in reservation


def test_level_of_a_part_or_a_profile_is_shown_with_it():
    document = documents.document(("add[",))
    document["run"] |= {"shard": "2/4", "profile": "int8"}
    document["level"] |= {"profile": "int8", "reached": None}
    text = Page(html.render(document)).text
    assert "No level reached; L2 was asked for" in text and "not claimed" in text and "shard 2/4" in text
    assert "--profile int8 --shard 2/4" in text
    assert summary.badge(document)["tone"] == "none"


def test_whole_run_has_no_caveats():
    document = documents.document()
    assert summary.reservations(document) == []
    assert [(r["level"], r["held"]) for r in summary.ladder(document)] == [("L0", True), ("L1", True), ("L2", True)]


def test_old_documents_may_lack_newer_fields():
    document = documents.document()
    for name in ("waivers", "undeclared", "error_edges", "performance", "kernels", "packs"):
        del document[name]
    del document["level"]["profile"], document["run"]["suite"], document["run"]["shard"], document["run"]["profile"]
    for case in document["cases"]:
        del case["level"]
        case.pop("errors", None)
    page = Page(html.render(document))
    assert {"matrix", "checks", "exceptions", "reproduce"} <= page.ids and "performance" not in page.ids
    assert "Level L2 reached" in page.text


def test_a_run_that_found_nothing():
    document = documents.document(())
    document["cases"], document["counts"] = [], {}
    document["level"] |= {"reached": None, "text": "no level"}
    page = Page(html.render(document))
    assert "No level reached" in page.text and "matrix" not in page.ids


@pytest.mark.parametrize(
    ("id", "expected"),
    [
        ("add[f32,values]", ("add", "f32", "values")),
        ("add[f32]", ("add", "f32", "")),
        ("add[f32,a[1],layout=T]", ("add", "f32", "a[1],layout=T")),
        ("device.memory[odd_sizes]", ("device.memory", "", "odd_sizes")),
    ],
)
def test_parts_of_an_id(id, expected):
    assert summary.parts(id) == expected


def test_roofline_without_ceilings_is_left_out():
    document = documents.with_everything(("add[f32",))
    document["performance"] = {"ceilings": {"copy_gb_per_s": 800.0, "gemm_gflop_per_s": {}}}
    assert "Roofline" in html.render(document)
    document["performance"] = None
    text = html.render(document)
    assert "Roofline" not in text and "layer_norm" in Page(text).text
