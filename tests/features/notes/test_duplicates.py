"""Duplicates and near-duplicates, as commands and tools report them."""

import anyio
import pytest
from mcp.client import Client

from mimo.call.table import all_commands
from mimo.operations.listening import Memory
from mimo.server.app import App

TEXT = "The staging database is reset every night"


def call_tool(call, tool, **arguments):
    app = App(Memory(lambda: call.mind), all_commands(), toolsets=["all", "legacy"], naming="slash")

    async def talk():
        async with Client(app.server()) as client:
            return (await client.call_tool(tool, arguments)).structured_content

    return anyio.run(talk)


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
