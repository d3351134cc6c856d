"""Reading the record of calls and the event log, and the metrics that they add up to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from mimo.call import Call
from mimo.guard.audit import AuditLog
from mimo.guard.chain import Fault, Link, Placed, faults
from mimo.guard.totals import QUANTILES, Labels, Totals
from mimo.project.events import Event

_PAUSE_SECONDS = 0.2


def log_of(call: Call) -> AuditLog:
    """Returns the log of the project, or the log of calls outside of all projects."""
    root = call.mind.project.root if call.mind.has_project else None
    return AuditLog(call.mind.home, root, call.mind.randomness)


def recorded(call: Call, since: datetime | None, until: datetime | None) -> Iterator[Link]:
    """Yields the records from a span of time, oldest first."""
    for placed in _placed(log_of(call)):
        if placed.link is None:
            continue
        at = None
        with suppress(ValueError, OverflowError):
            at = datetime.fromisoformat(str(placed.link.event.get("timestamp"))).astimezone(UTC)
        begun = since is None or (at is not None and at >= since)
        if begun and (until is None or (at is not None and at < until)):
            yield placed.link


def unreadable(call: Call) -> int:
    """Returns how many lines of the log are not records."""
    return sum(placed.link is None for placed in _placed(log_of(call)))


def broken(call: Call, *, newest: bool = False) -> tuple[int, list[Fault]]:
    """Returns the expected number of records, and the faults and notices of their chain.

    Records of another `$MIND_HOME` after the last one of this home count too. With `newest` only
    the newest file of the log is read. Raises `StorageFailed`.
    """
    log = log_of(call)
    log.check_format()
    head = log.head
    count, digest = (head.number, head.hash) if head else (0, None)
    placed = _placed(log, log.paths()[-1:] if newest else None)
    restarted = log.has_restarted
    broken = list(
        faults(
            placed, log.key, count=count, digest=digest, from_start=not newest, restarted=restarted
        )
    )
    if log.path.is_symlink() or (log.path.exists() and not log.path.is_file()):
        broken.append(Fault(log.path.name, 1, "calls are not recorded: it is not a regular file"))
    if left := log.torn:
        message = f"the last write was interrupted: {left:,} bytes of an incomplete record"
        torn = sum(1 for _ in log.links(log.path)) + 1
        broken.append(Fault(log.path.name, torn, message, is_broken=False))
    earliest = next(_placed(log), None) if log.key is None else None
    # A home without records has no key either: the records name the home that sealed them.
    if earliest and earliest.link and (head or earliest.link.home is None):
        message = "the key that sealed it is not on this machine: only the hashes were checked"
        broken.insert(0, Fault(earliest.file, earliest.line, message))
    return max(count, log.last_number), broken


def _placed(log: AuditLog, paths: Iterable[Path] | None = None) -> Iterator[Placed]:
    for path in log.paths() if paths is None else paths:
        for line, link in log.links(path):
            yield Placed(path.name, line, link)


Sample = tuple[str, Mapping[str, str], float]
"""A name, its labels and a value."""


def exposition(totals: Totals, memories: Mapping[str, int]) -> str:
    """Returns the metrics in the text format that Prometheus reads."""
    name = "memory_tool_latency_seconds"
    latency: list[Sample] = []
    for tool in totals.tools():
        tool_label = {"tool_name": tool}
        for quantile in QUANTILES:
            labels = {**tool_label, "quantile": f"{quantile:g}"}
            latency.append((name, labels, totals.latency(tool, quantile)))
        latency.append((f"{name}_count", tool_label, totals.calls(tool)))
        latency.append((f"{name}_sum", tool_label, totals.seconds[(tool,)]))
    kinds = [("mind_memories", {"type": kind}, number) for kind, number in sorted(memories.items())]
    families = [
        _counter("requests", "Calls of tools", "namespace status", totals.requests),
        _counter("permission_denies", "Calls that were denied", "reason", totals.denies),
        _counter(
            "pii_redactions", "Secrets and personal data redacted in answers", "", totals.redactions
        ),
        _family(name, "summary", "Seconds until a call was answered", latency),
        _family("mind_memories", "gauge", "Memories in the project", kinds),
    ]
    return "".join(families)


def _counter(name: str, help: str, more: str, counts: Mapping[Labels, int]) -> str:
    """Returns a counter of tools' calls, with the labels `tool_name` and those in `more`."""
    full = f"memory_tool_{name}_total"
    labels = ("tool_name", *more.split())
    counted = sorted(counts.items())
    samples = [(full, dict(zip(labels, key, strict=True)), number) for key, number in counted]
    return _family(full, "counter", help, samples)


def _family(name: str, kind: str, help: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {help}\n# TYPE {name} {kind}\n"]
    for sample, labels, value in samples:
        pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        lines.append(f"{sample}{{{pairs}}} {float(value)}\n")
    return "".join(lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def newest(call: Call, name: str, limit: int, since: datetime | None = None) -> list[Event]:
    """Returns the newest events whose name begins with `name`, oldest first."""
    return _newest(call.mind.events.read()[0], name, limit, since)


def followed(call: Call, name: str, limit: int, since: datetime | None = None) -> Iterator[Event]:
    """Yields the newest events, and then each new event, without an end."""
    events, place = call.mind.events.read()
    yield from _newest(events, name, limit, since)
    while True:
        call.mind.timer.sleep(_PAUSE_SECONDS)
        events, place = call.mind.events.since(place)
        yield from _named(events, name)


def _newest(events: Iterable[Event], name: str, limit: int, since: datetime | None) -> list[Event]:
    named = _named(events, name)
    return [event for event in named if since is None or event.time >= since][-limit:]


def _named(events: Iterable[Event], name: str) -> list[Event]:
    return [event for event in events if event.name.startswith(name)]
