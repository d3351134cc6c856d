"""The text of an answer: the structured content in a form that agents read.

Each line is either ours or a memory's, and the difference can't be forged: a stored text is on one
line behind the name of its field, or on lines that begin with `| `. The marks of a memory are
before its title, never behind it:

    results:
    - k3v7mq decision 3d 0.82 FAILED untrusted: Use JWT
      | Sessions would need a shared store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from mimo.memory.model import KIND_ALIASES, Kind
from mimo.memory.note import closed_as
from mimo.rendering.results import short_age
from mimo.server.rows import SHARED
from mimo.text.clean import clean

Schema: TypeAlias = Mapping[str, Any]

_WIDE = 100
"""Characters of a line of short values."""

_PLAIN = re.compile(r"[\w.@/+%#~-](?:[\w.@/+%#:~-]{0,98}[\w.@/+%#~-])?")
"""Values that can't be mistaken for several: numbers, names, paths, dates."""

_HEADING = re.compile(r"[\w .-]{1,60}(?:: [\w .-]{1,60})?")

_HEAD = ("type", "category", "date", "created_at", "relevance", "score", "decay_score")
_TYPES = frozenset({*Kind, *KIND_ALIASES})
_MARKS = ("outcome", "weak", "private", "trust", "scope", "protected", "chunks", "depth")
_UNREAD = (
    *("source_file", "source_line", "file", "line", "confidence", "importance", "by"),
    *("excerpt", "passage"),
)
"""Fields of rows that only the structured content has; the memory itself shows them."""


