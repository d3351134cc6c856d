"""The tool with which agents search earlier sessions."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError

from mimo.call import Call, Caller, Surface
from mimo.call.schema import input_schema
from mimo.call.table import all_commands
from mimo.errors import Denied, NotFound
from mimo.extensions.team import tokens
from mimo.extensions.team.tokens import Member, Scope, digest_of
from mimo.features.procedures.calling import run_command
from mimo.operations.invoke import invoke
from tests import kit
from tests.claude_sessions import claude_code
from tests.conftest import NOW
from tests.extensions.sessions.talks import LONG, kept, user
from tests.extensions.team.over_http import TOKEN, served
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
    assert part.turns[1].content == "edited orders/pages.py"
    assert part.turns[1].files is None
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


@pytest.mark.parametrize("is_team", [False, True])
def test_nothing_that_a_server_over_http_answers_has_words_of_sessions(
    user: Path, call: Call, home: Path, is_team: bool
) -> None:
    do(call, "sessions index")
    put(home / "config.toml", '[sessions]\nenabled = "on"\n[hook]\ncapture = "on"\n')
    ann = Member(name="ann", email="a@b.org", scope=Scope.ADMIN, digest=digest_of(TOKEN))
    tokens.write(home / "tokens.toml", [ann])
    call.mind.close()
    given = {"query": "pagination", "question": "pagination", "session": "cc-aaaaaaaa", "file": "x"}

    async def talk(client: Any) -> str:
        tools = (await client.list_tools()).tools
        resources = (await client.list_resources()).resources
        prompts = (await client.list_prompts()).prompts
        texts = [repr(tools), repr(resources), repr(prompts)]
        commands = "mind_sessions mind_sessions_list mind_sessions_show mind_sessions_propose"
        for tool in tools:
            about = {key: given[key] for key in tool.input_schema["properties"] if key in given}
            texts.append(repr(await client.call_tool(tool.name, about)))
        for name in commands.split():
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool(name, given)
        for resource in resources:
            texts.append(repr(await client.read_resource(resource.uri)))
        for prompt in prompts:
            about = {each.name: "pagination" for each in prompt.arguments or ()}
            texts.append(repr(await client.get_prompt(prompt.name, about)))
        return "\n".join(texts)

    options = ("--tokens", str(home / "tokens.toml")) if is_team else ()
    with served(home, "--toolsets", "all", *options) as server:
        text = server.asked("auto", talk, "/shop")
        text += httpx2.get(f"{server.base}/metrics", headers=server.headers()).text
    assert "OFFSET took" not in text
    assert "missing index" not in text
    assert "session:cc-" not in text


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
