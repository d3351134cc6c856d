"""Runs many processes on one project; see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench.concurrent.figures import report_of
from bench.concurrent.running import Plan, run
from bench.parts import NOTHING_TRIED, is_vain
from bench.stores import IN_MEMORY
from scripts.marked import write_part


def main() -> int:
    """Returns 1 if the history or the state at the end is wrong, 2 if there was no operation."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--operations", type=int, default=10_000, help="of each process")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600, help="the most that they take")
    parser.add_argument("--keep", type=Path, help="folder to keep the project and the history in")
    parser.add_argument("--write", type=Path, help="file to write the figures into")
    options = parser.parse_args()
    plan = Plan(options.processes, options.operations, options.seed, minutes=options.minutes)
    with tempfile.TemporaryDirectory(prefix="mind-concurrent-", dir=IN_MEMORY) as name:
        report = run(plan, options.keep or Path(name))
    for finding in (*report.wrong[:20], *report.problems):
        print(finding)
    if is_vain(len(report.rows), plan.processes * plan.operations):
        return NOTHING_TRIED
    text = report_of(report)
    print(text)
    if options.write:
        write_part(options.write, "concurrent", text)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
