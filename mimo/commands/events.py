"""`mind events`: what happened in this project, from the event log."""

from datetime import datetime
from typing import Annotated

from mimo.commands.common import Limit
from mimo.commands.spec import Arg, Effect, Surface, command
from mimo.commands.types import Json, Out
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import events as log


@frozen
class EventRow:
    """Something that happened."""

    name: Annotated[str, Out("Such as mimo.ingest.file")]
    time: datetime
    measurements: Annotated[dict[str, float], Out("Numbers, such as duration_ms")]
    metadata: dict[str, Json]


@frozen
class Events:
    """What happened."""

    events: Annotated[tuple[EventRow, ...], Out("Oldest first")]


@command(
    "mind_events",
    cli="events",
    effect=Effect.READ,
    toolset="extra",
    examples=(
        "mind events",
        "mind events mimo.ingest --limit 50",
        "mind events --follow --json",
    ),
)
def events(
    mind: Mind,
    name: Annotated[str, Arg("Only events whose name begins so")] = "",
    *,
    limit: Limit = 20,
    follow: Annotated[
        bool, Arg("Go on with what happens from now on", surfaces=Surface.CLI)
    ] = False,
) -> Events:
    """Show what happened here, newest last"""
    if follow and mind.partial:
        for event in log.followed(mind, name, limit):
            mind.partial(_row(event))
        return Events(events=())
    return Events(events=tuple(_row(event) for event in log.newest(mind, name, limit)))


def _row(event: log.Event) -> EventRow:
    return EventRow(
        name=event.name,
        time=event.time,
        measurements=dict(event.measurements),
        metadata=dict(event.metadata),
    )
