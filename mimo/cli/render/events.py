"""How events look: one line each."""

from mimo.cli.output import as_json
from mimo.cli.render import Screen, accent, dim, render
from mimo.commands.events import EventRow, Events


@render.register
def _(result: Events, screen: Screen) -> None:
    for row in result.events:
        _line(row, screen)
    if not result.events:
        screen.line(dim("no events yet; `mind ingest` and procedures write them"))


@render.register
def _(result: EventRow, screen: Screen) -> None:
    _line(result, screen)


def _line(row: EventRow, screen: Screen) -> None:
    told = {**row.measurements, **row.metadata}
    said = "  ".join(
        f"{key}={value if isinstance(value, str) else as_json(value)}"
        for key, value in told.items()
        if value is not None
    )
    stamp = row.time.strftime("%Y-%m-%d %H:%M:%S")
    screen.line(dim(f"{stamp}  "), accent(row.name), f"  {said}")
