"""dovetail show: text, JSON, and the page, with names that hold scripts, escapes and right-to-left text."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from click.testing import CliRunner
from dovetail import _core
from dovetail.cli import program_graph
from dovetail.cli.app import dovetail as command
from dovetail.prototype import PythonDevice, kernel
from test_program_file import pack, parts

SCRIPT = "<script>document.title = 'run'</script>"
MARKUP = "w</style></td><img src=x onerror=\"document.title='run'\">&amp;"
TURNED, HEBREW, ESCAPE = "\u202egnp.exe", "שלום", "\x1b[2Ja\x07"


def run(*args: object, code: int = 0) -> str:
    result = CliRunner().invoke(command, ["show", *map(str, args)], prog_name="dovetail")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def hostile(path: Path) -> Path:
    """A program whose names are what a page must not run, and a terminal must not print."""
    b = _core.ProgramBuilder()
    x = b.input("float32", [HEBREW, 5], SCRIPT)
    y = b.input("float32", [None, 3], ESCAPE)
    w = b.array_constant(dt.asarray(np.ones((5, 3), np.float32), device="cpu:0"), MARKUP)
    b.at(f"{TURNED}:3")
    product = b.call("matmul", [x, w], {}, [])
    out = b.call("add", [product, y], {}, [])
    names = {"arguments": {"tuple": [0, 1]}, "results": 0, "names": [SCRIPT, ESCAPE], "function": SCRIPT + TURNED}
    b.finish([out], json.dumps(names)).save(path)
    return path


@pytest.fixture
def saved(tmp_path) -> Path:
    w = dt.asarray(np.ones((16, 4), np.float32), device="cpu:0")

    def embed(ids, mask):
        keep = dt.astype(mask, "float32")[:, :, None]
        return dt.sum(w[ids] * keep, axis=1) / dt.sum(keep, axis=1) if ids.shape[1] > 2 else w[ids]

    spec = dt.spec(("b", "t"), "int64")
    dt.export(embed, spec, spec).save(tmp_path / "embed.dvt")
    return tmp_path / "embed.dvt"


def test_text(saved):
    lines = run(saved).splitlines()
    assert lines[0].startswith("embed.dvt: ") and "1 constant of 256 B" in lines[0]
    assert "(ids: int64[b, t], mask: int64[b, t])" in lines[1]
    assert any("take(w0, ids, axis=0)" in line and "float32[b, t, 4]" in line for line in lines)
    assert any(line.startswith("  # made for 2 < t, test_show.py:") for line in lines)
    (head,) = [i for i, line in enumerate(lines) if line.split()[:2] == ["op", "calls"]]
    assert {"cpu:0", "sim:0"} <= set(lines[head].split())
    assert any(line.split()[:2] == ["sum", "2"] and "kernel" in line for line in lines[head:])


def test_json_and_one_device(saved):
    data = json.loads(run(saved, "--device", "cpu", "--json"))
    assert data["inputs"][0] == {"name": "ids", "dtype": "int64", "shape": ["b", "t"]}
    assert [set(node["devices"]) for node in data["nodes"]] == [{"cpu:0"}] * len(data["nodes"])
    assert {node["devices"]["cpu:0"]["how"] for node in data["nodes"]} <= {"kernel", "core", "decomposition"}
    assert run(saved, "--device", "nosuch", code=3)


class Poor(PythonDevice):
    """It adds, and cannot do anything else."""

    name = "poorest"

    @kernel("add", "float32")
    def add(self, x1, x2, out):
        out.numpy()[...] = x1.numpy() + x2.numpy()


def test_what_a_device_lacks(tmp_path):
    dt.load_backend(Poor)
    dt.export(lambda x: dt.exp(x + x) + dt.nn.silu(x), dt.spec(("n",), "float32")).save(tmp_path / "m.dvt")
    ways = _core.load_program(tmp_path / "m.dvt").ways("poorest")
    assert [how for how, _, _ in ways] == ["kernel", "missing", "missing", "kernel"]
    assert "[exp] no kernel" in ways[1][2] and "no kernel for float32" in ways[2][2]
    text = run(tmp_path / "m.dvt", "--device", "poorest")
    assert "poorest:0 cannot run v2 = exp(v1): [exp]" in text
    run(tmp_path / "m.dvt", "--device", "poorest", "--html", tmp_path / "page.html")
    assert "cannot run 2 of 4 nodes" in (tmp_path / "page.html").read_text("utf-8")


def test_verify(saved):
    assert "verified: 1 tensors of 256 B" in run(saved, "--verify")
    data = bytearray(saved.read_bytes())
    data[-1] ^= 1
    saved.write_bytes(data)
    assert "[embed.dvt] tensors are not those that were saved: w0" in run(saved, "--verify", code=1)


def test_a_page_replaces_no_file_of_the_program(saved, tmp_path):
    before = saved.read_bytes()
    (tmp_path / "link.html").symlink_to(saved)
    for page in (saved, tmp_path / "link.html"):
        assert "would replace a file of the program" in run(saved, "--html", page, code=2)
    assert saved.read_bytes() == before


def test_files_that_cannot_be_opened(tmp_path, saved):
    assert "no such file" in run(tmp_path / "gone.dvt", code=1)
    header, data = parts(saved)
    header["__metadata__"]["sha256"] = "0" * 64
    assert "its program was changed" in run(pack(saved, header, data), code=1)


def test_text_moves_no_cursor_and_turns_no_direction(tmp_path):
    text = run(hostile(tmp_path / f"{TURNED}.dvt"))
    assert "\x1b" not in text and "\u202e" not in text and "\x07" not in text
    assert "\\x1b[2Ja\\x07" in text and "\\u202egnp.exe" in text and HEBREW in text


def test_the_page_has_every_name_escaped(tmp_path):
    run(hostile(tmp_path / f"{TURNED}<i>.dvt"), "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<script" not in page and "<img" not in page and "<i>" not in page and 'onerror="' not in page
    assert "\u202e" not in page and "\x1b" not in page
    assert "&lt;script&gt;" in page and HEBREW in page
    assert page.count("<style>") == 1 and "http://" not in page and "https://" not in page


def test_boxes_lie_below_what_they_take():
    box = program_graph.Box
    boxes = [box("a", "", "port", "", ()), box("b", "", "port", "", ()), box("c", "", "core", "", (0,)),
             box("d", "", "core", "", (2, 1)), box("e", "", "port", "", (3, 0))]  # fmt: skip
    rows = program_graph._rows(boxes)
    assert rows == [[0, 1], [2], [3], [4]]
    placed = program_graph._placed(boxes, rows)
    for b, (x, y, _) in zip(boxes, placed, strict=True):
        assert x >= 0 and all(placed[i][1] + program_graph.HEIGHT < y for i in b.takes)
    for row in rows:
        for left, right in pairwise(row):
            assert placed[left][0] + placed[left][2] < placed[right][0]


# ---- in a browser ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    from test_conformance_browser import FLAGS

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs chromium and chromedriver (Debian packages chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(driver)) as opened:
        yield opened


def shown(browser, file: Path, scheme: str = "light") -> None:
    """Opens the page, which must request nothing but itself, run no script and log no error."""
    from test_conformance_browser import CONTRAST, requests, wear

    requests(browser)
    wear(browser, scheme)
    browser.get(file.as_uri())
    own = ("data:", "chrome:", "chrome-untrusted:")  # from the browser, not the page
    assert {url for url in requests(browser) if not url.startswith(own)} <= {file.as_uri()}
    assert browser.get_log("browser") == []
    assert browser.execute_script(CONTRAST) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_names_in_a_browser(browser, tmp_path, scheme):
    file = hostile(tmp_path / "m.dvt")
    run(file, "--html", tmp_path / "page.html")
    shown(browser, tmp_path / "page.html", scheme)
    assert browser.title == "m.dvt"
    body = browser.find_element("tag name", "body").text
    for text in (SCRIPT, MARKUP, "\\u202egnp.exe", HEBREW, "\\x1b[2Ja\\x07"):
        assert text in body
    assert not browser.find_elements("css selector", "script, img, iframe, link")
    bdi = browser.find_element("xpath", f"//bdi[contains(., '{HEBREW}')]")
    assert browser.execute_script("return getComputedStyle(arguments[0]).unicodeBidi", bdi) == "isolate"


def test_the_graph_leads_to_the_nodes(browser, saved, tmp_path):
    run(saved, "--html", tmp_path / "page.html")
    shown(browser, tmp_path / "page.html")
    boxes = browser.find_elements("css selector", "svg a g.kernel, svg a g.core, svg a g.decomposition")
    rows = browser.find_elements("css selector", "tr[id^=n]")
    assert len(boxes) == len(rows) > 4
    boxes[0].click()
    assert browser.current_url.endswith("#n0")
    table = browser.find_element("xpath", "//h2[text()='Ops']/following-sibling::div").text
    assert "take" in table and "cpu:0" in table and "sim:0" in table and "kernel" in table
