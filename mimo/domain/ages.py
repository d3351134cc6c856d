"""How old something is, in words."""

from datetime import datetime, timedelta

_STEPS = (
    (timedelta(days=365), "year"),
    (timedelta(days=30), "month"),
    (timedelta(days=7), "week"),
    (timedelta(days=1), "day"),
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
)


def age(moment: datetime, now: datetime) -> str:
    """Returns how long ago `moment` was: `3 days ago`, `just now`, `in the future`."""
    passed = now - moment
    if passed < timedelta(0):
        return "in the future"
    for step, name in _STEPS:
        if count := passed // step:
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"
