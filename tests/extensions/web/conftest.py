"""Fixtures of the tests in a real browser."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.extensions.web import browser
from tests.extensions.web.browser import Page
from tests.extensions.web.sample import fill, fill_many, write_memory
from tests.kit import put

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

CURRENT = "decision_auth_strategy_20261018_k3v7mq"
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)

CORPUS = (
    "<script>window.owned=1</script>",
    "<img src=x onerror=window.owned=1>",
    "\"><svg/onload=window.owned=1>",
    "'-window.owned=1-'",
    "javascript:window.owned=1",
    "[x](javascript:window.owned=1)",
    "![x](javascript:window.owned=1)",
    "<a href='javascript:window.owned=1'>x</a>",
    "</script><script>window.owned=1</script>",
    "{{constructor.constructor('window.owned=1')()}}",
    "<iframe srcdoc='<script>parent.owned=1</script>'></iframe>",
    "</title><script>window.owned=1</script>",
    "<details open ontoggle=window.owned=1>",
    "`${window.owned=1}`",
)  # fmt: skip


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    with browser.opened(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A project with approved memories and some from elsewhere, and a home."""
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("shop")
    browser.mind(project, home, "init")
    fill(project)
    browser.mind(project, home, "trust", "--all")
    for number, text in enumerate(CORPUS):
        header: dict[str, object] = {
            "title": text,
            "topic": text,
            "tags": [json.dumps(text)],
            "links": [f"{{to: {json.dumps(text)}, type: relates_to}}", f"{{to: {CURRENT}}}"],
            "by": text,
            "odd": text,
        }
        id = f"decision_odd_{number}"
        write_memory(project, id, "decision", header, f"{text}\n\n# {text}\n", created=NOON)
    put(
        project / ".mind" / "facts" / "<img src=x onerror=window.owned=1>.md",
        "A file with a hostile name.\n",
    )
    return project, home


@pytest.fixture(scope="session")
def running(driver: WebDriver, place: tuple[Path, Path]) -> Iterator[Page]:
    project, home = place
    with browser.viewer(project, home) as url:
        yield Page(driver, url, project)


@pytest.fixture
def page(running: Page) -> Page:
    """The viewer on its first page, as the printed address opens it."""
    return _opened(running)


@pytest.fixture(scope="session")
def running_large(driver: WebDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("large")
    browser.mind(project, home, "init")
    fill_many(project, 1_060)
    with browser.viewer(project, home) as url:
        yield Page(driver, url, project)


@pytest.fixture
def large(running_large: Page) -> Page:
    """The viewer of a project with 1,060 memories, on its first page."""
    return _opened(running_large)


def _opened(page: Page) -> Page:
    browser.show_as(page.driver, width=1280)
    page.driver.get("about:blank")  # Otherwise another part after # would open no new page.
    page.driver.get(page.url)
    page.wait(lambda: page.all("main:not([aria-busy]) .row"))
    page.errors()
    return page
