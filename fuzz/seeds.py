"""Inputs from which fuzzing begins: valid ones of each target, and small hostile files for all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from random import Random
from zipfile import ZipFile, ZipInfo

from fuzz import sessions
from fuzz.files import SAMPLES, SEPARATOR
from fuzz.servers import AS_CLIENT, BEARER, JSON, PORT, SESSION, START, TOKEN, request
from mimo.config import SETTINGS
from mimo.features import context
from mimo.guard.chain import line_of, sealed
from mimo.memory.codec.value import render
from tests.redteam.hostile import FILES
from tests.sample_procedures import GREET, WAIT, text

_MEMORY = b"""---
id: decision_auth_20261120_abcdef
type: decision
title: "Use JWT: stateless"
topic: auth
tags: [api, "two words"]
created: 2026-11-20T12:00:00Z
confidence: 0.8
outcome: success # checked
links:
  - {to: fact_x, type: builds_on}
x: {a: [1, 2.5, null, true]}
---

Use JWT, see [[fact_x]].

## Reasoning

No session store.

## Competing: the text

Use cookies.
"""
_CHUNKS = b"""---
id: source_guide_md_abcdef
type: decision
source: docs/guide.md
by: ana
tags: [api]
importance: 0.7
sha256: "0000000000000000000000000000000000000000000000000000000000000000"
strategy: markdown
chunks: 2
created: 2026-11-20T12:00:00Z
---

<!-- chunk 1 lines 1-2 --> <!-- Guide -->
Water boils.

<!-- chunk 2 lines 3-4 --> <!-- Guide \xe2\x80\xba Tea -->
Tea needs water.
"""
_LOG = b"""# Memory

## 2026-11-20

- decided: Kafka over RabbitMQ, because it keeps order
- learned: Safari drops cookies
- [ ] next: write the test
- gotcha: `pip` needs a lock -> use uv

### Session 12

