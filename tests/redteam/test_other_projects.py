"""Other projects of the user: what a search of all of them may read, and who learns of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from mimo.call import Call, Caller, Surface
from mimo.call.spec import to_json
from mimo.call.table import all_commands
from mimo.errors import Denied
from mimo.features import audit
from mimo.mind import Mind
from mimo.operations.asking import MARKS, NAMED, agent_of
from mimo.operations.invoke import invoke
from mimo.project import projects
from mimo.project.init import init
from mimo.project.memories import MemoryStore
from mimo.project.walk import Walk
from tests.conftest import NOW
from tests.kit import over_pipe, repository, run, served

TOOLS = all_commands().tools()
AGENT = Caller(surface=Surface.MCP, name="claude-code")
PERSON = Caller(surface=Surface.CLI)
PRIVATE = "private memory of another project"
POLICY = "another project searched past its policy"
SECRET = "the launch code is 4711"


def call_tool(call: Call, tool: str, caller: Caller = AGENT, /, **arguments: Any) -> Any:
    return to_json(invoke(TOOLS[tool][0], call.by(caller), arguments))


@pytest.fixture
def other(call: Call, tmp_path: Path, home: Path) -> Call:
    """Another registered project, with a memory that is shared and one that is private."""
    root = tmp_path / "diary"
    root.mkdir()
    init(root, home, now=NOW)
    other = Call(
        Mind(home=home, project=projects.explicit(root, home), clock=call.mind.clock, environ={})
    )
    call_tool(other, "mind_add", PERSON, content="The launch is on Monday")
    call_tool(other, "mind_add", PERSON, content=f"Launch: {SECRET}", private=True)
    return other


def everywhere(call: Call, caller: Caller = AGENT, /, **more: Any) -> Any:
    return call_tool(call, "mind_search", caller, query="launch code", scope="all", **more)


def events(call: Call) -> list[dict[str, Any]]:
    return [link.event for link in audit.recorded(call, None, None)]


@pytest.mark.attack(PRIVATE)
def test_an_agent_with_a_shell_is_not_taken_for_a_person(
    call: Call,
    other: Call,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    words = ["search", "--scope", "all", "--private", "launch", "code"]
    assert SECRET in run(call, *words).out

    for mark in (NAMED, *MARKS):
        monkeypatch.setenv(mark, "1")
        assert SECRET not in str(run(call, *words, status=Denied.exit_status))
        monkeypatch.delenv(mark)
    record_property("tried", 1 + len(MARKS))
    assert events(call)[-1]["agent"] == "goose"


def test_a_status_looks_at_no_file_of_other_projects(call: Call, other: Call, monkeypatch):
    walked: list[MemoryStore] = []
    walk = MemoryStore.walk

    def noted(store: MemoryStore) -> Walk:
        walked.append(store)
        return walk(store)

    assert call_tool(call, "mind_status")["global_stats"]["total_memories"] == 1
    monkeypatch.setattr(MemoryStore, "walk", noted)
    assert call_tool(call, "mind_status")["global_stats"]["total_memories"] == 1
    assert len(walked) == 1


@pytest.mark.parametrize("broken", ["error", "fault"])
def test_a_broken_project_is_skipped_and_named(
    call: Call, other: Call, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    call_tool(call, "mind_add", PERSON, content="The launch pad is clean")
    kinds = {"error": OSError(5, "EIO", f"/private/{SECRET}"), "fault": RecursionError(SECRET)}
    at = Mind.at

    def fail(self: Call, target: Any) -> Any:
        if target.name == "diary":
            raise kinds[broken]
        return at(self.mind, target)

    monkeypatch.setattr(Mind, "at", fail)

    answer = everywhere(call)

    assert [row["project"] for row in answer["results"]] == ["shop"]
    assert "diary was skipped: it can't be read" in answer["notice"]
    assert "4711" not in json.dumps(answer)
    assert call_tool(call, "mind_status")["global_stats"]["total_memories"] == 1


@pytest.mark.attack("memory written across the top of a repository")
def test_a_server_in_a_repository_within_a_project_names_it_and_writes_nothing(
    call: Call, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = call.mind.project.root
    call_tool(call, "mind_add", PERSON, content="The launch is on Monday")
    monkeypatch.chdir(repository(root / "library"))

    async def talk(client: Client) -> Any:
        matches = await client.call_tool("mind_search", {"query": "launch"})
        added = await client.call_tool("mind_add", {"content": "The launch is off"})
        return matches, added, await client.read_resource("mind://context")

    matches, added, context = over_pipe(root / "library", talk)
    with served(home, root):  # It does not answer for the folders of another repository.
        listed = run(None, "list")

    source = f"from the project `{root}`, which is around this repository"
    assert matches.structured_content["total"] == 1
    assert matches.content[-1].text == f"notice: {source}"
    assert context.contents[0].text.startswith(f"<!-- {source} -->\n")
    assert f"note: {source}" in listed.err
    assert added.is_error
    assert f"`{root}/library` is a repository without a memory" in added.content[0].text
    assert [path.name for path in (root / ".mind" / "facts").iterdir()] == [
        "fact_the_launch_is_on_monday_20261120_pxhaaa.md"
    ]


@pytest.mark.attack(PRIVATE)
def test_nothing_private_of_another_project_comes_over_the_pipe(call: Call, other: Call) -> None:
    async def talk(client: Client) -> Any:
        query = {"query": "launch code", "scope": "all", "threshold": 0.0, "limit": 50}
        matches = await client.call_tool("mind_search", query)
        asked = await client.call_tool("mind_search", {**query, "private": True})
        return matches, asked, await client.call_tool("mind_status", {})

    matches, asked, status = over_pipe(call.mind.project.root, talk, "--toolsets", "all")

    assert [row["project"] for row in matches.structured_content["results"]] == ["diary"]
    assert asked.is_error
    assert not status.is_error
    assert SECRET not in repr((matches, asked, status))
    assert [event["tool"] for event in events(other)][-2:] == ["mind_search", "mind_status"]


def test_an_agent_is_known_by_its_environment() -> None:
    assert agent_of({}) is None
    assert agent_of({"CLAUDECODE": ""}) is None
    assert agent_of({"CLAUDECODE": "1"}) == "claude-code"
    assert agent_of({"AI_AGENT": "devin@1\n", "CLAUDECODE": "1"}) == "devin@1"
