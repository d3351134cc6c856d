"""Earlier sessions in a real browser: their list, a search, one session, and hostile words."""

# mypy: disable-error-code="no-untyped-call"

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.claude_sessions import claude_code
from tests.conftest import NOW
from tests.extensions.web import browser
from tests.extensions.web.browser import Page
from tests.extensions.web.conftest import CORPUS

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = [
    pytest.mark.skipif(browser.missing() is not None, reason=browser.missing() or ""),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

TITLE = "Why does the login time out on Safari after ten minutes?"
TALK = (
    ("user", TITLE),
    ("run", "pytest -q tests/test_login.py"),
    ("fail", "1 failed in 0.10s"),
    ("agent", "The cookie lacked SameSite; it is Lax now."),
)


@pytest.fixture(scope="module")
def opened(driver: "WebDriver", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A viewer of a user who keeps three sessions."""
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("shop")
    browser.mind(project, home, "init")
    claude_code(home, "1" * 8, project, TALK, NOW - timedelta(days=20))
    hostile = [part for text in CORPUS for part in (("user", text), ("agent", text), ("run", text))]
    claude_code(home, "2" * 8, project, hostile, NOW - timedelta(days=10))
    long = [(("user", "agent")[n % 2], f"Part {n} of the move of the ledger") for n in range(1_200)]
    claude_code(home, "3" * 8, project, long, NOW - timedelta(days=30))
    browser.mind(project, home, "config", "sessions.enabled", "on")
    browser.mind(project, home, "sessions", "index")
    with browser.viewer(project, home) as url:
        yield Page(driver, url, project)


@pytest.fixture
def page(opened: Page) -> Page:
    """The page as it is first shown."""
    for url in ("about:blank", opened.url):
        opened.driver.get(url)
    browser.show_as(opened.driver, width=1280)
    opened.wait(lambda: opened.all("main:not([aria-busy]) h1"))
    return opened


def test_a_session_is_found_and_read_by_keys(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.driver.find_element("link text", "Sessions").click()
    page.wait(lambda: page.titles()[:2] == [CORPUS[0], TITLE])
    page.run("document.querySelector('main input').focus()")
    page.press(*"cookie samesite", Keys.ENTER)
    page.wait(lambda: page.titles()[:1] == [TITLE])
    assert "q=cookie+samesite" in page.driver.current_url
    page.run("document.querySelector('main .row').focus()")
    page.press(Keys.ENTER)
    page.wait(lambda: page.all("main .turns"))
    turns = [turn.text for turn in page.all("main .turn")]
    assert [turns[0].splitlines()[-1], "1 failed in 0.10s" in turns[1]] == [TITLE, True]
    assert turns[2].endswith("The cookie lacked SameSite; it is Lax now.")
    page.press(Keys.ESCAPE)
    page.wait(lambda: page.titles()[:1] == [TITLE])


def test_hostile_words_stay_words(page: Page) -> None:
    page.show("sessions")
    page.show("sessions?q=window")
    page.show("sessions/cc-22222222")
    shown = page.all("main .turn .words")
    assert len(shown) == 2 * len(CORPUS)
    assert shown[0].text == CORPUS[0]
    assert page.run("return window.owned") is None
    assert page.all("main .turns script, main .turns img, main .turns iframe") == []
    assert [error for error in page.errors() if "owned" in error] == []


def test_a_long_session_is_read_in_parts(page: Page) -> None:
    page.show("sessions/cc-33333333")
    assert len(page.all("main .turn")) == 1_000
    page.driver.find_element("link text", "Later turns").click()
    page.wait(lambda: len(page.all("main .turn")) == 200)
    assert page.all("main .turn")[-1].text.endswith("Part 1199 of the move of the ledger")
    assert "200 of 1,200 turns" in page.all("main .muted")[0].text
    assert not page.driver.find_elements("link text", "Later turns")


@pytest.mark.parametrize("view", ["sessions", "sessions?q=login", "sessions/cc-11111111"])
def test_sessions_fit_into_400_pixels(page: Page, view: str) -> None:
    browser.show_as(page.driver, width=400)
    page.show(view)
    assert page.run("return document.documentElement.scrollWidth") <= 400
    assert len(page.all("main h1")) == 1


def test_the_link_is_hidden_while_sessions_are_off(driver: "WebDriver", page: Page) -> None:
    home = page.project.parent / "other-home"
    browser.mind(page.project, home, "init")
    with browser.viewer(page.project, home) as url:
        driver.get(url)
        other = Page(driver, url, page.project)
        other.wait(lambda: other.all("main:not([aria-busy]) h1"))
        assert not driver.find_element("id", "sessions-link").is_displayed()
        other.show("sessions", "main [role=alert]")
        assert "off" in other.all("main")[0].text
