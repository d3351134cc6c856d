"""Tries the damages; see the package."""

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts.marked import write_part
from tests.bench.damage.damages import CLOSED, KINDS, Point, points
from tests.bench.damage.examination import Examination
from tests.bench.parts import NOTHING_TRIED, Limit, is_vain, run_parts
from tests.bench.stores import IN_MEMORY
from tests.bench.torture.figures import version

_RARE = 20


class Figures:
    """The points that were tried, and their results."""

    def __init__(self) -> None:
        """Starts without a point."""
        self.points: dict[Point, None] = {}
        self.tried: dict[Point, None] = {}
        self.detected: dict[Point, None] = {}
        self.shared: dict[Point, None] = {}
        self.failed: dict[Point, str] = {}
        self.seconds = 0.0

    def add(self, path: Path) -> None:
        """Adds what a process kept."""
        kept = json.loads(path.read_text("utf-8"))
        self.seconds += kept.pop("seconds")
        for name, rows in kept.items():
            getattr(self, name).update((Point(*point), value) for point, value in rows)

    def keep(self, path: Path) -> None:
        """Writes the figures of this process."""
        kept = {name: list(v.items()) for name, v in vars(self).items() if name != "seconds"}
        path.write_text(json.dumps({**kept, "seconds": self.seconds}), "utf-8")

    def report(self) -> str:
        """Returns the figures as a part of a page."""
        tried, failed = len(self.tried), len(self.failed)
        lines = [
            f"{tried:,} of {len(self.points):,} points tried, {failed:,} failed.",
            f"In {len(self.detected):,} the damage was found when the index was opened,",
            f"of which {len(self.shared):,} shared the questions about another place in the file.",
            f"The run took {self.seconds / 60:.0f} minutes.",
        ]
        for title, key in (("file", _file), ("damage", _kind)):
            counts = [Counter(map(key, some)) for some in (self.points, self.tried, self.failed)]
            lines += ["", f"| {title} | points | tried | failed |", "|---|---:|---:|---:|"]
            names = KINDS if title == "damage" else sorted(counts[0])
            rows = [(name, *(count[name] for count in counts)) for name in names if counts[0][name]]
            lines += [f"| {name} | {a:,} | {b:,} | {c:,} |" for name, a, b, c in rows]
        return "\n".join(lines)


def _file(point: Point) -> str:
    return f"`{point.name}`, {point.state}"


def _kind(point: Point) -> str:
    return point.kind


def _part(options: argparse.Namespace, folder: Path) -> None:
    """Tries a part of the points."""
    limit = Limit(options.minutes)
    figures, before = Figures(), Figures()
    if options.state and (kept := _kept(options)).exists():
        before.add(kept)
    examination = Examination(folder / "store")
    every = list(points(examination.states, examination.earlier))
    if options.only:
        every = [point for point in every if re.search(options.only, repr(point))]
    every = _ordered(every, options.seed)[: options.points]
    # The paths of rows differ between processes.
    figures.points = {_general(point): None for point in every}
    for point in _own(every, options.part, options.jobs):
        if limit.is_reached():
            break
        name = _general(point)
        if name in before.tried:
            continue
        outcome = examination.try_(point, blind=options.blind)
        figures.tried[name] = None
        if outcome.is_detected:
            figures.detected[name] = None
        if outcome.is_shared:
            figures.shared[name] = None
        if outcome.failures:
            figures.failed[name] = "\n".join(outcome.failures)[:3000]
            print(f"{name}: {len(outcome.failures)}: {outcome.failures[0][:400]}", flush=True)
    figures.keep(folder / "figures")


def _ordered(every: Sequence[Point], seed: int) -> list[Point]:
    """Returns the points in a random order in which those that take longer are rarer at first."""
    shuffled = random.Random(seed).sample(every, len(every))
    turns: Counter[bool] = Counter()
    placed = []
    for point in shuffled:
        is_quick = point.name == "index.db" and point.state == CLOSED
        turns[is_quick] += 1
        placed.append((turns[is_quick] * (1 if is_quick else _RARE), point))
    return [point for _, point in sorted(placed, key=lambda pair: pair[0])]


def _general(point: Point) -> Point:
    return point._replace(file=point.name)


def _own(every: Iterable[Point], part: int, jobs: int) -> list[Point]:
    """Returns the points of one of several processes; ranges of one page stay together."""
    return [point for point in every if (point.page + len(point.name)) % jobs == part]


def _kept(options: argparse.Namespace) -> Path:
    """Returns the file of what earlier runs of the same code and seed tried."""
    return Path(options.state, f"damage-{options.seed}-{version()}.json")


def main() -> int:
    """Returns 1 if a point failed, 2 if none was tried."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--points", type=int, help="most points to try")
    parser.add_argument("--only", help="regular expression that points must match")
    parser.add_argument("--blind", action="store_true", help="switch the checksums of pages off")
    parser.add_argument("--state", type=Path, help="folder of the points that earlier runs tried")
    parser.add_argument("--write", type=Path, help="file to write the figures into")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part is not None:
        _part(options, options.folder)
        return 0
    started = time.monotonic()
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="mind-damage-", dir=IN_MEMORY) as name:
        parts = [Path(name, str(number)) for number in range(options.jobs)]
        for folder in parts:
            folder.mkdir()
        off = {"MIND_BACKGROUND": "off"}
        if not run_parts("tests.bench.damage", parts, [off] * len(parts)):
            return 2
        for folder in parts:
            figures.add(folder / "figures")
    figures.seconds = time.monotonic() - started
    tried, before = len(figures.tried), 0
    if options.state:
        if (kept := _kept(options)).exists():
            figures.add(kept)
            before = len(figures.tried) - tried
        kept.parent.mkdir(parents=True, exist_ok=True)
        figures.keep(kept)
    text = figures.report()
    print(text)
    if options.write:
        write_part(options.write, "damage", text)
    vain = is_vain(tried, len(figures.points), before)
    return 1 if figures.failed else NOTHING_TRIED if vain else 0


if __name__ == "__main__":
    sys.exit(main())
