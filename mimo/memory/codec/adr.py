"""Records of architecture decisions: the parts of MADR 2 to 4, Nygard's and those of adr-tools.

These rules hold for records that are read in place and for imported ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from mimo.frozen import NamedTuple
from mimo.memory.codec.document import heading as heading_of
from mimo.memory.codec.document import prose_lines, trim, without_comments
from mimo.memory.note import ENDED

_FIELDS = {
    "status": "status state estado statut stato situação статус 状态 狀態 状態 ステータス 상태",
    "date": "date fecha data datum дата 日期 日付 날짜 일자",
}
_NAMES = {name: field for field, names in _FIELDS.items() for name in names.split()}
"""The fields by which a record counts, by their names in several languages."""
_PROPERTIES = (
    "author authors consulted deciders decision-makers informed tags technical-story".split()
)
_ACTIVE = (
    "accepted|approved|adopted|decided|proposed|draft|pending|implemented|akzeptiert|angenommen"
    "|vorgeschlagen|aceptad[oa]|propuest[oa]|acceptée?|proposée?|aceit[oa]|propost[oa]"
    "|accettat[oa]|aangenomen|voorgesteld"
)
_STATES = "|".join((_ACTIVE, *ENDED.values()))
_STATED = {
    field: re.compile(
        r"(?:^|[|,;·]|\bbadge/)\W{0,9}(?:adr |decision )?"
        rf"(?:{'|'.join(_FIELDS[field].split())})\W{{1,9}}({value})",
        re.I,
    )
    for field, value in (
        ("status", rf"(?:{_STATES})\b(?:(?!-\w{{1,20}}[).?])[^|,;<\n\]])*"),
        ("date", r"\d{4}-\d\d-\d\d"),
    )
}
"""A field within a line, or in a part of its own, with a value that is surely one."""
_TAG = re.compile(r"</?[a-z]{1,9} ?/?>", re.I)
_BEFORE_FIELD = re.compile(r"[ \t>]*(?:[-*+][ \t]+)?")
_COLON = re.compile(r"[ \t]*(?:[:\uff1a=]|(?<=[ \t])[-–—](?=[ \t]))[*_ \t]*")
_TICKED, _UNTICKED = re.compile(r"[-*+] \[[xX]\] "), re.compile(r"[-*+] \[ \] ")
_STRUCK = re.compile(r"~~[^~\n]*~~")
_LINK = re.compile(
    r"!?\[([^\[\]\n]*)\](?:\((?:[^()\n]|\([^()\n]{0,200}\)){0,500}+\)|\[[^\[\]\n]*\])"
)
_MARKS = re.compile(r"^:\w{1,30}:|[*`]+|__")
_BADGE = re.compile(rf"\bbadge/(?:\w{{1,20}}-)?({_STATES})-", re.I)
_CONTINUED = re.compile(
    rf"(?:[-*+>]|[\W\d_]*(?:{_STATES}|super[sc]edes|amends|clarifies|extends|depends on"
    r"|relates to|see|\w{1,20} by)\b)",
    re.I,
)
"""The start of a line that adds to a status; any other line below it is prose."""


class Parts(NamedTuple):
    """A record taken apart."""

    title: str
    properties: dict[str, Any]
    """The values of its header and of the list below its title, by lower-case names."""
    parts: list[tuple[str, str]]
    """The other parts: heading and text; the text before the first heading has none."""


def parted(header: Mapping[str, Any], body: str) -> Parts:
    """Returns the parts of a record."""
    properties: dict[str, Any] = {
        _NAMES.get(key.casefold(), key.lower()): value for key, value in header.items()
    }
    lines = body.split("\n")
    prose = dict(prose_lines(lines))
    title, names = "", [""]
    texts: list[list[str]] = [[]]
    is_field = False
    """True if the part is the value of a field."""
    for number, level, words in _marks(lines, prose):
        field, value = (_field_of(words) if level else None) or ("", "")
        if level == 1 and not title and not field:
            title = words
        elif level and (level < 3 or is_field or field):
            is_field = bool(field)
            names.append(field or words)
            texts.append([value])
        elif len(names) == 1 and number in prose and (values := _values(lines, number)):
            for name, text in values:
                properties.setdefault(name, text)
        else:
            texts[-1].append(lines[number])
    parts = []
    for name, body in zip(names, (trim("\n".join(text)) for text in texts), strict=True):
        if name.lower() not in _FIELDS:
            parts.append((name, body))
        elif body:
            properties.setdefault(name.lower(), body)
    return Parts(title=title, properties=_stated(prose) | properties, parts=parts)


def _marks(lines: list[str], prose: Mapping[int, str]) -> Iterator[tuple[int, int, str]]:
    """Yields each line with its level and text as a heading, without those that underline one."""
    underline = -1
    for number, line in enumerate(lines):
        level, words = heading_of(lines, number, line) if number in prose else (0, "")
        if level and not line.lstrip().startswith("#"):
            underline = number + 1
        if number != underline:
            yield number, level, words


def _field_of(heading: str) -> tuple[str, str] | None:
    """Returns the field that a part of a record is, and the value in its heading."""
    field, value = _property(heading) or (_field(heading) or "", "")
    return (field, value) if field in _FIELDS else None


def _stated(prose: Mapping[int, str]) -> dict[str, str]:
    """Returns the fields that are stated beside others on a line, or in a part of their own."""
    text = re.sub(r"(?i)</t[dh]>\s{0,99}<t[dh]>", " | ", "\n".join(prose.values()))
    lines = [_TAG.sub("", line) for line in text.split("\n")]
    matches = {name: filter(None, map(pattern.search, lines)) for name, pattern in _STATED.items()}
    pairs = ((name, next(hits, None)) for name, hits in matches.items())
    return {name: match[1].strip("*_` ") for name, match in pairs if match}


def _values(lines: list[str], number: int) -> list[tuple[str, str]]:
    """Returns the fields that a line states, with their values."""
    line = _TAG.sub("", lines[number]).strip()
    if "|" in line and (values := _of_table(lines, number)):
        return values
    if value := _property(line):
        return [value]
    name = _field(_BEFORE_FIELD.sub("", line, count=1))
    below = [text.strip().removeprefix(": ") for text in lines[number + 1 : number + 3]]
    # The name is a line of its own, in bold, with a colon or above one.
    is_defined = "".join(lines[number + 1 : number + 2]).startswith(": ")
    if name is None or (line[-1:].isalpha() and not is_defined):
        return []
    return [(name, text) for text in islice(filter(None, below), 1) if not text.startswith("#")]


def _of_table(lines: list[str], number: int) -> list[tuple[str, str]]:
    """Returns the fields in a row of a table: a name and its value, or names above their values."""
    row, *below = [_cells(line) for line in lines[number : number + 3]]
    fields = [_field(cell) for cell in row]
    if (
        len(below) == 2
        and set("-") <= {*lines[number + 1]} <= {*"-|: \t"}
        and (len(row) == 1 or all(fields))
    ):
        named = zip(fields, below[1], strict=False)
        return [(name, value) for name, value in named if name and value]
    return [(fields[0], row[1])] if len(row) == 2 and fields[0] and row[1] else []


def _cells(line: str) -> list[str]:
    return [cell.strip(" *_`") for cell in line.strip().strip("|").split("|")]


def _field(words: str) -> str | None:
    """Returns the field that a heading or the name of a value means."""
    name = re.sub(r"^\d{1,3}[.)]?[ \t]+", "", words.strip("*_`#:\uff1a \t")).casefold()
    if "-".join(name.split()) in _PROPERTIES:
        return name
    return _NAMES.get(name.removeprefix("adr ").removeprefix("decision "))


def _property(line: str) -> tuple[str, str] | None:
    text = _BEFORE_FIELD.sub("", line, count=1)
    mark = _COLON.search(text, 0, 60)
    name = _field(text[: mark.start()]) if mark else None
    # A comment of the template is not a value.
    value = without_comments(text[mark.end() :]).strip("*_ \t") if mark else ""
    return (name, value) if name and value else None


def status_of(record: Parts) -> str:
    """Returns the text of the status, which may have several lines; empty without one."""
    status = record.properties.get("status")
    texts = map(str, status if isinstance(status, list) else filter(None, (status,)))
    return "\n".join(texts).strip()


def state_of(status: str) -> tuple[str | None, str]:
    """Returns a status on one line, and the prose below it.

    It is without images, the addresses of links and what is struck out. Of a list of all states
    with boxes, only the ticked ones count.
    """
    plain = _LINK.sub(r"\1", _LINK.sub(r"\1", _STRUCK.sub("", status)))
    if (badge := _BADGE.search(status)) and not re.search(_STATES, plain, re.I):
        plain = badge[1]
    lines = [
        _BEFORE_FIELD.sub("", line, count=1) if line[:1] == ">" else line.strip()
        for line in plain.split("\n")
    ]
    if any(map(_TICKED.match, lines)):
        lines = [line for line in lines if not _UNTICKED.match(line)]
    states: list[str] = []
    prose: list[str] = []
    for line in lines:
        bare = re.sub(r"^[-*+] (?:\[[xX]\] )?", "", line)
        field, value = _property(bare) or ("", "")
        bare = _MARKS.sub("", value if field == "status" else bare).strip("_ ").rstrip(".")
        if bare and not prose and (not states or _CONTINUED.match(line)):
            states.append(bare)
        elif bare or prose:
            prose.append(line)
    return "; ".join(states)[:200] or None, trim("\n".join(prose))
