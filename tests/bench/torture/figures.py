"""The points of a run, and what came of those that were tried."""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple


class Point(NamedTuple):
    """One call at which one fault is tried."""

    command: str
    fault: str
    at: int
    kind: str
    is_index: bool
    """True if the call writes the index, which can be rebuilt."""


class Figures:
    """The points that there are, and what came of those that were tried."""

    def __init__(self) -> None:
        """Starts without a point."""
        self.points: dict[Point, None] = {}
        self.tried: dict[Point, None] = {}
        self.failed: dict[Point, None] = {}
        self.ended: Counter[str] = Counter()
        self.shared = 0
        """The number of points that shared the examination of an earlier one."""
        self.shared_but_index = 0
        """The number of others that shared the part without the index."""
        self.seconds = 0.0
        """The time that all runs took."""

    def add(self, path: Path) -> None:
        """Adds what a process kept."""
        for name, value in json.loads(path.read_text("utf-8")).items():
            if name == "ended":
                self.ended.update(value)
            elif name in _SUMS:
                setattr(self, name, getattr(self, name) + value)
            else:
                getattr(self, name).update(dict.fromkeys(Point(*one) for one in value))

    def keep(self, path: Path) -> None:
        """Writes the figures of this process."""
        values = {
            name: list(value) if isinstance(value, dict) and name != "ended" else value
            for name, value in vars(self).items()
        }
        path.write_text(json.dumps(values))


_SUMS = ("shared", "shared_but_index", "seconds")


def version() -> str:
    """Returns a hash of the code that is tried, and of that which tries it."""
    hashed = hashlib.sha256()
    for folder in ("mimo", "tests/bench/torture"):
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in (".py", ".c"):
                hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]


def ordered(points: Iterable[Point], seed: int) -> list[Point]:
    """Returns the points in a random order in which those of no kind come late.

    However early it ends, every command, every fault and every kind of call had its turn.
    """
    shuffled = list(points)
    random.Random(seed).shuffle(shuffled)
    rounds: Counter[object] = Counter()
    turns: Counter[object] = Counter()
    placed = []
    for point in shuffled:
        kind = (point.command, point.fault, point.kind, point.is_index)
        rounds[kind] += 1
        placed.append((rounds[kind], point))
    placed.sort(key=lambda one: one[0])
    taken = []
    for _, point in placed:
        turn = (point.command, point.is_index)
        turns[turn] += 1
        taken.append((turns[turn], point))
    taken.sort(key=lambda one: one[0])
    return [point for _, point in taken]


def share(points: Iterable[Point], number: int, jobs: int) -> list[Point]:
    """Returns the points of one of several processes.

    Neighbours stay together, as they often leave the same files.
    """
    return [point for point in points if (point.at // 16) % jobs == number]


def rows(figures: Figures, column: str, names: Sequence[str]) -> list[str]:
    every, tried, failed = (
        Counter(getattr(point, column) for point in distinct(points))
        for points in (figures.points, figures.tried, figures.failed)
    )
    mark = "`" if column == "command" else ""
    return [
        f"| {mark}{name}{mark} | {every[name]:,} | {tried[name]:,} | {failed[name]:,} |"
        for name in names
        if every[name]
    ]


def distinct(points: Iterable[Point]) -> Collection[Point]:
    """Returns one point for each call: its kind can differ between processes."""
    return {point[:3]: point for point in points}.values()
