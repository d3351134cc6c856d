"""Other projects of the user: what a search of all of them may read, and who learns of it."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from mimo.call import Call, Caller, Surface
from mimo.call.spec import to_json
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.errors import Denied, Invalid
from mimo.features import audit
from mimo.mind import Mind
from mimo.operations.asking import MARKS, NAMED, agent_of
from mimo.operations.invoke import invoke
from mimo.project import projects
from mimo.project.init import init
from mimo.project.memories import MemoryStore
from mimo.project.walk import Walk
from tests.conftest import NOW

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


def forbid(call: Call, text: str) -> None:
    (call.mind.folder / "policy.yaml").write_text(text, encoding="utf-8")


@pytest.mark.req("003-06")
@pytest.mark.attack(PRIVATE)
def test_an_agent_finds_what_another_project_shares_and_nothing_private(
    call: Call, other: Call
) -> None:
    answer = everywhere(call, threshold=0.0, limit=50)

    assert [row["content"] for row in answer["results"]] == ["The launch is on Monday"]
    assert SECRET not in json.dumps(answer)
    with pytest.raises(Invalid):
        everywhere(call, private=True)


@pytest.mark.attack(PRIVATE)
def test_no_id_of_a_private_memory_of_another_project_is_named(call: Call, other: Call) -> None:
    first = call_tool(
        other,
        "save/decision",
        PERSON,
        topic="launch",
        decision="Launch code on paper",
        reasoning="x",
    )
    call_tool(
        other,
        "save/decision",
        PERSON,
        topic="launch",
        decision=f"Launch: {SECRET}",
        reasoning="x",
        private=True,
    )
    for folder, name in (("decisions", "paper"), ("private/decisions", "4711-hidden")):
        path = other.mind.folder / folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        header = "type: decision\ntopic: code\ncreated: 2026-11-01T08:00:00Z"
        path.write_text(f"---\n{header}\n---\nLaunch code on {name}\n", encoding="utf-8")

    own = call_tool(other, "mind_search", query="launch code", threshold=0.0, limit=50)["results"]
    rows = {row["id"]: row for row in own}
    private = [row["id"] for row in own if row.get("private")]
    matches = everywhere(call, threshold=0.0, limit=50)
    shown = everywhere(call, PERSON, threshold=0.0, limit=50)

    assert rows[first["id"]]["superseded_by"] in private
    assert rows["paper"]["competing"] == ["4711-hidden"]
    for answer in (matches, shown):
        assert {first["id"], "paper"} <= {row["id"] for row in answer["results"]}
        assert not [id for id in private if id in json.dumps(answer)]


@pytest.mark.attack(PRIVATE)
def test_a_shared_successor_is_named_although_a_private_one_is_newer(
    call: Call, other: Call
) -> None:
    """The first was superseded twice, on two branches; only the private successor is hidden."""
    for folder, name, date in (
        ("decisions", "first", "01"),
        ("decisions", "second", "02"),
        ("private/decisions", "4711-hidden", "03"),
    ):
        path = other.mind.folder / folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        links = "" if name == "first" else "links:\n  - {to: first, type: supersedes}\n"
        header = f"type: decision\ntopic: {name}\ncreated: 2026-11-{date}T08:00:00Z\n{links}"
        path.write_text(f"---\n{header}---\nLaunch code, {name}\n", encoding="utf-8")
    other.mind.trust.approve(
        other.mind.store.digest(path) for path in other.mind.store.stamps() if path.endswith(".md")
    )

    own = {row["id"]: row for row in call_tool(other, "mind_list")["memories"]}
    listed = call_tool(call, "mind_list", PERSON, all_projects=True)["memories"]
    assert not call_tool(call, "mind_list", PERSON, all_projects=True, offset=2**63 - 1)["memories"]
    matches = everywhere(call, threshold=0.0, limit=50)["results"]

    assert own["first"]["superseded_by"] == "4711-hidden"
    for rows in (listed, matches):
        (row,) = [row for row in rows if row["id"] == "first"]
        assert row["superseded_by"] == "second"
    assert "4711-hidden" not in json.dumps([listed, matches])


def test_a_person_finds_private_memories_elsewhere_only_if_asked_for(
    call: Call, other: Call
) -> None:
    assert SECRET not in json.dumps(everywhere(call, PERSON, threshold=0.0))

    answer = everywhere(call, PERSON, threshold=0.0, private=True)

    (row,) = [row for row in answer["results"] if SECRET in row["content"]]
    assert (row["private"], row["project"]) == (True, "diary")


@pytest.mark.attack(PRIVATE)
def test_an_agent_with_a_shell_is_not_taken_for_a_person(
    call: Call,
    other: Call,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    words = ["search", "--scope", "all", "--private", "launch", "code"]
    assert main(words, open=lambda _: call.mind) == 0
    assert SECRET in capsys.readouterr().out

    for mark in (NAMED, *MARKS):
        monkeypatch.setenv(mark, "1")
        assert main(words, open=lambda _: call.mind) == Denied.exit_status
        out, err = capsys.readouterr()
        assert SECRET not in out + err
        monkeypatch.delenv(mark)
    record_property("tried", 1 + len(MARKS))
    assert events(call)[-1]["agent"] == "goose"


def test_the_own_private_memories_are_found_as_before(call: Call, other: Call) -> None:
    assert SECRET in json.dumps(call_tool(other, "mind_search", query="launch code"))
    assert SECRET in json.dumps(everywhere(other))


@pytest.mark.attack(POLICY)
@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (
            "tool_permissions: {mind_search: {operations: []}}\n",
            "its policy does not permit `mind_search`",
        ),
        (
            'tool_permissions: {"*": {operations: [write]}}\n',
            "its policy does not permit `mind_search`",
        ),
        ("tool_permissions: {mind_serch_4711: {operation: []}}\n", "its policy is invalid"),
        (
            "rate_limits: {tools: {mind_search: {sustained: 0.001, burst: 1}}}\n",
            "its policy permits no more calls for now",
        ),
    ],
)
def test_another_project_is_searched_as_its_own_policy_permits(
    call: Call, other: Call, policy: str, reason: str
) -> None:
    call_tool(call, "mind_add", PERSON, content="The launch pad is clean")
    forbid(other, policy)
    if "rate_limits" in policy:
        everywhere(call)

    answer = everywhere(call, threshold=0.0)

    assert {row["project"] for row in answer["results"]} == {"shop"}
    assert f"diary was skipped: {reason}" in answer["notice"]
    assert "4711" not in json.dumps(answer)
    assert [event["status"] for event in events(other)][-1] == "denied"
    assert events(other)[-1]["agent"] == "claude-code"


@pytest.mark.attack(POLICY)
def test_a_search_of_all_projects_is_in_the_record_of_each(call: Call, other: Call) -> None:
    before = len(events(other))

    everywhere(call)
    call_tool(call, "mind_status")

    added = events(other)[before:]
    assert [(event["tool"], event["status"]) for event in added] == [
        ("mind_search", "ok"),
        ("mind_status", "ok"),
    ]
    assert {event["session"] for event in added} == {call.mind.guard.session.id}
    assert "launch" not in json.dumps(added)


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


def test_the_status_counts_other_projects_without_private_memories(call: Call, other: Call) -> None:
    assert call_tool(call, "mind_status")["global_stats"]["total_memories"] == 1
    forbid(other, "tool_permissions: {mind_status: {operations: []}}\n")
    assert call_tool(call, "mind_status")["global_stats"]["total_memories"] == 0


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


@pytest.mark.attack(PRIVATE)
def test_nothing_private_of_another_project_comes_over_the_pipe(call: Call, other: Call) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mimo", "mcp", "--toolsets", "all"],
        env={
            **{name: os.environ[name] for name in ("MIND_HOME", "HOME", "PATH")},
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        cwd=call.mind.project.root,
    )

    async def talk() -> Any:
        async with Client(server) as client:
            query = {"query": "launch code", "scope": "all", "threshold": 0.0, "limit": 50}
            matches = await client.call_tool("mind_search", query)
            asked = await client.call_tool("mind_search", {**query, "private": True})
            return matches, asked, await client.call_tool("mind_status", {})

    matches, asked, status = anyio.run(talk)

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