State: login works
"""
_POLICY = b"""tool_permissions:
  "*": {operations: [read, write]}
  putMemory: {allowed_namespaces: ["agent.*"], operations: [write], max_ttl_seconds: 3600}
  getContext: {allowed_context_types: [task]}
  save/*: {operations: [read]}
rate_limits: {tools: {putMemory: {sustained: 1, burst: 5}}, namespaces: {"agent.*": {burst: 9}}}
pii: {on_write: refuse}
"""
_FEW = b"tool_permissions:\n  putMemory: {allowed_namespaces: []}\n  memory: {operations: []}\n"
_MARKDOWN = (
    b"# One\n\nText. More text.\n\n```py\ndef f():\n    pass\n```\n\n- a\n- b\n\n> q\n\n| a | b |\n"
)
_SETTINGS = b"""format = 1
include = ["docs/*.md", "notes"]
[decay]
rate = 1
[search]
limit = 10
[mcp]
toolsets = ["save", "load"]
[index]
url = "postgresql://ana@db.example.org/mind"
"""
_TOKENS = (
    b'[ana]\nemail = "ana@example.org"\nscope = "write"\nsha256 = "' + b"0" * 64 + b'"\n'
    b'projects = ["shop"]\nexpires = 2027-01-31T00:00:00Z\nrole = "ana"\n'
)
_PHRASES = (
    "last week", "since 3 days ago", "between May 3 and 2026-06-01", "yesterday evening at 5:30 pm",
    "2026-W07", "지난주", "3일 전", "the day before the last release", "Q3 2025",
    "what did we decide about auth in the last two weeks?", "next monday", "from 9 to 5",
    "from 5am to 5am",
)  # fmt: skip
HOOKS = (
    b'{"hook_event_name": "SessionStart", "source": "startup", "session_id": "s"}',
    b'{"hook_event_name": "SessionStart", "timestamp": "t", "session_id": "s"}',
    b'{"hook_event_name": "UserPromptSubmit", "prompt": "Is tea hot? Is auth JWT?"}',
    b'{"hook_event_name": "PreToolUse", "tool_input": {"file_path": "a.py", "content": "pip x"}}',
    b'{"hook_event_name": "PreCompact", "compact_summary": "Tea is ready"}',
    b'{"hook_event_name": "sessionStart", "workspace_roots": ["/"], "conversation_id": "c"}',
    b'{"source": "new", "cwd": "/"}',
    b'{"hook_event_name": "beforeSubmitPrompt", "workspace_roots": ["/"], "conversation_id": "c"}',
    b'{"hookEventName": "Stop", "stop_hook_active": false, "last_assistant_message": "done"}',
    *(
        b'[{"hook_event_name": "UserPromptSubmit", "prompt": "Is tea hot?", "session_id": "s"%s}, '
        b'{"hook_event_name": "PreToolUse", "session_id": "s"%s, "tool_input": '
        b'{"file_path": "a.py", "content": "pip x"}}, {"hook_event_name": "Stop", "session_id": '
        b'"s"%s, "last_assistant_message": "done"}]' % ((more,) * 3)
        for more in (b"", b', "prompt_id": "p"', b', "turn_id": "1"', b', "timestamp": "t"')
    ),
    (
        b'[{"prompt": "Is tea hot?", "sessionId": "s"}, {"toolName": "create", "sessionId": "s", '
        b'"toolArgs": "{\\"path\\": \\"a.py\\", \\"file_text\\": \\"pip x\\"}"}, '
        b'{"stopReason": "end_turn", "sessionId": "s"}]'
    ),
    (
        b'[{"hook_event_name": "beforeSubmitPrompt", "prompt": "Is tea hot?", "conversation_id": '
        b'"c"}, {"hook_event_name": "preToolUse", "conversation_id": "c", "tool_input": {"path": '
        b'"a.py", "contents": "pip x"}}, {"hook_event_name": "stop", "conversation_id": "c"}]'
    ),
)
_EXPORT = (
    b'{"id": "fact_x", "type": "fact", "created": "2026-11-20T12:00:00Z", "content": "Tea", '
    b'"tags": ["a"], "sections": {"outcome": "It worked"}, "links": [{"to": "fact_y"}]}'
)
_CHATGPT = (
    b'[{"id": "1", "title": "Tea", "create_time": 1767950000.5, "current_node": "b", "mapping": '
    b'{"a": {"parent": null, "message": {"author": {"role": "user"}, "content": {"parts": ["x"]}}},'
    b' "b": {"parent": "a", "message": {"author": {"role": "user"}, "content": {"parts": ["y", '
    b'{"content_type": "audio_transcription", "text": "z"}]}}}}}]'
)
_CLAUDE = (
    b'[{"uuid": "u", "name": "Tea", "current_leaf_message_uuid": "b", "chat_messages": ['
    b'{"uuid": "a", "parent_message_uuid": "r", "text": "x", "sender": "human"}, '
    b'{"uuid": "b", "parent_message_uuid": "a", "sender": "human", "created_at": "2026-01-01", '
    b'"content": [{"type": "text", "text": "y"}]}]}]'
)
_RECORD_OF_ADR = (
    b"# 1. Use tea\n\nDate: 2026-01-02\n\n## Status\n\nSuperseded by [2](0002-b.md)\n\n"
    b"## Context\n\nIt is cold.\n\n## Decision\n\nWe use tea.\n"
)
_NEWER = (
    b"---\nstatus: accepted\ndate: 2026-02-03\n---\n# Use coffee\n\n## Decision Outcome\n\n"
    b"Chosen: coffee. Supersedes [1](0001-a.md)\n"
)


def _archive() -> bytes:
    """Returns an archive with two exports."""
    data = BytesIO()
    with ZipFile(data, "w") as archive:
        for name, content in (("conversations.json", _CHATGPT), ("a/0001-a.md", _RECORD_OF_ADR)):
            archive.writestr(ZipInfo(name), content)
    return data.getvalue()


_STARTED = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'
_TOPIC = (
    b'{"ref": {"type": "ref/prompt", "name": "record_decision"}, '
    b'"argument": {"name": "topic", "value": "a"}}'
)
_MESSAGES = (
    (b"tools/list", b"{}"),
    (b"tools/call", b'{"name": "mind_search", "arguments": {"query": "tea", "limit": 3}}'),
    (b"tools/call", b'{"name": "save_insight", "arguments": {"insight": "Tea is hot"}}'),
    (b"resources/list", b"{}"),
    (b"resources/read", b'{"uri": "mind://memory/fact_tea_20261120_aaaaaa"}'),
    (b"resources/templates/list", b'{"cursor": "a"}'),
    (b"prompts/get", b'{"name": "resume_work"}'),
    (b"completion/complete", b'{"ref": {"type": "ref/prompt", "name": "record_decision"}}'),
    (b"completion/complete", _TOPIC),
    (b"logging/setLevel", b'{"level": "debug"}'),
    (b"server/discover", b"{}"),
)  # fmt: skip
_FRAMES = tuple(
    b'{"jsonrpc": "2.0", "id": %d, "method": "%s", "params": %s}' % (number, method, params)
    for number, (method, params) in enumerate(_MESSAGES, 1)
)
_ODD_FRAMES = (b'{"id": 3}', b"[]", b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', b"{", b'"')


_VERSION = b"MCP-Protocol-Version: 2025-06-18"
_IN_SESSION = b"Mcp-Session-Id: " + SESSION
_OWN_PAGE = (b"X-Mind-Token: " + TOKEN.encode(), b"Origin: http://127.0.0.1:%d" % PORT)
_HTTP = (
    request(b"GET /healthz"),
    request(b"GET /readyz") + request(b"GET /metrics", b"", BEARER),
    request(b"POST /mcp", START, BEARER, *JSON),
    request(b"POST /mcp/shop", START, BEARER, *JSON, b"X-Mind-Project: shop"),
    *(request(b"POST /mcp", frame, *AS_CLIENT, _VERSION, _IN_SESSION) for frame in _FRAMES),
    request(b"POST /mcp", _FRAMES[4], *JSON, _VERSION, _IN_SESSION),
    request(b"POST /mcp", _FRAMES[4], *AS_CLIENT, _VERSION),
    request(b"DELETE /mcp", b"", BEARER, _IN_SESSION),
    request(b"POST /mcp", START, *JSON),
    request(b"GET /mcp", b"", BEARER, JSON[1], b"Mcp-Session-Id: a"),
    request(b"DELETE /mcp/%2e%2e%2f", b"", BEARER, b"Origin: http://evil"),
)
_WEB = (
    request(b"GET /"),
    request(b"GET /static/app.js"),
    *(
        request(b"GET /api/" + query, b"", *_OWN_PAGE)
        for query in (
            b"overview", b"list?args=%7B%22limit%22%3A3%7D", b"search?args={%22query%22:%22tea%22}",
            b"page?args={%22id%22:%22aaaaaa%22}", b"chains", b"graph", b"pitfalls", b"review",
        )
    ),
    *(
        request(b"POST /api/decide", body, *_OWN_PAGE, b"Content-Type: application/json")
        for body in (
            b'{"action": "remove", "id": "fact_tea_20261120_aaaaaa", "seen": "a"}',
            b'{"action": "take", "id": "x", "kind": "double", "take": "a", "field": "b"}',
        )
    ),
)  # fmt: skip
_CLIENT_FILES = (
    b'\0{\n  // a note of the user\n  "mcpServers": {"other": {"command": "x"},},\n}\n',
    b'\0{"hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}, "mcpServers": null}',
    b'\1[mcp_servers.other] # a note\ncommand = "x"\n\n[[hooks.Stop]]\ncommand = "y"\n',
    b'\1mcp_servers = {other = {command = "x"}}\nhooks.Stop = []\n',
)


def seeds(target: str) -> Iterator[bytes]:
    """Yields the inputs from which fuzzing of a target begins."""
    yield from _OWN.get(target, ())
    if client := sessions.NAMES.get(target):
        yield from sessions.seeds(client)
    if target in ("schema", "tools", "database", "shared", "output"):
        draw = Random(target)
        for number in range(24 if target == "output" else 64):
            yield bytes([number * 4]) + draw.randbytes(2000 if target == "output" else 60)
    elif target not in ("stdio", "http", "web"):
        yield from FILES.values()


_RECORD = sealed(
    {"n": 1, "tool": "mind_add", "timestamp": datetime(2026, 11, 20, tzinfo=UTC).isoformat()},
    None,
    b"key",
)
_HEADERS = _MEMORY.split(b"---\n")[1]
_SIDES = (
    _MEMORY,
    _MEMORY.replace(b"0.8", b"0.9").replace(b"Use JWT, see", b"Use PASETO, see"),
    _MEMORY.replace(b"success # checked", b"failed").replace(b"No session", b"Fewer sessions"),
)
_TAGGED = (
    _MEMORY,
    _MEMORY.replace(b"[api,", b"[tea, api,").replace(b"to: fact_x", b"to: fact_y"),
    _MEMORY.replace(b"[api,", b"[api, login,"),
)
_NESTED = b"".join(b"  " * depth + b"- a\n" for depth in range(12))
_OWN = {
    "memory": (_MEMORY, _MEMORY.replace(b"\n", b"\r\n"), b"# A note\n\nText\n"),
    "header": (_HEADERS, b"a: |\n  b\nc: >-\n  d\n", b"a: 'x'\nb: \"y\\n\"\n"),
    "merge": (SEPARATOR.join(_SIDES), SEPARATOR.join(_SIDES[::-1]), SEPARATOR.join(_TAGGED)),
    "source": (_CHUNKS,),
    "chunks": tuple(
        bytes([strategy, name, 1, 1]) + _MARKDOWN for strategy in range(7) for name in range(5)
    ),
    "value": (render("agent.a", "b", {"c": [1, None]}), render("agent.a", "b", "text\n" * 9)),
    "time": tuple(phrase.encode() for phrase in _PHRASES),
    "policy": (_POLICY, _FEW),
    "procedure": (text("greet", GREET).encode(), text("wait", WAIT).encode()),
    "context": (f"# A\n\n{context.whole('- note')}\n\nB\n".encode(), b"---\na: b\n---\n# A\n"),
    "log": (_LOG, _NESTED),
    "settings": tuple(_SETTINGS + b"#" * number for number in range(len(SETTINGS))),
    "tokens": (_TOKENS, _TOKENS + _TOKENS.replace(b"[ana]", b"[bob]")),
    "audit": (line_of(_RECORD),),
    "hook": HOOKS,
    "import": (
        _EXPORT,
        _MEMORY,
        b'{"entities": [{"name": "a", "observations": ["b"]}]}',
        _CHATGPT,
        _CLAUDE,
        _RECORD_OF_ADR,
        _archive(),
        SEPARATOR.join((_RECORD_OF_ADR, _NEWER, b"# C\n")),
        *(path.read_bytes() for path in sorted(SAMPLES.rglob("*.*")) if path.suffix != ".sql"),
    ),
    "export": (_EXPORT,),
    "edit": tuple(bytes([0, 9]) + bytes(range(n, n + 9)) + _MEMORY for n in range(0, 240, 24)),
    "client": _CLIENT_FILES,
    "query": tuple(phrase.encode() for phrase in _PHRASES),
    "page": (_MARKDOWN, _MEMORY, b"[a](javascript:b) ![c](http://d) [[fact_x]] <b>&#x41;\n"),
    "stdio": (
        b"\n".join((START, _STARTED, *_FRAMES)),
        *(b"\n".join((START, _STARTED, frame)) for frame in (*_FRAMES, *_ODD_FRAMES)),
        b"\n".join(_ODD_FRAMES),
    ),
    "http": _HTTP,
    "web": _WEB,
}
