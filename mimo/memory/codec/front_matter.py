"""Front matter: headers in YAML (`---`) and TOML (`+++`), read, written and located.

YAML is plain data as in YAML 1.2: no anchors, aliases, tags, merge keys or duplicate keys, at most
six levels and 200 keys in a mapping. A plain value is null, true, false or a number only if it is
written as in JSON: `no`, `0123`, `12:30`, `1.10` and dates are text, so that nothing is lost.

The reader walks libyaml's events. A hostile header is refused at the first event that breaks a
rule, and the place of every value is known for edits in place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from functools import cache
from typing import Any

from mimo.data.loads import DataError, bounded, loads
from mimo.errors import Invalid
from mimo.frozen import NamedTuple, field, frozen, replace
from mimo.memory.codec.document import Syntax, Unreadable
from mimo.text.calendar import iso_utc
from mimo.text.clean import compiled

GONE: Any = object()
"""The value of a key that is to be removed."""
LISTS = frozenset({"tags", "links"})
"""The keys whose comments stay if all items are removed; other keys may mean something empty."""

MAX_KEYS = 200
MAX_DEPTH = 6
_TOML_DEPTH = 40
_LONGEST_KEY = 200
"""Well below the 1,024 characters within which a YAML parser looks for a key's colon."""

# Words and marks without a meaning in YAML; anything else is quoted. In a list, PyYAML reads no
# plain text with `?`.
_PLAIN = re.compile(r"[^\W\d_](?:[\w .,/()+@%;!?='-]|:(?=[\w/]))*(?<! )")
_PLAIN_IN_LIST = re.compile(r"[^\W\d_](?:[\w ./()+@%;!=-])*(?<! )")
# Booleans of YAML 1.1.
_OLD_WORDS = frozenset(("y", "n", "yes", "no", "on", "off"))
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def emitted_lines(header: Mapping[str, Any]) -> str:
    """Returns a whole header, each key as `entry` shows it. Raises `Invalid`."""
    _check_size(header)
    return "".join(f"{entry(key, value)}\n" for key, value in header.items())


def entry(key: str, value: Any) -> str:
    """Returns the line or lines of one key, without the last line end.

    `links` are one a line. Raises `Invalid` for data that is not JSON-like.
    """
    is_block = key == "links" and isinstance(value, list | tuple) and len(value) > 0
    return f"{scalar(_key(key))}:{block(value) if is_block else ' ' + flow(value, 2)}"


def block(items: Any) -> str:
    """Returns a list with one item a line, to follow the key's colon."""
    return "".join(f"\n  - {flow(item, 3)}" for item in items)


def flow(value: Any, depth: int = 2, *, nested: bool = False) -> str:
    """Returns a value on one line, as YAML; `depth` is its level in the header, from 1."""
    if isinstance(value, str):
        return scalar(value, nested=nested)
    if isinstance(value, Mapping | list | tuple):
        if depth > MAX_DEPTH:
            raise Invalid(f"header values can't be nested deeper than {MAX_DEPTH}")
        if not isinstance(value, Mapping):
            return f"[{', '.join(flow(item, depth + 1, nested=True) for item in value)}]"
        _check_size(value)
        pairs = (
            f"{scalar(_key(key), nested=True)}: {flow(item, depth + 1, nested=True)}"
            for key, item in value.items()
        )
        return f"{{{', '.join(pairs)}}}"
    return _atom(value)


def scalar(text: str, *, nested: bool = False) -> str:
    """Returns text as a YAML scalar on one line, quoted if plain text could mean something else."""
    pattern = _PLAIN_IN_LIST if nested else _PLAIN
    if (
        pattern.fullmatch(text)
        and isinstance(resolve(text), str)
        and text.lower() not in _OLD_WORDS
    ):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda char: f"\\u{ord(char[0]):04x}", quoted)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise Invalid(f"a header key must be text, not `{key!r}`")
    if len(key) > _LONGEST_KEY:
        raise Invalid(f"the header key `{key[:40]}…` is too long", hint="put it into the content")
    return key


