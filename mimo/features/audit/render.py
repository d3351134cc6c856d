"""The output of `mind audit`, `mind metrics` and `mind events`."""

from mimo.features.audit.commands import (
    AuditExport,
    AuditRow,
    AuditRows,
    AuditVerdict,
    EventRow,
    Events,
    Metrics,
)
from mimo.rendering import as_json
from mimo.rendering.results import count, render
from mimo.rendering.screen import Part, Screen, accent, bad, dim, good, warn
from mimo.text.clean import escaped

_ROLES = {"ok": good, "denied": warn, "failed": bad}


@render.register
def _(result: AuditRows, screen: Screen) -> None:
    screen.table(("TIME", "TOOL", "ON", "BY", "STATUS", "TOOK"), map(_cells, result.calls))
    shown = f"the newest {len(result.calls):,} of " if len(result.calls) < result.total else ""
    screen.line(dim(f"{shown}{count(result.total, 'call')}"))


def _cells(row: AuditRow) -> tuple[Part, ...]:
    named = "/".join(part for part in (row.namespace, row.key) if part)
    why = f" {row.reason or row.error}" if row.error else ""
    return (
        dim(f"{row.time:%Y-%m-%d %H:%M:%S}"),
        accent(row.tool),
        named or "-",
        row.agent or "a person",
        _ROLES.get(row.status, dim)(f"{row.status}{why}"),
        dim(_time(row.seconds)),
    )


@render.register
def _(result: AuditVerdict, screen: Screen) -> None:
    for fault in result.faults:
        screen.line(bad("✗ "), f"{fault.file}:{fault.line}  {fault.what}")
    for notice in result.notices:
        screen.line(warn("! "), f"{notice.file}:{notice.line}  {notice.what}")
    if result.whole:
        screen.line(good("✓ "), f"{count(result.records, 'record')}, none changed, none missing")
    else:
        screen.note("the record can't be repaired; keep a copy before anything else changes it")
    screen.line(dim(result.file), indent=2)


@render.register
def _(result: AuditExport, screen: Screen) -> None:
    screen.verbatim(escaped(result.text))
    if result.unreadable:
        lines = count(result.unreadable, "line")
        screen.note(f"omitted {lines} that are not records; see `mind audit verify`")


@render.register
def _(result: Metrics, screen: Screen) -> None:
    if result.text is not None:
        screen.verbatim(result.text)
        return
    headers = ("TOOL", "CALLS", "DENIED", "FAILED", "REDACTED", "P50", "P90", "P99")
    rows: list[tuple[Part, ...]] = [
        (
            accent(row.tool),
            f"{row.calls:,}",
            f"{row.denied:,}",
            f"{row.failed:,}",
            f"{row.redactions:,}",
            *map(_time, (row.p50_seconds, row.p90_seconds, row.p99_seconds)),
        )
        for row in result.tools
    ]
    screen.table(headers, rows)
    total = count(sum(result.memories.values()), "memory", "memories")
    kinds = ", ".join(count(number, kind) for kind, number in sorted(result.memories.items()))
    screen.line(dim(f"{total}{': ' if kinds else ''}{kinds}"))


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


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
    pairs = "  ".join(
        f"{key}={value if isinstance(value, str) else as_json(value)}"
        for key, value in {**row.measurements, **row.metadata}.items()
        if value is not None
    )
    stamp = row.time.strftime("%Y-%m-%d %H:%M:%S")
    screen.line(dim(f"{stamp}  "), accent(row.name), f"  {pairs}")
