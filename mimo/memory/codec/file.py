"""A memory <-> its file: reading a file, writing a new one; `splice` edits one in place.

A value without a meaning (`importance: 7`, `confidence: high`) does not set its field. It is kept
among the unknown keys, so that nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from mimo.errors import Invalid
from mimo.frozen import frozen, replace
from mimo.memory import ids, naming
from mimo.memory.codec import front_matter
from mimo.memory.codec.document import (
    BLANK,
    CONFLICT,
    CONFLICT_START,
    MAX_FILE_BYTES,
    MAX_HEADER_BYTES,
    MAX_SOURCE_BYTES,
    Document,
    Unreadable,
    conflict_line,
    layout_of,
    references,
    render_body,
    split,
    title,
    trim,
)
from mimo.memory.model import (
    KIND_ALIASES,
    Kind,
    Link,
    Memory,
    Outcome,
    Problem,
    Section,
    Version,
    is_elsewhere,
    kind_of,
)
from mimo.text.clean import compiled

if TYPE_CHECKING:
    from mimo.memory.codec.adr import Parts


@frozen
class Parsed:
    """A memory as read from its file."""

    memory: Memory
    line: int
    """The 1-based line on which the content begins."""
    owned: bool
    """True if the file is in `.mind/` with an id and a type in its header: mind wrote it."""


def parse(data: bytes, *, path: str, modified: datetime, lenient: bool = False) -> Parsed | Problem:
    """Returns the memory in a file, or the reason that there is none.

    `path` is relative to the project's root, with `/`; it gives id and type if the header does
    not. `modified` (time zone aware) is the time of creation if the header has no date. Content
    is unchanged, except for blank lines around it and for CRLF if the whole file has it. `lenient`
    is as in `read_document`: for files as they are, not for those that mind writes.
    """
    try:
        document, header = read_document(data, lenient=lenient)
    except Unreadable as error:
        return Problem(path=path, line=error.line, reason=error.reason)
    if line := conflict_line(document.text):
        return Problem(path=path, line=line, reason=CONFLICT)
    understood, extra = understand(header)
    is_blank = "tags" in header and header["tags"] is None
    if is_blank and compiled(_TAGS_IN_COMMENT).search(document.header):
        extra["tags"] = None  # A value without a meaning.
    owned = is_owned(understood, path)
    layout = layout_of(
        document.body, newline=document.newline, sections=owned, competing=not is_elsewhere(path)
    )
    content, sections = layout.content.text, layout.texts
    links = understood.pop("links", ())
    if "id" not in understood:
        understood["id"] = ids.of_path(path)
    if "type" not in understood:
        understood["type"] = ids.folder_kind(path) or Kind.FACT
    if "title" not in understood:
        understood["title"] = file_title(content, path) if is_elsewhere(path) else title(content)
    if is_elsewhere(path) and ids.folder_kind(path) is Kind.DECISION:
        understood |= _record_fields(understood, header, content)
    if "created" not in understood:
        understood["created"] = day_of(path) or modified.astimezone(UTC)
    memory = Memory(
        **understood,
        content=content,
        sections=sections,
        competing=layout.versions,
        links=tuple(dict.fromkeys([*links, *body_links(content, sections, extra)])),
        extra=extra,
    )
    return Parsed(memory=memory, line=document.body_line + layout.content.start, owned=owned)


def read_document(
    data: bytes, limit: int = MAX_FILE_BYTES, *, lenient: bool = False
) -> tuple[Document, dict[str, Any]]:
    """Returns a file's parts and the data of its header. Raises `Unreadable`.

    If `lenient`, a header that is not quite YAML or TOML is read key by key, and one that is too
    large or not closed is text; `header_fault` returns the reason.
    """
    document = split(data, limit, lenient=lenient)
    if not document.text.strip():
        raise Unreadable("the file is empty")
    if document.text.startswith("<<<<<<<") and compiled(CONFLICT_START).match(document.text):
        raise Unreadable(CONFLICT, 1)
    if document.syntax is None:
        return document, {}
    if len(document.header.encode()) > MAX_HEADER_BYTES:
        error = Unreadable("the header is larger than 64 KiB", 1)
        return _not_a_header(document, error, lenient=lenient), {}
    try:
        header = front_matter.load(document.header, document.syntax)
    except front_matter.NotAMapping:
        return document.without_header(), {}
    except Unreadable as error:
        error = Unreadable(error.reason, (error.line or 1) + 1)
        body = _not_a_header(document, error, lenient=lenient)
        if not (lenient and document.looks_like_header):
            return body, {}
        return document, front_matter.load_lines(document.header, document.syntax)
    if not header and document.header.strip():
        # Only comments, which are Markdown headings: a title between two rules.
        return document.without_header(), {}
    return document, header


def stated_in_text(data: bytes) -> dict[str, Any]:
    """Returns the fields of a decision record that its text states, but not its header."""
    try:
        document, header = read_document(data, lenient=True)
    except Unreadable:
        return {}
    layout = layout_of(document.body, newline=document.newline, sections=False, competing=False)
    return _record_fields(understand(header)[0], header, layout.content.text)


_LONGEST_RECORD = 100_000
"""The number of characters of a record that are read for its status and date."""


def _record_fields(
    understood: Mapping[str, Any], header: Mapping[str, Any], content: str
) -> dict[str, Any]:
    """Returns the status and the time of a record, as the importer reads them, if they are new."""
    is_record = understood.get("type", Kind.DECISION) is Kind.DECISION
    if not is_record or understood.keys() >= {"status", "created"}:
        return {}
    from mimo.memory.codec import adr

    unread = {key: value for key, value in header.items() if key not in understood}
    record = adr.parted(unread, content[:_LONGEST_RECORD])
    created = record_moment(record) or moment_in(understood.get("status", ""))
    fields = {"status": adr.state_of(adr.status_of(record))[0], "created": created}
    return {key: value for key, value in fields.items() if value and key not in understood}


def record_moment(record: Parts) -> datetime | None:
    """Returns the time that a record of a decision states, also in its status."""
    from mimo.memory.codec import adr

    date = record.properties.get("date")
    return moment(date) or moment_in(f"{date or ''}\n{adr.status_of(record)}")


def header_fault(data: bytes) -> Unreadable | None:
    """Returns the reason for which a header is read key by key, or as text; None for another."""
    try:
        read_document(data, MAX_SOURCE_BYTES)
    except Unreadable as error:
        with suppress(Unreadable):
            read_document(data, MAX_SOURCE_BYTES, lenient=True)
            return error
    return None


def render(memory: Memory) -> bytes:
    """Returns the file of a new memory; `parse` gives back `normal(memory)`.

    Raises `Invalid` for text that a file can't hold.
    """
    memory = normal(memory)
    fields = written(memory, header_links(memory))
    if memory.title == title(memory.content):
        fields.pop("title", None)
    fields |= {key: value for key, value in memory.extra.items() if key not in fields}
    lines = front_matter.emitted_lines(fields)
    body = render_body(memory.content, memory.sections, memory.competing)
    return encoded(f"---\n{lines}---\n{body}", lines)


def encoded(text: str, header: str) -> bytes:
    """Returns a file's text as bytes; raises `Invalid` if `parse` would refuse them."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise Invalid("the text contains half of a surrogate pair") from None
    if b"\0" in data:
        raise Invalid("the text holds a NUL character", hint="a memory is text; leave it out")
    if len(data) > MAX_FILE_BYTES:
        raise Invalid(f"a file of {len(data):,} bytes is too large for a memory")
    if conflict_line(text):
        raise Invalid(
            "the text has a merge conflict of git that is not resolved",
            hint="resolve it; an example of one belongs into a code fence",
        )
    if len(header.encode()) > MAX_HEADER_BYTES:
        raise Invalid("the header is larger than 64 KiB", hint="put long text into the content")
    return data


