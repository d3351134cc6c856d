"""Runs random git histories; see the package."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from bench.histories.history import END, EVENTS, SETTINGS, History
from bench.parts import NOTHING_TRIED, Limit, is_vain
from bench.stores import IN_MEMORY
from scripts.marked import table, write_part

_SHOWN = 3_000


class Result(NamedTuple):
    """The end of one history."""

    seed: int
    tried: Counter[str]
    noted: Counter[str]
    commands: Counter[str]
    """The number of git commands, by name."""
    failed: str = ""
    """The kind of operation that failed."""
    reason: str = ""


def run(seed: int, events: int = 3) -> Result:
    """Returns the result of one history."""
    with (
        tempfile.TemporaryDirectory(prefix="mind-history-", dir=IN_MEMORY) as folder,
        patch("os.fsync"),
        redirect_stderr(StringIO()),
    ):
        history = History(Path(folder), seed, events)
        failed = reason = ""
        try:
            history.run()
        except Exception as error:  # noqa: BLE001 - any error is a finding
            failed, reason = history.now, f"{type(error).__name__}: {error}"
        commands = sum((person.commands for person in history.people), Counter())
    return Result(seed, history.tried, history.noted, commands, failed, reason)


def report(results: Sequence[Result], seconds: float) -> str:
    """Returns the figures as Markdown."""
    tried = sum((result.tried for result in results), Counter())
    noted = sum((result.noted for result in results), Counter())
    commands = sum((result.commands for result in results), Counter())
    failed = Counter(result.failed for result in results if result.failed)
    setting = Counter(
        name for result in results if result.failed for name in SETTINGS if result.tried[name]
    )
    same, others = noted["same bytes"], noted["competing texts in other groups"]
    minutes = f"{seconds / 60:.0f} minutes"
    commits, merges = commands["commit"], commands["merge"]
    merged, refused = noted["octopus merged by git"], noted["octopus refused by git"]
    lines = [
        f"{len(results):,} histories tried, {failed.total():,} failed. The run took {minutes}.",
        f"The histories have {commits:,} commits and {merges:,} calls of `git merge`.",
        f"Two orders of merges gave the same bytes in {same:,} of {same + others:,} comparisons;",
        f"in {others:,}, the same lines of competing texts were combined in another way.",
        f"git merged {merged:,} octopuses and refused {refused:,}.",
        "",
        table(
            ("operation or check", "tried", "failed"),
            ((name, f"{tried[name]:,}", f"{failed[name]:,}") for name in (*EVENTS, *END)),
        ),
        "",
        table(
            ("setting", "histories", "failed"),
            ((name, f"{tried[name]:,}", f"{setting[name]:,}") for name in SETTINGS),
        ),
    ]
    return "\n".join(lines)


def main() -> int:
    """Returns 1 if a history failed, 2 if none was made."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1, help="seed of the first one")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--minutes", type=float, default=24 * 60, help="longest time")
    parser.add_argument("--write", type=Path, help="page to write the figures into")
    options = parser.parse_args()
    started = time.monotonic()
    limit = Limit(options.minutes)
    seeds = range(options.seed, options.seed + options.histories)
    results = []
    # Ctrl-C is for this process, which then sums up, and not for git.
    ignored = (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(options.jobs, initializer=signal.signal, initargs=ignored) as pool:
        for result in pool.map(run, seeds):
            results.append(result)
            if result.failed:
                print(f"seed {result.seed}: {result.failed}: {result.reason[:_SHOWN]}", flush=True)
                print(f"repeat it: make histories HISTORIES=1 SEED={result.seed}", flush=True)
            elif len(results) % 100 == 0:
                print(f"{len(results):,} histories", flush=True)
            if limit.is_reached():
                pool.shutdown(cancel_futures=True)
                break
    if is_vain(len(results), len(seeds)):
        return NOTHING_TRIED
    text = report(results, time.monotonic() - started)
    print(text)
    if options.write:
        write_part(options.write, "histories", text)
    return 1 if any(result.failed for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
