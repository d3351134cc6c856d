"""The decision tools of earlier versions: their names and arguments keep working over MCP."""

from typing import Any

import anyio
import pytest
from mcp.client import Client

from mimo.call import Call
from mimo.call.table import all_commands
from mimo.operations.listening import Memory
from mimo.server.app import App
from tests import kit


@pytest.mark.req("004-68")
@pytest.mark.parametrize(
    "name", ["recall_decision", "suggest_decision", "list_decisions", "update_outcome"]
)
def test_old_names_are_not_listed_unless_asked_for_and_then_called_deprecated(name: str) -> None:
    def listed(toolsets: list[str]) -> dict[str, str]:
        def never() -> Any:
            raise AssertionError

        app = App(Memory(never), all_commands(), toolsets=toolsets, naming="underscore")
        tools = anyio.run(app.list_tools, None, None).tools  # type: ignore[arg-type]
        return {tool.name: tool.description or "" for tool in tools}

    assert name not in listed([])
    assert listed(["legacy"])[name].startswith("Deprecated: use ")


@pytest.mark.req("004-67")
def test_each_call_of_an_old_name_warns_once_that_it_is_deprecated(
    call: Call, caplog: pytest.LogCaptureFixture
) -> None:

    async def talk(client: Client) -> None:
        for _ in range(2):
            await client.call_tool("list_decisions", {})
            await client.call_tool("recall_decision", {"topic": "auth"})

    kit.client(call, talk, [])
    messages = [record.getMessage() for record in caplog.records]
    warnings = [message for message in messages if "deprecated" in message]
    assert len(warnings) == 4
    assert "search_recent" in warnings[0]
