"""Duplicates and near-duplicates, as commands and tools report them."""

import pytest

from tests import kit

TEXT = "The staging database is reset every night"


def call_tool(call, tool, **arguments):
    return kit.call_tool(call, tool, arguments).structured_content


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
