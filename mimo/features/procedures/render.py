"""The output of the `mind procedure` commands."""

from collections.abc import Mapping, Sequence

from mimo.features.procedures.commands import (
    Checks,
    Definition,
    FaultRow,
    Procedures,
    Progress,
    Ran,
    Registered,
    Runs,
    Sent,
)
from mimo.features.procedures.executing import sending
from mimo.features.procedures.machine import Status
from mimo.features.procedures.model import tree
from mimo.operations.rows import TrustLabel
from mimo.rendering import Part, Screen, accent, as_json, bad, dim, good, strong, warn
from mimo.rendering.results import count, day, paged, render, second

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
    _trace(result, screen)
    status = _ROLES[result.status](result.status)
    took = dim(f"  {_seconds(result.duration_ms or 0)}")
    screen.line(status, " in ", strong(result.final_state or ""), took)
    if result.error:
        screen.line(bad(result.error), indent=2)
    _context(result.context or {}, screen)
    screen.line(dim(result.execution_id), indent=2)
    if result.waits_for:
        screen.line(warn(result.question or "it waits for an event"), indent=2)
        _send(result.execution_id, result.waits_for, screen)
    if result.status is Status.INTERRUPTED:
        screen.line(dim(f"mind procedure resume {result.execution_id}"), indent=2)


@render.register
def _(result: Progress, screen: Screen) -> None:
    screen.line(strong(result.procedure), "  ", _ROLES[result.status](result.status))
    rows: list[tuple[str, Part]] = [
        ("id", accent(result.execution_id)),
        ("state", result.current_state),
        ("started", second(result.started_at)),
        ("took", _seconds(result.elapsed_ms)),
    ]
    screen.pairs(rows, indent=2)
    if result.error:
        screen.line(bad(result.error), indent=2)
    if result.waits_for:
        screen.line(warn(result.question or "it waits for an event"), indent=2)
        _send(result.execution_id, result.waits_for, screen)
    _trace(result, screen)
    _context(result.context, screen)


@render.register
def _(result: Runs, screen: Screen) -> None:
    rows: list[list[Part]] = [
        [
            accent(row.execution_id),
            _ROLES[row.status](row.status),
            row.procedure,
            row.current_state,
            day(row.started_at),
            _seconds(row.elapsed_ms),
        ]
        for row in result.runs
    ]
    screen.table(["id", "status", "procedure", "state", "started", "took"], rows)
    if not result.total:
        screen.line("no runs")
        screen.note("`mind procedure run NAME` starts one; `mind procedure list` shows the names")
    elif len(result.runs) + len(result.damaged) < result.total:
        screen.line(dim(paged(len(rows), result.total, 0, "run")))
    for id in result.damaged:
        screen.note(f"the records of {id} are damaged")


@render.register
def _(result: Sent, screen: Screen) -> None:
    screen.line(good("✓ "), "sent ", strong(result.event), "; now in state ", result.current_state)


def _trace(result: Ran | Progress, screen: Screen) -> None:
    for row in result.history or ():
        at = dim(f"{_seconds(row.timestamp):>9}  ")
        screen.line(at, row.from_, dim(f" ─{row.event}→ "), row.to)
    for line in result.log or ():
        screen.line(line, indent=2)


def _send(execution_id: str, events: Sequence[str], screen: Screen) -> None:
    for event in events:
        screen.line(dim(sending(execution_id, event)), indent=2)


def _context(context: Mapping[str, object], screen: Screen) -> None:
    screen.pairs([(key, as_json(value)[:500]) for key, value in context.items()], indent=2)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.2f} s" if milliseconds < 100_000 else f"{milliseconds // 1000} s"


@render.register
def _(result: Procedures, screen: Screen) -> None:
    rows: list[list[Part]] = [
        [
            strong(row.name),
            row.version,
            count(row.state_count, "state"),
            warn("not approved") if row.trust is TrustLabel.UNTRUSTED else dim("approved"),
            row.description,
        ]
        for row in result.procedures
    ]
    screen.table(["name", "version", "states", "trust", "description"], rows)
    if not rows:
        screen.line(dim("no procedures yet: mind procedure new NAME"))
    _faults(result.faults, screen, "fault")


@render.register
def _(result: Definition, screen: Screen) -> None:
    if result.diagram is not None:
        for line in result.diagram.splitlines():
            screen.line(line)
        return
    untrusted = result.trust is TrustLabel.UNTRUSTED
    marks = [warn("  not approved")] if untrusted else []
    screen.line(strong(f"{result.name}@{result.version}"), *marks)
    if result.description:
        screen.line(result.description, indent=2)
    limits = f"at most {result.timeout_ms} ms, {count(result.max_retries, 'retry', 'retries')}"
    screen.line(dim(f"{result.file}  {limits}"), indent=2)
    screen.blank()
    for line in tree(result.definition):
        screen.line(line, indent=2)


@render.register
def _(result: Registered, screen: Screen) -> None:
    name = strong(f"{result.name}@{result.version}")
    screen.line(good("✓ "), name, "  ", count(result.state_count, "state"))
    screen.line(dim(result.file), indent=2)
    if result.trust is TrustLabel.UNTRUSTED:
        screen.note("it runs programs: its first run on a terminal asks")
    _faults(result.warnings, screen, "warning")


@render.register
def _(result: Checks, screen: Screen) -> None:
    _faults(result.faults, screen, "fault")
    _faults(result.warnings, screen, "warning")
    if result.valid:
        screen.line(good("✓ "), count(result.checked, "procedure"), " checked")


def _faults(rows: tuple[FaultRow, ...], screen: Screen, kind: str) -> None:
    role = bad if kind == "fault" else warn
    for row in rows:
        place = f"{row.file}:{row.line}" if row.line else row.file
        screen.line(role(f"{kind}: "), accent(place), f": {row.reason}")
