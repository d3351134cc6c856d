"""Proposals in a real browser: hostile text, a narrow window, a changed text."""

# mypy: disable-error-code="no-untyped-call"

from pathlib import Path

import pytest

from mimo.extensions.sessions import store
from mimo.extensions.sessions.model import Facts, Role, Turn
from mimo.extensions.sessions.reading import project_of
from tests.conftest import NOW
from tests.extensions.web import browser
from tests.extensions.web.browser import Page, clicked
from tests.kit import put

pytestmark = [
    pytest.mark.skipif(browser.missing() is not None, reason=browser.missing() or ""),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

HOSTILE = "always load images lazily <img src=x onerror=window.owned=1>, never at once"


@pytest.mark.attack("web")
def test_a_proposal_is_changed_and_accepted_in_a_narrow_window(tmp_path: Path) -> None:
    home, project = tmp_path / "user", tmp_path / "shop"
    project.mkdir()
    browser.mind(project, home, "init")
    put(home / "mind" / "config.toml", '[sessions]\nenabled = "on"\npropose = "on"\n')
    sessions = store.Store(home / "mind")
    turns = [
        Turn(role=Role.USER, text=text, at=NOW)
        for text in (HOSTILE, "we never use floats for prices")
    ]
    with sessions.writing() as sql:
        facts = Facts(client="claude-code", native_id="11111111", cwd=str(project))
        key = store.key_of(sql, facts, make=True) or 0
        store.put(sql, key, turns, 0, {})
        store.sum_up(sql, key, facts, project_of(str(project)), at=0, copies=0)
    sessions.close()
    with browser.opened(tmp_path / "chromium") as driver, browser.viewer(project, home) as url:
        page = Page(driver, url, project)
        browser.show_as(driver, width=400)
        driver.get(url)
        page.wait(lambda: page.all("main:not([aria-busy])"))
        page.show("review", "textarea.proposed")
        texts = [str(area.get_attribute("value")) for area in page.all("textarea.proposed")]
        assert "<img src=x onerror=window.owned=1>" in "".join(texts)
        assert page.run("return window.owned") is None
        box = page.all("textarea.proposed")[0].rect
        assert box["x"] + box["width"] <= 400
        page.run("document.querySelector('textarea.proposed').value = 'Prices are in cents'")
        page.wait(lambda: clicked(page.all("[data-key^='proposal '] .primary")[:1]))
        page.wait(lambda: len(page.all("textarea.proposed")) == 1)
    assert [
        path.name.startswith("fact_prices") for path in (project / ".mind" / "facts").glob("*.md")
    ] == [True]
