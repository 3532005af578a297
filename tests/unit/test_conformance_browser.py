"""index.html in headless Chromium, from the file system: reactions to mouse and keyboard."""

import json
import shutil

import conformance_document as documents
import pytest
from dovetail_conformance.reporting import html

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --force-prefers-reduced-motion "
    "--window-size=1280,900"
)
# The contrast of every text with its background, where it is below WCAG's AA.
CONTRAST = """
const channels = (text) => text.match(/[\\d.]+/g).map(Number);
const over = ([r, g, b, a = 1], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const luminance = (rgb) => rgb.reduce((sum, c, i) => sum + linear(c / 255) * [0.2126, 0.7152, 0.0722][i], 0);
function ground(element) {
  if (!element) return [255, 255, 255];
  const own = channels(getComputedStyle(element).backgroundColor);
  return (own[3] ?? 1) < 1 ? over(own, ground(element.parentElement)) : own.slice(0, 3);
}
const low = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
  if (!text || !element.checkVisibility() || element.closest("script, style, dialog:not([open])")) continue;
  const style = getComputedStyle(element);
  const behind = ground(element);
  const ink = over(channels(element.closest("svg") ? style.fill : style.color), behind);
  const [light, dark] = [luminance(ink), luminance(behind)].sort((a, b) => b - a);
  const ratio = (light + 0.05) / (dark + 0.05);
  if (ratio < 4.5) low.push([text.slice(0, 40), ratio.toFixed(2), style.color]);
}
return low;
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    document = documents.with_everything()
    file = tmp_path_factory.mktemp("report") / "index.html"
    file.write_text(html.render(document, documents.difference(document)), "utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
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


@pytest.fixture(autouse=True)
def quiet(browser, page):
    """Open the page anew; at the end it must have requested only itself and logged no errors."""
    requests(browser)
    wear(browser, "light")
    browser.get("about:blank")
    browser.get(page)
    browser.execute_script("localStorage.clear()")
    yield
    assert browser.get_log("browser") == []
    own = ("data:", "chrome:", "chrome-untrusted:")  # from the browser, not the page
    asked = {url for url in requests(browser) if not url.startswith(own)}
    assert asked <= {page, "about:blank"}


def requests(browser):
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


def wear(browser, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def until(browser, condition):
    return WebDriverWait(browser, 20, 0.05).until(lambda _: condition())


def cell(browser, op, dtype):
    return browser.find_element(By.CSS_SELECTOR, f"tr[data-op='{op}'] button[data-dtype='{dtype}']")


def rows(browser):
    return [r.get_attribute("data-op") for r in browser.find_elements(By.CSS_SELECTOR, "tr[data-op]")
            if r.is_displayed()]  # fmt: skip


def panel(browser):
    """The open panel's text, once it is unpacked."""
    element = browser.find_element(By.ID, "panel")
    until(browser, lambda: element.find_elements(By.TAG_NAME, "header"))
    return element.text


def focused(browser):
    return browser.switch_to.active_element.get_attribute("aria-label") or ""


def press(browser, *keys):
    webdriver.ActionChains(browser).send_keys(*keys).perform()


def test_a_cell_opens_by_mouse(browser):
    cell(browser, "exp", "f16").click()
    shown = panel(browser)
    assert "exp f16" in shown and "3 of 65 elements wrong" in shown and "> 64 ulp" not in shown
    assert "dovetail conform --device acme:0 --case 'exp[f16,values]' --seed 7" in shown
    assert "Errors of all elements" in shown and "exact" in shown
    browser.find_element(By.CSS_SELECTOR, "#panel .close").click()
    assert not browser.find_element(By.ID, "panel").is_displayed()


