"""The file of an ingested source, and broken ones."""

from datetime import UTC, datetime

import pytest

from mimo.memory import sources as codec
from mimo.memory.chunking import Chunk, Chunking, Strategy
from mimo.memory.model import Kind, Problem
from mimo.memory.sources import Source

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
PATH = ".mind/sources/source_api_md_k3v7mq.md"
SOURCE = Source(
    id="source_api_md_k3v7mq",
    type=Kind.FACT,
    path="docs/api.md",
    sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    chunking=Chunking(strategy=Strategy.MARKDOWN),
    total=2,
    created=NOW,
    tags=("api",),
    importance=0.7,
    by="claude-code",
    metadata={"team": "platform"},
)
CHUNKS = [
    Chunk("# API\n\nAsk politely.", 1, 3, ("API",)),
    Chunk("## Limits --all\n\nA hundred calls a minute.", 5, 7, ("API", "Limits --all")),
]
FILE = """\
---
id: source_api_md_k3v7mq
type: fact
tags: [api]
importance: 0.7
source: docs/api.md
created: 2026-11-20T15:30:00Z
by: claude-code
strategy: markdown
chunks: 2
sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
metadata: {team: platform}
---
<!-- chunk 1 lines 1-3 --> <!-- API -->
# API

Ask politely.

<!-- chunk 2 lines 5-7 --> <!-- API \u203a Limits -\\-all -->
## Limits --all

A hundred calls a minute.
"""


def parse(text, path=PATH):
    return codec.parse(text.encode(), path=path, modified=NOW)


def test_the_file_of_a_source_is_readable_markdown():
    assert codec.render(SOURCE, CHUNKS).decode().replace('"', "") == FILE
    assert codec.header_of(FILE.encode(), path=PATH) == SOURCE


@pytest.mark.req("000-87")
@pytest.mark.req("000-93")
@pytest.mark.req("000-76")
def test_a_chunk_has_the_place_that_it_is_from():
    first, second = parse(FILE)
    assert (first.memory.id, first.line) == ("source_api_md_k3v7mq.1", 15)
    assert (second.memory.id, second.line) == ("source_api_md_k3v7mq.2", 20)
    memory = second.memory
    assert memory.content == "## Limits --all\n\nA hundred calls a minute."
    assert memory.title == "API \u203a Limits --all"
    assert memory.source == "docs/api.md:5-7"
    assert (memory.type, memory.tags, memory.importance, memory.by, memory.created) == (
        Kind.FACT,
        ("api",),
        0.7,
        "claude-code",
        NOW,
    )
    assert memory.extra == {
        "team": "platform",
        "source_file": "docs/api.md",
        "total_chunks": 2,
        "strategy": "markdown",
        "chunk_index": 1,
        "lines": "5-7",
        "heading_path": ["API", "Limits --all"],
    }


def test_metadata_cannot_replace_own_keys():
    (item, _) = parse(FILE.replace("{team: platform}", "{source_file: /etc/passwd, lines: 9-9}"))
    assert item.memory.extra["source_file"] == "docs/api.md"
    assert item.memory.extra["lines"] == "1-3"


MARKER = "<!-- chunk 2 lines 5-7 -->"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (FILE.replace(MARKER, "<!-- chunk two lines 5-7 -->"), 19, "marker of a chunk"),
        (FILE.replace(MARKER, "<!-- chunk 2 lines 5-7 ->"), 19, "marker of a chunk"),
        (FILE.replace(MARKER, "<!--chunk 2 lines 5-7-->"), 19, "marker of a chunk"),
        (FILE.replace(MARKER, "<!-- chunk 0 lines 5-7 -->"), 19, "marker of a chunk"),
        (FILE.replace(MARKER, "  <!-- CHUNK 2 -->"), 19, "marker of a chunk"),
        (FILE.replace(MARKER, "<!-- chunk 2 lines 7-5 -->"), 19, "end before they begin"),
        (FILE.replace(MARKER, "<!-- chunk 1 lines 5-7 -->"), 19, "two chunks 1"),
        (FILE.replace("---\n<!-- chunk 1", "---\nwords\n<!-- chunk 1"), 14, "before the first"),
        (FILE.partition("<!--")[0], 14, "has no line"),
        (FILE.replace("importance", "importance: 1\nimportance"), 6, "twice"),
    ],
)
def test_broken_file_is_reported_with_its_line(text, line, reason):
    result = parse(text)
    assert isinstance(result, Problem)
    assert reason in result.reason
    assert result.line == line


def test_note_in_the_folder_of_sources_is_not_a_source():
    assert parse("# My reading list\n\nMany books.\n") is None


def test_a_file_without_a_header_has_ids_from_its_path():
    (item,) = parse("<!-- chunk 3 lines 1-1 -->\nSome words.\n", ".mind/sources/notes.md")
    assert item.memory.id == "sources.notes.3"
    assert item.memory.source == ".mind/sources/notes.md:1-1"
    assert codec.header_of(b"words", path=PATH) is None


@pytest.mark.attack("endless loop by a pulled header")
@pytest.mark.parametrize(
    "options",
    [
        "chunk_size: 0",
        "chunk_size: abc",
        "chunk_size: [1]",
        "chunk_size: true",
        "chunk_size: 9\noverlap: 9",
        "overlap: -1",
        "lines_per_chunk: 0",
        "strategy: [lines]",
        "chunks: many",
    ],
)
def test_options_that_ingest_refuses_make_a_header_faulty(options):
    kept = [line for line in FILE.split("\n") if not line.startswith(options.split(" ")[0])]
    assert codec.header_of("\n".join([FILE[:3], options, *kept[1:]]).encode(), path=PATH) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("politely.\n\n<!--", "politely.\n<!--"),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("7 -->", "7 -->  "),
    ],
    ids=["crlf", "bom", "one line end less", "no last line end", "spaces after a marker"],
)
def test_line_ends_and_marks_of_editors_and_checkouts_change_no_chunk(change):
    assert [item.memory.content for item in parse(change(FILE))] == [item.text for item in CHUNKS]


def removed(text, number):
    left = codec.without(text.encode(), number)
    assert left is not None
    return left.decode()


def test_a_chunk_is_removed_without_changing_the_rest():
    without_first = removed(FILE, 1)
    assert without_first == FILE.replace(
        "<!-- chunk 1 lines 1-3 --> <!-- API -->\n# API\n\nAsk politely.\n\n", ""
    )
    without_second = removed(FILE, 2)
    assert without_second == FILE.partition("\n<!-- chunk 2")[0]
    assert codec.without(without_first.encode(), 2) is None
    with pytest.raises(KeyError):
        codec.without(FILE.encode(), 3)


def test_removing_a_chunk_keeps_the_line_ends_of_a_converted_file():
    left = removed("\ufeff" + FILE.replace("\n", "\r\n"), 2)
    assert left == "\ufeff" + FILE.partition("\n<!-- chunk 2")[0].replace("\n", "\r\n")
