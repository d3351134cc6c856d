"""The viewer and the report in a real browser: what a user sees and does, and what must not run."""

# mypy: disable-error-code="no-untyped-call"

import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest

from tests.extensions.web import browser
from tests.extensions.web.browser import Page, clicked
from tests.extensions.web.conftest import CURRENT
from tests.extensions.web.sample import fill_many, write_memory

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = [
    pytest.mark.skipif(browser.missing() is not None, reason=browser.missing() or ""),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

VIEWS = ("", "timeline", "decisions", "graph", "pitfalls", "review", f"memory/{CURRENT}")


@contextmanager
def served(html: str) -> Iterator[str]:
    """Yields the address of another site, with one page."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_reloading_and_a_new_tab_need_no_new_address(page: Page) -> None:
    page.driver.refresh()
    page.wait(page.titles)
    page.driver.switch_to.new_window("tab")
    page.driver.get(page.url.partition("#")[0])
    page.wait(page.titles)


@pytest.mark.attack("web")
def test_a_page_without_the_token_shows_how_to_open_it(page: Page) -> None:
    base = page.url.partition("#")[0]
    page.driver.get("about:blank")
    page.driver.get(f"{base}#in=wrong")
    page.wait(lambda: "Open the URL that" in page.all("main")[0].text)
    page.driver.get(page.url)  # In the same tab: only the part after # is another one.
    page.wait(page.titles)


def test_the_token_leaves_the_address(page: Page) -> None:
    token = page.url.rpartition("=")[2]
    assert token
    assert token not in page.driver.current_url
    assert page.run("return document.cookie") == ""
    assert token not in page.run("return document.documentElement.outerHTML + document.referrer")
    assert page.errors() == []


def marks(page: Page) -> set[str]:
    """Returns the highlighted words."""
    script = "return [...document.querySelectorAll('mark')].map(e => e.textContent.toLowerCase())"
    return set(page.run(script))


def test_search_answers_while_typing(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.press("/", *"how long does a refresh token live")
    page.wait(lambda: page.titles()[:1] == ["Use JWT with short access tokens and refresh tokens"])
    page.wait(lambda: "token" in marks(page))
    assert not marks(page) & {"how", "long", "does", "a", "do"}
    assert "q=how" in page.driver.current_url
    page.press(Keys.ESCAPE)
    page.wait(lambda: len(page.titles()) > 10)
    page.run("document.getElementById('search').blur()")


def test_an_answer_that_comes_late_is_dropped(page: Page) -> None:
    page.run(
        """
        const ask = window.fetch;
        window.held = [];
        window.fetch = (url, options) => {
          if (!String(url).includes("Safari")) return ask(url, options);
          // It answers only after the next one, and does not notice that it was cancelled.
          return new Promise((resolve) => window.held.push(() => resolve(ask(url))));
        };
        location.hash = "#/?q=Safari";
        """
    )
    page.wait(lambda: page.run("return window.held.length"))
    page.run("location.hash = '#/?q=proxy'")
    page.wait(lambda: page.titles()[:1] == ["Flaky uploads came from the proxy’s body limit"])
    page.run("window.held.forEach((answer) => answer())")
    page.run("location.hash = '#/?q=proxy+body'")
    page.wait(lambda: "proxy body" in page.all("h1")[0].text)
    assert page.titles()[0] == "Flaky uploads came from the proxy’s body limit"


def test_everything_is_reached_by_keys(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.press("/")
    assert page.focused.get_attribute("id") == "search"
    page.press(*"receipts")
    page.wait(lambda: page.titles()[:1] == ["Payments: refunds work, receipts are missing"])
    page.press(Keys.ARROW_DOWN)
    assert page.focused.get_attribute("class") == "row"
    page.press(Keys.ARROW_UP)
    assert page.focused.get_attribute("id") == "search"
    page.press(Keys.ARROW_DOWN, Keys.ENTER)
    page.wait(lambda: page.all("article h1"))
    assert page.focused.get_attribute("id") == "main"
    page.press(Keys.ESCAPE)
    page.wait(lambda: page.titles()[:1] == ["Payments: refunds work, receipts are missing"])


@pytest.mark.parametrize("view", ["", "timeline", f"memory/{CURRENT}"])
def test_the_first_key_skips_to_the_content(page: Page, view: str) -> None:
    from selenium.webdriver.common.keys import Keys

    page.driver.get(urljoin(page.url, f"/{view}"))
    page.wait(lambda: page.all("main:not([aria-busy]) h1"))
    assert "#" not in page.driver.current_url
    page.press(Keys.TAB)
    assert page.focused.get_attribute("id") == "skip"
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert page.run(outline) != "none"
    page.press(Keys.ENTER)
    assert page.focused.get_attribute("id") == "main"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"#/memory/{CURRENT}", f"/memory/{CURRENT}"),
        ("#/?type=decision", "/?type=decision"),
        ("#//evil.example/graph", "/evil.example/graph"),
    ],
)
def test_an_address_of_before_opens_its_view(page: Page, old: str, new: str) -> None:
    for url in ("about:blank", urljoin(page.url, f"/{old}")):
        page.driver.get(url)
    page.wait(lambda: page.all("main:not([aria-busy]) h1"))
    assert page.driver.current_url == urljoin(page.url, new)


def test_views_are_steps_of_the_history(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    def shows(name: str) -> None:
        page.wait(lambda: page.all("main:not([aria-busy]) h1"))
        page.wait(lambda: page.all("h1")[0].text.startswith(name))

    before = page.run("return history.length")
    for name in ("Timeline", "Decisions", "Decisions"):
        page.driver.find_element("link text", name).click()
        shows(name)
    assert page.run("return history.length") == before + 2
    page.driver.back()
    shows("Timeline")
    assert page.driver.current_url == urljoin(page.url, "/timeline")
    tabs = len(page.driver.window_handles)
    page.driver.find_element("link text", "Graph").send_keys(Keys.CONTROL + Keys.ENTER)
    page.wait(lambda: len(page.driver.window_handles) == tabs + 1)
    shows("Timeline")


def test_the_page_has_landmarks_and_names(page: Page) -> None:
    for landmark in ("header", "nav[aria-label]", "main", "form[role=search]"):
        assert len(page.all(f"body > {landmark}, header > {landmark}")) == 1
    for view in VIEWS:
        page.show(view)
        assert len(page.all("main h1")) == 1
        nameless = page.run(
            """return [...document.querySelectorAll("a, button, input, select, canvas, summary")]
            .filter((e) => e.offsetParent && !e.textContent.trim())
            .filter((e) => !e.ariaLabel && !e.labels?.length)
            .map((e) => e.outerHTML)"""
        )
        assert nameless == []


def test_a_memory_is_shown_as_markdown(page: Page) -> None:
    page.show(f"memory/{CURRENT}", "main .prose table")
    assert page.all(".prose h2")[0].text == "Reasoning"
    assert "timedelta" in page.all(".prose pre")[0].text
    link = page.all(".prose a[href^=https]")[0]
    assert link.get_attribute("rel") == "noopener noreferrer"
    assert page.all(".prose a[href^='/memory/']")[0].text == "The login page is served by the edge"
    assert [item.text for item in page.all(".chain a")] == [
        "Use JWT with short access tokens and refresh tokens",
        "Use JWT with a one-day lifetime",
        "Keep server sessions in Redis",
    ]


def test_filters_narrow_the_list(page: Page) -> None:
    page.show("?type=decision&outcome=FAILED")
    assert page.titles() == ["Keep server sessions in Redis"]
    page.all("a.clear")[0].click()
    page.wait(lambda: len(page.titles()) > 10)
    page.show("?when=2026-09")
    assert len(page.titles()) == 3
    page.show("?when=blue")
    assert "blue" in page.all("main [role=alert]")[0].text


def test_the_timeline_and_the_decisions(page: Page) -> None:
    page.show("timeline")
    assert page.all(".bar-name")[0].text.split() == ["Jun", "2026"]
    page.all(".bars a[aria-label^='2026-09']")[0].click()
    page.wait(lambda: len(page.titles()) == 3)
    page.show("decisions?q=auth")
    assert page.all(".topic-card h2 span")[0].text == "auth_strategy"
    assert [label.text for label in page.all(".topic-card .label.failed")] == ["failed"]


def test_each_row_has_its_reason_or_second_line_and_its_whole_title(page: Page) -> None:
    title = f"Where {'room ' * 40}is, a title is whole"
    late = datetime(2026, 11, 21, tzinfo=UTC)
    path = write_memory(page.project, "fact_wide", "fact", {}, f"{title}\n\nBelow.", created=late)
    page.wait(lambda: title in page.titles())
    page.show("?tag=jwt")
    assert [part.text for part in page.all(".row-head + .row-passage")] == [
        "A stolen access token is useless soon:",
        "No state on the server.",
    ]
    path.unlink()


def test_two_decisions_that_replace_one_are_a_fork(page: Page, place: tuple[Path, Path]) -> None:
    late = datetime(2026, 11, 21, tzinfo=UTC)
    for number, id in enumerate(("decision_left", "decision_right")):
        links = ["{to: decision_storage_20260715_c6f9zl, type: supersedes}"]
        header: dict[str, object] = {"title": id, "topic": "order_storage", "links": links}
        created = late.replace(hour=number)
        write_memory(page.project, id, "decision", header, "x", created=created)
    browser.mind(*place, "trust", "decision_left", "decision_right")
    drawn = """return [...document.querySelectorAll('main .chain > li')].map((item) =>
        [...item.querySelectorAll('.lane')].map((line) => line.className + line.style.cssText))"""
    fork = [
        ["lane down--lane: 0;"],
        ["lane --lane: 0;", "lane join--lane: 0;"],
        ["lane up--lane: 0;"],
    ]
    for view in ("decisions?q=order", "memory/decision_left"):
        page.show(view)
        page.wait(lambda: page.run(drawn) == fork)


def test_a_click_copies_the_id(page: Page) -> None:
    page.show(f"memory/{CURRENT}")
    page.run("navigator.clipboard.writeText = async (text) => (window.copied = text)")
    page.all("button.id")[0].click()
    page.wait(lambda: page.run("return window.copied") == "k3v7mq")
    page.wait(lambda: "k3v7mq is copied" in page.all("#messages")[0].text)


def test_every_view_is_reached_at_400_pixels(page: Page) -> None:
    browser.show_as(page.driver, width=400)
    for link in page.all("#views a"):
        box = link.rect
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 400
    page.driver.find_element("link text", "Review").click()
    page.wait(lambda: page.all("h1")[0].text.startswith("Review"))


HEADS = """
const pen = CanvasRenderingContext2D.prototype;
const [move, line] = [pen.moveTo, pen.lineTo];
let from = null;
window.heads = [];
pen.moveTo = function (x, y) { from = [x, y]; move.call(this, x, y); };
pen.lineTo = function (x, y) {
  if (Math.hypot(x - from[0], y - from[1]) < 7.1) window.heads.push([...from, x, y]);
  line.call(this, x, y);
};
"""


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_a_small_graph_names_every_memory_beside_its_arrows(
    driver: "WebDriver", tmp_path: Path, width: int
) -> None:
    home, project = tmp_path / "home", tmp_path / "small"
    home.mkdir()
    project.mkdir()
    browser.mind(project, home, "init")
    fill_many(project, 50)
    with browser.viewer(project, home) as url:
        page = Page(driver, url, project)
        browser.show_as(driver, width=width)
        driver.get(url)
        page.wait(page.titles)
        page.run(HEADS)
        page.show("graph", "[data-placed] canvas[data-labels]")
        number = int(page.all("h1 small")[0].text.split()[0])
        labels = json.loads(page.all("canvas")[0].get_attribute("data-labels") or "")
        heads = page.run("return window.heads")
    assert 40 < number == len(labels) < 60
    assert heads
    assert not [
        (box, head)
        for box in labels
        for head in heads
        for x, y in (head[:2], head[2:])
        if box[0] + 1 < x < box[2] - 1 and box[1] + 1 < y < box[3] - 1
    ]


def test_an_open_page_follows_the_files(page: Page) -> None:
    page.wait(lambda: page.run("return document.getElementById('state').dataset.state") == "live")
    title = "Written while the page is open"
    header: dict[str, object] = {"title": title}
    late = datetime(2026, 11, 18, tzinfo=UTC)
    path = write_memory(page.project, "fact_live", "fact", header, "x", created=late)
    page.wait(lambda: title in page.titles())
    path.unlink()
    page.wait(lambda: title not in page.titles())


def test_a_text_is_read_and_then_approved(page: Page) -> None:
    header: dict[str, object] = {"title": "From a colleague"}
    late = datetime(2026, 11, 19, tzinfo=UTC)
    path = write_memory(page.project, "fact_colleague", "fact", header, "Read me.", created=late)

    card = "[data-key^='untrusted fact_colleague']"

    def press(text: str) -> None:
        xpath = f"//*[starts-with(@data-key, 'untrusted fact_colleague')]//button[text()='{text}']"
        page.wait(lambda: clicked(page.driver.find_elements("xpath", xpath)))

    page.show("review", card)
    assert not page.all(".quoted")
    press("Read it")
    page.wait(lambda: [text.text for text in page.all(".quoted")] == ["Read me."])
    press("Reject and remove")
    page.wait(lambda: not path.exists())
    page.wait(lambda: clicked(page.all("#messages button")))
    page.wait(path.exists)
    page.wait(lambda: page.all(card))
    press("Read it")
    page.wait(lambda: [text.text for text in page.all(".quoted")] == ["Read me."])
    press("Approve")
    page.wait(lambda: not page.all(card))
    page.show("memory/fact_colleague")
    assert not page.all(".label.warn")


@pytest.mark.attack("web")
@pytest.mark.parametrize("view", [*VIEWS, "?q=window", "memory/decision_odd_4"])
def test_hostile_texts_run_nothing(page: Page, view: str) -> None:
    page.show(view)
    if view == "review":
        page.run("document.querySelectorAll('.card .read').forEach((button) => button.click())")
        page.wait(lambda: page.all(".quoted"))
    page.run("document.querySelectorAll('main details').forEach((part) => (part.open = true))")
    assert page.run("return window.owned") is None
    assert page.run("return document.querySelectorAll('main :is(script, iframe, img)').length") == 0
    assert page.run("return [...document.links].filter(a => /^java/i.test(a.protocol)).length") == 0
    assert [error for error in page.errors() if "owned" in error] == []


@pytest.mark.attack("web")
def test_text_can_not_become_markup(page: Page) -> None:
    script = (
        "try { document.body.innerHTML = '<b>x</b>'; return 'set' } catch (e) { return e.name }"
    )
    assert page.run(script) == "TypeError"
    inline = """
        const script = document.createElement("script");
        try { script.textContent = "window.owned = 1"; document.body.append(script) } catch (e) {}
        return window.owned"""
    assert page.run(inline) is None


@pytest.mark.attack("web")
def test_another_site_can_neither_read_nor_change(page: Page, place: tuple[Path, Path]) -> None:
    port = re.search(r":(\d+)", page.url)
    assert port
    base = f"http://127.0.0.1:{port[1]}"
    attack = f"""<!doctype html><iframe src="{base}/"></iframe>
    <script src="{base}/static/main.js"></script><img src="{base}/static/icon.svg"><script>
    window.done = [];
    const note = (name) => (value) => done.push([name, String(value)]);
    const body = JSON.stringify({{action: "undo", id: "x"}});
    fetch("{base}/api/overview", {{credentials: "include"}}).then(note("read"), note("no"));
    fetch("{base}/api/list", {{credentials: "include", mode: "no-cors"}})
      .then((answer) => answer.text()).then(note("text"), note("no"));
    fetch("{base}/api/decide", {{method: "POST", credentials: "include", mode: "no-cors", body}})
      .then((answer) => answer.text()).then(note("text"), note("no"));
    new EventSource("{base}/api/events", {{withCredentials: true}}).onopen = note("stream");
    </script>"""
    with served(attack) as site:
        page.driver.get(site)
        page.wait(lambda: len(page.run("return window.done")) >= 3)
        answers = page.run("return window.done")
        assert [answer for answer in answers if answer[0] in ("read", "stream")] == []
        assert all(text == "" for name, text in answers if name == "text")


@pytest.mark.attack("web")
def test_a_name_that_leads_here_is_refused(page: Page) -> None:
    page.driver.get(page.url.replace("127.0.0.1", "evil.example"))
    assert "only to its own address" in page.all("body")[0].text


OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"

CONTRAST = r"""
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const light = ([r, g, b]) => {
  const linear = (v) => (v <= 0.04 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const [x, y, z] = [r, g, b].map((value) => linear(value / 255));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = rgba(getComputedStyle(e).backgroundColor);
    if (colour[3] > 200) return colour;
  }
  return [255, 255, 255, 255];
};
const low = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const [element, text] = [walker.currentNode.parentElement, walker.currentNode.data.trim()];
  if (!text || !element.checkVisibility() || element.matches("option, noscript *")) continue;
  const [a, b] = [light(rgba(getComputedStyle(element).color)), light(behind(element))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) low.push(`${ratio.toFixed(2)} ${element.className} ${text.slice(0, 30)}`);
}
return low;
"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(page: Page, dark: bool) -> None:
    browser.show_as(page.driver, width=1280, dark=dark)
    for view in VIEWS:
        page.show(view)
        page.run("document.querySelector('main').style.transition = 'none'")
        assert page.wait(lambda: [page.run(CONTRAST)]) == [[]], view
    ground = page.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert (ground == "rgb(20, 24, 26)") == dark