def _check_size(mapping: Mapping[str, Any]) -> None:
    if len(mapping) > MAX_KEYS:
        raise Invalid(f"a header can't hold {len(mapping)} keys, only {MAX_KEYS}")


def _atom(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return iso_utc(value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        text = repr(value)
        if type(resolve(text)) is type(value):
            return text
    raise Invalid(f"a header can't hold `{value!r}`", hint="use text, numbers, lists or mappings")


_FLAT_WORDS = r"[A-Za-z0-9](?:[\w ./()+@%;!?=',-]|:(?=\w))*(?<! )"
_QUOTED = r"[\w !#-/:-@\[\]^`{|}~]*"
_ITEM = r"[A-Za-z0-9][\w./-]*"
_LINK = rf"\{{to: {_ITEM}, type: {_ITEM}(?:, confidence: {_ITEM})?\}}"
_LINE = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]{0,199}):"  # YAML limits the length of a key.
    rf'(?: (?:({_FLAT_WORDS})|"({_QUOTED})"|\[({_ITEM}(?:, {_ITEM})*)\])'
    rf"|((?:\r?\n  - {_LINK})+))\r?\n"
)


def load_flat(text: str) -> dict[str, Any] | None:
    """Returns the data of a header of plain values and links, as mind writes it; else None.

    No YAML parser is loaded for it.
    """
    data: dict[str, Any] = {}
    position = 0
    while position < len(text):
        line = _LINE.match(text, position)
        if line is None or line[1] in data or len(data) == MAX_KEYS:
            return None
        key, words, quoted, items, links = line.groups()
        if links is not None:
            data[key] = [
                {name: resolve(item) for name, item in re.findall(rf"(\w+): ({_ITEM})", link)}
                for link in links.splitlines()[1:]
            ]
        elif items is not None:
            data[key] = [resolve(item) for item in items.split(", ")]
        else:
            data[key] = quoted if words is None else resolve(words)
        position = line.end()
    return data


_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMERIC = frozenset("-0123456789")
"""The first characters of numbers."""
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,99}")
_FLOAT = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:e[-+]?[0-9]{1,3})?")
# Rule files of editors contain `globs: **/*.ts` without quotes. That can't be an alias, so it is
# text: the parser gets another character of the same length, which is replaced again afterwards.
_STAR = re.compile(
    # Possessive: a row of dashes could be divided in exponentially many ways.
    r"^((?:[ \t]*+-[ \t]++)*+[ \t]*+(?:[\w.-]++[ \t]*+:[ \t]++)?+)\*(?!\w+[ \t]*(?:#.*)?\r?$)",
    re.MULTILINE,
)
_STAND_IN = "\ue000"
_HINTS = {
    "mapping values are not allowed": "a value that holds `: ` needs quotes",
    "cannot start any token": "a value that begins with `@`, `` ` `` or a tab needs quotes",
    "expected alphabetic or numeric": "a value that begins with `&` or `!` needs quotes",
    "could not find expected ':'": "each line must be `key: value`",
    "did not find expected key": "a quote or bracket is missing, or the indentation is off",
    "did not find expected node content": "a quote or bracket is missing",
    "did not find expected ','": "a bracket is missing",
    "unexpected end of stream": "a quote is missing",
}


_KEY_LINES = {
    "yaml": r"(?:[^\W\d_][\w .-]{0,60}|\"[^\"\n]{1,60}\"|'[^'\n]{1,60}')[ \t]*:(?:[ \t]|$)",
    "toml": r"[\w\"'-]{1,60}[ \t]*=",
}
_UNQUOTED = r"([ \t]*\w[\w .-]*:[ \t]+)([^\s\"'\[{|>&*!#].*(?:: .*|:)|[@`%].*)"
"""A line of a header whose value needs quotes in YAML."""
_BLOCK_MARKS = ("|", ">", "|-", ">-", "|+", ">+")

