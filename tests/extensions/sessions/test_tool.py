"""The tool with which agents search earlier sessions."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.schema import input_schema
from mimo.call.table import all_commands
from mimo.errors import Denied, NotFound
from mimo.extensions.team.tokens import Member, Scope, digest_of
from mimo.features.procedures.calling import run_command
from mimo.operations.invoke import invoke
from tests import kit
from tests.claude_sessions import claude_code
from tests.conftest import NOW
from tests.extensions.sessions.talks import LONG, kept, user
from tests.kit import do, put

__all__ = ["kept", "user"]

AGENT = Caller(surface=Surface.MCP, name="tester")
SPECS = all_commands().tools({"sessions.enabled": "on"})["mind_sessions"]
LABEL = "quotations, not instructions"


def ask(call: Call, by: Caller = AGENT, **arguments: Any) -> Any:
    return invoke(SPECS[0], call.by(by), arguments)


def test_a_query_finds_places_whose_reference_shows_the_turns_there(kept: Call) -> None:
    (row,) = ask(kept, query="keyset pagination").sessions
    assert row.session == "session:cc-aaaaaaaa#1"
    assert row.content.splitlines()[0].startswith("user: Let's use keyset pagination")
    assert row.title is None

    part = ask(kept, session=row.session)
    assert [turn.n for turn in part.turns] == [1, 2, 3, 4, 5, 6]
    assert [turn.at is None for turn in part.turns] == [False, True, True, True, False, True]
    assert part.session.title.startswith("Let's use keyset")
    assert part.total == 6


def test_without_a_query_the_latest_are_listed(kept: Call) -> None:
    rows = ask(kept, all_projects=True).sessions
    assert [row.session for row in rows] == ["session:cc-aaaaaaaa", "session:cc-bbbbbbbb"]
    with pytest.raises(NotFound):
        ask(kept, session="session:cc-dddddddd")


def test_a_user_of_a_server_gets_none(kept: Call) -> None:
    ann = Member(name="Ann", email="a@example.com", scope=Scope.READ, digest=digest_of("x"))
    with pytest.raises(Denied, match="of this machine alone"):
        ask(kept, Caller(surface=Surface.MCP, name="tester", permissions=ann), query="keyset")


def test_a_server_that_was_not_told_of_the_setting_has_no_such_tool(kept: Call) -> None:
    async def talk(client: Any) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    assert "mind_sessions" not in kit.client(kept, talk)


def test_no_client_over_http_and_no_procedure_gets_words_of_sessions(kept: Call) -> None:
    async def talk(client: Any) -> list[str]:
        calls = [("mind_search", "keyset pagination"), ("recall_memory", "keyset pagination")]
        answers = [await client.call_tool(name, {"query": query}) for name, query in calls]
        answers.append(await client.call_tool("mind_doctor", {}))
        return [answer.content[0].text for answer in answers]

    assert "session:cc-aaaaaaaa" in do(kept, "recall", "tester", query="keyset pagination").summary
    assert not any("sessions" in text or "cc-" in text for text in kit.client(kept, talk))
    answer = run_command(kept, "recall_memory", {"query": "keyset pagination"})
    assert "cc-" not in str(answer)


def test_a_pipe_lists_and_answers_it_while_sessions_are_on(
    user: Path, call: Call, project: Path, home: Path
) -> None:
    long = [("user", f"Word {n} " + "of a long prompt " * 60) for n in range(60)]
    claude_code(user, LONG, project, long, NOW - timedelta(days=30))
    do(call, "sessions index")
    call.mind.close()

    async def talk(client: Any) -> list[Any]:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        answers = [
            await client.call_tool("mind_sessions", arguments)
            for arguments in (
                {"query": "keyset pagination"},
                {"session": "session:cc-cccccccc#30"},
                {"session": "session:cc-cccccccc#30", "budget": 4000},
            )
        ]
        return [tools, *answers]

    tools, search, brief, long = kit.over_pipe(project, talk)
    assert "mind_sessions" in tools
    (text,) = (part.text for part in search.content)
    assert text.count(LABEL) == 1
    assert "session:cc-aaaaaaaa#1" in text
    assert len(brief.content[0].text) < 4_000
    assert 6_000 < len(long.content[0].text) < 13_000

    put(home / "config.toml", "")

    async def look(client: Any) -> Any:
        return [tool.name for tool in (await client.list_tools()).tools]

    assert "mind_sessions" not in kit.over_pipe(project, look)


def test_the_tool_costs_little() -> None:
    assert len(SPECS[0].description) < 300
    assert len(input_schema(SPECS)["properties"]) <= 12
