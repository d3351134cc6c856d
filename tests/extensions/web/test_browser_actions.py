"""Lists that grow, decisions, keys and failed requests in a real browser."""

# mypy: disable-error-code="no-untyped-call"

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from tests.extensions.web import browser
from tests.extensions.web.browser import Page, clicked
from tests.extensions.web.sample import write_memory

pytestmark = [
    pytest.mark.skipif(browser.missing() is not None, reason=browser.missing() or ""),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

LATE = datetime(2026, 11, 20, tzinfo=UTC)
KEYS = "return [...document.querySelectorAll('main .row')].map((row) => row.dataset.key)"
TOP = "return document.activeElement.getBoundingClientRect().top"
FOCUSED = "return document.activeElement.dataset.key"
LIVE = "return document.getElementById('state').dataset.state"


def add(page: Page, id: str, text: str = "x", **header: object) -> None:
    """Writes a memory that is not approved, while the page is open."""
    page.wait(lambda: page.run(LIVE) == "live")
    write_memory(page.project, id, "fact", {"title": id, **header}, text, created=LATE)


def grow(page: Page, rows: int) -> None:
    """Clicks "Show more" and waits for a number of rows."""
    page.wait(lambda: clicked(page.all("main .more")))
    page.wait(lambda: len(page.run(KEYS)) == rows)


SEND = "return ask(url, options)"
UNANSWERED = (
    "await new Promise((_, fail) => "
    "options.signal.addEventListener('abort', () => fail(options.signal.reason)))"
)
NO_ANSWER = "throw new TypeError('Failed to fetch')"

REQUESTS = """
const [ask, to] = [window.fetch, arguments[0]];
window.restored = () => (window.fetch = ask);
window.sent = [];
window.fetch = async (url, options) => {
  if (!url.startsWith(to)) return ask(url, options);
  window.sent.push(url);
  ANSWER;
};"""


@contextmanager
def requests(page: Page, answer: str, *, to: str = "/api/") -> Iterator[None]:
    """Lets a script answer requests; `window.sent` has their addresses."""
    page.run(REQUESTS.replace("ANSWER", answer), to)
    yield
    page.run("window.restored()")


def card(page: Page, id: str, button: str) -> bool:
    """Clicks a button of an item in the review, if it is there."""
    path = f"//*[starts-with(@data-key, 'untrusted {id} ')]//button[text()='{button}']"
    return clicked(page.driver.find_elements("xpath", path))


def clicked_twice(page: Page, selector: str) -> None:
    """Clicks twice before the page can answer, also if the first click replaces the button."""
    page.run("const b = document.querySelector(arguments[0]); b.click(); b.click()", selector)


@pytest.mark.parametrize(
    ("view", "item", "number"),
    [("?tag=cache", ".row", 50), ("timeline", ".row", 100), ("decisions", ".topic-card", 40)],
)
def test_two_clicks_on_show_more_add_one_page(
    large: Page, view: str, item: str, number: int
) -> None:
    large.show(view)
    first = large.run(KEYS)
    clicked_twice(large, "main .more")
    large.wait(lambda: len(large.all(f"main {item}")) > number)
    large.wait(lambda: "left" in large.all("main .more")[0].text)
    keys = large.run(KEYS)
    assert keys[: len(first)] == first
    assert (len(large.all(f"main {item}")), len(keys)) == (2 * number, len(set(keys)))
    assert large.run(FOCUSED) == keys[len(first)]


def test_the_last_page_of_a_list_completes_it(large: Page) -> None:
    large.show("?tag=cache")
    total = int(large.all("h1 small")[0].text.split()[0])
    grow(large, 100)
    grow(large, total)
    assert len(set(large.run(KEYS))) == total
    assert not large.all("main .more")


def test_show_more_after_an_unread_change_shows_no_memory_twice(large: Page) -> None:
    large.show("?tag=cache")
    large.run("getSelection().selectAllChildren(document.querySelector('main h1'))")
    add(large, "fact_first", tags=["cache"])
    large.wait(lambda: "Something changed" in large.all("#state")[0].text)
    large.run("document.querySelector('main .more').click()")
    large.wait(lambda: len(large.run(KEYS)) == 100)
    keys = large.run(KEYS)
    assert (keys[0], len(set(keys))) == ("fact_first", 100)


def test_a_change_keeps_the_length_of_a_list_and_the_focus(large: Page) -> None:
    large.show("?tag=cache")
    grow(large, 100)
    assert large.run(FOCUSED) == large.run(KEYS)[50]
    chosen = large.run(KEYS)[70]
    large.run("document.querySelectorAll('main .row')[70].focus()")
    top = large.run(TOP)
    add(large, "fact_new", tags=["cache"])
    large.wait(lambda: "fact_new" in large.run(KEYS))
    assert (len(large.run(KEYS)), large.run(FOCUSED)) == (100, chosen)
    assert abs(large.run(TOP) - top) < 2

    (large.project / ".mind" / f"{chosen.partition('_')[0]}s" / f"{chosen}.md").unlink()
    large.wait(lambda: chosen not in large.run(KEYS))
    assert large.run(FOCUSED) == large.run(KEYS)[71]


def test_a_change_does_not_undo_a_click_on_show_more(large: Page) -> None:
    large.show("?tag=cache")
    late = f"if (url.includes('offset%22%3A50')) {UNANSWERED}; {SEND}"
    with requests(large, late, to="/api/list"):
        large.run("document.querySelector('main .more').click()")
        add(large, "fact_meanwhile", tags=["cache"])
        large.wait(lambda: len(large.run(KEYS)) == 100 and "fact_meanwhile" in large.run(KEYS))


def test_a_failed_page_of_a_list_is_reported_and_can_be_asked_for_again(large: Page) -> None:
    large.show("?tag=cache")
    with requests(large, NO_ANSWER):
        large.run("document.querySelector('main .more').click()")
        large.wait(lambda: "does not answer" in large.all("#messages")[0].text)
    assert len(large.run(KEYS)) == 50
    grow(large, 100)


def test_a_change_that_can_not_be_read_leaves_the_page_as_it_is(large: Page) -> None:
    large.show("?tag=cache")
    keys = large.run(KEYS)
    error = 'return new Response(\'{"error": {"message": "too fast"}}\', {status: 429})'
    with requests(large, error, to="/api/list"):
        add(large, "fact_unread", tags=["cache"])
        large.wait(lambda: "Something changed" in large.all("#state")[0].text)
        assert large.run(KEYS) == keys
    grow(large, 100)
    large.wait(lambda: clicked(large.all("#state button")))
    large.wait(lambda: "fact_unread" in large.run(KEYS))


def test_a_fault_of_the_page_is_not_taken_for_a_silent_server(page: Page) -> None:
    with requests(page, "return new Response('{}')", to="/api/list"):
        page.show("?when=2026-09", "main [role=alert]")
        assert "The page has failed" in page.all("main [role=alert]")[0].text
    with requests(page, NO_ANSWER):
        page.show("?when=2026-10", "main [role=alert]")
        page.wait(lambda: "does not answer" in page.all("main [role=alert]")[0].text)
    page.errors()


def test_a_filter_keeps_the_focus(page: Page) -> None:
    page.run(
        """const type = document.querySelector("select[aria-label=Type]");
        type.focus();
        type.value = "decision";
        type.dispatchEvent(new Event("change"));"""
    )
    page.wait(lambda: page.all(".filter.set"))
    assert page.run(FOCUSED) == "filter-Type"


def test_a_change_leaves_opened_details_open(page: Page) -> None:
    page.show("review", ".terminal")
    page.all(".terminal summary")[0].click()
    (key,) = page.run("return [document.querySelector('.terminal').closest('.card').dataset.key]")
    add(page, "fact_during_review")
    page.wait(lambda: page.all("[data-key^='untrusted fact_during_review']"))
    opened = "return [...document.querySelectorAll('.terminal[open]')]"
    assert page.run(f"{opened}.map((part) => part.closest('.card').dataset.key)") == [key]
    assert page.focused.tag_name == "summary"


def read(page: Page, id: str) -> None:
    """Opens the text of an item, after which it can be approved."""
    page.wait(lambda: card(page, id, "Read it"))
    page.wait(lambda: page.all(f"[data-key^='untrusted {id} '] .primary"))


@pytest.mark.parametrize(
    ("button", "message"), [("primary", "Approved."), ("danger", "Removed.Undo")]
)
def test_two_clicks_decide_once(page: Page, button: str, message: str) -> None:
    id = f"fact_{button}"
    add(page, id, "Read me.")
    shown = f"[data-key^='untrusted {id} ']"
    page.show("review", shown)
    read(page, id)
    with requests(page, SEND, to="/api/decide"):
        clicked_twice(page, f"{shown} .{button}")
        page.wait(lambda: not page.all(shown))
        assert page.run("return window.sent.length") == 1
        assert page.all("#messages")[0].text.replace("\n", "") == message
        if "Undo" in message:
            clicked_twice(page, "#messages button")
            page.wait(lambda: page.all(shown))
            assert page.run("return window.sent.length") == 2


def test_an_undo_waits_for_the_decision_before_it(page: Page) -> None:
    add(page, "fact_taken_back", "Read me.")
    shown = "[data-key^='untrusted fact_taken_back ']"
    page.show("review", shown)
    read(page, "fact_taken_back")
    slow = f"await new Promise((go) => setTimeout(go, 700)); {SEND}"
    with requests(page, slow, to="/api/review"):
        page.run("document.querySelector(arguments[0]).click()", f"{shown} .danger")
        page.wait(lambda: clicked(page.all("#messages button")))
        page.wait(lambda: "It is back." in page.all("#messages")[0].text)


def test_a_text_that_was_opened_stays_open_while_another_is_decided(page: Page) -> None:
    for id in ("fact_one", "fact_two"):
        add(page, id, f"Read {id}.")
    page.show("review", "[data-key^='untrusted fact_two ']")
    for id in ("fact_one", "fact_two"):
        read(page, id)
    assert card(page, "fact_one", "Approve")
    page.wait(lambda: not page.all("[data-key^='untrusted fact_one ']"))
    assert page.all("[data-key^='untrusted fact_two '] .quoted")[0].text == "Read fact_two."
    assert card(page, "fact_two", "Approve")
    page.wait(lambda: not page.all("[data-key^='untrusted fact_two ']"))


def test_a_long_text_is_read_by_keys_before_it_is_approved(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    add(page, "fact_long", "\n\n".join(f"Line {number}" for number in range(200)))
    page.show("review", "[data-key^='untrusted fact_long ']")
    page.wait(lambda: card(page, "fact_long", "Read it"))
    page.wait(lambda: page.focused.get_attribute("class") == "quoted")
    page.press(*[Keys.ARROW_DOWN] * 3)
    page.wait(lambda: page.run("return document.activeElement.scrollTop") > 0)
    assert page.focused.get_attribute("class") == "quoted"
    page.press(Keys.TAB)
    assert page.focused.text == "Approve"


def test_arrows_go_on_from_the_item_whose_button_has_the_focus(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.show("review", ".card .read")
    page.run("document.querySelectorAll('.card .read')[1].focus()")
    page.press(Keys.ARROW_DOWN)
    links = "[...document.querySelectorAll('.card > .row-head > a')]"
    read = "document.querySelectorAll('.card .read')[1].closest('.card')"
    place = page.run(f"return {links}.indexOf({read}.querySelector('.row-head > a'))")
    assert page.run(f"return {links}.indexOf(document.activeElement)") == place + 1