Place = tuple[str | int, ...]
"""The path of keys and positions to a part of a YAML text."""


@frozen
class Value:
    """A value and its place, in characters of the header's text."""

    data: Any
    start: int
    end: int
    """After its last character, without comments and blank lines."""
    column: int
    is_block_list: bool = False
    """True for a list with one item a line, each after a dash."""
    items: Sequence[Value] = ()
    """The items of a list."""


@frozen
class Entry:
    """A key of the header, and its value."""

    key: str
    start: int
    end: int
    """After the key, before the colon."""
    column: int
    value: Value


@frozen
class Header:
    """All entries of a header, in order; `flow` if it is written `{…}`."""

    entries: Sequence[Entry] = ()
    flow: bool = False
    lines: Mapping[Place, int] = field(default_factory=dict)
    """The 1-based line of each key and item."""

    @property
    def data(self) -> dict[str, Any]:
        """Returns the header as a dict."""
        return {entry.key: entry.value.data for entry in self.entries}


class NotAMapping(Exception):
    """The text is valid YAML but a list or one value: prose between two rules, not a header."""


def load(text: str, syntax: Syntax = "yaml") -> dict[str, Any]:
    """Returns the data of a header.

    Raises `NotAMapping`, and `Unreadable` with the 1-based line in `text`.
    """
    if syntax == "toml":
        return _load_toml(text)
    if (flat := load_flat(text)) is not None:
        return flat
    import frontmatter

    handler: Any = _Handler(text)
    return frontmatter.parse("", handler=handler)[0]


def read(text: str, *, deepest: int = MAX_DEPTH) -> Header:
    """Returns the entries of a header with their places. Raises the errors of `load`."""
    try:
        header = _Reader(_loader_class()(text), deepest).header()
    except (NotAMapping, Unreadable):
        raise
    except Exception as error:  # noqa: BLE001 - a parser raises more than `YAMLError`
        raise _unreadable(error, text) from None
    entries = [
        _with_hash(entry, text) if entry.key == "title" else entry for entry in header.entries
    ]
    return header if header.flow else replace(header, entries=entries)


def _with_hash(entry: Entry, text: str) -> Entry:
    """Returns the entry of a title with ` #42` in it: only `  # …` begins a comment of a title."""
    value, line_end = entry.value, text.find("\n", entry.value.end)
    line = text[value.end : line_end if line_end >= 0 else len(text)]
    comment = compiled(r"(?<=[ \t]{2})#|(?<=\t)#").search(line)
    tail = line[: comment.start() if comment else len(line)].rstrip()
    is_plain = value.end > value.start and text[value.start] not in "\"'|>[{"
    if not value.data and re.match(r" ?#[^\s#]", tail):  # YAML reads `title: #42` as a comment.
        return replace(entry, value=replace(value, data=tail.strip(), end=value.end + len(tail)))
    if not tail.startswith(" #") or not is_plain or "\n" in text[value.start : value.end]:
        return entry
    data = text[value.start : value.end] + tail
    return replace(entry, value=replace(value, data=data, end=value.end + len(tail)))


def load_lines(text: str, syntax: Syntax = "yaml") -> dict[str, Any]:
    """Returns the data of a header that is not quite YAML or TOML, each key by itself.

    A value that can't be read is the text behind its key, or a list of texts below it. Other lines
    are left out. Of a key that appears twice, the last value counts.
    """
    data: dict[str, Any] = {}
    parts: list[list[str]] = []
    # `splitlines` also ends a line where people see none.
    for line in text.replace("\r\n", "\n").split("\n"):
        if compiled(_KEY_LINES[syntax]).match(line):
            parts.append([line])
        elif parts and (not line.strip() or line[0] in " \t-"):
            parts[-1].append(line)
    for part in parts[:MAX_KEYS]:
        try:
            data |= _load_quoted(list(part), syntax)
        except (Unreadable, NotAMapping):
            key, _, value = part[0].partition("=" if syntax == "toml" else ":")
            data[key.strip("\"' \t")] = _as_texts(
                value.strip(), [line.strip() for line in part[1:]]
            )
    return data


