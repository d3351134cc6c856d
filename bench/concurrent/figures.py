"""The figures of a run, for a person."""

from __future__ import annotations

import statistics
from collections import Counter

from bench.concurrent.running import KINDS, Report
from scripts.marked import table

GROUPS = {
    "add": "`add`", "edit": "`edit`", "tag": "`edit` of tags", "untag": "`edit` of tags",
    "rm": "`rm`", "undo": "`undo`", "show": "`show`", "topic": "`show` of a topic",
    "list": "`list`", "search": "`search`", "save": "`save decision`",
    "supersede": "`evolve supersede`", "keep": "`keep`", "link": "`link`", "put": "`value put`",
    "get": "`value get`", "sync": "`sync`",
}  # fmt: skip


def report_of(report: Report) -> str:
    """Returns the figures as Markdown."""
    plan = report.plan
    rows = [row for row in report.rows if row.process < plan.processes]
    milliseconds = 1000 * report.seconds / len(rows)
    errors = Counter(row.outcome.error for row in rows if row.outcome.error)
    killed = sum(row.outcome.killed for row in rows)
    conflicts = sum(row.outcome.is_conflict for row in rows)
    behind = sum(row.outcome.is_behind for row in rows)
    codes = ", ".join(f"{count:,} {code}" for code, count in errors.most_common()) or "none"
    summary = f"""\
{plan.processes} processes made {len(rows):,} operations in
{report.seconds:,.0f} s ({milliseconds:.1f} ms each; seed {plan.seed}).
{report.checked:,} operations
on {report.registers:,} registers were checked: **{len(report.wrong)} are wrong**, and the state at
the end has **{len(report.problems)} faults**. {killed:,} command lines were killed.
{sum(errors.values()):,} operations failed: {codes}.
In {conflicts:,} of these, another process had changed the file since it was read.
{behind:,} answers stated that the index missed files."""
    cells = []
    for group in dict.fromkeys(GROUPS.values()):
        those = [row for row in rows if GROUPS[row.name] == group]
        if not those:
            continue
        took = sorted((row.end - row.start) / 1e6 for row in those)
        failed = sum(bool(row.outcome.error) for row in those)
        times = (statistics.median(took), took[len(took) * 99 // 100], took[-1])
        cells.append((group, f"{len(those):,}", f"{failed:,}", *(f"{ms:,.0f} ms" for ms in times)))
    titles = ("operation", "times", "errors", "median", "99 % within", "longest")
    kinds = Counter(KINDS[number % len(KINDS)] for number in range(plan.processes))
    used = ", ".join(f"{n} used {k}" for k, n in kinds.items())
    return f"{summary}\n\n{table(titles, cells)}\n\nOf the processes, {used}."
