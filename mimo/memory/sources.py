"""The file of an ingested source: one header, and its chunks, which are restored byte for byte.

A marker such as `<!-- chunk 3 lines 120-148 -->` precedes each chunk. A line of a chunk that looks
like a marker is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mimo.errors import Invalid
from mimo.frozen import NamedTuple, field, frozen
from mimo.memory import ids
from mimo.memory.chunking import LINES, Chunk, Chunking, Strategy
from mimo.memory.codec import front_matter
from mimo.memory.codec.document import (
    MAX_HEADER_BYTES,
    MAX_SOURCE_BYTES,
    Document,
    Unreadable,
)
from mimo.memory.codec.file import read_document, understand, written
from mimo.memory.model import Kind, Memory, Problem
from mimo.text.clean import compiled

_LOOKS_LIKE_MARKER = r"\\*[ \t]*<!--[ \t]*chunk\b"
_MARKER = rf"(?mi)^(?=(\\*)){_LOOKS_LIKE_MARKER}.*$"
_NUMBER = r"([1-9]\d{0,8})"
_MARKER_PARTS = (
    rf"(?a)<!-- chunk {_NUMBER} lines {_NUMBER}-{_NUMBER} -->(?:[ \t]*<!-- (.+) -->)?[ \t\r]*"
)
_ARROW = "\u203a"
_BETWEEN = f" {_ARROW} "

_WRITTEN = frozenset(
    "id type tags importance source created by strategy chunk_size overlap lines_per_chunk chunks"
    " sha256 metadata".split()
)
"""The keys that `ingest` writes."""


class _Section(NamedTuple):
    """The place of a chunk in the body."""

    number: int
    lines: str
    """Its first and last line in the ingested file, such as `120-148`."""
    path: tuple[str, ...]
    start: int
    """The start of its marker."""
    text: int
    """The start of its text."""
    end: int
    line: int
    """The 1-based line of the file on which its text begins."""


def escape(text: str) -> str:
    """Returns `text` with a backslash before each line that looks like a marker."""
    return compiled(rf"(?mi)^(?={_LOOKS_LIKE_MARKER})").sub(r"\\", text)


def unescape(text: str) -> str:
    """Returns text without the backslashes of `escape`."""
    return compiled(rf"(?mi)^\\(?={_LOOKS_LIKE_MARKER})").sub("", text)


def marker(number: int, chunk: Chunk) -> str:
    """Returns the marker of a chunk."""
    line = f"<!-- chunk {number} lines {chunk.first_line}-{chunk.last_line} -->"
    # `--` would end the comment.
    escaped = (re.sub(rf"[\\{_ARROW}]|(?<=-)-", r"\\\g<0>", title) for title in chunk.path)
    headings = _BETWEEN.join(escaped)
    return f"{line} <!-- {headings} -->" if headings else line


def _sections(document: Document) -> tuple[str, list[_Section]]:
    """Returns a file's text with the line ends that mind writes, and the places of its chunks.

    Other line ends occur only if a checkout converted the whole file. Raises `Unreadable`.
    """
    text, start, line = document.text, document.body_start, document.body_line
    if document.newline == "\r\n":
        head = text[:start].replace("\r\n", "\n")
        text, start = head + text[start:].replace("\r\n", "\n"), len(head)
    markers = [match for match in compiled(_MARKER).finditer(text, start) if match[1] == ""]
    lead_end = markers[0].start() if markers else len(text)
    if markers and text[start:lead_end].strip():
        raise Unreadable("there is text before the first chunk, which belongs to none", line)
    sections: dict[int, _Section] = {}
    ends = [*(match.start() for match in markers[1:]), len(text)]
    for here, end in zip(markers, ends, strict=False):
        line += text.count("\n", start, here.start())
        start = here.start()
        match = compiled(_MARKER_PARTS).fullmatch(here[0])
        if match is None:
            raise Unreadable("the marker of a chunk can't be read", line)
        number, first_line, last_line = (int(match[part]) for part in (1, 2, 3))
        if first_line > last_line:
            raise Unreadable("the lines of a chunk end before they begin", line)
        if number in sections:
            raise Unreadable(f"there are two chunks {number}", line)
        headings = re.findall(rf"(?:\\.|[^\\{_ARROW}])+", match[4] or "")
        plain = (re.sub(r"\\(.)", r"\1", heading.strip()) for heading in headings)
        sections[number] = _Section(
            number=number,
            lines=f"{first_line}-{last_line}",
            path=tuple(heading for heading in plain if heading),
            start=start,
            text=min(here.end() + 1, len(text)),
            end=end,
            line=line + 1,
        )
    return text, list(sections.values())


@frozen
class Source:
    """The header of a source's file."""

    id: str
    type: Kind
    path: str
    """Of the ingested file, relative to the project."""
    sha256: str
    """Of the bytes of the ingested file."""
    chunking: Chunking
    total: int
    """Number of chunks when it was ingested."""
    created: datetime
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    by: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)
    """Keys that were added by hand, such as a topic, with their values."""


class Marked(NamedTuple):
    """A chunk in a source's file."""

    number: int
    """1-based; the end of its id."""
    line: int
    """The 1-based line of the file on which its text begins."""
    memory: Memory


def chunk_id(source: str, number: int) -> str:
    """Returns the id of a source's chunk, counted from 1."""
    return f"{source}.{number}"


