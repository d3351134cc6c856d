"""Dates as people write them in headers."""

import re
from datetime import UTC, datetime, timedelta, timezone

_DATE = re.compile(
    r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})"
    r"(?:(?:[Tt]|\s+)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
    r"(?:\s*([Zz]|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2}))?)?"
)


def read_moment(text: str) -> datetime | None:
    """Returns the time that an ISO-like date means, in UTC, or None where it is no date.

    `2026-11-20`, `2026/11/20`, with `T` or a blank and a time of day, with or without zone;
    without one it is taken as UTC. A date alone is its midnight.
    """
    found = _DATE.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found[n] or 0) for n in range(1, 7))
    micro = int((found[7] or "0").ljust(6, "0")[:6])
    try:
        when = datetime(year, month, day, hour, minute, second, micro, tzinfo=_zone(found[8]))
        return when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _zone(text: str | None) -> timezone:
    if text is None or text.upper() in ("Z", "UTC", "GMT"):
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    away = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(away if text[0] == "+" else -away)
