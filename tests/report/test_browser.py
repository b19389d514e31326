"""The page in a real headless browser: drawn without a network, readable, and usable by keyboard and on paper."""

import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from budgetreg.cli.app import main
from tests.conftest import shorten_chains

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ROOT = Path(__file__).parents[2]
WIDE, TABLET, PHONE = 1200, 768, 390
# The least ratio of a text's luminance to that of its background, by the guidelines for accessible content.
CONTRAST = 4.5
CONTRASTS = """
const channel = (c) => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
const behind = (element) => {
  for (; element; element = element.parentElement) {
    const colour = parts(getComputedStyle(element).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
return [...document.querySelectorAll("body *")]
  .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
  .map((element) => {
    const pair = [parts(getComputedStyle(element).color), behind(element)].map(light).sort((a, b) => b - a);
    return [(pair[0] + .05) / (pair[1] + .05), element.tagName];
  });
"""


pytestmark = pytest.mark.slow  # a browser starts


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a headless browser without a network, or skip the tests that need one."""
    if (binary := next(filter(None, map(shutil.which, BROWSERS)), None)) is None or not shutil.which("chromedriver"):
        pytest.skip("no headless browser: chromium and chromedriver are needed (Debian's chromium, chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver", reason="no headless browser: selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(word)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_page_load_timeout(60)
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(results: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a page about results of every kind."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    figure = ROOT / "results" / "hazan_koren_2012" / "fig1"
    places = (results / "run", results / "sweep", results / "advice", results / "trial.db", figure)
    with pytest.MonkeyPatch.context() as patch:
        shorten_chains(patch)
        assert main(["report", *map(str, places), "--out", str(path)]) == 0
    return path.as_uri()


def shown(browser: Any, page: str, width: int = WIDE, scheme: str = "light", media: str = "screen") -> Any:
    """Open the page in a window of a width, with a colour scheme, on the screen or on paper."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [feature]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page)
    return browser


def count(browser: Any, selector: str) -> int:
    number: int = browser.execute_script("return document.querySelectorAll(arguments[0]).length", selector)
    return number


def test_the_page_is_drawn_without_a_network_or_complaints(browser: Any, page: str) -> None:
    browser.get_log("performance")
    shown(browser, page)
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"]
    assert page in asked
    assert {address.partition(":")[0] for address in asked} <= {"file", "data"}
    assert [address for address in asked if address.startswith("file:")] == [page]
    widths = browser.execute_script("return [...document.images].map((image) => image.naturalWidth)")
    assert len(widths) >= 5
    assert min(widths) > 100


def test_headings_tables_and_figures_have_names_in_order(browser: Any, page: str) -> None:
    shown(browser, page)
    levels = browser.execute_script('return [...document.querySelectorAll("h1,h2,h3,h4")].map((h) => +h.tagName[1])')
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert levels.count(2) == 5
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert browser.execute_script("return document.documentElement.lang") == "en"
    assert count(browser, "table") >= 15
    assert count(browser, "table > caption:not(:empty)") == count(browser, "table")
    assert count(browser, "th:not([scope])") == count(browser, ".scroll:not([tabindex])") == 0
    assert count(browser, "tbody tr") == count(browser, 'tbody tr > th[scope="row"]')
    assert count(browser, 'img:not([alt]), img[alt=""]') == 0


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "dark"), (TABLET, "light"), (WIDE, "dark")])
def test_text_is_readable_at_any_width_in_light_and_dark(browser: Any, page: str, width: int, scheme: str) -> None:
    shown(browser, page, width, scheme)
    ratios = browser.execute_script(CONTRASTS)
    assert len(ratios) > 300
    assert min(ratios)[0] >= CONTRAST, min(ratios)
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (max(int(part) for part in background[4:-1].split(",")) < 64) == (scheme == "dark")
    # Wide tables scroll by themselves, and figures fit.
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    edges = browser.execute_script("return [...document.images].map((image) => image.getBoundingClientRect().right)")
    assert max(edges) <= width
    # In the dark, the white ground of a figure is no brighter than a tenth.
    filters = set(browser.execute_script("return [...document.images].map((image) => getComputedStyle(image).filter)"))
    assert filters == ({"invert(0.88) hue-rotate(180deg)"} if scheme == "dark" else {"none"})


def test_a_figure_that_is_chosen_has_its_full_size(browser: Any, page: str) -> None:
    shown(browser, page, PHONE)
    region = browser.find_element("css selector", ".scroll:has(img)")
    whole = int(region.find_element("tag name", "img").get_dom_attribute("width"))
    size = "return arguments[0].querySelector('img').getBoundingClientRect().width"
    assert browser.execute_script(size, region) < PHONE < whole
    region.click()
    assert browser.execute_script(size, region) == whole
    assert browser.execute_script("return document.documentElement.scrollWidth") <= PHONE


def test_the_keyboard_reaches_results_tables_and_details(browser: Any, page: str) -> None:
    from selenium.webdriver.common.keys import Keys

    shown(browser, page, PHONE)
    active = "return document.activeElement"
    browser.switch_to.active_element.send_keys(Keys.TAB)
    link = browser.execute_script(active)
    assert link.text == "Skip to the results"
    assert link.rect["x"] >= 0
    link.send_keys(Keys.ENTER)
    assert browser.execute_script(f"{active}.id") == "content"
    reached = set()
    for _ in range(12):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(browser.execute_script(f"{active}.className || document.activeElement.tagName"))
    assert {"scroll", "SUMMARY"} <= reached
    summary = next(each for each in browser.find_elements("tag name", "summary") if each.text.startswith("Show the"))
    summary.send_keys(Keys.ENTER)
    assert browser.execute_script("return arguments[0].parentElement.open", summary)


def test_paper_shows_what_is_folded_on_the_screen_and_whole_rows(browser: Any, page: str) -> None:
    """Each part of a section keeps its table, figure or row on one page, if it fits there."""
    visible = 'return [...document.querySelectorAll("details table")].map((table) => table.checkVisibility())'
    shown(browser, page)
    assert set(browser.execute_script(visible)) == {False}
    shown(browser, page, scheme="dark", media="print")
    assert set(browser.execute_script(visible)) == {True}
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not browser.find_element("tag name", "nav").is_displayed()
    style = "return [...document.querySelectorAll(arguments[0])].map((each) => getComputedStyle(each)[arguments[1]])"
    for selector in ("tr", "table", "img"):
        assert set(browser.execute_script(style, selector, "breakInside")) == {"avoid"}
    assert set(browser.execute_script(style, "section + section", "breakBefore")) == {"page"}
    assert set(browser.execute_script(style, "img", "filter")) == {"none"}
    paper = 718  # CSS pixels between the margins of A4
    shown(browser, page, paper, media="print")
    edges = browser.execute_script("return [...document.querySelectorAll('table')].map((t) => t.offsetWidth)")
    assert max(edges) <= paper
