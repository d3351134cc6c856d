"""Calls over HTTP in the traces of their clients."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.extensions.team.test_http import INITIALIZE, hosting_of, inside
from tests.features.audit.test_audit_commands import spans

__all__ = ["spans"]


@pytest.mark.parametrize("place", ["header", "meta"])
def test_a_call_over_http_is_a_span_in_the_trace_of_its_client(
    project: Path, home: Path, spans: InMemorySpanExporter, place: str
) -> None:
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    named = {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}
    other = {"traceparent": f"00-{trace_id[::-1]}-00f067aa0ba902b7-01"}
    params: dict[str, Any] = {"name": "mind_status", "arguments": {}}
    if place == "meta":
        params["_meta"] = named
    body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    hosting, gate = hosting_of(home)

    async def ask() -> Any:
        async with hosting.running(), inside(gate) as client:
            opened = await client.post("/mcp/shop", json=INITIALIZE)
            session = {"mcp-session-id": opened.headers["mcp-session-id"]}
            # The request itself comes before its header.
            traced = named if place == "header" else other
            return await client.post("/mcp/shop", json=body, headers=session | traced)

    assert anyio.run(ask).status_code == 200
    (called,) = [span for span in spans.get_finished_spans() if span.name == "memory.tool"]
    assert (called.attributes or {})["tool_name"] == "mind_status"
    assert called.context is not None
    assert f"{called.context.trace_id:032x}" == trace_id
