"""`mind audit`, `mind metrics` and `mind events`: recorded calls, their totals, and events."""

from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from mimo import when
from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Json, Needs, Omitted, Out, command
from mimo.errors import Invalid, StorageFailed
from mimo.features import audit
from mimo.frozen import frozen
from mimo.guard.audit import Status
from mimo.guard.chain import Link, line_of
from mimo.guard.policy import Operation
from mimo.guard.totals import number_of
from mimo.index import survey
from mimo.operations import refresh
from mimo.operations.rows import AlsoFrom, FromDate, Limit, TimeFilter, ToDate, row_of
from mimo.rendering import Part, Screen, accent, as_json, bad, dim, good, warn
from mimo.rendering.results import count, render, stamp
from mimo.text.clean import escaped
from mimo.text.tool_names import underscored


@frozen
class AuditRow:
    """A call that was recorded."""

    number: Annotated[int, Out("Its place in the chain, from 1")]
    time: datetime
    tool: str
    operation: str
    status: str
    namespace: Omitted[str]
    key: Omitted[str]
    agent: Annotated[Omitted[str], Out("The calling program; omitted for a person")]
    user: Annotated[Omitted[str], Out("The user of a team's server")]
    session: Omitted[str]
    error: Annotated[Omitted[str], Out("The code of the error")]
    reason: Annotated[Omitted[str], Out("Why it was denied")]
    redactions: Annotated[int, Out("Secrets and personal data redacted in the answer")]
    seconds: float


@frozen
class AuditRows:
    """Recorded calls."""

    calls: Annotated[tuple[AuditRow, ...], Out("Oldest first")]
    total: Annotated[int, Out("Number of calls that pass the filters, before the limit")]


@frozen
class AuditFault:
    """A place in the chain of records."""

    file: str
    line: int
    what: str


@frozen
class AuditVerdict:
    """The result of verifying the record of calls."""

    whole: bool
    records: Annotated[int, Out("Expected number of records")]
    faults: Annotated[tuple[AuditFault, ...], Out("Where a record was changed, added or removed")]
    notices: Annotated[
        tuple[AuditFault, ...], Out("Interrupted writes, and records of another `$MIND_HOME`")
    ]
    file: Annotated[str, Out("The file of the newest records")]

    @property
    def exit_status(self) -> int:
        """Returns the exit status of the command line: 1 if there are faults."""
        return 0 if self.whole else 1


@frozen
class AuditExport:
    """Records as they are stored."""

    records: tuple[dict[str, Json], ...]
    text: Annotated[str, Out("The same as JSON lines")]
    unreadable: Annotated[int, Out("Number of lines that are not records, which are omitted")]


class MetricsFormat(StrEnum):
    """The output format of metrics."""

    TABLE = "table"
    PROMETHEUS = "prometheus"


@frozen
class ToolMetrics:
    """The metrics of one tool."""

    tool: str
    calls: int
    denied: int
    failed: int
    redactions: int
    p50_seconds: Annotated[float, Out("Half of the calls were answered within this time")]
    p90_seconds: float
    p99_seconds: float


@frozen
class Metrics:
    """The metrics of all processes of this project."""

    tools: tuple[ToolMetrics, ...]
    memories: Annotated[dict[str, int], Out("Number of memories of each type")]
    text: Annotated[Omitted[str], Out("All metrics in the `format`")]


@command(
    "mind_audit",
    cli="audit show",
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ, person=True, diagnosis=True),
    errors=(Invalid,),
    examples=("mind audit show", "mind audit show --status denied --when today"),
)
def show(
    call: Call,
    *,
    tool: Annotated[str | None, Arg("Only calls of this tool")] = None,
    status: Annotated[Status | None, Arg("Only calls with this result")] = None,
    agent: Annotated[str | None, Arg("Only calls by this program")] = None,
    user: Annotated[str | None, Arg("Only calls by this user of a team's server")] = None,
    limit: Limit = 50,
    time_filter: TimeFilter = None,
    from_date: FromDate = None,
    to_date: ToDate = None,
) -> AuditRows:
    """Show the calls of tools, their callers and their results

    The record never contains stored or found texts: only names and times.
    """
    span = when.window(time_filter, from_date, to_date, now=call.mind.local_now())
    conditions = {"status": status and status.value, "agent": agent, "user": user}
    newest: deque[AuditRow] = deque(maxlen=limit)
    total = 0
    for link in audit.recorded(call, span.since, span.until):
        event = link.event
        if (
            event.get("event_type") == "tool_call"
            and (tool is None or underscored(str(event.get("tool", ""))) == underscored(tool))
            and all(value is None or event.get(name) == value for name, value in conditions.items())
        ):
            with suppress(ValueError):  # a record from a clone may have any time
                newest.append(_record_row(link))
                total += 1
    return AuditRows(calls=tuple(newest), total=total)


def _record_row(link: Link) -> AuditRow:
    event = link.event
    names = ("namespace", "key", "agent", "user", "session", "error", "reason")
    texts = {name: str(event[name]) if event.get(name) is not None else None for name in names}
    time = datetime.fromisoformat(str(event.get("timestamp")))
    return AuditRow(
        number=link.number,
        time=time if time.tzinfo else time.replace(tzinfo=UTC),
        tool=underscored(str(event.get("tool"))),
        operation=str(event.get("operation")),
        status=str(event.get("status")),
        redactions=int(number_of(event.get("redactions"))),
        seconds=float(number_of(event.get("seconds"))),
        **texts,
    )


