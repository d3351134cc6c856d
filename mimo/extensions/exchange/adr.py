"""Architecture decision records: MADR 2 to 4, Nygard's and those of adr-tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from mimo.api import (
    SUPERSEDES,
    Draft,
    Kind,
    Link,
    NamedTuple,
    Section,
    Source,
    day_of,
    document,
    foreign,
    replace,
)
from mimo.extensions.exchange.notes import (
    MARKDOWN,
    Note,
    file_links,
    is_private,
    key_of,
    linked,
    read,
)

_NUMBERED = re.compile(r"(?:adr[-_ ]?)?(\d{1,6})(?=[-_ .]|$)", re.IGNORECASE)
_TITLE_NUMBER = re.compile(r"(?:adr[-_ ]?)?\d{1,6}\s*[.:\-–—]\s*", re.IGNORECASE)
_FIELDS = {
    "status": "status state estado statut stato situação статус 状态 狀態 状態 ステータス 상태",
    "date": "date fecha data datum дата 日期 日付 날짜 일자",
}
_NAMES = {name: field for field, names in _FIELDS.items() for name in names.split()}
"""The fields by which a record counts, by their names in several languages."""
_PROPERTIES = (
    "author authors consulted deciders decision-makers informed tags technical-story".split()
)
_STATES = (
    r"accepted|approved|adopted|decided|proposed|draft|pending|rejected|declined|withdrawn|deprecated"
    r"|obsolete|super[sc]eded|replaced|implemented"
)
_STATED = {
    field: re.compile(
        rf"(?:^|[|,;(·]|\bbadge/)\W{{0,9}}(?:{'|'.join(_FIELDS[field].split())})\W{{1,9}}({value})",
        re.I,
    )
    for field, value in (
        ("status", rf"(?:{_STATES})\b(?:(?!-\w{{1,20}}\))[^|,;<\n\]])*"),
        ("date", r"\d{4}-\d\d-\d\d"),
    )
}
"""A field within a line, or in a part of its own, with a value that is surely one."""
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_TAG = re.compile(r"</?[a-z]{1,9} ?/?>", re.I)
_BEFORE_FIELD = re.compile(r"[ \t>]*(?:[-*+][ \t]+)?")
_COLON = re.compile(r"[ \t]*(?:[:\uff1a=]|(?<=[ \t])[-–—](?=[ \t]))[*_ \t]*")
_TICKED, _UNTICKED = re.compile(r"[-*+] \[[xX]\] "), re.compile(r"[-*+] \[ \] ")
_STRUCK = re.compile(r"~~[^~\n]*~~")
_DECISION = ("decision outcome", "decision", "decision outcomes")
_SUPERSEDED_BY = "superseded_by"
_REFERENCE = re.compile(
    r"\[(?P<text>[^\[\]\n]*+)\]\(<?(?P<path>[^()\s<>#]*+)[^()\n]*+\)"
    r"|\b(?P<relation>super[sc]edes|amends|clarifies|extends|depends on|relates to|\w+ by|see)\b"
    # A number alone, such as that of a version, is one of a record only directly behind it.
    r"(?:[\s:#]*+(?P<first>\d{1,6})(?![-.]\d)(?=\s*(?:[-.,;:)&–—]|and\b|\Z)))?"
    r"|(?<![\w/])ADR[-_ ]?(?P<number>\d{1,6})\b"
    r"|(?<![\w/.-])(?P<padded>0\d{2,5})\b(?![-.]\d)",
    re.IGNORECASE,
)
"""A link, a relation, or the number of a record."""
_ADR = re.compile(r"adr[-_ ]?(\d{1,6})\b", re.IGNORECASE)
_NOT_RECORDS = ("readme", "index", "template", "adr-template", "0000-template")
_OF_FOLDER = ("readme", "index")
"""The names of files that are the record of their folder, if they have a status."""


class _Record(NamedTuple):
    """A record taken apart."""

    title: str
    properties: dict[str, Any]
    """The values of its header and of the list below its title, by lower-case names."""
    parts: list[tuple[str, str]]
    """The other parts: heading and text; the text before the first heading has none."""


def is_record(note: Note) -> bool:
    """Returns whether a note looks like a record of a decision."""
    stem = _stem(note)
    if note.problem or stem.lower() in _NOT_RECORDS:
        return False
    record = _parted(note)
    headings = {heading.lower() for heading, _ in record.parts}
    return "status" in record.properties and (
        bool(headings & {*_DECISION, "context", "context and problem statement"})
        or _NUMBERED.match(stem) is not None
    )


def _stem(note: Note) -> str:
    """Returns the name of a record, that of its folder for `0005-use-redis/index.md`."""
    folder = note.name.rpartition("/")[0].rpartition("/")[2]
    return folder if folder and note.stem.lower() in _OF_FOLDER else note.stem


def records(source: Source) -> Iterator[Draft]:
    """Yields the records of a folder as decisions. Superseded ones are linked from the newer."""
    drafts: list[Draft] = []
    newer: list[tuple[str, str]] = []
    for name in source.named(*MARKDOWN):
        note = read(source, name)
        is_numbered = _NUMBERED.match(note.stem) and note.stem.lower() not in _NOT_RECORDS
        if note.problem is None and not (is_numbered or is_record(note)):
            if note.name.rpartition("/")[2].lower() == "index.md":
                continue  # The list of the records, such as that of an export.
            reason = "it is not a decision record: it has neither a number nor a status"
            drafts.append(Draft(key=key_of(source, name), group="records", skipped=reason))
            continue
        draft = _draft(source, note)
        newer += [(link.to, draft.key) for link in draft.links if link.type == _SUPERSEDED_BY]
        links = tuple(link for link in draft.links if link.type != _SUPERSEDED_BY)
        drafts.append(replace(draft, links=links))
    for draft in drafts:
        names = (draft.key, *draft.names)
        older = [Link(to=key, type=SUPERSEDES) for to, key in newer if to in names]
        yield replace(draft, links=(*older, *draft.links)) if older else draft


def _draft(source: Source, note: Note) -> Draft:
    key = key_of(source, note.name)
    if note.problem:
        return Draft(key=key, group="records", skipped=note.problem)
    record = _parted(note)
    properties = dict(record.properties)
    listed = properties.pop("status", None)
    texts = map(str, listed if isinstance(listed, list) else filter(None, (listed,)))
    status = "\n".join(texts).strip() or None
    date = properties.pop("date", None)
    created = foreign.moment(date) if isinstance(date, str | int | float) else None
    if created is None and (day := _DAY.search(f"{date or ''} {status or ''}")):
        created = foreign.moment(day[0])
    elif date is not None and created is None:
        properties["adr_date"] = date
    stem = _stem(note)
    created = created or day_of(note.name)
    title = str(properties.pop("title", None) or record.title or stem)
    title = _TITLE_NUMBER.sub("", title, count=1) or title
    decision = foreign.joined(*(body for name, body in record.parts if name.lower() in _DECISION))
    parts = [
        f"### {name}\n\n{_lowered(body)}" if name else body
        for name, body in record.parts
        if name.lower() not in _DECISION and body
    ]
    own_tags = foreign.tags(properties.pop("tags", None))
    extra, prose = foreign.divided(properties, "adr")
    number = _NUMBERED.match(stem)
    names = (*((number[1].lstrip("0"),) if number else ()), stem, title)
    links = _statements(source, note, status or "")  # With those of the status.
    plain = [x for x in file_links(source, note) if x.to.rpartition("/")[2] not in (status or "")]
    state = _first_line(status)
    # A reader of the text alone must not take a rejected proposal for a decision.
    is_accepted = state is None or state.lower().lstrip("✅✔️☑ ").startswith("accepted")
    remark = None if is_accepted else f"Status: {state}"
    return Draft(
        key=key,
        group="records",
        type=Kind.DECISION,
        content=foreign.joined(remark, decision or title),
        created=created,
        title=title,
        topic=title,
        tags=own_tags,
        status=state,
        sections={Section.REASONING: foreign.joined(*parts, *prose)},
        links=tuple(dict.fromkeys([*links, *plain])),
        names=tuple(filter(None, names)),
        extra=extra,
        private=is_private(source, note),
    )


def _first_line(status: str | None) -> str | None:
    """Returns a status on one line, without the addresses of links and what is struck out.

    Of a list of all states with boxes, only the ticked ones count.
    """
    if not status:
        return None
    plain = re.sub(r"\[([^\[\]\n]*)\]\([^()\n]*\)", r"\1", _STRUCK.sub("", status))
    lines = [
        _BEFORE_FIELD.sub("", line, count=1) if line[:1] == ">" else line.strip()
        for line in plain.split("\n")
    ]
    if any(map(_TICKED.match, lines)):
        lines = [line for line in lines if not _UNTICKED.match(line)]
    bare = (re.sub(r"^[-*+] (?:\[[xX]\] )?", "", line).strip("*_` ") for line in lines)
    return "; ".join(line for line in bare if line)[:200] or None


def _statements(source: Source, note: Note, status: str) -> list[Link]:
    """Returns the relations to other records in a status, each to a key or to a number."""
    links: list[Link] = []
    for line in status.split("\n"):
        relation = None
        for match in _REFERENCE.finditer(line):
            if match["relation"]:
                word = match["relation"].lower().replace("superc", "supers").replace(" ", "_")
                is_ignored = word == "see" or (word.endswith("_by") and word != _SUPERSEDED_BY)
                relation = None if is_ignored else word
            to = _target(source, note, match)
            if relation and to:
                links.append(Link(to=to, type=relation))
    return links


def _target(source: Source, note: Note, match: re.Match[str]) -> str | None:
    """Returns the key or the number of the record that a reference names."""
    if match["path"] is None:
        number = match["first"] or match["number"] or match["padded"]
    else:
        # The title of a record may contain other numbers.
        file = next(linked(note.name, match[0]), "")
        if file in source.files:
            return key_of(source, file)
        named = _NUMBERED.match(match["path"].rpartition("/")[2]) or _ADR.match(match["text"])
        number = named and named[1]
    return number.lstrip("0") if number else None


def _parted(note: Note) -> _Record:
    """Returns the parts of a record."""
    properties: dict[str, Any] = {
        _NAMES.get(key.casefold(), key.lower()): value for key, value in note.header.items()
    }
    lines = note.body.split("\n")
    prose = dict(document.prose_lines(lines))
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
    for name, body in zip(names, (document.trim("\n".join(text)) for text in texts), strict=True):
        if name.lower() not in _FIELDS:
            parts.append((name, body))
        elif body:
            properties.setdefault(name.lower(), body)
    return _Record(title=title, properties=_stated(prose) | properties, parts=parts)


def _marks(lines: list[str], prose: Mapping[int, str]) -> Iterator[tuple[int, int, str]]:
    """Yields each line with its level and text as a heading, without those that underline one."""
    underline = -1
    for number, line in enumerate(lines):
        level, words = document.heading(lines, number, line) if number in prose else (0, "")
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
    value = document.without_comments(text[mark.end() :]).strip("*_ \t") if mark else ""
    return (name, value) if name and value else None


def _lowered(body: str) -> str:
    """Returns a text whose headings are below those of the parts of a record."""
    return re.sub(r"^(#{1,5})(?=[ \t])", r"#\1", body, flags=re.MULTILINE)
