"""Inputs from which fuzzing begins: valid ones of each target, and small hostile files for all."""

from collections.abc import Iterator
from datetime import UTC, datetime

from mimo.commands import all_commands
from mimo.commands.spec import Surface
from mimo.features import context
from mimo.guard.chain import line_of, sealed
from mimo.memory.codec.value import render
from tests.fuzz.targets import SEPARATOR
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
type: fact
source: docs/guide.md
sha256: 0000000000000000000000000000000000000000000000000000000000000000
strategy: markdown
chunks: 2
created: 2026-11-20T12:00:00Z
---

<!-- chunk 1 lines 1-2 Guide -->
Water boils.

<!-- chunk 2 lines 3-4 Guide > Tea -->
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
_POLICY = b"""version: 1
pii: {on_write: block, on_read: redact}
rules:
  - {tools: [putMemory, getMemory], namespaces: ["agent.*"], operations: [read, write], ttl: 3600}
limits:
  - {tool: "*", calls: 60}
"""
_MARKDOWN = (
    b"# One\n\nText. More text.\n\n```py\ndef f():\n    pass\n```\n\n- a\n- b\n\n> q\n\n| a | b |\n"
)
_SETTINGS = b"""format = 1
[decay]
rate = 0.01
[search]
limit = 10
[index]
url = "postgresql://ana@db.example.org/mind"
"""
_TOKENS = (
    b'[ana]\nemail = "ana@example.org"\nscope = "write"\nsha256 = "' + b"0" * 64 + b'"\n'
    b'projects = ["shop"]\nexpires = 2027-01-31T00:00:00Z\n'
)
_PHRASES = (
    "last week", "since 3 days ago", "between May 3 and 2026-06-01", "yesterday evening at 5:30 pm",
    "2026-W07", "지난주", "3일 전", "the day before the last release", "Q3 2025",
    "what did we decide about auth in the last two weeks?", "next monday", "from 9 to 5",
)  # fmt: skip
_HOOKS = (
    b'{"hook_event_name": "UserPromptSubmit", "prompt": "tea", "session_id": "s", "cwd": "/"}',
    b'{"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {"file_path": "a.py"}}',
    b'{"hook_event_name": "beforeSubmitPrompt", "workspace_roots": ["/"], "conversation_id": "c"}',
    b'{"hookEventName": "Stop", "stop_hook_active": false, "last_assistant_message": "done"}',
)
_EXPORT = (
    b'{"id": "fact_x", "type": "fact", "created": "2026-11-20T12:00:00Z", "content": "Tea", '
    b'"tags": ["a"], "sections": {"outcome": "It worked"}, "links": [{"to": "fact_y"}]}'
)
_CALLS = (
    b'{"content": "Tea is at four", "tags": ["tea"]}', b'{"query": "tea", "limit": 3}',
    b'{"id": "fact_x"}', b'{"operation": "store", "content": "Tea", "category": "fact"}',
    b'{"topic": "auth", "decision": "JWT", "reasoning": "Stateless", "confidence": 0.5}',
    b'{"namespace": "agent.build", "key": "a", "value": {"b": [1]}}', b"{}",
    b'{"path": "docs/guide.md"}', b'{"time_filter": "last week"}', b'{"command": "view"}',
)  # fmt: skip


def seeds(target: str) -> Iterator[bytes]:
    """Yields the inputs from which fuzzing of a target begins."""
    yield from _OWN.get(target, ())
    if target in ("arguments", "call"):
        specs = [spec for spec in all_commands().all() if spec.surfaces & Surface.MCP]
        for number in range(len(specs)):
            for arguments in _CALLS:
                yield bytes([number]) + arguments
    else:
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
_OWN = {
    "memory": (_MEMORY, _MEMORY.replace(b"\n", b"\r\n"), b"# A note\n\nText\n"),
    "header": (_HEADERS, b"a: |\n  b\nc: >-\n  d\n", b"a: 'x'\nb: \"y\\n\"\n"),
    "merge": (SEPARATOR.join(_SIDES), SEPARATOR.join(_SIDES[::-1])),
    "source": (_CHUNKS,),
    "chunks": tuple(
        bytes([strategy, name, 1, 1]) + _MARKDOWN for strategy in range(7) for name in range(5)
    ),
    "value": (render("agent.a", "b", {"c": [1, None]}), render("agent.a", "b", "text\n" * 9)),
    "time": tuple(phrase.encode() for phrase in _PHRASES),
    "policy": (_POLICY,),
    "procedure": (text("greet", GREET).encode(), text("wait", WAIT).encode()),
    "context": (f"# A\n\n{context.whole('- note')}\n\nB\n".encode(), b"---\na: b\n---\n# A\n"),
    "log": (_LOG,),
    "settings": (_SETTINGS,),
    "tokens": (_TOKENS,),
    "audit": (line_of(_RECORD),),
    "hook": _HOOKS,
    "import": (_EXPORT, _MEMORY, b'{"entities": [{"name": "a", "observations": ["b"]}]}'),
    "export": (_EXPORT,),
}