def normal(memory: Memory) -> Memory:
    """Returns `memory` as it would be read from its file.

    Blank lines around texts, empty fields and `#` before tags are dropped; the title defaults to
    the first heading; `[[…]]` in the text are among the links.
    """
    content = trim(memory.content)
    sections = {name: trim(text) for name, text in memory.sections.items() if text.strip(BLANK)}
    cleaned = replace(
        memory,
        content=content,
        sections=sections,
        competing=tuple(
            dict.fromkeys(
                Version(field=version.field.strip(), text=trim(version.text))
                for version in memory.competing
            )
        ),
        title=clean_title(memory.title) or title(content),
        topic=clean_text(memory.topic),
        tags=clean_tags(memory.tags),
        category=clean_text(memory.category),
        source=clean_text(memory.source),
        status=clean_text(memory.status),
        by=clean_text(memory.by),
        created=memory.created.astimezone(UTC),
        links=tuple(
            dict.fromkeys([*header_links(memory), *body_links(content, sections, memory.extra)])
        ),
    )
    # A key with a value of no meaning is replaced by the field of the same name.
    fields = written(cleaned, header_links(cleaned))
    extra = {key: value for key, value in memory.extra.items() if key not in fields}
    return replace(cleaned, extra=extra)


def header_links(memory: Memory) -> tuple[Link, ...]:
    """Returns the links that are not in the text."""
    in_body = set(links_in(memory))
    return tuple(link for link in memory.links if link not in in_body)


