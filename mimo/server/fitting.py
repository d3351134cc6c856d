"""Answers to agents in their size: rows with a passage each, and no answer above a ceiling.

A result has two forms, structured content and text, of which a client passes one to its model. Both
hold the same data, so each may have half of the ceiling.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias

from mimo.commands.spec import BUDGET, Published, Spec, fields_of
from mimo.frozen import NamedTuple
from mimo.memory.ids import is_id, is_source, uri_of
from mimo.rendering.results import after_title
from mimo.text.tokens import excerpt

Schema: TypeAlias = Mapping[str, Any]

CEILING = 25_000
"""The most bytes of a result as it is sent, unless the agent asks for more."""

FORM = 12_000
"""The most bytes of each form of a result."""

BYTES_PER_TOKEN = 3
"""Fewer than of English text, because JSON and other languages have more tokens."""

LEAST_BUDGET = 400
"""Tokens of the smallest answer: room for a row, and for the note on the rows that are missing."""

_RANKED = (160, 120, 80)
"""Characters of the passages of the first matches."""
_PASSAGE = 60
"""Characters of the passage of any other memory in a list."""
_READ = 4_000
"""Characters after the best passage, or of the beginning, among which the excerpt is chosen."""
_ROW, _ROWS = 580, 10
"""Bytes of a row in both forms, to which passages are adapted, and the fewest rows to allow for.

Ten rows stay below 6,000 bytes, and of fewer memories more is shown.
"""
_TEXT = 400
"""Characters of other texts in a row."""

SCALES = (25, 12, 6, 3, 2, 1, 0.9, 0.8, 0.7, 0.6)
"""Multiples of these lengths to try."""

_UNCUT, _UNCUT_JSON = 200, 40
"""Bytes of a text that is never shortened: ids, names and dates; any text in stored JSON."""

_DEEPEST = 20
"""Levels of stored JSON that a shortened answer has."""

_LEAST = 40
"""Bytes that every row has."""

_LONGEST_PATH = 60
"""Characters of the name of a shortened part; one in stored JSON may be longer."""

_QUESTIONS = ("query", "userQuestion")
"""Arguments that are a question."""

_FILTERS = ("type", "types", "kinds", "tool", "time_filter", "name", "namespace")
"""Arguments by which a tool returns fewer rows, the most useful first."""

_MARK = "…"


class Cut(NamedTuple):
    """One shortened part of an answer."""

    path: str
    kept: int
    total: int
    is_list: bool
    is_end: bool = False
    """True if the last items of a list were kept."""


def size(value: Any) -> int:
    """Returns the bytes of a value as JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode("utf-8", "replace"))


def published_of(result: object) -> tuple[Published, ...]:
    """Returns the published fields of a result."""
    cls: Any = type(result)
    return fields_of(cls)


def paged(result: object, data: dict[str, Any]) -> list[Cut]:
    """Shortens the lists that have a length of their own in answers to agents."""
    cuts = []
    for field in published_of(result):
        items = data.get(field.name)
        if field.page and isinstance(items, list) and len(items) > abs(field.page):
            is_end = field.page < 0
            data[field.name] = items[field.page :] if is_end else items[: field.page]
            cuts.append(Cut(field.name, abs(field.page), len(items), is_list=True, is_end=is_end))
    return cuts


def capped(
    data: Mapping[str, Any], schema: Schema, most: int, ends: Sequence[str]
) -> tuple[dict[str, Any], list[Cut]]:
    """Returns data without the items of lists that can't be in an answer of `most` bytes."""
    fields, cuts, short = schema.get("properties", {}), [], dict(data)
    for name, items in data.items():
        inner = fields.get(name, {}).get("items", {})
        limit = most // (_LEAST if "properties" in inner else 2)
        if isinstance(items, list) and len(items) > limit:
            is_end = name in ends
            short[name] = items[-limit:] if is_end else items[:limit]
            cuts.append(Cut(name, limit, len(items), is_list=True, is_end=is_end))
    return short, cuts


def aim(data: Mapping[str, Any]) -> int:
    """Returns the bytes of both forms together that passages should not exceed."""
    lists = [value for value in data.values() if isinstance(value, list)]
    return _ROW * max(sum(isinstance(row, dict) for rows in lists for row in rows), _ROWS)