def render(source: Source, chunks: Sequence[Chunk]) -> bytes:
    """Returns the file of a source. Raises `Invalid` if it is too large."""
    header = front_matter.emitted_lines(_header(source))
    if len(header.encode()) > MAX_HEADER_BYTES:
        raise Invalid("the metadata is larger than 64 KiB", hint="say less about each chunk")
    numbered = enumerate(chunks, 1)
    sections = [f"{marker(number, chunk)}\n{escape(chunk.text)}\n" for number, chunk in numbered]
    body = "\n".join(sections)
    data = f"---\n{header}---\n{body}".encode()
    if len(data) > MAX_SOURCE_BYTES:
        raise Invalid(f"its chunks have {len(data):,} bytes together", hint="let them overlap less")
    return data


def parse(data: bytes, *, path: str, modified: datetime) -> Sequence[Marked] | Problem | None:
    """Returns the chunks of a source's file, or the reason that there are none.

    None if the file is a note instead of a source.
    """
    try:
        document, header = read_document(data, MAX_SOURCE_BYTES)
        text, sections = _sections(document)
    except Unreadable as error:
        return Problem(path=path, line=error.line, reason=error.reason)
    if not sections:
        reason = "it has no line `<!-- chunk n lines a-b -->`"
        lost = Problem(path=path, line=document.body_line, reason=reason)
        return lost if "strategy" in header else None
    understood, extra = understand(header)
    source_id = understood.pop("id", ids.of_path(path))
    origin = understood.pop("source", None) or path
    common: dict[str, Any] = {"type": Kind.FACT, "created": modified.astimezone(UTC)}
    common |= {key: value for key, value in understood.items() if key not in ("title", "links")}
    metadata = _metadata(extra) | {
        "source_file": origin,
        "total_chunks": extra.get("chunks", len(sections)),
        "strategy": extra.get("strategy"),
    }
    is_single = extra.get("strategy") == Strategy.WHOLE
    chunks = []
    for section in sections:
        about = metadata | {"chunk_index": section.number - 1, "lines": section.lines}
        if section.path:
            about["heading_path"] = list(section.path)
        # An empty line separates a chunk from the next marker.
        content = text[section.text : section.end].removesuffix("\n")
        memory = Memory(
            **common,
            id=chunk_id(source_id, section.number),
            content=unescape(content if section.end == len(text) else content.removesuffix("\n")),
            title=origin if is_single else _BETWEEN.join(section.path) or None,
            source=f"{origin}:{section.lines}",
            extra=about,
        )
        chunks.append(Marked(section.number, section.line, memory))
    return chunks


def header_of(data: bytes, *, path: str) -> Source | None:
    """Returns the header of a source's file; None if it is incomplete or no ingest wrote it."""
    try:
        _, header = read_document(data, MAX_SOURCE_BYTES)
        understood, extra = understand(header)
        return Source(
            id=understood.get("id", ids.of_path(path)),
            type=understood.get("type", Kind.FACT),
            path=understood["source"],
            sha256=str(extra["sha256"]),
            chunking=_chunking(extra),
            total=_at_least(0, extra["chunks"]),
            created=understood["created"],
            tags=understood.get("tags", ()),
            importance=understood.get("importance", 0.5),
            by=understood.get("by"),
            metadata=_metadata(extra),
            others={k: v for k, v in header.items() if k not in _WRITTEN and v is not None},
        )
    except (Unreadable, KeyError, ValueError, Invalid):
        return None


def _chunking(extra: Mapping[str, Any]) -> Chunking:
    """Returns the options in a header, which may be another author's.

    Raises `ValueError` for options that `ingest` refuses, except small sizes, which earlier
    versions accepted, and `KeyError`.
    """
    size = extra.get("chunk_size")
    overlap = _at_least(0, extra.get("overlap", 0))
    return Chunking(
        strategy=Strategy(extra["strategy"]),
        chunk_size=None if size is None else _at_least(overlap + 1, size),
        overlap=overlap,
        lines_per_chunk=_at_least(1, extra.get("lines_per_chunk", LINES)),
    )


def _at_least(least: int, number: Any) -> int:
    """Returns an integer of a header. Raises `ValueError` for any other or a smaller value."""
    if type(number) is not int or number < least:
        raise ValueError(number)
    return number


def without(data: bytes, number: int) -> bytes | None:
    """Returns a source's file without one of its chunks; None if that is the only one.

    Every other byte is unchanged. Raises `KeyError` if there is no such chunk.
    """
    document, _ = read_document(data, MAX_SOURCE_BYTES)
    text, sections = _sections(document)
    place = next((n for n, section in enumerate(sections) if section.number == number), None)
    if place is None:
        raise KeyError(number)
    if len(sections) == 1:
        return None
    section = sections[place]
    # The empty line before the last chunk belongs to the chunk.
    is_final = place == len(sections) - 1
    start = section.start - (is_final and text[: section.start].endswith("\n\n"))
    remainder = text[:start] + text[section.end :]
    plain = "\ufeff" * document.bom + remainder
    return (plain.replace("\n", "\r\n") if document.newline == "\r\n" else plain).encode()


def _header(source: Source) -> dict[str, Any]:
    memory = Memory(
        id=source.id,
        type=source.type,
        content="",
        created=source.created.astimezone(UTC),
        tags=source.tags,
        importance=source.importance,
        source=source.path,
        by=source.by,
    )
    asked = source.chunking
    options = {
        "strategy": asked.strategy.value,
        "chunk_size": asked.chunk_size,
        "overlap": asked.overlap or None,
        "lines_per_chunk": asked.lines_per_chunk if asked.lines_per_chunk != LINES else None,
        "chunks": source.total,
        "sha256": source.sha256,
        "metadata": dict(source.metadata) or None,
        **source.others,
    }
    return written(memory, ()) | {k: v for k, v in options.items() if v is not None}


def _metadata(extra: Mapping[str, Any]) -> dict[str, Any]:
    metadata = extra.get("metadata")
    return dict(metadata) if isinstance(metadata, Mapping) else {}
