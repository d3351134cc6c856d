"""`recall_memory` and `mind recall`."""

from typing import Any

import pytest
from mcp.client import Client

from mimo.call import Call
from mimo.features.notes.commands import add
from mimo.features.search.recall import recall_memory
from mimo.operations import searching
from tests import kit
from tests.kit import put

FAILED = """---
id: decision_sessions_20260301_p2w9xa
type: decision
title: Use server sessions
outcome: FAILED
created: 2026-03-01T10:00:00Z
---
Keep every login in server sessions, stored in Redis.

## Outcome
The sessions did not survive the second node.
"""

CURRENT = """---
id: decision_jwt_20261101_k3v7mq
type: decision
title: Use JWT with refresh tokens
created: 2026-11-01T08:00:00Z
links:
  - {to: decision_sessions_20260301_p2w9xa, type: supersedes}
---
Every login gets a token of 15 minutes.
"""


def write(call: Call, text: str, folder: str = "decisions") -> None:
    identity = text.split("id: ", 1)[1].split("\n", 1)[0]
    put(call.mind.folder / folder / f"{identity}.md", text)


@pytest.mark.req("001-12")
def test_every_source_is_a_resource_of_the_server(call):
    write(call, FAILED)
    write(call, CURRENT)
    put(
        call.mind.folder / "notes" / "Über Anmeldung & mehr.md",
        "# Login\n\nThe login form has two fields.\n",
    )

    async def talk(client: Client) -> tuple[Any, list[str]]:
        answer = await client.call_tool("recall_memory", {"query": "login"})
        data = answer.structured_content
        assert data is not None
        texts = [await client.read_resource(uri) for uri in data["source_refs"]]
        return data, [read.contents[0].text for read in texts]  # type: ignore[union-attr]

    data, texts = kit.client(call, talk, ["recall"])

    assert len(texts) == 3
    for line, text in zip(data["summary"].splitlines()[1:], texts, strict=True):
        assert line.partition("“")[2].partition("”")[0] in text


def test_a_summary_of_weak_matches_says_so(call, monkeypatch):
    monkeypatch.setattr(searching, "SURE", 0.999)
    for number in range(5):
        add(call, f"Lunch number {number} is served at noon")

    answer = recall_memory(call, "why is lunch number four late in winter")

    assert answer.source_refs
    assert "(weak)" in answer.summary.splitlines()[0]


@pytest.mark.req("001-13", "001-23")
@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "I/O")])
def test_unreadable_files_are_reported_and_not_raised(call, monkeypatch, error):
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("mimo.operations.refresh.refresh", fail)

    answer = recall_memory(call, "anything")

    assert "could not be" in answer.summary
    assert (answer.confidence, answer.source_refs) == (None, ())


@pytest.mark.req("001-07", "001-08", "001-09")
def test_the_tool_is_listed_as_the_manifest_describes_it(call):
    from mimo.features.modules import packaged

    async def talk(client: Client) -> Any:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    tool = kit.client(call, talk, [])["recall_memory"]
    (command,) = packaged().commands

    assert tool.description == command.description
    assert tool.input_schema["required"] == command.parameters["required"]
    assert tool.input_schema["properties"]["query"]["type"] == "string"
    fields = {"truncated", *command.response["properties"]}
    assert tool.output_schema["properties"].keys() == fields
