"""Keys of a header <-> fields of a memory.

A value without a meaning (`importance: 7`, `confidence: high`) does not set its field. It is kept
among the unknown keys, so that nothing is lost.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from mimo.errors import Invalid
from mimo.memory import ids
from mimo.memory.model import Kind, Link, Memory, Outcome, kind_of

_DATE = re.compile(
    r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})"
    r"(?:(?:[Tt]|\s+)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
    r"(?:\s*([Zz]|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2}))?)?"
)


def read_moment(text: str) -> datetime | None:
    """Returns the time of an ISO-like date, in UTC, or None for another text.

    `2026-11-20`, `2026/11/20`, with `T` or a blank and a time of day, with or without zone;
    the default is UTC. A date alone is its midnight.
    """
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[n] or 0) for n in range(1, 7))
    micro = int((match[7] or "0").ljust(6, "0")[:6])
    try:
        when = datetime(year, month, day, hour, minute, second, micro, tzinfo=_zone(match[8]))
        return when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _zone(text: str | None) -> timezone:
    if text is None or text.upper() in ("Z", "UTC", "GMT"):
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    away = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(away if text[0] == "+" else -away)


KEYS = (
    "id",
    "type",
    "title",
    "topic",
    "tags",
    "importance",
    "confidence",
    "outcome",
    "status",
    "category",
    "source",
    "protected",
    "created",
    "by",
    "links",
)
"""The keys of mind, in the order in which they are written."""

_OTHER_DATES = ("date", "created_at")
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
        dates = (read_moment(str(extra.get(key))) for key in _OTHER_DATES)
        fields["created"] = next((when for when in dates if when), None)
    return {key: value for key, value in fields.items() if value not in (None, ())}, extra


def written(memory: Memory, links: Sequence[Link]) -> dict[str, Any]:
    """Returns the keys and values of a header for `memory`, without nulls and defaults.

    `links` are the links that are not in the body.
    """
    fields: dict[str, Any] = {
        "id": memory.id,
        "type": memory.type.value,
        "title": memory.title,
        "topic": memory.topic,
        "tags": list(memory.tags),
        "importance": memory.importance if memory.importance != 0.5 else None,
        "confidence": memory.confidence,
        "outcome": memory.outcome.value if memory.outcome else None,
        "status": memory.status,
        "category": memory.category,
        "source": memory.source,
        "protected": memory.protected,
        "created": memory.created,
        "by": memory.by,
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


def _title(value: Any) -> str | None:
    return clean_title(_text(value))


def _id(value: Any) -> str:
    text = _text(value)
    if not ids.is_id(text) or ids.holds_secret(text):
        raise ValueError(text)
    return text


def _kind(value: Any) -> Kind:
    return kind_of(_text(value))


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


def _outcome(value: Any) -> Outcome:
    return Outcome(_text(value).strip().upper())


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(value)  # noqa: TRY004 - one exception for any value without a meaning
    return value


def _moment(value: Any) -> datetime:
    when = read_moment(_text(value))
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
    to, kind, given, by = (item.get(key) for key in ("to", "type", "as", "by"))
    confidence = item.get("confidence")
    return Link(
        to=_text(to),
        type="relates_to" if kind is None else _text(kind),
        given=None if given is None else _text(given),
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
    "type": _kind,
    "title": _title,
    "topic": _optional_text,
    "tags": _tags,
    "importance": _unit,
    "confidence": _unit,
    "outcome": _outcome,
    "status": _optional_text,
    "category": _optional_text,
    "source": _optional_text,
    "protected": _flag,
    "created": _moment,
    "by": _optional_text,
    "links": _links,
}
