"""A real browser and a real viewer for it, on machines with Chromium and its driver."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver
    from selenium.webdriver.remote.webelement import WebElement

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars"
    # A name that an attacker points to this machine.
    " --host-resolver-rules=MAP\u0020evil.example\u0020127.0.0.1"
)

SECONDS = 30


def program(*names: str) -> str | None:
    """Returns the path of the first program that exists."""
    return next(filter(None, map(shutil.which, names)), None)


CHROMIUM = program("chromium", "chromium-browser", "google-chrome", "chrome")
DRIVER = program("chromedriver")


def missing() -> str | None:
    """Returns what this machine lacks for the tests in a browser."""
    parts = {"chromium": CHROMIUM, "chromedriver": DRIVER, "selenium": find_spec("selenium")}
    lacking = ", ".join(name for name, part in parts.items() if not part)
    return f"no {lacking}: `make test-browser` installs it" if lacking else None


@contextmanager
def opened(folder: Path) -> Iterator[WebDriver]:
    """Yields a browser with an empty profile."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in FLAGS.split(" --"):
        options.add_argument(f"--{flag.removeprefix('--')}")
    options.add_argument(f"--user-data-dir={folder / 'profile'}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        driver.set_script_timeout(SECONDS)
        yield driver
    finally:
        driver.quit()


def show_as(driver: WebDriver, *, width: int, height: int = 860, dark: bool = False) -> None:
    """Sets the size of the page, and whether the user prefers dark colours."""
    size: dict[str, Any] = {"width": width, "height": height, "deviceScaleFactor": 1}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "mobile": False})
    value = "dark" if dark else "light"
    features = [{"name": "prefers-color-scheme", "value": value}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def environment(home: Path) -> dict[str, str]:
    """Returns an environment for mind in which no agent is at work."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home), "MIND_HOME": str(home / "mind"), "MIND_BACKGROUND": "off"}


def mind(project: Path, home: Path, *words: str) -> str:
    """Runs a command and returns its output."""
    done = subprocess.run(
        [sys.executable, "-m", "mimo", *words],
        cwd=project,
        env=environment(home) | {"PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


@contextmanager
def viewer(project: Path, home: Path) -> Iterator[str]:
    """Runs `mind web` and yields its address; it must end calmly at Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mimo", "web"],
        cwd=project,
        env=environment(home) | {"PYTHONPATH": str(Path.cwd()), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        assert process.stdout
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/#in=[\w-]+", line)
        assert address, f"{line}{process.stderr.read() if process.stderr else ''}"
        yield address[0]
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, "Traceback" in err) == (0, False), err
    assert "stopped" in out


class Page:
    """The viewer in a browser."""

    def __init__(self, driver: WebDriver, url: str, project: Path) -> None:
        self.driver, self.url, self.project = driver, url, project

    def show(self, view: str, ready: str = "main:not([aria-busy]) h1") -> None:
        """Opens a view and waits until it is there."""
        self.driver.execute_script(
            "document.getElementById('main').setAttribute('aria-busy', 'true');"
            "const root = document.querySelector('.brand a').getAttribute('href');"
            "history.pushState(null, '', root + arguments[0]);"
            "dispatchEvent(new Event('popstate'))",
            view,
        )
        self.wait(lambda: self.all(ready))

    def wait(self, holds: Callable[[], Any]) -> Any:
        """Waits until something holds, and returns it; the page may change at any time."""
        from selenium.common.exceptions import StaleElementReferenceException as Stale
        from selenium.webdriver.support.ui import WebDriverWait

        waiting = WebDriverWait(self.driver, SECONDS, 0.1, ignored_exceptions=[Stale])
        return waiting.until(lambda _: holds())

    def all(self, selector: str) -> list[WebElement]:
        elements: list[WebElement] = self.driver.find_elements("css selector", selector)
        return elements

    def titles(self) -> list[str]:
        script = "return [...document.querySelectorAll('main .row-title')].map(e => e.textContent)"
        titles: list[str] = self.driver.execute_script(script)
        return titles

    def press(self, *keys: str) -> None:
        """Presses keys, wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def run(self, script: str, *args: object) -> Any:
        return self.driver.execute_script(script, *args)

    @property
    def focused(self) -> WebElement:
        return self.driver.switch_to.active_element

    def errors(self) -> list[str]:
        """Returns the errors since the last call; a refused request of an attack is not one."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


def clicked(buttons: list[WebElement]) -> bool:
    """Clicks buttons, and returns whether there are any."""
    for button in buttons:
        button.click()
    return bool(buttons)
