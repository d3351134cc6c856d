"""The sizes of the answers of every tool to an agent, on a realistic and on a hostile store.

`python -m bench.answers` prints bytes: the text block, the structured content, and the whole
result as it is sent. A client passes one of the two forms to its model.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench import stores
from mimo.call import Call, Caller, Surface
from mimo.call.table import all_commands
from mimo.mind import Mind
from mimo.server.answers import answer

DECISIONS = (
    ("auth_strategy", "Use JWT with refresh tokens", "Sessions need a shared store on every node"),
    ("database", "Use Postgres for orders", "Reports need joins; the team knows it well"),
    ("uploads", "Stream uploads to the object store", "The proxy cuts bodies above 10 MB"),
    ("cache", "Add the locale to cache keys", "German visitors saw English prices"),
    ("retries", "Retry payments with back-off", "The provider answers slowly at noon"),
)


class Agent:
    """A client of the tools without a transport."""

    def __init__(self, root: Path) -> None:
        self.mind = Mind.open(root, project=root)
        self._call = Call(self.mind, Caller(surface=Surface.MCP, name="bench"))
        self._tools = all_commands().tools()

    def call(self, tool: str, **arguments: Any) -> Any:
        """Returns the result of a tool."""
        return answer(self._tools[tool], self._call, arguments)

    def close(self) -> None:
        self.mind.close()


def sizes(result: Any) -> tuple[int, int, int]:
    """Returns the bytes of the text, of the structured content, and of the whole result."""
    text = sum(len(block.text.encode()) for block in result.content)
    data = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
    wire = result.model_dump_json(by_alias=True, exclude_none=True)
    return text, len(data.encode()), len(wire.encode())


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mind_search", {"query": "why do uploads fail", "limit": 10}),
    ("mind_search", {"query": "why do uploads fail", "limit": 50}),
    ("memory", {"operation": "search", "query": "why do uploads fail"}),
    ("memory", {"operation": "list"}),
    ("memory", {"operation": "list", "limit": 1000}),
    ("memory", {"operation": "stats"}),
    ("memory", {"operation": "decay_check"}),
    ("search/by_topic", {"topic": "auth_strategy"}),
    ("search/by_context", {"query": "how do uploads work"}),
    ("search/recent", {}),
    ("recall_memory", {"query": "why did we choose JWT"}),
    ("load/checkpoint", {}),
    ("load/context", {"id": "auth_strategy"}),
    ("mind_list", {}),
    ("mind_list", {"limit": 1000}),
    ("mind_show", {"id": "auth_strategy"}),
    ("mind_graph", {}),
    ("mind_status", {}),
    ("mind_doctor", {}),
    ("mind_edges", {"intent": "retry a payment", "all": True}),
    ("mind_edges_list", {}),
    ("mind_review", {}),
    ("mind_log", {}),
    ("mind_events", {}),
    ("mind_undo", {"list": True}),
    ("mind_scan", {"paths": ["docs"]}),
    ("mind_context", {}),
    ("ingest", {"path": "docs/*.md"}),
    ("ingest", {"path": "docs/*.md", "dry_run": True, "force": True}),
    ("getContext", {"include_history": True}),
    ("listMemory", {"namespace": "session.bench", "limit": 100}),
    ("getMemory", {"namespace": "session.bench", "key": "key_1"}),
    ("list_procedures", {}),
    ("save/decision", {"topic": "logs", "decision": "Log as JSON", "reasoning": "Machines read"}),
)


@contextmanager
def agent(size: int) -> Iterator[Agent]:
    """Yields an agent in a project with that many notes, decisions, a checkpoint and files."""
    with stores.store(size) as (root, environ), patch.dict(os.environ, environ):
        stores.run([*stores.MIND, "trust", "--all"], root, environ)
        stores.run(["git", "init", "--quiet"], root, environ)
        client = Agent(root)
        for number in range(0, size, 3):
            client.call("memory", operation="store", content=stores.text(size + number))
        for topic, decision, reasoning in DECISIONS:
            client.call("save/decision", topic=topic, decision=decision, reasoning=reasoning)
        client.call(
            "save/decision",
            topic="auth_strategy",
            decision="Use JWT, refreshed by the gateway",
            reasoning="Mobile clients lost their sessions",
        )
        client.call("evolve/outcome", id="cache", outcome="FAILED", reason="keys grew too many")
        client.call("save/insight", insight="Run migrations before the deploy", category="ops")
        client.call("save/checkpoint", summary="Uploads stream", next_steps=["test with 1 GB"])
        docs = root / "docs"
        docs.mkdir()
        for number in range(20):
            sections = (f"# Part {part}\n\n{stores.text(number)}\n" for part in range(20))
            (docs / f"page{number}.md").write_text("".join(sections), encoding="utf-8")
        for number in range(100):
            client.call(
                "putMemory", namespace="session.bench", key=f"key_{number}", value={"n": number}
            )
        try:
            yield client
        finally:
            client.close()


def main() -> None:
    """Prints the sizes."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with agent(size) as client:
        print(f"{'tool':<50}{'text':>10}{'structured':>12}{'sent':>10}")
        for tool, arguments in CALLS:
            result = client.call(tool, **arguments)
            given = ", ".join(f"{name}: {value}" for name, value in arguments.items())
            marks = " ERROR" if result.is_error else ""
            row = "".join(
                f"{number:>{width},}"
                for number, width in zip(sizes(result), (10, 12, 10), strict=True)
            )
            print(f"{f'{tool}({given})'[:49]:<50}{row}{marks}")


if __name__ == "__main__":
    main()
