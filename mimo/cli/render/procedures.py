"""How runs of procedures look."""

from collections.abc import Mapping

from mimo.cli.render import Part, Screen, accent, bad, dim, good, render, strong, warn
from mimo.commands.procedures import HowFar, Moved, Ran, Sent
from mimo.domain.procedures.machine import Status

_ROLES = {
    Status.RUNNING: accent,
    Status.COMPLETED: good,
    Status.FAILED: bad,
    Status.INTERRUPTED: warn,
}


@render.register
def _(result: Ran, screen: Screen) -> None:
    for warning in result.warnings or ():
        screen.note(f"context: {warning}")
    if result.history is None:
        screen.line(accent("▶ "), strong(result.execution_id), "  in process ", result.pid or "")
        screen.line(dim(f"mind procedure status {result.execution_id}"), indent=2)
        return
    _history(result.history, screen)
    _log(result.log, screen)
    how = _ROLES[result.status](result.status)
    took = dim(f"  {_seconds(result.duration_ms or 0)}")
    screen.line(how, " in ", strong(result.final_state or ""), took)
    if result.error:
        screen.line(bad(result.error), indent=2)
    _context(result.context or {}, screen)
    if result.rollback:
        screen.line(dim("undone by "), result.rollback, indent=2)
    screen.line(dim(result.execution_id), indent=2)
    if result.status is Status.INTERRUPTED:
        screen.line(dim(f"mind procedure resume {result.execution_id}"), indent=2)


@render.register
def _(result: HowFar, screen: Screen) -> None:
    screen.line(strong(result.procedure), "  ", _ROLES[result.status](result.status))
    rows: list[tuple[str, Part]] = [
        ("id", accent(result.execution_id)),
        ("state", result.current_state),
        ("took", _seconds(result.elapsed_ms)),
    ]
    screen.pairs(rows, indent=2)
    if result.error:
        screen.line(bad(result.error), indent=2)
    if result.waits_for:
        screen.line(warn(result.question or "it waits for an event"), indent=2)
        told = f"mind procedure send {result.execution_id} {'|'.join(result.waits_for)}"
        screen.line(dim(told), indent=2)
    if result.rollback:
        screen.line(dim("undone by "), result.rollback, indent=2)
    _history(result.history, screen)
    _log(result.log, screen)
    _context(result.context, screen)


@render.register
def _(result: Sent, screen: Screen) -> None:
    screen.line(good("✓ "), strong(result.event), " sent, in state ", result.current_state)


def _history(history: tuple[Moved, ...], screen: Screen) -> None:
    for row in history:
        at = dim(f"{_seconds(row.timestamp):>9}  ")
        screen.line(at, row.from_, dim(f" ─{row.event}→ "), row.to)


def _log(log: tuple[str, ...] | None, screen: Screen) -> None:
    for line in log or ():
        screen.line(line, indent=2)


def _context(context: Mapping[str, object], screen: Screen) -> None:
    if not context:
        return
    from mimo.cli.output import as_json

    screen.pairs([(key, as_json(value)[:500]) for key, value in context.items()], indent=2)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.2f} s" if milliseconds < 100_000 else f"{milliseconds // 1000} s"
