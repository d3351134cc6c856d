"""Draw docs/images/browse.svg: `mind browse` on a small store, 100 columns wide."""

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from mimo.call import Call
from mimo.call.table import all_commands
from mimo.extensions.browse.app import Browser
from mimo.mind import Mind
from mimo.operations.invoke import invoke
from mimo.project.init import init
from mimo.project.trust import Trust

PICTURE = Path(__file__).parent.parent / "docs/images/browse.svg"
SIZE = (110, 26)
NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)

MEMORIES = (
    (
        "decision_auth_20261118_k3v7mq",
        "decisions",
        "topic: auth_strategy\ntags: [auth]\n",
        "links:\n  - {to: decision_auth_20260301_p2w5xa, type: supersedes}\n",
        "2026-11-18",
        (
            "Use JWT with short-lived access tokens\n\n"
            "Access tokens last 15 minutes, refresh tokens 30 days.\n\n"
            "## Reasoning\n\nServer sessions did not survive the second node."
        ),
    ),
    (
        "decision_auth_20260301_p2w5xa",
        "decisions",
        "topic: auth_strategy\noutcome: FAILED\n",
        "",
        "2026-03-01",
        "Keep logins in the server's memory",
    ),
    (
        "insight_uploads_20261112_t5c2dn",
        "insights",
        "tags: [ci]\n",
        "",
        "2026-11-12",
        "Flaky uploads came from the proxy's body limit, not from our retries",
    ),
    (
        "fact_limits_20261119_w4hz6b",
        "facts",
        "tags: [api]\n",
        "links:\n  - {to: decision_auth_20261118_k3v7mq, type: relates_to}\n",
        "2026-11-19",
        "The public API allows 600 requests a minute for each token",
    ),
    (
        "checkpoint_export_20261120_d7yq3e",
        "checkpoints",
        "",
        "",
        "2026-11-20",
        "The export runs; its tests on Windows are next",
    ),
    ("fact_staging_20261117_m2rk5s", "facts", "", "", "2026-11-17", "Staging is reset every night"),
)


def write_store(root: Path) -> None:
    """Writes the memories into a new project."""
    for name, folder, head, links, day, text in MEMORIES:
        kind = folder.removesuffix("s")
        path = root / ".mind" / folder / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        created = f"created: {day}T09:00:00Z\n"
        header = f"id: {name}\ntype: {kind}\n{head}{created}{links}"
        path.write_text(f"---\n{header}---\n{text}\n", encoding="utf-8")


async def drawn(mind: Mind) -> str:
    """Returns the screen after the first keys, as SVG without the fonts of another host."""
    commands = all_commands()

    def run_command(view: Call, path: str, given: Mapping[str, object]) -> object:
        return invoke(commands.at(path), view, given)

    browser = Browser(Call(mind), run_command)
    async with browser.run_test(size=SIZE) as pilot:
        while not browser.rows.chosen:
            await pilot.pause(0.1)
        await pilot.press("j", "j")
        while "k3v7mq" not in str(browser.preview.border_title):
            await pilot.pause(0.1)
        await pilot.pause(0.1)
        picture = browser.export_screenshot(title="mind browse")
    return re.sub(r"\s*@font-face \{[^}]*\}", "", picture)


def main() -> int:
    """Writes the picture."""
    with tempfile.TemporaryDirectory() as folder:
        root, home = Path(folder, "shop"), Path(folder, "home")
        root.mkdir()
        os.environ["MIND_HOME"] = str(home)
        init(root, home, now=NOW)
        Trust(home, root).follow(True)
        write_store(root)
        picture = asyncio.run(drawn(Mind.open(root, clock=lambda: NOW)))
    PICTURE.write_text(f"{picture.rstrip()}\n", encoding="utf-8")
    print(f"wrote {PICTURE.name}, {len(picture) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
