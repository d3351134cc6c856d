"""Answers to agents in their size: rows with a passage each, and no answer above a ceiling.

A result has two forms, structured content and text, of which a client passes one to its model. Both
hold the same data, so each may have half of the ceiling.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, TypeAlias

from mimo.call.spec import CURSOR, Spec
from mimo.frozen import NamedTuple
from mimo.memory.ids import is_id, is_source, uri_of
from mimo.rendering.results import after_title
from mimo.server import parts
from mimo.server.parts import Position, Start
from mimo.server.rows import QUESTIONS
from mimo.text.tokens import excerpt

Schema: TypeAlias = Mapping[str, Any]

FORM = 12_000
"""The most bytes of each form of a result, unless the agent asks for more."""

BYTES_PER_TOKEN = 3
"""Fewer than of English text, because JSON and other languages have more tokens."""

LEAST_BUDGET = 400
"""Tokens of the smallest answer: room for a row, and for the note on the rows that are missing."""

_ROW, _ROWS = 265, 10
"""Bytes of a row, to which passages are adapted, and the fewest rows to allow for.

Ten rows stay below 6,000 bytes in both forms, and of fewer memories more is shown.
"""
_RANKED, _UNRANKED = (160, 120, 80), 60
"""Weights by which passages share the room: of the first matches, and of other memories."""
_PASSAGE, _TEXT, _TITLE = 50, 400, 80
"""Characters of a passage for which there always is room, of other texts in a row, and of a title.

