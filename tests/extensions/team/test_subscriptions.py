"""Notifications of changed resources and of progress, over HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from tests.extensions.team.over_http import Served, served, two_projects
from tests.kit import put
from tests.server.test_subscriptions import follow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_projects(tmp_path_factory)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with served(folder / "home", folder=folder) as running:
        yield running


@pytest.mark.parametrize("name", ["shop", "bank"])
def test_a_listening_client_hears_of_changes_to_what_it_follows(server: Served, name: str) -> None:
    assert len({*server.asked("2026-07-28", follow, at=f"/{name}")}) == 1


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_ingest_reports_its_progress(server: Served, folder: Path, era: Any) -> None:
    steps: list[tuple[float, float | None, str | None]] = []
    for number in range(2):
        put(folder / "shop" / era / f"{number}.md", f"# Note {number} {era}\n\nText of it.\n")

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async def talk(client: Client) -> Any:
        return await client.call_tool("ingest", {"path": era}, progress_callback=hear)

    assert not server.asked(era, talk, at="/shop").is_error
    assert "Ingesting" in [message for *_, message in steps]
