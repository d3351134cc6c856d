"""One zone on every surface: the same days on the command line, over MCP and in questions."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from mimo.call import Call
from mimo.cli.main import main
from mimo.features.notes.commands import add
from mimo.features.upkeep.commands import config
from tests import kit
from tests.conftest import Clock


@pytest.fixture
def seoul(call: Call, clock: Clock) -> Call:
    """A memory of a user in Seoul, with a note of each side of the last midnight there.

    It is half past midnight on Saturday, 21 November in Seoul, and Friday afternoon in UTC.
    """
    clock.forward(hours=-1)
    add(call, "The deploy of Friday went well")
    clock.forward(hours=1)
    add(call, "The deploy of Saturday began")
    config(call, "time.zone", "Asia/Seoul")
    return Call(call.mind.reopened())


def titles(rows: Any) -> list[str]:
    return [row.get("title") or row["content"] for row in rows]


FRIDAY, SATURDAY = "The deploy of Friday went well", "The deploy of Saturday began"


def test_today_is_the_same_day_over_mcp(seoul: Call) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("mind_list", {"time_filter": "today"}),
        ("mind_list", {"from_date": "2026-11-21"}),
        ("search_recent", {"time_filter": "today"}),
        ("memory", {"operation": "list", "time_filter": "today"}),
        ("mind_search", {"query": "deploy", "time_filter": "today"}),
        ("mind_search", {"query": "what did we do yesterday?"}),
        ("recall_memory", {"query": "what did we do yesterday?"}),
    ]

    async def talk(client: Client) -> list[Any]:
        return [
            (await client.call_tool(name, arguments)).structured_content
            for name, arguments in calls
        ]

    listed, dated, recent, memories, matches, asked, recalled = kit.client(seoul, talk, ["all"])

    for rows in (listed["memories"], dated["memories"], recent["results"], memories["memories"]):
        assert titles(rows) == [SATURDAY]
    assert titles(matches["results"]) == [SATURDAY]
    assert matches["notice"].startswith("`today`: 21 Nov, Asia/Seoul")
    assert titles(asked["results"]) == [FRIDAY]
    assert asked["notice"] == "the memories of this time: `yesterday` (20 Nov, Asia/Seoul)"
    assert "Fact of 2026-11-20: The deploy of Friday" in recalled["summary"]
    assert recent["results"][0]["created_at"] == "2026-11-20T15:30:00Z"


def test_today_is_the_same_day_on_the_command_line(
    seoul: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(*words: str) -> tuple[str, str]:
        assert main(list(words), open=lambda _: seoul.mind) == 0
        return tuple(capsys.readouterr())  # type: ignore[return-value]

    out, err = say("list", "--when", "today")
    assert SATURDAY in out
    assert FRIDAY not in out
    assert err == "note: `today`: 21 Nov, Asia/Seoul\n"
    data = json.loads(say("list", "--when", "today", "--json")[0])
    assert [row["created_at"] for row in data["memories"]] == ["2026-11-20T15:30:00Z"]
    assert "2026-11-21 00:30 KST" in say("show", data["memories"][0]["id"])[0]
    assert SATURDAY in say("search", "what did we do today?")[0]
    assert "2026-11-21 00:30:00" in say("audit", "show", "--when", "today")[0]


def test_files_stay_in_utc(seoul: Call) -> None:
    made = add(seoul, "Written after midnight in Seoul")

    text = (seoul.mind.project.root / made.file).read_text(encoding="utf-8")
    assert "created: 2026-11-20T15:30:00Z" in text
    assert "_20261120_" in made.id


def test_the_zone_of_another_project_is_the_users(seoul: Call, tmp_path: Path) -> None:
    assert str(seoul.mind.outside().zone) == "Asia/Seoul"
