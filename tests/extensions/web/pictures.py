"""Takes the pictures of the viewer for the documentation: `make picture-web`."""

import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from PIL import Image
from selenium.webdriver.support.ui import WebDriverWait

from tests.extensions.web import browser
from tests.extensions.web.sample import fill, fill_many

PICTURES = (
    ("web-memory.png", 0, "/memory/k3v7mq", "main .prose table", 620),
    ("web-graph.png", 990, "/graph", "[data-placed] canvas[data-labels]", 760),
)
"""Files, each with the number of further memories, the view, what shows that it is complete, and
the height of the window."""


def main() -> None:
    """Writes each picture into the folder that the first argument names."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, browser.opened(Path(scratch)) as driver:
        for name, number, view, complete, height in PICTURES:
            home, project = Path(scratch, "home"), Path(scratch, name, "shop")
            home.mkdir(exist_ok=True)
            project.mkdir(parents=True)
            browser.mind(project, home, "init")
            fill(project)
            fill_many(project, number)
            browser.mind(project, home, "trust", "--all")
            browser.show_as(driver, width=1120, height=height)
            with browser.viewer(project, home) as url:
                driver.get(url)
                _wait(driver, "main:not([aria-busy]) .row")
                driver.get(urljoin(url, view))
                _wait(driver, complete)
                driver.execute_script("document.activeElement.blur()")
                picture = Image.open(BytesIO(driver.get_screenshot_as_png())).convert("RGB")
                picture.quantize(64).save(folder / name, optimize=True)


def _wait(driver: Any, selector: str) -> None:
    """Waits until the page has an element."""
    waiting = WebDriverWait(driver, browser.SECONDS)
    waiting.until(lambda _: driver.find_elements("css selector", selector))


if __name__ == "__main__":
    main()