def links_in(memory: Memory) -> tuple[Link, ...]:
    """Returns the links from `[[target]]` in the text of a memory, all of type `relates_to`."""
    return body_links(memory.content, memory.sections, memory.extra)


def body_links(
    content: str, sections: Mapping[Section, str], header: Collection[str] = ()
) -> tuple[Link, ...]:
    """Returns the links in texts below a header with these keys, which may be Dendron's."""
    texts = [content, *(sections[name] for name in Section if name in sections)]
    is_swapped = naming.OF_DENDRON.issubset(header)
    targets = (target for text in texts for target in references(text, is_swapped=is_swapped))
    return tuple(Link(to=target) for target in dict.fromkeys(targets))


def file_title(content: str, path: str) -> str | None:
    """Returns the title of a document outside `.mind/`: its heading, or its file's name in words.

    The heading of a daily note such as `Log` is one of many, so the title has both.
    """
    heading, name = title(content), clean_title(naming.words_of(path))
    if heading is None or name is None or naming.is_specific(heading, name):
        return heading or name
    return f"{name}: {heading}"


def is_owned(understood: Mapping[str, Any], path: str) -> bool:
    """Returns whether a header with these fields was written by mind."""
    return not is_elsewhere(path) and "id" in understood and "type" in understood


def content_line(data: bytes) -> int:
    """Returns the 1-based line on which the content begins in a file that mind wrote."""
    document = split(data)
    layout = layout_of(document.body, newline=document.newline, sections=True)
    return document.body_line + layout.content.start


def _not_a_header(document: Document, error: Unreadable, *, lenient: bool) -> Document:
    """Returns the file as a text that begins with a rule; raises `error` for a broken header."""
    if line := conflict_line(document.text):
        raise Unreadable(CONFLICT, line)
    if document.looks_like_header and not lenient:
        raise error
    return document.without_header()


# Keys of a header <-> fields of a memory.