def test_a_cell_opens_by_keyboard_and_escape_goes_back(browser):
    browser.execute_script("arguments[0].focus()", browser.find_element(By.NAME, "sort"))
    press(browser, Keys.TAB, Keys.TAB)
    assert focused(browser).startswith("where bool")
    press(browser, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert focused(browser).startswith("add i16")
    press(browser, Keys.END)
    assert focused(browser).startswith("add c128")
    webdriver.ActionChains(browser).key_down(Keys.CONTROL).send_keys(Keys.HOME).key_up(Keys.CONTROL).perform()
    assert focused(browser).startswith("where bool")
    press(browser, Keys.ENTER)
    assert "where ran on another device" in panel(browser)
    assert browser.execute_script("return document.querySelector('#panel').contains(document.activeElement)")
    press(browser, Keys.ESCAPE)
    until(browser, lambda: not browser.find_element(By.ID, "panel").is_displayed())
    assert focused(browser).startswith("where bool")


def test_what_the_panel_shows_is_text(browser):
    cell(browser, "add", "f32").click()
    assert "</script><img src=x onerror=" in panel(browser)
    assert not browser.find_elements(By.CSS_SELECTOR, "#panel img") and browser.title != "taken"


def test_replay_of_a_case_that_passed(browser):
    cell(browser, "matmul", "f32").click()
    panel(browser)
    copied = browser.find_element(By.CSS_SELECTOR, "#panel tbody .copy").get_attribute("data-copy")
    assert copied.startswith("dovetail conform --device acme:0 --case 'matmul[f32,")
    assert copied.endswith("]' --seed 7")


def test_filter_and_sort(browser):
    assert rows(browser) == ["where", "add", "exp", "matmul", "reshape", "gelu", "softmax"]
    browser.find_element(By.NAME, "op").send_keys("MAT")
    assert rows(browser) == ["matmul"] and "1 of 7 ops" in browser.find_element(By.ID, "shown").text
    browser.find_element(By.CSS_SELECTOR, "#tools button").click()
    until(browser, lambda: len(rows(browser)) == 7)
    Select(browser.find_element(By.NAME, "state")).select_by_value("failed")
    assert rows(browser) == ["where", "add", "exp", "matmul", "gelu"]
    Select(browser.find_element(By.NAME, "dtype")).select_by_visible_text("f32")
    assert rows(browser) == ["add", "gelu"]
    heads = browser.find_elements(By.CSS_SELECTOR, ".matrix thead th")
    assert [h.text for h in heads if h.is_displayed()] == ["op", "f32"]
    browser.find_element(By.NAME, "op").send_keys("nothing")
    assert rows(browser) == [] and browser.find_element(By.ID, "nothing").is_displayed()
    browser.find_element(By.CSS_SELECTOR, "#tools button").click()
    until(browser, lambda: len(rows(browser)) == 7)
    Select(browser.find_element(By.NAME, "sort")).select_by_value("name")
    assert rows(browser) == ["add", "exp", "gelu", "matmul", "reshape", "softmax", "where"]
    Select(browser.find_element(By.NAME, "sort")).select_by_value("worst")
    assert rows(browser)[0] == "exp"


def test_performance_sorts(browser):
    (head,) = [h for h in browser.find_elements(By.CSS_SELECTOR, ".sortable th") if h.text == "of ceiling"]
    head.find_element(By.TAG_NAME, "button").click()
    shares = [float(e.text.rstrip(" %")) for e in browser.find_elements(By.CSS_SELECTOR, ".share")]
    assert head.get_attribute("aria-sort") == "descending" and shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_and_width(browser, scheme):
    wear(browser, scheme)
    browser.execute_script("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    assert browser.execute_script(CONTRAST) == []
    cell(browser, "exp", "f16").click()
    panel(browser)
    assert browser.execute_script(CONTRAST) == []
    press(browser, Keys.ESCAPE)
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_theme_follows_the_system_until_it_is_chosen(browser):
    def ground():
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = ground()
    wear(browser, "dark")
    dark = ground()
    assert light != dark
    button = browser.find_element(By.ID, "theme")
    seen = []
    for _ in range(3):
        button.click()
        seen.append((button.text, ground()))
    assert seen == [("Theme: light", light), ("Theme: dark", dark), ("Theme: system", dark)]