The passage of a row without a title has room for both.
"""
_READ = 4_000
"""Characters after the best passage, or of the beginning, among which the excerpt is chosen."""

_UNCUT = 200
"""Bytes of a text that is never shortened: ids, names and dates."""

_FIELD = 4
"""Bytes of the signs around a field or an item."""

_LEAST = 20
"""Bytes of an item: a list with more of them than fit is not looked at as a whole."""

_LINE = 6
"""Bytes by which a line of a stored text may be longer in the text form than in JSON."""

_NOTE = 400
"""Bytes of the field `truncated`."""

_FILTERS = ("type", "types", "kinds", "tool", "time_filter", "name", "namespace")
"""Arguments by which a tool returns fewer rows, the most useful first."""

_MARK = "…"

_TEXTS: Schema = MappingProxyType({"type": "string"})
_NO_PAGES: Mapping[str, int] = MappingProxyType({})


class Cut(NamedTuple):
    """One shortened part of an answer."""

    path: tuple[str, ...]
    kept: int
    total: int
    is_list: bool
    is_end: bool = False
    """True if the last items of a list were kept."""
    position: Position = ()
    """The begin of the missing part in the field; empty in a row, and if nothing of it fits."""


_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def size(value: Any) -> int:
    """Returns the bytes of a value as JSON."""
    return len(_encoded(value).encode("utf-8", "replace"))


def fitted(
    data: Any,
    schema: Schema,
    limit: int,
    *,
    query: str = "",
    pages: Mapping[str, int] = _NO_PAGES,
    is_brief: bool = False,
) -> tuple[Any, list[Cut]]:
    """Returns data that take at most `limit` bytes in each form, and what was shortened.

    The data are valid against the schema. Each row of a list has a passage of its memory that
    matches the query, and a result's own memory stays whole. If `is_brief`, passages are adapted to
    the number of rows, otherwise they use all of the room. Lists named in `pages` have at most so
    many items, of a negative number the last ones. If the rows do not fit, those at the end are
    left out, and long texts are cut. Stored JSON is cut after a whole item.
    """
    fitter = _Fitter(limit, pages)
    short = fitter.shortened(data, schema)
    cost = _cost(short, schema)
    if fitter.cuts or cost > limit:
        short = fitter.fit(short, schema, limit - _NOTE)
        cost = _cost(short, schema)
    aim = min(_ROW * max(fitter.number, _ROWS), limit * 19 // 20) if is_brief else limit
    fitter.lengthen(short, query, aim - cost - (_NOTE if fitter.cuts else 0))
    return short, fitter.cuts


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yields an object and those in it."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from _objects(item)


def _is_free(schema: Schema) -> bool:
    """Returns whether a schema accepts any JSON, which the text form has on one line."""
    return schema.keys() <= {"description"}


def _cost(value: Any, schema: Schema) -> int:
    """Returns the bytes of the longer one of the two forms of a value, at most."""
    if isinstance(value, dict) and "properties" in schema:
        fields, extra = schema["properties"], _FIELD if "id" in value else _LINE
        return 2 + sum(
            len(name) + extra + _cost(item, fields.get(name, {})) for name, item in value.items()
        )
    if isinstance(value, list) and "items" in schema:
        return 2 + sum(_FIELD + _cost(item, schema["items"]) for item in value)
    text = _encoded(value)
    lines = sum(map(text.count, ("\\n", "\\r", "\x85", "\u2028", "\u2029", "\ufeff")))
    text = _encoded(text) if _is_free(schema) else text
    return len(text.encode("utf-8", "replace")) + lines * _LINE


def _text_cost(text: str) -> int:
    return _cost(text, _TEXTS)


class _Row(NamedTuple):
    """A row whose memory is longer than the beginning that it has."""

    short: dict[str, Any]
    row: Mapping[str, Any]
    content: str
    weight: int
    least: int
    """Characters of its passage for which there always is room."""

    def passage(self, query: str, room: int) -> str:
        """Returns the content if it takes at most `room` bytes, or else its best part.

        A part has the mark of what is missing in it, so that the row needs no field for it.
        """
        cost = _text_cost(self.content)
        if cost <= room:
            return self.content
        # The best passage is without the title, which the row has.
        title = str(self.row.get("title") or "")
        start = max(self.content.find(str(self.row.get("passage") or "")), 0)
        length = max(room * len(self.content) // cost, self.least)
        text = self.content[start : start + length + _READ]
        text = after_title(text, title).strip() or text
        part = excerpt(text, query, length)
        if start and part == text and after_title(self.content[:start], title).strip():
            part = f"{_MARK} {part}"
        if _text_cost(part) > (room := max(room, self.least)):
            room -= len(_MARK.encode())
            part = parts.beginning(part.rstrip(_MARK), room, _text_cost).rstrip() + _MARK
        return part


class _Fitter:
    """The shortening of one result."""

    def __init__(self, limit: int, pages: Mapping[str, int]) -> None:
        self._limit = limit
        self._pages = pages
        self._rows: dict[int, _Row] = {}
        """The rows that may get a passage, by the identities of their objects."""
        self.number = 0
        """The number of rows."""
        self.cuts: list[Cut] = []

    def shortened(
        self, value: Any, schema: Schema, path: tuple[str, ...] = (), weight: int = 0
    ) -> Any:
        """Returns a value whose rows are short; `weight` is that of the row that it is in."""
        if isinstance(value, dict) and (weight or "properties" in schema):
            fields = schema.get("properties", {})
            short = {
                name: self.shortened(item, fields.get(name, {}), (*path, name), weight)
                for name, item in value.items()
                if not weight or name != "passage"
            }
            content = str(value.get("content") or "").strip()
            least = _PASSAGE if value.get("title") else _TITLE + _PASSAGE
            if weight and len(content) > least:
                short["content"] = content[: least - 1] + _MARK
                short.pop("excerpt", None)
                self._rows[id(short)] = _Row(short, value, content, weight, least)
            return short
        if isinstance(value, list):
            inner, items = schema.get("items", {}), self._page(value, path)
            if "properties" not in inner:
                return items
            self.number += len(items) if not weight else 0
            return [
                self.shortened(row, inner, path, weight or _weight(row, number))
                for number, row in enumerate(items)
            ]
        limit = _TITLE if path[-1:] == ("title",) else _TEXT
        if isinstance(value, str) and weight and "enum" not in schema and len(value) > limit:
            return f"{value[: limit - 1].rstrip()}{_MARK}"
        return value

    def _page(self, items: list[Any], path: tuple[str, ...]) -> list[Any]:
        """Returns the items that an answer may have of a list of the result."""
        page = self._pages.get(".".join(path), self._limit)
        limit = min(abs(page), self._limit // _LEAST)
        if len(path) != 1 or len(items) <= limit:
            return items
        position = (0,) if page < 0 else (limit,)
        self._note(path, limit, len(items), is_list=True, is_end=page < 0, position=position)
        return items[-limit:] if page < 0 else items[:limit]

    def lengthen(self, data: Any, query: str, room: int) -> None:
        """Gives the rows in the data the best passages of their memories, in `room` more bytes.

        They share it by their weights, and the room that a short memory leaves is for the others.
        """
        rows = [self._rows[id(value)] for value in _objects(data) if id(value) in self._rows]
        weights = sum(row.weight for row in rows)
        for row in sorted(rows, key=lambda row: len(row.content) / row.weight):
            cost = _text_cost(row.short["content"])
            passage = row.passage(query, cost + max(room, 0) * row.weight // weights)
            row.short["content"] = passage
            if passage == row.content and row.row.get("excerpt"):
                row.short["excerpt"] = True
            room -= _text_cost(passage) - cost
            weights -= row.weight

    def fit(
        self,
        value: Any,
        schema: Schema,
        room: int,
        path: tuple[str, ...] = (),
        *,
        in_row: bool = False,
    ) -> Any:
        """Returns a value that takes at most about `room` bytes."""
        if _cost(value, schema) <= room or not isinstance(value, str | list | dict):
            return value
        if isinstance(value, dict) and "properties" in schema:
            return self._object(value, schema, room, path, in_row=in_row)
        if isinstance(value, list) and (
            "properties" in schema.get("items", {}) or self._ends(path)
        ):
            return self._list(value, schema, room, path, in_row=in_row)
        if isinstance(value, str) and schema.keys() & {"enum", "format"}:
            return value
        return self._part(value, schema, room, path, in_row=in_row)

    def _part(
        self, value: Any, schema: Schema, room: int, path: tuple[str, ...], *, in_row: bool
    ) -> Any:
        """Returns the first whole items of stored JSON or of a plain list, or of a text."""
        if isinstance(value, str) and not _is_free(schema):
            if size(value) <= _UNCUT:
                return value
            room = max(room, _UNCUT) - len(_MARK.encode())
        inner = schema.get("items") or schema.get("additionalProperties") or schema
        inner = schema if isinstance(value, str) else inner
        part, position = parts.first_part(value, room, lambda item: _cost(item, inner))
        is_list = not isinstance(value, str)
        self._note(
            path, len(part), len(value), is_list=is_list, position=() if in_row else position
        )
        return part + _MARK if in_row and isinstance(value, str) else part

    def _ends(self, path: tuple[str, ...]) -> bool:
        """Returns whether the last items of a list are shown."""
        return len(path) == 1 and self._pages.get(path[0], 0) < 0

    def _list(
        self, items: list[Any], schema: Schema, room: int, path: tuple[str, ...], *, in_row: bool
    ) -> list[Any]:
        inner: Schema = schema.get("items", {})
        is_end = self._ends(path)
        left = room - 2
        limit = max(left // 3, _UNCUT)
        pieces: list[Any] = []
        for item in reversed(items) if is_end else items:
            piece = self.fit(item, inner, min(limit, left), path, in_row=True)
            taken = _cost(piece, inner) + _FIELD
            if taken > left:
                break
            pieces.append(piece)
            left -= taken
        if (count := len(pieces)) < len(items):
            position = () if in_row else (0,) if is_end else (count,) if count else ()
            self._note(path, count, len(items), is_list=True, is_end=is_end, position=position)
        return pieces[::-1] if is_end else pieces

    def _object(
        self,
        value: dict[str, Any],
        schema: Schema,
        room: int,
        path: tuple[str, ...],
        *,
        in_row: bool,
    ) -> dict[str, Any]:
        fields = schema["properties"]
        left = room - 2 - sum(size(name) + _FIELD for name in value)
        costs = {name: _cost(item, fields.get(name, {})) for name, item in value.items()}
        short: dict[str, Any] = {}
        for number, name in enumerate(sorted(value, key=costs.__getitem__)):
            share, inner = max(left, 0) // (len(value) - number), fields.get(name, {})
            short[name] = self.fit(value[name], inner, share, (*path, name), in_row=in_row)
            left -= _cost(short[name], inner)
        return {name: short[name] for name in value}

    def _note(
        self,
        path: tuple[str, ...],
        count: int,
        total: int,
        *,
        is_list: bool,
        is_end: bool = False,
        position: Position = (),
    ) -> None:
        position = position if len(path) <= 2 else ()
        self.cuts.append(
            Cut(path[:2], count, total, is_list=is_list, is_end=is_end, position=position)
        )


def _weight(row: Any, number: int) -> int:
    """Returns the weight of a row, which depends on its rank if it has one."""
    is_ranked = isinstance(row, dict) and ("relevance" in row or "score" in row)
    return _RANKED[number] if is_ranked and number < len(_RANKED) else _UNRANKED


def continued(
    cuts: Sequence[Cut],
    spec: Spec,
    inputs: Mapping[str, Any],
    data: Any,
    start: Start = parts.BEGINNING,
) -> str:
    """Returns a sentence for an agent: what is missing in an answer, and how to read on.

    `data` are those of the whole answer, and `start` is where the answer begins in them.
    """
    names = {param.name for param in spec.params if param.arg.listed}
    longest: dict[tuple[tuple[str, ...], bool], Cut] = {}
    # A text in a list has the path of the list, which is stated first.
    for cut in sorted(cuts, key=lambda cut: not cut.is_list):
        earlier = longest.get((cut.path, cut.is_list), cut)
        total, length = max(cut.total, earlier.total), min(cut.kept, earlier.kept)
        longest[cut.path, cut.is_list] = cut._replace(kept=length, total=total)
    # What runs a procedure would run it again.
    reader = "read on with `procedure_status` and" if "execution_id" in data else ""
    reader = "read on with" if any(param is CURSOR for param in spec.params) else reader
    stated = [_stated(cut, reader, data, start) for cut in longest.values()]
    if start.path and not any(cut.path == start.path for cut in longest.values()):
        stated.insert(0, parts.last_part(data, start))
    ways = []
    rows = next((cut for cut in longest.values() if cut.is_list and len(cut.path) < 2), None)
    if rows and "offset" in names:
        ways.append(f"read on with `offset: {int(inputs.get('offset') or 0) + rows.kept}`")
    elif rows and "limit" in names:
        ways.append(f"`limit: {max(rows.kept, 1)}`{_narrowed(names, inputs)}")
    elif rows and any(map(inputs.get, QUESTIONS)):
        ways.append("a narrower question has whole rows")
    is_present = inputs.get("at") is None  # A resource has no earlier revision.
    if is_present and any(not cut.is_list for cut in longest.values()) and (id := _id_of(data)):
        ways.append(f"the resource `{uri_of(id)}` is whole")
    return "; ".join([*stated[:3], *ways])


def _narrowed(names: Set[str], inputs: Mapping[str, Any]) -> str:
    """Returns the advice after a lower limit, with arguments that the tool has."""
    if any(map(inputs.get, QUESTIONS)):
        return " with a narrower question has whole rows"
    if "cursor" in names:
        return " has whole rows, and its `cursor` continues them"
    filters = [f"`{name}`" for name in _FILTERS if name in names][:2]
    return " has whole rows" + (f"; narrow them with {' or '.join(filters)}" if filters else "")


def _id_of(data: Any) -> str | None:
    """Returns the id of the one memory that a result is about; None for an ingested file."""
    memory = data.get("memory", data)
    id = memory.get("id") if isinstance(memory, dict) and "content" in memory else None
    is_memory = isinstance(id, str) and is_id(id) and not is_source(id)
    return id if is_memory else None


def _stated(cut: Cut, reader: str, data: Any, start: Start) -> str:
    """Returns what an answer has of a shortened part, and the cursor of the rest."""
    name, begin, end, total = ".".join(cut.path) or "the answer", 1, cut.kept, cut.total
    is_text, way = not cut.is_list, ""
    if cut.position:
        position = parts.moved(cut.position, start.position if cut.path == start.path else ())
        place = Start(cut.path, position)
        if not cut.is_end:
            name, begin, end, total, is_text = parts.counted(data, start, place)
        way = f", {reader} `{CURSOR.name}: {parts.cursor_at(data, place)}`" if reader else ""
    count = f"{begin:,} to {end:,}" if begin > 1 else f"the first {end:,}"
    count = f"the last {end:,}" if cut.is_end else count
    return f"`{name}`: {count} of {total:,}{' characters' if is_text else ''}{way}"
