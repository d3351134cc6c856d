"""Answers of the commands for memories to edges for all projects, which are not memories."""

from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.call.table import all_commands
from mimo.errors import NotFound
from mimo.memory.ids import handle_of
from tests.kit import do, repository

COMMANDS = all_commands()


@pytest.fixture
def edge(call: Call) -> Any:
    """An edge for all projects."""
    return do(
        call,
        "pitfalls add",
        title="Edge has no crypto",
        description="The call fails",
        workaround="Use Web Crypto",
        task=["generate a token"],
    )


@pytest.mark.usefixtures("ann")
@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("show", {}),
        ("rm", {}),
        ("edit", {"content": "Another text"}),
        ("log", {}),
        ("evolve outcome", {"outcome": "SUCCESS"}),
        ("load context", {}),
    ],
)
@pytest.mark.parametrize("name", [str, handle_of, lambda id: handle_of(id)[:4]])
def test_a_command_for_memories_names_the_command_and_the_file_of_an_edge(
    call: Call, edge: Any, command: str, arguments: dict[str, Any], name: Any
) -> None:
    repository(call.mind.project.root)
    do(call, "add", content="Edge has no crypto of Node")

    with pytest.raises(NotFound) as raised:
        do(call, command, id=name(edge.id), **arguments)

    expected = f"`{name(edge.id)}` is a pitfall for all projects, not a memory"
    assert raised.value.message == expected
    assert "`mind pitfalls list`" in raised.value.hint
    assert f"`{edge.file}`" in raised.value.hint
    assert Path(edge.file).exists()


@pytest.mark.parametrize("command", ["show", "rm"])
def test_the_error_is_the_same_with_a_memory_for_all_projects(
    call: Call, edge: Any, command: str
) -> None:
    do(call, "add", content="Always use pnpm", user=True)
    with pytest.raises(NotFound, match="is a pitfall for all projects"):
        do(call, command, id=handle_of(edge.id))


def test_an_edge_of_the_project_is_a_memory_that_search_finds(call: Call, edge: Any) -> None:
    given = {"title": "Staging answers 429", "description": "Above 100 calls", "workaround": "Wait"}
    own = do(call, "pitfalls add", project=True, task=["call the API in a loop"], **given)

    rows = do(call, "search", query="staging answers 429", types=["edge"]).results

    assert [row.id for row in rows] == [own.id]
    assert do(call, "show", id=handle_of(own.id)).title == "Staging answers 429"


@pytest.mark.req("003-10")
def test_a_search_or_list_of_edges_names_the_command_for_those_of_all_projects(
    call: Call, edge: Any
) -> None:
    for types, is_named in ((["edge"], True), (["fact", "edge"], True), (["fact"], False), ([], 0)):
        for command, given in (("search", {"query": "crypto"}), ("list", {})):
            result = do(call, command, types=types, **given)
            assert ("`mind pitfalls list`" in (result.notice or "")) == is_named


def test_without_such_edges_nothing_is_noted(call: Call) -> None:
    assert "edges" not in (do(call, "list", types=["edge"]).notice or "")
    with pytest.raises(NotFound, match="Memory not found"):
        do(call, "show", id="kt3xk4")
