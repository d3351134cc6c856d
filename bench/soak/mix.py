"""The requests of a run, in a fixed random order: cheap and dear ones, and wrong ones.

Each kind of request leaves the number of memories, values, sessions and subscriptions as it was.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bench.clients import Http, Pipe, outcome
from bench.stores import QUERIES, words

MEMORIES = 60

_OF_EACH, _OF_LARGE = 1_500, 30
"""The requests of each kind before the first part; the trash holds 1,000 entries."""

Asked = tuple[str, str]
"""The kind of one request, and its outcome."""
Kind = Callable[["Requests"], Iterator[Asked]]


class Requests:
    """The requests of one client."""

    def __init__(self, client: Pipe | Http, seed: int) -> None:
        """Takes a connected client; each has a seed of its own."""
        self.client, self.seed = client, seed
        self.draw = random.Random(seed)
        self.number = 0

    def tool(self, name: str, **arguments: Any) -> Any:
        """Returns the answer of a tool."""
        return self.client.ask("tools/call", {"name": name, "arguments": arguments})

    def once(self) -> Iterator[Asked]:
        """Sends the requests of the next kind."""
        (kind,) = self.draw.choices(list(self._kinds), list(self._kinds.values()))
        yield from self._sent(kind)

    def warm_up(self) -> Iterator[Asked]:
        """Sends each kind so often that the caches and the trash are full."""
        for kind in self._kinds:
            for _ in range(_OF_LARGE if kind is _too_large else _OF_EACH):
                yield from self._sent(kind)

    def store_and_delete(self, text: str) -> None:
        """Stores a memory and deletes it."""
        stored = self.tool("memory", operation="store", content=text)
        id_ = stored["result"]["structuredContent"]["id"]
        assert outcome(self.tool("memory", operation="delete", id=id_)) == "ok"

    @property
    def _kinds(self) -> Mapping[Kind, float]:
        return OVER_HTTP if isinstance(self.client, Http) else OVER_PIPE

    def _sent(self, kind: Kind) -> Iterator[Asked]:
        self.number += 1
        yield from kind(self)


def _simple(name: str, method: str, params: Any, expected: str = "ok") -> Kind:
    def kind(own: Requests) -> Iterator[Asked]:
        yield name, _checked(outcome(own.client.ask(method, params)), expected)

    return kind


def _tool(name: str, expected: str, **arguments: Any) -> Kind:
    def kind(own: Requests) -> Iterator[Asked]:
        yield name, _checked(outcome(own.tool(name, **arguments)), *expected.split())

    return kind


def _checked(result: str, *expected: str) -> str:
    return result if result in expected else f"unexpected {result}"


def _search(own: Requests) -> Iterator[Asked]:
    query = f"{own.draw.choice(QUERIES)} {words(own.draw, 2)}"
    yield "mind_search", _checked(outcome(own.tool("mind_search", query=query)), "ok")


def _show(own: Requests) -> Iterator[Asked]:
    id_ = f"fact_note_{own.draw.randrange(MEMORIES)}"
    yield "mind_show", _checked(outcome(own.tool("mind_show", id=id_)), "ok")


def _memory(own: Requests) -> Iterator[Asked]:
    """Stores a memory, finds it, and deletes it."""
    text = f"The lantern {own.seed} {own.number} is lit. {words(own.draw, 12)}"
    stored = own.tool("memory", operation="store", content=text)
    yield "memory store", _checked(outcome(stored), "ok")
    id_ = stored["result"]["structuredContent"]["id"]
    listed = own.tool("memory", operation="list", limit=5)
    ids = [each["id"] for each in listed["result"]["structuredContent"]["memories"]]
    yield "memory list", "ok" if any(map(id_.endswith, ids)) else "unexpected list"  # Short ids.
    yield "memory delete", _checked(outcome(own.tool("memory", operation="delete", id=id_)), "ok")


def _value(own: Requests) -> Iterator[Asked]:
    """Puts a value with a new key into a new namespace, reads it, and deletes it."""
    place = {"namespace": f"session.soak{own.seed}-{own.number}", "key": f"k{own.number}"}
    limited = ("ok", "RATE_LIMITED")
    put = outcome(own.tool("putMemory", **place, value={"n": own.number}, ttl_seconds=3600))
    yield "putMemory", _checked(put, *limited)
    if put != "ok":
        return
    yield "getMemory", _checked(outcome(own.tool("getMemory", **place)), *limited)
    yield "deleteMemory", _checked(outcome(own.tool("deleteMemory", **place)), *limited)


def _edges(own: Requests) -> Iterator[Asked]:
    intent = f"keep users logged in with jwt {words(own.draw, 3)}"
    yield "mind_edges", _checked(outcome(own.tool("mind_edges", intent=intent)), "ok")


def _subscribed(own: Requests) -> Iterator[Asked]:
    uri = {"uri": f"mind://memory/fact_note_{own.draw.randrange(MEMORIES)}"}
    for method in ("resources/subscribe", "resources/unsubscribe"):
        yield method, _checked(outcome(own.client.ask(method, uri)), "ok")


def _cancelled(own: Requests) -> Iterator[Asked]:
    query = {"query": words(own.draw, 6)}
    params = {"name": "mind_search", "arguments": query}
    yield "cancelled", _checked(own.client.cancelled("tools/call", params), "ok")


def _wrong_line(own: Requests) -> Iterator[Asked]:
    yield "not JSON", _checked(own.client.raw(b'{"jsonrpc": "2.0", oops'), "-32700", "400")


def _too_large(own: Requests) -> Iterator[Asked]:
    size = 5_000_000
    if isinstance(own.client, Http):
        yield "too large", _checked(own.client.raw(b"x" * size), "413", "0")
    else:
        answer = own.tool("memory", operation="store", content="x" * size)
        yield "too large", _checked(outcome(answer), "VALIDATION_ERROR", "TOO_LARGE")


def _session(own: Requests) -> Iterator[Asked]:
    """Ends the session and opens another one."""
    assert isinstance(own.client, Http)
    yield "session end", _checked(own.client.end(), "200")
    own.client.open()
    yield "session open", "ok"


def _foreign(own: Requests) -> Iterator[Asked]:
    assert isinstance(own.client, Http)
    yield "no such token, session, project", _checked(own.client.foreign(), "401 404 404")


_COMPLETION = {
    "ref": {"type": "ref/resource", "uri": "mind://memory/{id}"},
    "argument": {"name": "id", "value": "fact_note_1"},
}
OVER_PIPE: dict[Kind, float] = {
    _simple("ping", "ping", {}): 34,
    _simple("unknown tool", "tools/call", {"name": "mind_serch", "arguments": {}}, "-32602"): 12,
    _simple("unknown method", "no/such", {}, "-32601"): 10,
    _simple("prompts/list", "prompts/list", {}): 9,
    _simple("templates", "resources/templates/list", {}): 9,
    _wrong_line: 4,
    _simple("tools/list", "tools/list", {}): 4,
    _tool("mind_search", "VALIDATION_ERROR", query="x", nope=1): 5,
    _tool("mind_show", "NOT_FOUND", id="fact_missing_123456"): 3,
    _tool("getMemory", "NOT_FOUND RATE_LIMITED", namespace="agent.soak", key="none"): 2,
    _simple("completion", "completion/complete", _COMPLETION): 2,
    _simple("resources/read", "resources/read", {"uri": "mind://memory/fact_note_7"}): 2,
    _show: 2,
    _cancelled: 1,
    _tool("mind_status", "ok"): 1,
    _tool("memory", "ok", operation="list", limit=10): 0.7,
    _edges: 0.5,
    _search: 0.5,
    _subscribed: 0.3,
    _memory: 0.3,
    _value: 0.3,
    _too_large: 0.01,
}
OVER_HTTP: dict[Kind, float] = {**OVER_PIPE, _session: 1, _foreign: 1}