def brief(value: Any, schema: Schema, query: str | None, scale: float) -> Any:
    """Returns a result's data in which each row of a list has at most a passage of a memory.

    The passage is the one that matches the query best; a result's own memory stays whole.
    """
    if isinstance(value, dict) and "properties" in schema:
        fields = schema["properties"]
        return {
            name: brief(item, fields.get(name, {}), query, scale) for name, item in value.items()
        }
    if isinstance(value, list) and "properties" in (items := schema.get("items", {})):
        return [
            _row(row, items, query, _length(row, number, scale)) for number, row in enumerate(value)
        ]
    return value


def _length(row: Any, number: int, scale: float) -> int:
    is_ranked = isinstance(row, dict) and ("relevance" in row or "score" in row)
    first = _RANKED[number] if is_ranked and number < len(_RANKED) else _PASSAGE
    return int(first * scale)


def _row(row: Any, schema: Schema, query: str | None, most: int) -> Any:
    if not isinstance(row, dict):
        return row
    fields = schema.get("properties", {})
    short = {
        name: _part(item, fields.get(name, {}), query, most)
        for name, item in row.items()
        if name != "passage"
    }
    if isinstance(content := row.get("content"), str):
        short["content"] = _passage(content.strip(), row, query or "", most)
        if "excerpt" in fields and short["content"] != content.strip():
            short["excerpt"] = True
    return short


def _passage(content: str, row: Mapping[str, Any], query: str, most: int) -> str:
    """Returns the best part of a memory: from its best passage on, without the title."""
    if len(content) <= most:
        return content
    start = content.find(str(row.get("passage") or ""))
    text = content[max(start, 0) :][: most + _READ]
    text = after_title(text, str(row.get("title") or "")).strip() or text
    return excerpt(text, query, most)


def _part(value: Any, schema: Schema, query: str | None, most: int) -> Any:
    if isinstance(value, str) and "enum" not in schema:
        longest = max(most, _TEXT)
        return value if len(value) <= longest else f"{value[: longest - 1].rstrip()}{_MARK}"
    if isinstance(value, dict):
        return _row(value, schema, query, most)
    return brief(value, schema, query, most / _PASSAGE)


def fitted(
    value: Any, schema: Schema, room: int, ends: Sequence[str] = ()
) -> tuple[Any, list[Cut]]:
    """Returns data of about `room` bytes, valid against the schema, and what was shortened.

    Rows are dropped from the end, from the beginning of the lists named in `ends`; long texts are
    cut, and only stored JSON loses keys.
    """
    fitter = _Fitter(ends)
    return fitter.fit(value, schema, room, (), 0), fitter.cuts


