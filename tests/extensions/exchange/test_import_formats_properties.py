"""Any content of a source is read or refused, without an unexpected error."""

import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimo.errors import Invalid
from mimo.extensions.exchange import tables
from mimo.features.importing import sources
from mimo.features.importing.drafts import Draft, resolved
from mimo.features.importing.formats import formats, reader, recognised
from mimo.memory import codec
from mimo.memory.codec.document import Unreadable
from mimo.memory.model import Problem
from mimo.project.memories import rendered
from tests.conftest import NOW

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(["2026-01-02", "user", "[[A]]", "A", "id", "memory", "entity", "relation"])
)  # fmt: skip
KEYS = st.sampled_from(
    """id uuid name title type entityType observations from to relationType kind memory metadata
    categories created_at updated_at mapping current_node a parent message author role content parts
    chat_messages sender text docs entries date time body starred results entities relations format
    memories create_time prompt_template filename links sections extra competing""".split()
) | st.text(max_size=6)  # fmt: skip
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)
OBJECTS = st.lists(st.dictionaries(KEYS, JSON, max_size=8), max_size=4)
OF_JSON = [
    "mind", "mcp-memory", "mem0", "jrnl", "chatgpt", "claude-chats",
]  # fmt: skip
OF_NOTES = [
    "claude-memory", "claude-md", "basic-memory", "obsidian", "okf",
    "adr", "nb", "mind",
]  # fmt: skip
VALUES = st.sampled_from(
    [
        "x",
        "[a, b]",
        "{a: b}",
        "[[A]]",
        '"[[A]]"',
        "1",
        "true",
        "null",
        "2026-01-02",
        "decision",
        "-",
    ]
)
HEADER = st.dictionaries(
    st.sampled_from(
        """title type tags tag aliases created modified date status id source name description
        metadata permalink generated timestamp decision-makers okf_version links""".split()
    ),
    VALUES,
    max_size=6,
)
BODY = st.lists(
    st.sampled_from(
        ["# A", "## Status", "Accepted", "## Reasoning", "- [fact] x #t (c)", "- uses [[A]]",
         "```", "- [ ] todo", "1. one", "   two", "<!-- MIND:CONTEXT x -->", "<!-- MIND:END -->",
         "", "[[B|c]]",
         "* Status: superseded by [2](a.md)", "[t](a.md)", "![[i.png]]", "Supersedes ADR-1",
         "<!--"]
    )
    | st.text(max_size=30),
    max_size=12,
).map("\n".join)  # fmt: skip


def check(drafts: list[Draft], format: str) -> None:
    """Each memory can be written, is read back as it is, and has its origin."""
    first = resolved(drafts, format, {}, now=NOW)
    assert resolved(drafts, format, {}, now=NOW) == first
    assert len(first.items) == len(drafts)
    for item in first.items:
        if item.memory is None:
            assert item.skipped
            continue
        try:
            file = rendered(item.memory)
        except Invalid:
            continue
        parsed = codec.parse(file.data, path=file.path, modified=NOW)
        assert not isinstance(parsed, Problem)
        assert parsed.memory == codec.normal(item.memory)


def read(folder: Path, format: str) -> list[Draft]:
    with sources.opened(folder) as source:
        try:
            return list(reader(format)(source))
        except (Unreadable, Invalid):
            return []


@pytest.mark.parametrize("format", OF_JSON)
@settings(max_examples=20)
@given(data=OBJECTS, in_lines=st.booleans())
def test_any_json_is_read_or_refused(format: str, data: list[Any], in_lines: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "conversations.json")
        text = "\n".join(map(json.dumps, data)) if in_lines else json.dumps(data)
        path.write_text(text, encoding="utf-8")
        check(read(path, format), format)
        with sources.opened(path) as source, suppress(Invalid):
            assert recognised(source) in formats()


@pytest.mark.parametrize("format", OF_NOTES)
@given(notes=st.lists(st.tuples(HEADER, BODY), max_size=3))
def test_any_notes_are_read_or_skipped(
    format: str, notes: list[tuple[dict[str, str], str]]
) -> None:
    names = ["a.md", "0002-b.md", "MEMORY.md"]
    with TemporaryDirectory() as folder:
        for name, (header, body) in zip(names, notes, strict=False):
            lines = "".join(f"{key}: {value}\n" for key, value in header.items())
            text = f"---\n{lines}---\n{body}" if header else body
            Path(folder, name).write_bytes(text.encode("utf-8", "replace"))
        check(read(Path(folder), format), format)


ROWS = st.lists(
    st.dictionaries(
        st.sampled_from(
            """id content_hash content tags memory_type metadata created_at confidence superseded_by
            source_hash target_hash relationship_type similarity title subtitle facts narrative type
            concepts created_at_epoch project request learned memory_session_id other""".split()
        ),
        st.none() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=9)
        | JSON.map(json.dumps),
        max_size=12,
    ),
    max_size=4,
)  # fmt: skip


@given(rows=ROWS, others=ROWS)
def test_any_rows_are_read_or_skipped(
    rows: list[dict[str, Any]], others: list[dict[str, Any]]
) -> None:
    check(list(tables.observations(rows)), "claude-mem")
    check(list(tables.summaries(rows, {})), "claude-mem")
    check(list(tables.service_memories(rows, others)), "mcp-memory-service")