@pytest.mark.parametrize("width", [360, 768, 1600])
def test_nothing_is_wider_than_the_page(page: Page, width: int) -> None:
    browser.show_as(page.driver, width=width)
    for view in (*VIEWS, "?q=token", f"graph/{CURRENT}"):
        page.show(view)
        assert page.run(OVERFLOW) <= 0, view


def test_a_large_graph_stays_readable(large: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    large.show("graph", "[data-placed] canvas[data-labels]")
    assert "1,000 linked memories" in large.all("h1")[0].text
    assert "newest 1,000" in large.all(".notice")[0].text
    labels = json.loads(large.all("canvas")[0].get_attribute("data-labels") or "")
    assert len(labels) >= 20
    assert not any(
        a[0] < b[2] - 1 and b[0] < a[2] - 1 and a[1] < b[3] - 1 and b[1] < a[3] - 1
        for place, a in enumerate(labels)
        for b in labels[:place]
    )
    large.run("document.querySelector('canvas').focus()")
    large.press(Keys.ARROW_RIGHT)
    first = large.wait(lambda: large.all(".graph-panel a"))[0].text
    large.press(Keys.ARROW_RIGHT)
    large.wait(lambda: large.all(".graph-panel a")[0].text != first)
    large.press("+", "+", "-", "0", Keys.ENTER)
    large.wait(lambda: large.all("article h1"))
    large.driver.back()
    large.wait(lambda: large.all("[data-placed] canvas[data-labels]"))
    for box in large.all(".graph-types input")[1:]:
        box.click()
    large.wait(lambda: len(json.loads(large.all("canvas")[0].get_attribute("data-labels") or "")))


def test_a_report_needs_no_server(driver: "WebDriver", place: tuple[Path, Path]) -> None:
    project, home = place
    browser.mind(project, home, "report", "r.html", "--untrusted", "--force")
    browser.show_as(driver, width=1280)
    page = Page(driver, "", project)
    driver.get((project / "r.html").as_uri())
    page.wait(lambda: page.all("main:not([aria-busy]) .row"))
    page.errors()
    views = [view for view in VIEWS if view != "review"]
    for view in (*views, "?q=window", "memory/decision_odd_0", f"graph/{CURRENT}"):
        page.show(view)
        assert page.run("return window.owned") is None
        assert page.run("return document.querySelectorAll('main :is(script, img)').length") == 0
    page.show("memory/k3v7mq")
    assert len(page.all(".memory .chain li")) == 3
    page.press("/", *"how are the refunds")
    page.wait(lambda: page.titles() == ["Payments: refunds work, receipts are missing"])
    assert marks(page) == {"refunds"}
    page.show("decisions?q=auth_strategy")
    assert page.all(".topic-card h2 span")[0].text == "auth_strategy"
    page.show("memory/nothing")
    assert "not found" in page.all("[role=alert]")[0].text
    assert page.errors() == []
