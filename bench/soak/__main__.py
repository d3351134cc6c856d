"""Runs one of the long runs, or writes the figures of all into a page; see the package."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from bench.parts import NOTHING_TRIED
from bench.soak import daemon, server
from bench.soak.runs import NOT_JUDGED, PARTS, table, verdict
from scripts.marked import write_part

TITLES = {"stdio": "`mind mcp`", "http": "`mind mcp --http`, two clients", "daemon": "the daemon"}


def report(kind: str, options: argparse.Namespace) -> tuple[str, str]:
    """Returns the figures of a run, and its outcome."""
    with tempfile.TemporaryDirectory(prefix="mind-soak-") as name:
        folder = Path(name).resolve()
        if kind == "daemon":
            soak = daemon.Soak(folder)
            soak.run(options.bursts, options.minutes)
            result = verdict(soak.faults(), len(soak.parts), PARTS)
            return table(daemon.HEADS, soak.parts), result
        run = server.soak(kind, folder, options.requests, options.minutes)
        for (asked, result), number in sorted(run.outcomes.items()):
            print(f"{asked}: {result} {number:,}")
        return table(server.HEADS, run.parts), verdict(run.faults(), len(run.parts), PARTS)


def main() -> int:
    """Returns 1 if something grew or failed, 2 if the time was too short to judge a run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", nargs="*", default=[*TITLES])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--bursts", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="for each run")
    parser.add_argument("--figures", type=Path, default=Path("build/soak"))
    parser.add_argument("--write", type=Path, help="the page with the figures")
    options = parser.parse_args()
    options.figures.mkdir(parents=True, exist_ok=True)
    status = 0
    for kind in options.kind:
        print(TITLES[kind], flush=True)
        table, result = report(kind, options)
        print(result)
        (options.figures / f"{kind}.json").write_text(json.dumps([table, result]), "utf-8")
        if result == NOT_JUDGED:
            status = status or NOTHING_TRIED
        elif not result.startswith("Nothing grew"):
            status = 1
    if options.write:
        parts = []
        for kind, title in TITLES.items():
            file = options.figures / f"{kind}.json"
            if file.exists():
                table, result = json.loads(file.read_text("utf-8"))
                parts.append(f"**{title[0].upper()}{title[1:]}.** {result}\n\n{table}")
        write_part(options.write, "soak", "\n\n".join(parts))
    return status


if __name__ == "__main__":
    sys.exit(main())
