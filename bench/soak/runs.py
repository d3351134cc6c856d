"""The project of a run, the figures of its parts, and the limits of their growth."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.soak.process import Cost, Usage, cost, usage
from bench.stores import text

PARTS = 10
GROWTH = {"resident": 1.1, "index": 1.1, "files": 1.25, "CPU": 1.25, "p50": 2, "p95": 2}
"""The most that the last part may be, as a multiple of the first.

Latency depends on the load of the machine, too, more than the time of the processor does.
"""
MORE = 4
"""The most threads, descriptors and child processes that it may have in addition."""
LOGS = 120_000_000
"""The most bytes of logs: 26 files of the audit log with 4 MiB each, 3 MB of events, 4 MB of the
daemon's log, and approvals and accesses, 65 bytes for each text and each memory."""
AHEAD = 8_000_000
"""The most bytes of a file that SQLite writes ahead: databases have it as their limit."""
VECTORS = 1.1
"""The most bytes of vectors, as a multiple of those when earlier ones were first removed."""

_TEXTS, _LENGTH = 200, 120
"""The most texts that are indexed until vectors are removed, and the notes of each.

A note has about two vectors. 10,000 of earlier texts are kept beside twice those in use.
"""


class Part(NamedTuple):
    """A tenth of a run."""

    counts: tuple[int, ...]
    """The number of requests; or of bursts, changed files and commits to the index."""
    p50: float
    """Milliseconds, like the next two."""
    p95: float
    cpu: float
    """The processor time of the process for each request or burst."""
    cost: Cost
    usage: Usage


def part(took: Iterable[float], before: Cost, pid: int, folder: Path, *counts: int) -> Part:
    """Returns the figures of a part from the seconds of its requests or bursts.

    `before` is the cost of the process when it began.
    """
    sorted_ = sorted(took)
    now = cost(pid)
    return Part(
        counts=(len(sorted_), *counts),
        p50=1000 * statistics.median(sorted_),
        p95=1000 * sorted_[int(0.95 * len(sorted_))],
        cpu=1000 * (now.cpu_seconds - before.cpu_seconds) / len(sorted_),
        cost=now,
        usage=usage(folder),
    )


def growth(parts: Sequence[Part], vectors: float) -> list[str]:
    """Returns the figures that grew by more than the tolerance, or exceed their limits.

    `vectors` is the number of bytes of vectors when earlier ones were first removed. Fewer than two
    parts show no growth.
    """
    if len(parts) < 2:
        return []
    first, last = parts[0], parts[-1]
    measured = {
        "resident": (first.cost.resident_kb, last.cost.resident_kb),
        "index": (first.usage.of_index, last.usage.of_index),
        "files": (first.usage.rest, last.usage.rest),
        "CPU": (first.cpu, last.cpu),
        "p50": (first.p50, last.p50),
        "p95": (first.p95, last.p95),
    }
    faults = [
        f"{name} grew from {before:.6g} to {after:.6g}"
        for name, (before, after) in measured.items()
        if after > before * GROWTH[name]
    ]
    for name in ("threads", "descriptors", "children"):
        before, after = getattr(first.cost, name), getattr(last.cost, name)
        if after > before + MORE:
            faults.append(f"{name} grew from {before} to {after}")
    for name, limit in (("vectors", VECTORS * vectors), ("ahead", AHEAD), ("logs", LOGS)):
        most = max(getattr(each.usage, name) for each in parts)
        if most > limit:
            faults.append(f"{name} have {most:,} bytes, more than {limit:,.0f}")
    return faults


def verdict(faults: Sequence[str], parts: int, of: int) -> str:
    """Returns the outcome of a run with its faults, and with so many of its parts."""
    if faults:
        return "\n".join(f"Grew or failed: {fault}" for fault in faults)
    if parts < 2:
        return NOT_JUDGED
    return "Nothing grew." if parts == of else f"Nothing grew in {parts} of {of} parts."


NOT_JUDGED = "Not judged: the run ended early."
"""The outcome of a run that had no time for two parts."""


def heads(*counted: str) -> str:
    """Returns the first two lines of the table."""
    names = (
        *("part", *counted, "p50 ms", "p95 ms", "CPU ms", "resident MB", "descriptors", "threads"),
        *("index kB", "vectors kB", "largest WAL kB", "logs MB", "other files kB"),
    )
    return f"| {' | '.join(names)} |\n|{'---:|' * len(names)}"


def row(number: int, part: Part) -> str:
    """Returns a line of the table."""
    counts = " | ".join(f"{count:,}" for count in part.counts)
    return (
        f"| {number} | {counts} | {part.p50:.2f} | {part.p95:.2f} | {part.cpu:.2f} "
        f"| {part.cost.resident_kb / 1024:.1f} | {part.cost.descriptors} | {part.cost.threads} "
        f"| {part.usage.of_index / 1e3:,.0f} | {part.usage.vectors / 1e3:,.0f} "
        f"| {part.usage.ahead / 1e3:,.0f} | {part.usage.logs / 1e6:.1f} "
        f"| {part.usage.rest / 1e3:,.0f} |"
    )


def table(head: str, parts: Sequence[Part]) -> str:
    """Returns the table of a run."""
    return "\n".join([head, *(row(number, part) for number, part in enumerate(parts, 1))])


def fill(folder: Path, index: Callable[[str], object]) -> int:
    """Fills the vectors of earlier texts; returns the bytes of all when some are first removed.

    `index` indexes a text instead of the one before. Raises `SystemExit` if none are removed.
    """
    most = 0
    for first in range(0, _TEXTS * _LENGTH, _LENGTH):
        index("\n".join(map(text, range(first, first + _LENGTH))))
        now = usage(folder).vectors
        if now < most:
            return most
        most = now
    raise SystemExit(f"after {_TEXTS} texts, no vectors of earlier ones were removed")