def _load_quoted(lines: list[str], syntax: Syntax) -> dict[str, Any]:
    """Returns the data of a key, some values of which lack quotes: `about: Use tabs: always`."""
    for _ in lines:
        try:
            return load("\n".join(lines) + "\n", syntax)
        except Unreadable as error:
            number = (error.line or 0) - 1
            line = lines[number].rstrip() if 0 <= number < len(lines) else ""
            match = compiled(_UNQUOTED).fullmatch(line)
            if match is None or syntax == "toml":
                raise
            lines[number] = match[1] + json.dumps(match[2], ensure_ascii=False)
    return load("\n".join(lines) + "\n", syntax)


def _as_texts(value: str, below: Sequence[str]) -> str | list[str]:
    """Returns what is written behind a key and on the lines below it."""
    is_list = value[:1] == "[" and value.find("]") in (-1, len(value) - 1)
    items = value[1:].rstrip("]").split(",") if is_list else None
    if not value and any(line.startswith("-") for line in below):
        items = [line[1:] for line in below if line.startswith("-")]
    if items is not None:
        return [text for item in items if (text := item.strip("\"' \t"))]
    words = ["" if value in _BLOCK_MARKS else value, *below]
    text = " ".join(filter(None, words))
    is_quoted = text[:1] in ("'", '"') and text.rfind(text[0]) in (0, len(text) - 1)
    return text.strip(text[0]) if is_quoted else text


class Fault(NamedTuple):
    """An error in a file, and its line, from 1."""

    line: int | None
    reason: str


class Located:
    """The data of a YAML text that is a file or a part of one, with the line of each part."""

    def __init__(self, text: str, *, first_line: int = 1, deepest: int = MAX_DEPTH) -> None:
        """Reads the text. Raises `Unreadable`, as lines are counted from `first_line`."""
        self._before = first_line - 1
        try:
            header = read(text, deepest=deepest)
        except NotAMapping:
            raise Unreadable("it must be a mapping of `key: value` lines", first_line) from None
        except Unreadable as error:
            reason = error.reason.removeprefix("header: ")
            raise Unreadable(reason, self._before + (error.line or 1)) from None
        self.data, self._lines = header.data, header.lines

    def line(self, place: Place) -> int:
        """Returns the line of a place in the file, or of the nearest part around it."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._before + self._lines.get(place, 1)


def resolve(text: str) -> Any:
    """Returns the value of plain text: null, a boolean, a number, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and repr(number := float(text)) == text:
        return number
    return text


@cache
def _loader_class() -> Any:
    """Returns the class of the loaders that read this YAML."""
    import yaml

    parent = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

    class RestrictedLoader(parent):  # type: ignore[misc, valid-type]  # chosen at run time
        """PyYAML's safe loader, which reads an unquoted `*` at the start of a value as text."""

        def __init__(self, stream: str) -> None:
            self.starred = _STAND_IN not in stream
            text = _STAR.sub(rf"\g<1>{_STAND_IN}", stream) if self.starred else stream
            super().__init__(text)

    return RestrictedLoader


class _Handler:
    """Gives python-frontmatter a header that is separated already."""

    def __init__(self, header: str) -> None:
        self._header = header

    def split(self, _: str) -> tuple[str, str]:
        return self._header, ""

    def load(self, header: str) -> dict[str, Any]:
        return read(header).data