_TIME = (
    r"(?:(?:[Tt]|,?\s+)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?:\s*([AaPp])\.?[Mm]\.?)?"
    r"(?:\s*([Zz]|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2}))?(?:\s*\([\w ]{1,40}\))?)?"
)
_DATE = re.compile(
    rf"(\d{{4}})(?:[-/]|\. ?|[年년] ?)(\d{{1,2}})(?:[-/]|\. ?|[月월] ?)(\d{{1,2}})[日일.]?{_TIME}"
)
_NUMERIC_DAY = r"\A\s*(\d{1,2})\. ?(\d{1,2})\. ?(?=\d{4}\b)(\d{4})"
"""The beginning of a date as `06.05.2024`; that of `06/05/2024` may be May or June."""
_WORDY_DATE = (
    r"(?:[^\W\d_]{3,10},?\s+)??(?:(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.|º)?\s+(?:de\s+)?)?"
    r"(?P<month>[^\W\d_]{3,10})\.?\s+(?:de\s+)?"
    rf"(?:(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?,?\s+)?(?P<year>\d{{4}}){_TIME}"
)
"""A date as RFC 2822 has it, `Mon, 05 Feb 2024 10:00:00 +0100`, and `February 5, 2024`."""
_NUMBER_OF_TIME = r"-?\d{1,20}(?:\.\d{0,9})?"
_MILLISECONDS_FROM = 1_577_836_800_000
"""A smaller number is a time in seconds, any other one in milliseconds: MAMA's own rule."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_ZEROS = (_EPOCH, datetime.min.replace(tzinfo=UTC))
"""Times that programs write if they have none."""


_MONTHS = [
    tuple(starts.split())
    for starts in (
        "jan ene gen,feb fév fev,mar mär mrz maa mrt,apr avr abr,may mai mag mei,"
        "jun juin giu,jul juil lug,aug aoû ago,sep set,oct okt out ott,nov,dec dez déc dic"
    ).split(",")
]
"""The beginnings of the names of each month, in seven languages."""
_USUAL_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


def read_moment(text: str) -> datetime | None:
    """Returns the time of an ISO-like date, in UTC, or None for another text.

    `2026-11-20`, `2026/11/20`, with `T` or a blank and a time of day, with or without zone;
    the default is UTC. A date alone is its midnight.
    """
    if _USUAL_DATE.fullmatch(text):
        with suppress(ValueError):
            return datetime.fromisoformat(text)
    text = compiled(_NUMERIC_DAY).sub(r"\3-\2-\1", text).strip()
    match = _DATE.fullmatch(text)
    if match is None:
        words = compiled(_WORDY_DATE).fullmatch(text.removeprefix("[[").removesuffix("]]"))
        name = words["month"].casefold() if words else ""
        month = next((f"{n}" for n, starts in enumerate(_MONTHS, 1) if name.startswith(starts)), "")
        if words is None or not month:
            return None
        day, day2, *time, half, zone = words.group("day", "day2", *range(5, 11))
        if bool(day) == bool(day2):
            return None
        year, day = words["year"], day or day2
    else:
        year, month, day, *time, half, zone = match.groups()
    hour, minute, second, fraction = (part or "0" for part in time)
    if half:
        hour = f"{int(hour) % 12 + (12 if half in 'pP' else 0)}"
    clock = f"{hour:0>2}:{minute:0>2}:{second:0>2}.{fraction}"
    offset = zone if zone and zone[0] in "+-" else "Z"
    try:
        when = datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}T{clock}{offset}")
        return when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


_DATE_IN_TEXT = (
    r"(?<![\w.])(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{4} ?[年년] ?\d{1,2} ?[月월] ?\d{1,2} ?[日일]"
    r"|\d{1,2}\. ?\d{1,2}\. ?\d{4}|\d{1,2}(?:st|nd|rd|th|er|\.|º)? (?:de )?[^\W\d_]{3,10}\.?"
    r" (?:de )?\d{4}|[^\W\d_]{3,10}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4})(?!\w)"
)


def moment_in(text: str) -> datetime | None:
    """Returns the first date within a text, as in `Verworfen am 3. April 2021`."""
    matches = compiled(_DATE_IN_TEXT).finditer(text)
    return next(filter(None, (moment(match[0]) for match in matches)), None)


DATES = "created|date|created_at|date created|created at|createdat|creation date".split("|")
"""The keys of the time of creation in the headers of several programs, in lower case."""


def moment(value: Any) -> datetime | None:
    """Returns a time in UTC; None for a value that is not a time.

    A number is one only between 2000 and 2200, since it may be anything.
    """
    if isinstance(value, str) and not compiled(_NUMBER_OF_TIME).fullmatch(value.strip()):
        when = read_moment(value)
        return None if when in _ZEROS else when
    try:
        number = float(value)
        factor = 1 if number >= _MILLISECONDS_FROM else 1000
        when = _EPOCH + timedelta(milliseconds=number * factor)
    except (TypeError, ValueError, OverflowError):
        return None
    return when if _EARLIEST <= when < _LATEST else None


def is_misread(key: str, value: Any, *, is_ours: bool) -> bool:
    """Returns whether a remaining key of a header was meant for mind, which could not use it.

    `is_ours` is true for a file in `.mind/`. The types of other programs are not counted.
    """
    name = key.lower()
    if name in DATES:
        return value is not None and moment(value) is None
    if key == "type" and isinstance(value, str):
        from difflib import get_close_matches

        names = [*Kind, *KIND_ALIASES]
        return is_ours and bool(get_close_matches(value.lower(), names, cutoff=0.75))
    return is_ours and name in KEYS


def created_in(header: Mapping[str, Any], path: str = "") -> datetime | None:
    """Returns the time of creation in a header, or the day in the name of the file."""
    dates = sorted((DATES.index(key.lower()), key) for key in header if key.lower() in DATES)
    moments = (moment(header[key]) for _, key in dates)
    return next(filter(None, moments), None) or day_of(path)


def day_of(path: str) -> datetime | None:
    """Returns the day in the name of a file, also as Roam writes it: `May 6th, 2024.md`."""
    return naming.day_of(path) or read_moment(naming.stem_of(path))


_TAGS_IN_COMMENT = r"(?m)^tags:[ \t]+#[^\W\d][\w/-]*(?:[ \t,]+#[\w/-]+)*[ \t]*\r?$"
"""Tags that YAML reads as a comment, since they begin with `#` and have no quotes."""
_NUMBER = re.compile(r"\d?\.?\d{1,20}")
_LINK_KEYS = frozenset(("to", "type", "as", "confidence", "by"))
_TAG_START = re.compile(r"^[#\s]+")
_WRAPPED = re.compile(r"\[\[([^\[\]|#]+)(?:[#|][^\[\]]*)?\]\]")


def understand(header: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the fields of a memory from a header, and the remaining keys."""
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in header.items():
        reader = _READERS.get(key)
        if reader is None:
            extra[key] = value
        elif value is not None:
            try:
                fields[key] = reader(value)
            except (ValueError, Invalid):
                extra[key] = value
    if "created" not in fields:
        fields["created"] = created_in(extra)
    if "title" not in fields:
        titles = (value for key, value in extra.items() if key.lower() == "title")
        fields["title"] = next(
            (clean_title(text) for text in titles if isinstance(text, str)), None
        )
    return {key: value for key, value in fields.items() if value not in (None, ())}, extra


