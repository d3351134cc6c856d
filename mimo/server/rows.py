"""Rows of answers to agents, which state each fact once.

Many clients give their model only the structured content, so its rows are hardly longer than the
text: no null, the short id, no path that the id gives, no title that the content begins with, dates
without a time, no author, and a project or tags only if they were asked for. A day that all rows of
an overview share is stated once, before them. An argument that is a question is not repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, TypeAlias

from mimo.memory.ids import SUFFIX, handle_of

Schema: TypeAlias = Mapping[str, Any]
Row: TypeAlias = tuple[dict[str, Any], Mapping[str, Schema]]

QUESTIONS = ("query", "userQuestion")
"""Arguments that are a question."""

SHARED = "org"
"""The scope of a memory of the shared index, which is of another project."""

_NAMES = (
    *("source", "target", "to", "other", "superseded_by", "competing", "related_to", "supersedes"),
    *("current", "start", "missing"),
)
"""Fields with ids of memories."""

DAY, _CREATED = "date", "created_at"
"""The time of a memory: in rows of titles, and in other rows."""
_DATES = (DAY, _CREATED, "updated_at")
"""Fields with a date of a memory."""

_PLACES = {"file": "line", "source_file": "source_line"}
"""Fields with the file of a memory, and the fields with a line of it."""


def brief(
    data: Mapping[str, Any], schema: Schema, unasked: Set[str] = frozenset()
) -> dict[str, Any]:
    """Returns the data of an answer with brief rows, whose memories lack the `unasked` fields."""
    fields = schema.get("properties", {})
    return {
        name: _brief_value(name, value, fields.get(name, {}), unasked)
        for name, value in data.items()
        if name not in QUESTIONS
    }


def _brief_value(name: str, value: Any, schema: Schema, unasked: Set[str]) -> Any:
    if isinstance(value, dict) and "properties" in schema:
        return brief(value, schema, unasked)
    if isinstance(value, list) and "items" in schema:
        items: Schema = schema["items"]
        if "properties" not in items:
            return [_brief_value(name, item, items, unasked) for item in value]
        return [_brief_row(row, items, unasked) for row in value]
    # A source is a file, too.
    is_id = name in _NAMES and isinstance(value, str) and value.endswith(handle_of(value))
    return handle_of(value) if is_id else value


def _brief_row(row: Mapping[str, Any], schema: Schema, unasked: Set[str]) -> dict[str, Any]:
    fields = schema["properties"]
    is_memory = "id" in row and ("content" in row or "title" in row)
    left_out = {name for name, value in row.items() if value is None and fields.get(name)}
    if is_memory:
        for place, line in _PLACES.items():
            if str(row.get(place)).endswith(f"/{row['id']}{SUFFIX}"):
                left_out |= {place, line}
        left_out |= unasked - ({"project"} if row.get("scope") == SHARED else set())
    is_title = is_memory and is_of_titles(schema)
    short = {
        DAY if is_title and name == _CREATED else name: _brief_row(value, fields[name], unasked)
        if isinstance(value, dict) and "properties" in fields.get(name, {})
        else _brief_value(name, value, fields.get(name, {}), unasked)
        for name, value in row.items()
        if name not in left_out
    }
    return short | {"id": handle_of(row["id"])} if is_memory else short


def is_of_titles(schema: Schema) -> bool:
    """Returns whether a schema is that of rows with the titles of memories alone."""
    fields = schema.get("properties", {})
    return {_CREATED, "title"} <= fields.keys() and "content" not in fields


def drop_titles(data: dict[str, Any], schema: Schema) -> None:
    """Removes the title of each row whose content begins with it, also as a heading."""
    for row, _ in _rows(data, schema):
        title = str(row.get("title") or "").removesuffix("…").rstrip()
        if title and str(row.get("content") or "").lstrip("# ").startswith(title):
            del row["title"]


def shorten_values(data: dict[str, Any], schema: Schema) -> None:
    """Removes the time of day from the dates of memories in rows, and rounds numbers.

    Rows of titles that all have the same day leave it to the answer.
    """
    for row, _ in _rows(data, schema):
        for name, value in row.items():
            if isinstance(value, float):
                row[name] = round(value, 2)
            elif name in _DATES and isinstance(value, str) and ("content" in row or "title" in row):
                row[name] = value[:10]
    for name, rows in [*data.items()]:
        row_schema = schema.get("properties", {}).get(name, {}).get("items", {})
        if DAY in data or not is_of_titles(row_schema):
            continue
        days = {row.get(DAY) for row in rows}
        if len(rows) > 1 and len(days) == 1 and None not in days:
            rest = data.copy()
            data.clear()
            data |= {DAY: days.pop(), **rest}
            for row in rows:
                del row[DAY]


def _rows(data: dict[str, Any], schema: Schema, *, in_row: bool = False) -> Iterator[Row]:
    """Yields each row of an answer, and the objects in it, with the schemas of their fields."""
    fields = schema.get("properties", {})
    if in_row:
        yield data, fields
    for name, value in data.items():
        inner = fields.get(name, {})
        if isinstance(value, dict) and "properties" in inner:
            yield from _rows(value, inner, in_row=in_row)
        elif isinstance(value, list) and "properties" in inner.get("items", {}):
            for row in value:
                yield from _rows(row, inner["items"], in_row=True)