def _unreadable(error: Exception, text: str) -> Unreadable:
    """Returns an error with line and hint for an exception of the parser."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None)
    if mark is None:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 1
        return Unreadable(f"header: {problem or type(error).__name__}", line)
    hint = next((hint for words, hint in _HINTS.items() if words in str(problem)), None)
    return Unreadable(f"header: {problem}" + (f" ({hint})" if hint else ""), mark.line + 1)


class _Reader:
    """Builds a header from a parser's events; refuses the first one that isn't allowed."""

    def __init__(self, loader: Any, deepest: int = MAX_DEPTH) -> None:
        """Keeps a loader that has not read anything yet."""
        import yaml

        self._yaml: Any = yaml
        self._loader = loader
        self._deepest = deepest
        self._place: Place = ()
        self._lines: dict[Place, int] = {}

    def header(self) -> Header:
        """Returns all entries; raises `Unreadable` and `NotAMapping`."""
        next_event = self._loader.get_event
        next_event()
        if isinstance(next_event(), self._yaml.StreamEndEvent):
            return Header()
        event = next_event()
        if not isinstance(event, self._yaml.MappingStartEvent):
            raise NotAMapping
        self._refuse_marks(event)
        entries, _ = self._entries(depth=1)
        next_event()
        if not isinstance(event_after := next_event(), self._yaml.StreamEndEvent):
            raise Unreadable("header: a second document begins", event_after.start_mark.line + 1)
        return Header(entries=entries, flow=bool(event.flow_style), lines=self._lines)

    def _entries(self, depth: int) -> tuple[list[Entry], Any]:
        """Returns the entries of a mapping that has begun, and the event that ended it."""
        entries: dict[str, Entry] = {}
        while not isinstance(event := self._loader.get_event(), self._yaml.MappingEndEvent):
            key, line = self._key(event), event.start_mark.line + 1
            if key in entries:
                raise Unreadable(f"header: `{key}` appears twice", line)
            if len(entries) == MAX_KEYS:
                raise Unreadable(f"header: more than {MAX_KEYS} keys", line)
            entries[key] = Entry(
                key=key,
                start=event.start_mark.index,
                end=event.end_mark.index,
                column=event.start_mark.column,
                value=self._part(key, line, self._loader.get_event(), depth),
            )
        return list(entries.values()), event

    def _key(self, event: Any) -> str:
        line = event.start_mark.line + 1
        self._refuse_marks(event)
        if not isinstance(event, self._yaml.ScalarEvent):
            raise Unreadable("header: a key must be a word, not a list or a mapping", line)
        if event.value == "<<" and event.implicit[0]:
            raise Unreadable("header: merge keys (`<<`) are not allowed", line)
        return self._text(event)

    def _part(self, name: str | int, line: int, event: Any, depth: int) -> Value:
        """Returns the value under a key or at a position of a mapping or list."""
        self._place = (*self._place, name)
        self._lines[self._place] = line
        value = self._value(event, depth + 1)
        self._place = self._place[:-1]
        return value

    def _value(self, event: Any, depth: int) -> Value:
        self._refuse_marks(event)
        start, column = event.start_mark.index, event.start_mark.column
        if isinstance(event, self._yaml.ScalarEvent):
            text = self._text(event)
            data = resolve(text) if event.implicit[0] else text
            return Value(data=data, start=start, end=event.end_mark.index, column=column)
        if depth > self._deepest:
            line = event.start_mark.line + 1
            raise Unreadable(f"header: nested deeper than {self._deepest}", line)
        is_list = isinstance(event, self._yaml.SequenceStartEvent)
        if is_list:
            values, closing = self._items(depth)
            data = [value.data for value in values]
        else:
            entries, closing = self._entries(depth)
            values = [entry.value for entry in entries]
            data = {entry.key: entry.value.data for entry in entries}
        is_block = not event.flow_style
        end = values[-1].end if values and is_block else closing.end_mark.index
        return Value(
            data=data,
            start=start,
            end=end,
            column=column,
            is_block_list=is_list and is_block,
            items=values if is_list else (),
        )

    def _items(self, depth: int) -> tuple[list[Value], Any]:
        """Returns the items of a list that has begun, and the event that ended it."""
        items: list[Value] = []
        while not isinstance(event := self._loader.get_event(), self._yaml.SequenceEndEvent):
            items.append(self._part(len(items), event.start_mark.line + 1, event, depth))
        return items, event

    def _text(self, event: Any) -> str:
        text: str = event.value
        return text.replace(_STAND_IN, "*") if self._loader.starred else text

    def _refuse_marks(self, event: Any) -> None:
        """Raises `Unreadable` if an event is an alias, or has an anchor or a tag."""
        if isinstance(event, self._yaml.AliasEvent):
            mark = "aliases (`*name`)"
        elif event.anchor is not None:
            mark = "anchors (`&name`)"
        elif event.tag is not None:
            mark = "tags (`!name`)"
        else:
            return
        reason = f"header: {mark} are not allowed; quote a value like that"
        raise Unreadable(reason, event.start_mark.line + 1)


# TOML, as Hugo writes it.


def _load_toml(text: str) -> dict[str, Any]:
    """Returns the data of a header, with dates and times as ISO text."""
    try:
        plain: dict[str, Any] = _json_like(loads(text, "toml", depth=_TOML_DEPTH))
    except DataError as error:
        raise Unreadable(f"header: {error.reason}", error.line or 1) from None
    return plain


def edit_toml(text: str, changes: Mapping[str, Any]) -> str:
    """Returns a TOML header with some top-level keys set, or removed for the value `GONE`.

    All other text is unchanged. Raises `Invalid` for a table, and for a value that TOML can't hold.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import AoT

    try:
        document = tomlkit.parse(bounded(text, "toml", depth=_TOML_DEPTH))
        for key, value in changes.items():
            if isinstance(document.get(key), Mapping | AoT):
                raise Invalid(f"`{key}` is a table in this file's header", hint="edit it by hand")
            array: Any = document.get(key)
            is_array = isinstance(array, list) and (value is GONE or isinstance(value, list))
            if is_array:
                _edit_array(array, [] if value is GONE else value)
            keeps_array = is_array and key in LISTS and "#" in array.as_string()
            if value is GONE and not keeps_array:
                document.remove(key)
            elif value is not GONE and not is_array:
                document[key] = _toml(value)
    except (TOMLKitError, DataError) as error:
        raise Invalid(
            f"this file's header can't be changed: {error}", hint="edit it by hand"
        ) from None
    return tomlkit.dumps(document)