class _Fitter:
    """The shortening of one result."""

    def __init__(self, ends: Sequence[str]) -> None:
        self._ends = ends
        self.cuts: list[Cut] = []

    def fit(self, value: Any, schema: Schema, room: int, path: tuple[str, ...], depth: int) -> Any:
        """Returns a value that takes at most about `room` bytes."""
        if size(value) <= room:
            return value
        is_free = not schema or schema.keys() <= {"description"}
        if isinstance(value, str):
            return self._text(value, schema, room, path, is_free=is_free)
        if is_free and (depth > _DEEPEST or not isinstance(value, list | dict)):
            return _MARK  # Any value is valid here.
        if isinstance(value, list):
            return self._list(value, schema, room, path, depth)
        if isinstance(value, dict):
            return self._object(value, schema, room, path, depth)
        return value

    def _text(
        self, text: str, schema: Schema, room: int, path: tuple[str, ...], *, is_free: bool
    ) -> str:
        shortest = _UNCUT_JSON if is_free else _UNCUT
        if "enum" in schema or "format" in schema or size(text) <= shortest:
            return text
        most = max(room, shortest)
        kept = text[:most]
        while size(kept) > most - len(_MARK.encode()):
            kept = kept[: min(len(kept) - 1, len(kept) * most // size(kept))]
        self._note(path, len(kept), len(text), is_list=False)
        return kept + _MARK

    def _list(
        self, items: list[Any], schema: Schema, room: int, path: tuple[str, ...], depth: int
    ) -> list[Any]:
        inner: Schema = schema.get("items", {})
        is_end = len(path) == 1 and path[0] in self._ends
        left = room - 2
        most = max(left // 3, _UNCUT)
        kept: list[Any] = []
        for item in reversed(items) if is_end else items:
            piece = self.fit(item, inner, min(most, left), path, depth + 1)
            taken = size(piece) + 1
            if taken > left:
                break
            kept.append(piece)
            left -= taken
        if len(kept) < len(items):
            self._note(path, len(kept), len(items), is_list=True, is_end=is_end)
        return kept[::-1] if is_end else kept

    def _object(
        self, value: dict[str, Any], schema: Schema, room: int, path: tuple[str, ...], depth: int
    ) -> dict[str, Any]:
        fields = schema.get("properties")
        other = schema.get("additionalProperties") or {}
        names = list(value) if fields is not None else list(_fitting_names(value, room))
        left = room - 2 - sum(size(name) + 2 for name in names)
        short: dict[str, Any] = {}
        smallest_first = sorted(names, key=lambda name: size(value[name]))
        for number, name in enumerate(smallest_first):
            inner = fields.get(name, {}) if fields is not None else other
            share = max(left, 0) // (len(names) - number)
            short[name] = self.fit(value[name], inner, share, (*path, name), depth + 1)
            left -= size(short[name])
        if len(names) < len(value):
            self._note(path, len(names), len(value), is_list=True)
        return {name: short[name] for name in names}

    def _note(
        self, path: tuple[str, ...], kept: int, total: int, *, is_list: bool, is_end: bool = False
    ) -> None:
        self.cuts.append(Cut(".".join(path[:2]), kept, total, is_list=is_list, is_end=is_end))


def _fitting_names(value: Mapping[str, Any], room: int) -> Iterator[str]:
    """Yields the first names of a stored object that take half of the room."""
    left = room // 2
    for name in value:
        left -= size(name) + 2 + min(size(value[name]), _UNCUT_JSON)
        if left < 0:
            return
        yield name


def continued(cuts: Sequence[Cut], spec: Spec, given: Mapping[str, Any], data: Any) -> str:
    """Returns a sentence for an agent: what is missing in an answer, and how to read on."""
    names = {param.name for param in spec.params}
    longest: dict[tuple[str, bool], Cut] = {}
    # A text in a list has the path of the list, which is stated first.
    for cut in sorted(cuts, key=lambda cut: not cut.is_list):
        earlier = longest.get((cut.path, cut.is_list), cut)
        if len(cut.path) <= _LONGEST_PATH:
            total = max(cut.total, earlier.total)
            kept = min(cut.kept, earlier.kept)
            longest[cut.path, cut.is_list] = cut._replace(kept=kept, total=total)
    parts = [_stated(cut) for cut in list(longest.values())[:3]]
    ways = []
    rows = next((cut for cut in longest.values() if cut.is_list and "." not in cut.path), None)
    if rows and "offset" in names:
        ways.append(f"read on with `offset: {int(given.get('offset') or 0) + rows.kept}`")
    elif rows and "limit" in names:
        ways.append(f"`limit: {max(rows.kept, 1)}`{_narrowed(names, given)}")
    is_present = given.get("at") is None  # A resource has no earlier revision.
    if is_present and any(not cut.is_list for cut in longest.values()) and (id := _id_of(data)):
        ways.append(f"the resource `{uri_of(id)}` is whole")
    budget = given.get(BUDGET.name)
    if BUDGET.name in names and (budget or 0) < (BUDGET.arg.le or 0):
        ways.append(f"`{BUDGET.name}: {BUDGET.arg.le:.0f}` returns more")
    return "; ".join([*parts, *ways])


def _narrowed(names: Set[str], given: Mapping[str, Any]) -> str:
    """Returns the advice after a lower limit, with arguments that the tool has."""
    if any(given.get(name) for name in _QUESTIONS):
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


def _stated(cut: Cut) -> str:
    what = f"`{cut.path}`" if cut.path else "the answer"
    if not cut.is_list:
        return f"{what}: the first {cut.kept:,} of {cut.total:,} characters"
    return f"{what}: the {'last' if cut.is_end else 'first'} {cut.kept:,} of {cut.total:,}"
