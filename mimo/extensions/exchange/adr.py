"""Architecture decision records: MADR 2 to 4, Nygard's and those of adr-tools."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mimo.api import (
    SUPERSEDES,
    Draft,
    Kind,
    Link,
    Section,
    Source,
    adr,
    day_of,
    foreign,
    ids,
    record_moment,
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

_NUMBERED = re.compile(ids.RECORD_NUMBER)
_DATED = re.compile(r"\d{8}[-_]")
"""The beginning of the name of a record of log4brains."""
_TITLE_NUMBER = re.compile(r"(?:adr[-_ ]?)?\d{1,6}\s*[.:\-–—]\s*", re.IGNORECASE)
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


def is_record(note: Note) -> bool:
    """Returns whether a note looks like a record of a decision."""
    stem = _stem(note)
    if note.problem or ids.is_about_records(stem):
        return False
    record = adr.parted(note.header, note.body)
    headings = {heading.lower() for heading, _ in record.parts}
    return "status" in record.properties and (
        bool(headings & {*_DECISION, "context", "context and problem statement"})
        or _NUMBERED.match(stem) is not None
        or _DATED.match(stem) is not None
    )


def _stem(note: Note) -> str:
    """Returns the name of a record, that of its folder for `0005-use-redis/index.md`."""
    folder = note.name.rpartition("/")[0].rpartition("/")[2]
    return folder if folder and note.stem.lower() in ids.OF_FOLDER else note.stem


def records(source: Source) -> Iterator[Draft]:
    """Yields the records of a folder as decisions. Superseded ones are linked from the newer."""
    drafts: list[Draft] = []
    newer: list[tuple[str, str]] = []
    for name in source.named(*MARKDOWN):
        note = read(source, name)
        is_numbered = _NUMBERED.match(note.stem) and not ids.is_about_records(note.stem)
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
    record = adr.parted(note.header, note.body)
    properties = dict(record.properties)
    status = adr.status_of(record)
    created = record_moment(record)
    properties.pop("status", None)
    date = properties.pop("date", None)
    if date is not None and created is None:
        properties["adr_date"] = date
    stem = _stem(note)
    created = created or day_of(note.name)
    title = str(properties.pop("title", None) or record.title or stem)
    title = _TITLE_NUMBER.sub("", title, count=1) or title
    decision = foreign.joined(*(body for name, body in record.parts if name.lower() in _DECISION))
    state, below = adr.state_of(status)
    parts = [f"### Status\n\n{_lowered(below)}"] if below else []
    parts += [
        f"### {name}\n\n{_lowered(body)}" if name else body
        for name, body in record.parts
        if name.lower() not in _DECISION and body
    ]
    own_tags = foreign.tags(properties.pop("tags", None))
    extra, prose = foreign.divided(properties, "adr")
    number = _NUMBERED.match(stem)
    names = (*((number[1].lstrip("0"),) if number else ()), stem, title)
    links = _statements(source, note, status)  # With those of the status.
    plain = [x for x in file_links(source, note) if x.to.rpartition("/")[2] not in status]
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


def _lowered(body: str) -> str:
    """Returns a text whose headings are below those of the parts of a record."""
    return re.sub(r"^(#{1,5})(?=[ \t])", r"#\1", body, flags=re.MULTILINE)
