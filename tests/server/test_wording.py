"""Over MCP, texts name tools and arguments, and no commands of a terminal."""

import re
from typing import Any

import anyio
import pytest
from mcp.client import Client

from mimo.commands import all_commands
from mimo.errors import NoProject, NotFound
from mimo.features.notes.commands import add
from mimo.features.notes.reading import show
from mimo.mind import Mind
from mimo.operations.listening import Memory
from mimo.server.app import App
from mimo.server.wording import for_agents, reworded

COMMAND = re.compile(r"`?\bmind [a-z-]+|(?<![\w-])--[a-z]")


@pytest.mark.parametrize(
    ("text", "agents"),
    [
        ("`mind list` shows all memories", "`mind_list` shows all memories"),
        ("see `mind undo --list`", "see `mind_undo(list: true)`"),
        ("`mind undo k3 --force` does", "`mind_undo(id: k3, force: true)` does"),
        ("`mind memory list --sort recent`", "`memory(operation: list, sort: recent)`"),
        (
            "`a.md` changed: `mind ingest --update 'my notes.md'`",
            "`a.md` changed: `ingest(update: true, path: my notes.md)`",
        ),
        ("`mind review -n 5`", "`mind_review(limit: 5)`"),
        ("`mind search why not tea`", "`mind_search(query: why not tea)`"),
        ("`mind value list agent.x`", "`listMemory(namespace: agent.x)`"),
        ("`mind evolve`", "`evolve_outcome` or `evolve_supersede`"),
        ("run `mind trust --follow`", "run the user's command `trust --follow`"),
        ("`mind config time.zone UTC`", "the user's command `config time.zone UTC`"),
        ("`mind edit k3 --nothing x`", "the user's command `edit k3 --nothing x`"),
        ("`mind show 'unbalanced`", "`mind_show(id: 'unbalanced)`"),
        ("`--private` needs `--project`", "`private` needs `project`"),
        ("such as --importance 0.9", "such as importance: 0.9"),
        ("name one with --project DIR or", "name one with project: DIR or"),
        ("`git fetch --refetch` gets it", "`git fetch --refetch` gets it"),
        ("`lmt` is not an argument", "`lmt` is not an argument"),
        ("a well-known --- text -- of mind", "a well-known --- text -- of mind"),
    ],
)
def test_a_text_names_tools_and_arguments(text: str, agents: str) -> None:
    assert for_agents(text) == agents


def test_a_missing_project_still_names_the_ways_to_one() -> None:
    error = NoProject("no project", hint="run `mind init`, or --project DIR")

    assert reworded(error).hint == "run `mind init`, or --project DIR"
    assert reworded(NotFound("none", hint="see `mind log`")).hint == "see `mind_log`"


def test_bad_calls_are_answered_without_commands(mind: Mind) -> None:
    add(mind, "Tea is green, says `mind list --all`", type="decision", topic="tea")
    app = App(Memory(lambda: mind), all_commands(), toolsets=["all", "legacy"], naming="underscore")
    tools = all_commands().tools()

    async def talk() -> list[Any]:
        results = []
        async with Client(app.server()) as client:
            for name, specs in tools.items():
                for spec in specs:
                    operation = {"operation": spec.operation} if spec.operation else {}
                    names = [param.name for param in spec.params if param.required]
                    missing = dict.fromkeys(names, "nothing-at-all")
                    for arguments in ({}, {"zzz": 1}, missing, missing | {"limit": 0}):
                        given = operation | arguments
                        results.append((name, given, await client.call_tool(name, given)))
        return results

    results = anyio.run(talk)

    assert sum(result.is_error for _, _, result in results) > len(tools)
    for name, given, result in results:
        texts = [block.text for block in result.content] if result.is_error else []
        texts.append(str((result.structured_content or {}).get("notice")))
        for text in texts:
            rest = re.sub(r"the user's command `[^`]*`", "", text)
            assert not COMMAND.search(rest), (name, given, text)


def test_the_text_of_a_memory_is_never_changed(mind: Mind) -> None:
    text = "Run `mind list --all` before --force"
    made = add(mind, text)
    app = App(Memory(lambda: mind), all_commands(), toolsets=["all"], naming="underscore")

    async def talk() -> Any:
        async with Client(app.server()) as client:
            return await client.call_tool("mind_show", {"id": made.id})

    assert anyio.run(talk).structured_content["content"] == show(mind, made.id).content == text