class Reader:
    """The writing of one answer."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        """`now` is asked only for an answer with dates."""
        self.now = now

    def read(self, data: Mapping[str, Any], schema: Schema) -> str:
        """Returns the text of a result."""
        return "\n".join(self._fields(data, schema, ""))

    def _fields(self, data: Mapping[str, Any], schema: Schema, indent: str) -> Iterator[str]:
        fields = schema.get("properties", {})
        default = schema.get("additionalProperties", {})
        for name, value in data.items():
            yield from self._field(name, value, fields.get(name, default), indent)

    def _field(self, name: str, value: Any, schema: Schema, indent: str) -> Iterator[str]:
        start = f"{indent}{name}:"
        if isinstance(value, str) and schema.keys() - {"description"}:  # Else JSON as stored.
            lines = clean(value).splitlines() or [""]
            if len(lines) == 1:
                yield f"{start} {lines[0].strip()}".rstrip()
            else:
                yield start
                yield from quoted(value, indent)
        elif isinstance(value, list) and "items" in schema:
            yield from self._list(name, value, schema["items"], indent)
        elif isinstance(value, dict) and _has_texts(value, schema):
            yield start
            yield from self._fields(value, schema, f"{indent}  ")
        else:
            yield f"{start} {_json(value)}"

    def _list(self, name: str, items: list[Any], schema: Schema, indent: str) -> Iterator[str]:
        start = f"{indent}{name}:"
        if not items:
            yield f"{start} none"
        elif all(isinstance(item, dict) for item in items) and "properties" in schema:
            yield start
            for item in items:
                yield from self._row(item, schema, indent)
        elif all(map(_is_plain, items)) and sum(map(len, map(str, items))) <= 20 * _WIDE:
            yield f"{start} {', '.join(map(_word, items))}"
        else:
            yield start
            for item in items:
                text = item if isinstance(item, str) and schema else _json(item)
                yield f"{indent}- {_line(text)}"

    def _row(self, row: Mapping[str, Any], schema: Schema, indent: str) -> Iterator[str]:
        memory = row.get("memory")
        if isinstance(memory, dict):  # A memory with its score.
            schema = schema["properties"].get("memory", {})
            row = {**memory, **{name: row[name] for name in row if name != "memory"}}
        if "id" in row and ("content" in row or "title" in row):
            yield from self._memory(row, schema, indent)
        else:
            yield from self._plain_row(row, schema, indent)

    def _memory(self, row: Mapping[str, Any], schema: Schema, indent: str) -> Iterator[str]:
        content = str(row.get("content") or "").strip()
        title = _line(str(row.get("title") or ""))
        if not title:
            first_line, _, content = content.partition("\n")
            title = _line(first_line)
        fields = schema.get("properties", {})
        head = [str(row["id"]), *self._head(row, fields), *_marks(row)]
        yield f"{indent}- {' '.join(head)}: {title}".rstrip()
        skipped = {"id", "title", "content", "superseded_by", *_HEAD, *_MARKS, *_UNREAD}
        skipped -= {name for name in ("category",) if not _is_ours(fields.get(name, {}))}
        skipped |= {"status"} if _closed(row) else set()
        details = {
            name: value
            for name, value in row.items()
            if name not in skipped and value not in (None, [], "")
        }
        yield from self._fields(details, schema, f"{indent}  ")
        if content.strip() and _line(content) != title:
            yield from quoted(content, indent)

    def _head(self, row: Mapping[str, Any], fields: Schema) -> Iterator[str]:
        for name in _HEAD:
            value = row.get(name)
            if name in ("date", "created_at") and isinstance(value, str):
                yield self._age(value)
            elif isinstance(value, float):
                yield f"{value:.2f}"
            elif isinstance(value, str) and (
                value in _TYPES if name == "type" else _is_ours(fields.get(name, {}))
            ):
                yield value

    def _age(self, date: str) -> str:
        try:
            return short_age(datetime.fromisoformat(date), self.now())
        except ValueError:
            return "undated"

    def _plain_row(self, row: Mapping[str, Any], schema: Schema, indent: str) -> Iterator[str]:
        """Yields the lines of a row that is not a memory: short values on one line, then others."""
        plain = {name: _word(value) for name, value in row.items() if _is_plain(value)}
        details = {n: v for n, v in row.items() if n not in plain and v not in (None, [], "", {})}
        summary = ", ".join(f"{name}: {value}" for name, value in plain.items())
        yield f"{indent}- {summary}".rstrip()
        yield from self._fields(details, schema, f"{indent}  ")


def _marks(row: Mapping[str, Any]) -> Iterator[str]:
    """Yields the marks of a memory, which are our own words."""
    if outcome := row.get("outcome"):
        yield str(outcome)
    for mark in ("weak", "private", "protected"):
        if row.get(mark):
            yield mark
    if row.get("trust") not in (None, "trusted"):
        yield "untrusted"
    if row.get("scope") == SHARED:
        yield "of another project"
    elif row.get("scope"):
        yield "for all projects"
    if closed := _closed(row):
        yield closed
    if newer := row.get("superseded_by"):
        yield f"superseded by {newer}"
    if row.get("chunks"):
        yield f"{row['chunks']} chunks"


def _closed(row: Mapping[str, Any]) -> str | None:
    """Returns the status of a closed issue or plan; rows without a type have only theirs."""
    status = row.get("status")
    return closed_as(row.get("type", Kind.ISSUE), status) if isinstance(status, str) else None


def quoted(text: str, indent: str = "") -> Iterator[str]:
    """Yields the lines of a stored text, each behind a bar."""
    for line in clean(text).splitlines():
        yield f"{indent}  | {line}".rstrip()


def _word(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _line(text: str) -> str:
    return " ".join(clean(text).split())


def _is_ours(schema: Schema) -> bool:
    """Returns whether a field has words of ours only."""
    return "enum" in schema


def _has_texts(value: Mapping[str, Any], schema: Schema) -> bool:
    """Returns whether an object has fields of ours, or texts under headings of ours."""
    default = schema.get("additionalProperties") or {}
    return "properties" in schema or ("type" in default and all(map(_HEADING.fullmatch, value)))


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return _PLAIN.fullmatch(value) is not None
    return isinstance(value, int | float)


def _json(value: Any) -> str:
    """Returns a value as JSON on one line without hidden characters."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # JSON escapes other ends of lines itself. A byte order mark is a part of the stored text.
    return clean(re.sub("[\u2028\u2029\ufeff]", lambda mark: f"\\u{ord(mark[0]):x}", text))
