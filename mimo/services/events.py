"""The event log, read: the newest events, and those that come."""

from collections.abc import Iterable, Iterator

from mimo.mind import Mind
from mimo.store.events import Event

_PAUSE_SECONDS = 0.2

__all__ = ["Event", "followed", "newest"]


def newest(mind: Mind, name: str, limit: int) -> list[Event]:
    """Returns the newest events whose name begins with `name`, oldest first."""
    return _named(mind.events.read()[0], name)[-limit:]


def followed(mind: Mind, name: str, limit: int) -> Iterator[Event]:
    """Yields the newest events and then, without an end, each that comes."""
    found, place = mind.events.read()
    yield from _named(found, name)[-limit:]
    while True:
        mind.timer.sleep(_PAUSE_SECONDS)
        found, place = mind.events.since(place)
        yield from _named(found, name)


def _named(events: Iterable[Event], name: str) -> list[Event]:
    return [event for event in events if event.name.startswith(name)]
