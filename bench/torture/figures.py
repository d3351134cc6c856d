"""The points of a run, and what came of those that were tried."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts import marked


class Point(NamedTuple):
    """One call at which one fault is tried."""

    command: str
    fault: str
    at: int
    kind: str
    is_index: bool
    """True if it concerns the index alone, which can be rebuilt."""

    @property
    def call(self) -> tuple[str, str, int]:
        """Returns what names it: its kind, and what it writes, can differ between processes."""
        return self.command, self.fault, self.at


class Figures:
    """The points that there are, and what came of those that were tried."""

    def __init__(self) -> None:
        """Starts without a point."""
        self.points: dict[Point, None] = {}
        self.tried: dict[Point, None] = {}
        self.absent: dict[Point, None] = {}
        """Those whose call the command did not make in a run that was to try them."""
        self.failed: dict[Point, None] = {}
        self.ended: Counter[str] = Counter()
        self.shared = 0
        """The number of points that shared the examination of an earlier one."""
        self.checked = 0
        """The number of others that could have shared one, and were examined nevertheless."""
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


_INDEX_TURNS = 5
"""The number of turns of other points for each one of the index."""

_SUMS = ("shared", "checked", "seconds")


_SAMPLES = ("tests/sample_procedures.py", "tests/mama_databases.py")


def version() -> str:
    """Returns a hash of the code that is tried, and of that which tries it."""
    hashed = hashlib.sha256()
    in_folders = (path for folder in ("mimo", "bench") for path in Path(folder).rglob("*"))
    for path in sorted([*in_folders, *map(Path, _SAMPLES)]):
        if path.is_file() and "__pycache__" not in path.parts:
            hashed.update(f"{path}\n".encode() + path.read_bytes())
    return hashed.hexdigest()[:16]


def ordered(points: Iterable[Point], seed: int) -> list[Point]:
    """Returns the points in a random order in which those of no kind come late.

    However early it ends, every command, every fault and every kind of call had its turn. Points of
    the index are tried less often, so that a run of half an hour tries all the others.
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
        taken.append((turns[turn] * (_INDEX_TURNS if point.is_index else 1), point))
    taken.sort(key=lambda one: one[0])
    return [point for _, point in taken]


def share(points: Iterable[Point], number: int, jobs: int) -> list[Point]:
    """Returns the points of one of several processes.

    Neighbours stay together, as they often leave the same files.
    """
    return [point for point in points if (point.at // 16) % jobs == number]


def summary(figures: Figures, noun: str) -> str:
    """Returns the numbers of points that were tried, those of the index apart."""
    tried, points = distinct(figures, "tried"), distinct(figures, "points")
    failed = len(distinct(figures, "failed"))
    lines = [f"{len(tried):,} of {len(points):,} {noun} tried, {failed:,} failed."]
    for is_index, name in ((False, "more than the index"), (True, "the index only")):
        many, all_ = (sum(one.is_index is is_index for one in some) for some in (tried, points))
        lines.append(f"Of those that concern {name}: {many:,} of {all_:,}.")
    return "\n".join(lines)


def sharing(figures: Figures) -> list[str]:
    """Returns how many examinations were shared; see `Examiner`."""
    return [
        f"{figures.shared:,} left the same state as an earlier one, and shared its examination:",
        "the same files, and an index with the same rows that mind finds as sound.",
        f"{figures.checked:,} others left such a state, too, and were examined nevertheless.",
    ]


def table(figures: Figures, column: str, title: str, names: Sequence[str]) -> str:
    """Returns the points by one of their fields as Markdown; each as `tried / all`."""
    tried, every = (
        Counter((getattr(point, column), point.is_index) for point in distinct(figures, name))
        for name in ("tried", "points")
    )
    failed = Counter(getattr(point, column) for point in distinct(figures, "failed"))
    mark = "`" if column == "command" else ""

    def cells(name: str) -> Iterator[str]:
        yield f"{mark}{name}{mark}"
        for is_index in (False, True):
            yield f"{tried[name, is_index]:,} / {every[name, is_index]:,}"
        yield f"{failed[name]:,}"

    some = (name for name in names if every[name, False] or every[name, True])
    titles = (title, "more than the index", "the index only", "failed")
    return marked.table(titles, map(cells, some))


def distinct(figures: Figures, name: str) -> Collection[Point]:
    """Returns one point for each call.

    Each is the one among all `points`, so that a call counts in the same column everywhere.
    """
    every = {point.call: point for point in figures.points}
    some = {point.call: every.get(point.call, point) for point in getattr(figures, name)}
    unmade = never_made(figures)
    return [point for call, point in some.items() if call not in unmade]


def never_made(figures: Figures) -> set[tuple[str, str, int]]:
    """Returns the calls that one run made when they were counted, and none that tried them."""
    return {point.call for point in figures.absent} - {point.call for point in figures.tried}
