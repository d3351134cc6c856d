"""The `memory` tool: its schema, a limit of size, and weak matches."""

import pytest

from mimo.call import Caller, Surface
from mimo.call.schema import input_schema
from mimo.call.spec import to_json
from mimo.call.table import all_commands
from mimo.errors import Invalid
from mimo.features.notes.memory_tool import store
from mimo.operations import searching
from mimo.operations.invoke import invoke


def call_tool(call, operation, **arguments):
    """Returns the answer as an MCP client would get it."""
    spec = next(s for s in all_commands().tools()["memory"] if s.operation == operation)
    return to_json(invoke(spec, call.by(Caller(surface=Surface.MCP)), arguments))


@pytest.mark.req("000-29")
def test_one_tool_has_the_six_operations():
    schema = input_schema(all_commands().tools()["memory"])

    assert schema["required"] == ["operation"]
    assert set(schema["properties"]["operation"]["enum"]) == {
        "store",
        "search",
        "list",
        "delete",
        "stats",
        "decay_check",
    }


class TestStore:
    def test_content_over_the_size_limit_is_refused(self, call):
        with pytest.raises(Invalid, match="100,000"):
            store(call, "x" * 100_001)


class TestSearch:
    def test_weak_matches_have_a_field_of_their_own(self, call, monkeypatch):
        monkeypatch.setattr(searching, "SURE", 0.999)
        for number in range(5):
            store(call, f"Lunch number {number} is served at noon")
        query = "why is lunch number four late in winter"

        answer = call_tool(call, "search", query=query)

        assert answer["results"] == []
        assert [row["weak"] for row in answer["nearest"]] == [True, True, True]
        assert "weak" in answer["notice"]
        above = call_tool(call, "search", query=query, threshold=0.999)
        assert (above["results"], "nearest" in above) == ([], False)