def written(memory: Memory, links: Sequence[Link]) -> dict[str, Any]:
    """Returns the keys and values of a header for `memory`, without nulls and defaults.

    `links` are the links that are not in the body.
    """
    fields = {key: getattr(memory, key) for key in KEYS} | {
        "type": memory.type.value,
        "tags": list(memory.tags),
        "importance": memory.importance if memory.importance != 0.5 else None,
        "outcome": memory.outcome.value if memory.outcome else None,
        "links": [_link_data(link) for link in links],
    }
    return {key: value for key, value in fields.items() if value is not None and value != []}


def clean_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Returns tags without blanks and `#` before them, each once."""
    cleaned = (_TAG_START.sub("", tag).rstrip() for tag in tags)
    return tuple(dict.fromkeys(tag for tag in cleaned if tag))


def clean_title(title: str | None) -> str | None:
    """Returns a title on one line, or None if it is blank."""
    return " ".join(title.split()) or None if title else None


def clean_text(text: str | None) -> str | None:
    """Returns `text`, or None if it is blank."""
    return text if text and text.strip() else None


def _text(value: Any) -> str:
    """Returns a single value as text; raises `ValueError` for a list or a mapping."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(value)


def _optional_text(value: Any) -> str | None:
    return clean_text(_text(value))


