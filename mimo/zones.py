"""Time zones: a name of the setting `time.zone` -> the zone.

Loaded only if the zone is not UTC. The zone `local` is that of the process, as the C library has it
from `TZ` or the system, so it needs no data of its own.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from mimo.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOCAL_NAME = "local"
_SYSTEM = "/etc/localtime"
_FOLDER = "zoneinfo/"


class Local(tzinfo):
    """The zone of this process."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        """Returns the offset from UTC at a time of the clock."""
        return None if moment is None else _here(moment).utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        """Returns None: the offset is not parted."""
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        """Returns the abbreviation at a time of the clock, such as `CET`."""
        return None if moment is None else _here(moment).tzname()

    def fromutc(self, moment: datetime) -> datetime:
        """Returns the time of the clock at a moment in UTC; of two equal ones, the right one."""
        local = _clock(moment.replace(tzinfo=UTC))
        earliest = local.replace(tzinfo=self, fold=0)
        return earliest if earliest.utcoffset() == local.utcoffset() else earliest.replace(fold=1)

    def __repr__(self) -> str:
        return LOCAL_NAME


LOCAL = Local()


def _here(moment: datetime) -> datetime:
    """Returns a time of the clock with its offset."""
    return _clock(moment.replace(tzinfo=None))


def _clock(moment: datetime) -> datetime:
    """Returns a moment on the clock of this process; a year that it does not know is a usual one.

    The C library has no local time near the ends of the calendar. If the offset is a day or more,
    which is possible in `TZ`, the clock is that of UTC.
    """
    try:
        return moment.astimezone()
    except (ValueError, OverflowError, OSError):
        offset = timedelta(seconds=-time.timezone)
        zone = timezone(offset, time.tzname[0]) if abs(offset) < timedelta(days=1) else UTC
        return moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)


def zone_of(name: str) -> tzinfo:
    """Returns the zone of a name: `UTC`, `local`, or one of the system such as `Europe/Berlin`.

    Raises `Invalid` for an unknown name, and if the system has no data of time zones.
    """
    if name == "UTC":
        return UTC
    if name == LOCAL_NAME:
        return LOCAL
    from zoneinfo import ZoneInfo, available_timezones

    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        names = available_timezones()
    if not names:
        raise Invalid(
            f"`{name}` can't be used: this system has no data of time zones",
            hint="install the package tzdata of the system, or `pip install tzdata`",
            details={"setting": "time.zone"},
        )
    raise Invalid(
        f"setting `time.zone` must be UTC, local or the name of a time zone, not `{name}`",
        hint=_near(name, names),
        details={"setting": "time.zone"},
    )


def _near(name: str, names: set[str]) -> str:
    """Returns a hint with up to three names that are spelled alike, or end with the same place."""
    from difflib import get_close_matches

    usual = {zone.casefold(): zone for zone in ("UTC", LOCAL_NAME)}
    folded = usual | {zone.casefold(): zone for zone in sorted(names)}
    target = name.strip().replace(" ", "_").casefold()
    exact = [folded[target]] if target in folded else []
    ends = [zone for key, zone in folded.items() if key.rpartition("/")[2] == target]
    near = (
        exact or ends or [folded[key] for key in get_close_matches(target, folded, n=3, cutoff=0.7)]
    )
    if not near:
        return "such as Europe/Berlin, Asia/Seoul or America/New_York"
    return f"did you mean {' or '.join(f'`{zone}`' for zone in near[:3])}?"


def system_name(environ: Any = os.environ) -> str | None:
    """Returns the name of the zone of this process; None if it has none, or is UTC all year."""
    if not any((time.timezone, time.daylight and time.altzone)):
        return None
    path = environ.get("TZ", "").lstrip(":") or _linked(_SYSTEM)
    name = path.rpartition(_FOLDER)[2]
    return time.tzname[0] if name.startswith("/") else name or time.tzname[0]


def _linked(path: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError:
        return ""
