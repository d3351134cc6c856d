"""Reading the record of calls and the event log, and the metrics that they add up to."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from mimo.guard.audit import QUANTILES, AuditLog, Totals
from mimo.guard.chain import Fault, Link, Placed, faults, line_of
from mimo.mind import Mind
from mimo.store.events import Event

_PAUSE_SECONDS = 0.2


def log_of(mind: Mind) -> AuditLog:
    """Returns the log of the project, or the log of calls outside of all projects."""
    root = mind.project.root if mind.has_project else None
    return AuditLog(mind.home, root, mind.randomness)


def recorded(mind: Mind, since: datetime | None, until: datetime | None) -> Iterator[Link]:
    """Yields the records from a span of time, oldest first."""
    for placed in _placed(log_of(mind)):
        if placed.link and _is_between(_time(placed.link), since, until):
            yield placed.link


def unreadable(mind: Mind) -> int:
    """Returns how many lines of the log are not records."""
    return sum(placed.link is None for placed in _placed(log_of(mind)))


def _is_between(at: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    """Returns whether a time is in a half-open span; a missing time only if there are no limits."""
    if at is None:
        return since is None and until is None
    return (since is None or at >= since) and (until is None or at < until)


def line(link: Link) -> str:
    """Returns a record as it is stored, with its hashes."""
    return line_of(link).decode("utf-8", "replace")


def broken(mind: Mind, *, newest: bool = False) -> tuple[int, list[Fault]]:
    """Returns the expected number of records, and the faults and notices of their chain.

    Records of another `$MIND_HOME` after the last one of this home count too. With `newest` only
    the newest file of the log is read. Raises `StorageFailed`.
    """
    log = log_of(mind)
    head = log.head
    count, last = (head.number, head.hash) if head else (0, None)
    placed = _placed(log, log.paths()[-1:] if newest else None)
    broken = list(faults(placed, log.key, count=count, last=last, from_start=not newest))
    if left := log.torn:
        message = f"the last write was interrupted: {left:,} bytes of an incomplete record"
        torn = sum(1 for _ in log.links(log.path)) + 1
        broken.append(Fault(log.path.name, torn, message, is_broken=False))
    first = next(_placed(log), None) if log.key is None else None
    # A home without records has no key either: the records name the home that sealed them.
    if first and first.link and (head or first.link.home is None):
        message = "the key that sealed it is not on this machine: only the hashes were checked"
        broken.insert(0, Fault(first.file, first.line, message))
    return max(count, log.last_number), broken


def _placed(log: AuditLog, paths: Iterable[Path] | None = None) -> Iterator[Placed]:
    for path in log.paths() if paths is None else paths:
        for line, link in log.links(path):
            yield Placed(path.name, line, link)


def _time(link: Link) -> datetime | None:
    try:
        return datetime.fromisoformat(str(link.event.get("timestamp")))
    except ValueError:
        return None


def exposition(totals: Totals, memories: dict[str, int]) -> str:
    """Returns the metrics in the text format that Prometheus reads."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(totals, memories))
    return generate_latest(registry).decode()


class _Collector:
    """The metrics in the form that a registry collects."""

    def __init__(self, totals: Totals, memories: dict[str, int]) -> None:
        self._totals = totals
        self._memories = memories

    def collect(self) -> Iterator[Any]:
        """Yields each family of metrics."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            SummaryMetricFamily,
        )

        for name, help, labels, counts in self._counters():
            counter = CounterMetricFamily(name, help, labels=labels)
            for values, number in sorted(counts.items()):
                counter.add_metric(values, number)
            yield counter
        name = "memory_tool_latency_seconds"
        latency = SummaryMetricFamily(name, "Seconds until a call was answered")
        for tool in self._totals.tools():
            own = {"tool_name": tool}
            for quantile in QUANTILES:
                seconds = self._totals.latency(tool, quantile)
                latency.add_sample(name, own | {"quantile": f"{quantile:g}"}, seconds)
            latency.add_sample(f"{name}_count", own, self._totals.calls(tool))
            latency.add_sample(f"{name}_sum", own, self._totals.seconds[(tool,)])
        yield latency
        gauge = GaugeMetricFamily("mind_memories", "Memories in the project", labels=["type"])
        for kind, number in sorted(self._memories.items()):
            gauge.add_metric([kind], number)
        yield gauge

    def _counters(self) -> Iterator[tuple[str, str, list[str], Any]]:
        totals = self._totals
        labels = ["tool_name", "namespace", "status"]
        yield "memory_tool_requests", "Calls of tools", labels, totals.requests
        labels = ["tool_name", "reason"]
        yield "memory_tool_permission_denies", "Calls that were denied", labels, totals.denies
        help = "Secrets and personal data redacted in answers"
        yield "memory_tool_pii_redactions", help, ["tool_name"], totals.redactions


def newest(mind: Mind, name: str, limit: int) -> list[Event]:
    """Returns the newest events whose name begins with `name`, oldest first."""
    return _named(mind.events.read()[0], name)[-limit:]


def followed(mind: Mind, name: str, limit: int) -> Iterator[Event]:
    """Yields the newest events, and then each new event, without an end."""
    events, place = mind.events.read()
    yield from _named(events, name)[-limit:]
    while True:
        mind.timer.sleep(_PAUSE_SECONDS)
        events, place = mind.events.since(place)
        yield from _named(events, name)


def _named(events: Iterable[Event], name: str) -> list[Event]:
    return [event for event in events if event.name.startswith(name)]