def _id(value: Any) -> str:
    text = _text(value)
    if not ids.is_id(text) or ids.holds_secret(text):
        raise ValueError(text)
    return text


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return clean_tags([_text(tag) for tag in value if tag is not None])
    text = _text(value)
    words = text.split()
    if "," not in text and all(word.startswith("#") for word in words):
        return clean_tags(words)
    return clean_tags(text.split(","))


def _unit(value: Any) -> float:
    text = _text(value)
    if isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(text)):
        raise ValueError(text)
    if not 0 <= (number := float(text)) <= 1:
        raise ValueError(text)
    return number


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(value)  # noqa: TRY004 - one exception for any value without a meaning
    return value


def _moment(value: Any) -> datetime:
    when = read_moment(_text(value)) or moment(value)
    if when is None:
        raise ValueError(value)
    return when


def _links(value: Any) -> tuple[Link, ...]:
    """Returns the links; raises `ValueError` for any other list, which stays unchanged."""
    if not isinstance(value, list):
        raise ValueError(value)  # noqa: TRY004 - one exception for any value without a meaning
    return tuple(dict.fromkeys(_link(item) for item in value))


def _link(item: Any) -> Link:
    if isinstance(item, str):
        wrapped = _WRAPPED.fullmatch(item.strip())
        return Link(to=wrapped[1].strip() if wrapped else _id(item))
    if not isinstance(item, dict) or not item.keys() <= _LINK_KEYS:
        raise ValueError(item)
    to, kind, label, by = (item.get(key) for key in ("to", "type", "as", "by"))
    confidence = item.get("confidence")
    return Link(
        to=_text(to),
        type="relates_to" if kind is None else _text(kind),
        given=None if label is None else _text(label),
        confidence=None if confidence is None else _unit(confidence),
        by=None if by is None else _text(by),
    )


def _link_data(link: Link) -> dict[str, Any]:
    data = {
        "to": link.to,
        "type": link.type,
        "as": link.given,
        "confidence": link.confidence,
        "by": link.by,
    }
    return {key: value for key, value in data.items() if value is not None}


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "id": _id,
    "type": lambda value: kind_of(_text(value)),
    "title": lambda value: clean_title(_text(value)),
    "topic": _optional_text,
    "tags": _tags,
    "importance": _unit,
    "confidence": _unit,
    "outcome": lambda value: Outcome(_text(value).strip().upper()),
    "status": _optional_text,
    "category": _optional_text,
    "source": _optional_text,
    "protected": _flag,
    "created": _moment,
    "by": _optional_text,
    "links": _links,
}

KEYS = tuple(_READERS)
"""The keys of mind, in the order in which they are written."""

_LIKE_HEADER = (
    # Another key may come first.
    rf"(?i)[-+]{{3,}}[^\S\n]*\n(?:.*\n){{0,9}}?[^\S\n]*[\"']?(?:{'|'.join(KEYS)})[\"']?\s*[:=].*\n"
    r"(?:.*\n){0,200}?(?:-{3,}|\+{3,})\s*(?:\n|\Z)"
)


def begins_with_header(content: str) -> bool:
    """Returns whether a text begins with what looks like a header of mind.

    It was not read as one: a blank line is before it, `----` encloses it, or `key:value` has no
    blank after the colon.
    """
    return compiled(_LIKE_HEADER).match(content) is not None