def _edit_array(array: Any, items: Sequence[Any]) -> None:
    """Gives a TOML array other items; comments beside the others stay. Raises `Invalid`."""
    for position in range(len(array) - 1, -1, -1):
        if array[position] not in items:
            del array[position]
    if "#" in array.as_string() and list(array) != [item for item in items if item in array]:
        raise Invalid(
            "a TOML list with comments can't be put into another order", hint="edit it by hand"
        )
    for position, item in enumerate(items):
        if array[position : position + 1] != [item]:
            if item in array:
                array.remove(item)
            array.insert(position, _toml(item))
    del array[len(items) :]


def _toml(value: Any) -> Any:
    """Returns a value as TOML on one line."""
    import tomlkit

    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update({key: _toml(item) for key, item in value.items()})
        return table
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        array.extend(map(_toml, value))
        return array
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise Invalid(f"a TOML header can't hold `{value!r}`", hint="edit it by hand")
    return tomlkit.item(value)


def _json_like(value: Any) -> Any:
    """Returns TOML's data as JSON-like data."""
    if isinstance(value, dict):
        return {key: _json_like(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_like(item) for item in value]
    if isinstance(value, datetime):
        return iso_utc(value if value.tzinfo else value.replace(tzinfo=UTC))
    if isinstance(value, date | time):
        return value.isoformat()
    return value