@command(
    "mind_audit_verify",
    cli="audit verify",
    finds=True,
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ, person=True, diagnosis=True),
    errors=(StorageFailed,),
    examples=("mind audit verify",),
)
def verify(call: Call) -> AuditVerdict:
    """Check that no record of a call was changed or removed

    The exit status is 1 if one was. Interrupted writes, and records that another `$MIND_HOME`
    sealed, are listed as notices.
    """
    records, places = audit.broken(call)
    faults, notices = (
        tuple(row_of(place, AuditFault) for place in places if place.is_broken is broken)
        for broken in (True, False)
    )
    return AuditVerdict(
        whole=not faults,
        records=records,
        faults=faults,
        notices=notices,
        file=str(audit.log_of(call).path),
    )


@command(
    "mind_audit_export",
    cli="audit export",
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ, person=True, diagnosis=True),
    errors=(Invalid,),
    examples=("mind audit export > calls.jsonl", "mind audit export --when 'last month'"),
)
def export(
    call: Call,
    *,
    time_filter: TimeFilter = None,
    from_date: FromDate = None,
    to_date: ToDate = None,
) -> AuditExport:
    """Write the records of calls as JSON lines, with their hashes"""
    span = when.window(time_filter, from_date, to_date, now=call.mind.local_now())
    links = list(audit.recorded(call, span.since, span.until))
    return AuditExport(
        records=tuple(dict(link._asdict()) for link in links),
        text=b"".join(map(line_of, links)).decode("utf-8", "replace"),
        unreadable=audit.unreadable(call),
    )


@command(
    "mind_metrics",
    cli="metrics",
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ, person=True),
    examples=("mind metrics", "mind metrics --format prometheus > /var/lib/metrics/mind.prom"),
)
def metrics(
    call: Call,
    *,
    format: Annotated[MetricsFormat, Arg("A table, or the text that Prometheus reads")] = (
        MetricsFormat.TABLE
    ),
) -> Metrics:
    """Show the number and the latency of calls by tool

    Denials and redactions are counted too. All processes of this project are counted together.
    """
    totals = audit.log_of(call).totals()
    by_type = refresh.up_to_date(call).ask(survey.by_type) if call.mind.has_project else {}
    memories = {kind.value: number for kind, number in by_type.items()}
    text = audit.exposition(totals, memories) if format is MetricsFormat.PROMETHEUS else None
    rows = tuple(
        ToolMetrics(
            tool=tool,
            calls=totals.calls(tool),
            denied=totals.calls(tool, Status.DENIED.value),
            failed=totals.calls(tool, Status.FAILED.value),
            redactions=totals.redactions[(tool,)],
            p50_seconds=totals.latency(tool, 0.5),
            p90_seconds=totals.latency(tool, 0.9),
            p99_seconds=totals.latency(tool, 0.99),
        )
        for tool in totals.tools()
    )
    return Metrics(tools=rows, memories=memories, text=text)


@frozen
class EventRow:
    """An event."""

    name: Annotated[str, Out("Such as mimo.ingest.file")]
    time: datetime
    measurements: Annotated[dict[str, float], Out("Numbers, such as duration_ms")]
    metadata: dict[str, Json]


@frozen
class Events:
    """Events of the project."""

    events: Annotated[tuple[EventRow, ...], Out("Oldest first")]


@command(
    "mind_events",
    cli="events",
    effect=Effect.READ,
    toolset="extra",
    needs=Needs(Operation.READ, like="mind_list"),
    examples=(
        "mind events",
        "mind events mimo.ingest --limit 50",
        "mind events --follow --json",
    ),
)
def events(
    call: Call,
    name: Annotated[str, Arg("Only events whose name begins with this")] = "",
    *,
    limit: Limit = 20,
    from_date: AlsoFrom = None,
    follow: Annotated[bool, Arg("Continue with new events", surfaces=Surface.CLI)] = False,
) -> Events:
    """Show the events of this project, newest last"""
    since = when.window(None, from_date, None, now=call.mind.local_now()).since
    if follow and call.console.partial:
        for event in audit.followed(call, name, limit, since):
            call.console.partial(row_of(event, EventRow))
        return Events(events=())
    newest = audit.newest(call, name, limit, since)
    return Events(events=tuple(row_of(event, EventRow) for event in newest))


_ROLES = {"ok": good, "denied": warn, "failed": bad}


@render.register
def _(result: AuditRows, screen: Screen) -> None:
    screen.table(("TIME", "TOOL", "ON", "BY", "STATUS", "TOOK"), map(_cells, result.calls))
    prefix = f"the newest {len(result.calls):,} of " if len(result.calls) < result.total else ""
    screen.line(dim(f"{prefix}{count(result.total, 'call')}"))


def _cells(row: AuditRow) -> tuple[Part, ...]:
    named = "/".join(part for part in (row.namespace, row.key) if part)
    why = f" {row.reason or row.error}" if row.error else ""
    return (
        dim(stamp(row.time)),
        accent(row.tool),
        named or "-",
        f"{row.user} ({row.agent})" if row.user else row.agent or "a person",
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
        screen.line(
            dim("no events yet; changes of memories, `mind ingest` and procedures write them")
        )


@render.register
def _line(row: EventRow, screen: Screen) -> None:
    pairs = "  ".join(
        f"{key}={value if isinstance(value, str) else as_json(value)}"
        for key, value in {**row.measurements, **row.metadata}.items()
        if value is not None
    )
    screen.line(dim(f"{stamp(row.time)}  "), accent(row.name), f"  {pairs}")
