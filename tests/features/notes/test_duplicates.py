"""Duplicates and near-duplicates, as commands and tools report them."""

import anyio
import pytest
from mcp.client import Client

from mimo.cli.main import main
from mimo.commands import all_commands
from mimo.operations.listening import Memory
from mimo.server.app import App

TEXT = "The staging database is reset every night"


@pytest.fixture
def run(call, capsys):
    def run(*words):
        assert main(list(words), open=lambda _: call.mind) == 0
        return capsys.readouterr()

    return run


def call_tool(call, tool, **arguments):
    app = App(Memory(lambda: call.mind), all_commands(), toolsets=["all", "legacy"], naming="slash")

    async def talk():
        async with Client(app.server()) as client:
            return (await client.call_tool(tool, arguments)).structured_content

    return anyio.run(talk)


def test_the_command_line_reports_a_duplicate_and_its_file(call, run):
    first = run("add", TEXT).out
    again, message = run("add", TEXT)
    handle = first.split()[1]
    assert again == first.replace(TEXT, f"{TEXT}  stored before")
    assert (
        message
        == f"note: {handle} states this already, so nothing was written (`--again` stores it)\n"
    )
    assert run("list").out.count(TEXT) == 1


def test_the_command_line_names_a_near_duplicate(run):
    handle = run("add", TEXT).out.split()[1]
    out, message = run("add", TEXT.replace("night", "evening"))
    assert "stored before" not in out
    assert message == f"note: much like {handle}; if they state the same, remove one of them\n"
    assert run("list").out.count("The staging database") == 2


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory", {"operation": "store", "content": TEXT}),
        ("mind_add", {"content": TEXT}),
        ("save/decision", {"topic": "db", "decision": TEXT, "reasoning": "It fills up"}),
        ("save/insight", {"insight": TEXT}),
        ("store_fact", {"content": TEXT, "category": "fact"}),
    ],
)
def test_every_storing_tool_reports_a_duplicate_and_stores_it_on_request(call, tool, arguments):
    first, second = (call_tool(call, tool, **arguments) for _ in range(2))
    assert "already" not in first
    assert "notice" not in first
    assert (second["id"], second["already"]) == (first["id"], True)
    assert first["id"] in second["notice"]
    if tool == "store_fact":
        return
    third = call_tool(call, tool, again=True, **arguments)
    assert third["id"] != first["id"]
    assert "already" not in third


@pytest.mark.req("000-35")
def test_a_duplicate_counts_as_stored(call):
    first, second = (call_tool(call, "memory", operation="store", content=TEXT) for _ in range(2))
    assert second == first | {"already": True, "notice": second["notice"]}


def test_a_tool_names_a_near_duplicate(call):
    first = call_tool(call, "mind_add", content=TEXT)
    second = call_tool(call, "mind_add", content=TEXT.replace("night", "evening"))
    assert first["id"] in second["notice"]
    assert "already" not in second
