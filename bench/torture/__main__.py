"""Runs the torture; see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from bench.parts import NOTHING_TRIED, Limit, is_vain, run_parts
from bench.preload import MISSING, built, loaded
from bench.stores import IN_MEMORY
from bench.torture import faults, losses
from bench.torture.commands import COMMANDS
from bench.torture.figures import Figures, distinct, ordered, share, version
from bench.torture.scratch import Scratch
from bench.torture.shim import SOURCE, STATE_BYTES, Shim
from scripts.marked import write_part


def _part(options: argparse.Namespace) -> None:
    """Does a part of the work, and keeps its figures."""
    folder = options.folder
    scratch = Scratch(folder, Shim(folder / "state", folder / "record", folder / "tree"))
    commands = [each for each in COMMANDS if not options.only or each.name in options.only]
    torture: faults.Torture | losses.Losses
    if options.power:
        # git does not flush the files that it checks out.
        commands = [command for command in commands if not command.is_gits]
        torture = losses.Losses(scratch, commands, options.seed)
    else:
        torture = faults.Torture(scratch, commands)
    figures, before = torture.figures, Figures()
    if (earlier := _earlier(options)) and earlier.exists():
        before.add(earlier)
    if not options.power:
        # Two processes can count different calls; each tries its share of all of them.
        names = {command.name for command in commands}
        counted = [point for point in before.points if point.command in names]
        calls = {point.call: point for point in [*counted, *figures.points]}
        figures.points = dict.fromkeys(calls.values())
    tried = {point.call for point in before.tried}
    points = [
        point
        for point in ordered(figures.points, options.seed)
        if not options.fault or point.fault in options.fault
    ]
    points = [point for point in points[: options.points] if point.call not in tried]
    # The preparation does not count: on a slow machine, it takes minutes.
    limit = Limit(options.minutes)
    torture.run(share(points, options.part, options.jobs), limit)
    figures.keep(folder / "figures")


def _earlier(options: argparse.Namespace) -> Path | None:
    """Returns the file of what earlier runs of the same code and seed tried."""
    if not options.state:
        return None
    kind = "power" if options.power else "faults"
    return Path(options.state, f"{kind}-{options.seed}-{version()}.json")


def main() -> int:
    """Returns 1 if a point failed, 2 if none was tried."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--power", action="store_true", help="let the power fail, not calls")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--points", type=int, help="most points to try")
    parser.add_argument("--only", action="append", help="a command to try (can be repeated)")
    parser.add_argument("--fault", action="append", help="a fault to try (can be repeated)")
    parser.add_argument("--state", type=Path, help="folder of the points that earlier runs tried")
    parser.add_argument("--write", type=Path, help="file to write the figures into")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part is not None:
        _part(options)
        return 0
    started = time.monotonic()
    figures, earlier = Figures(), _earlier(options)
    with tempfile.TemporaryDirectory(prefix="mind-torture-", dir=IN_MEMORY) as name:
        library = built(SOURCE, Path(name))
        if library is None:
            print(MISSING, file=sys.stderr)
            return NOTHING_TRIED
        parts = [Path(name, str(number)) for number in range(options.jobs)]
        for each in parts:
            each.mkdir()
        more = [loaded(library, "TORTURE", each, STATE_BYTES) for each in parts]
        if not run_parts("bench.torture", parts, more):
            return 2
        for folder in parts:
            figures.add(folder / "figures")
    figures.seconds = time.monotonic() - started
    tried = len(figures.tried)
    if earlier:
        if earlier.exists():
            figures.add(earlier)
        earlier.parent.mkdir(parents=True, exist_ok=True)
        figures.keep(earlier)
    text = losses.report(figures) if options.power else faults.report(figures)
    print(text)
    if options.write:
        write_part(options.write, "power" if options.power else "torture", text)
    vain = is_vain(tried, *(len(distinct(figures, name)) for name in ("points", "tried")))
    return 1 if figures.failed else NOTHING_TRIED if vain else 0


if __name__ == "__main__":
    sys.exit(main())
