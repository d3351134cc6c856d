"""Losses of power: which are tried, and what came of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from bench.parts import Limit
from bench.torture.commands import Command, begun, prepared
from bench.torture.examination import Examination, Examiner, Facts, examined, faults_of, warm
from bench.torture.figures import Figures, Point, sharing, summary, table
from bench.torture.power import WAYS, Loss, Record, digests, make, tree
from bench.torture.scratch import Scratch
from bench.torture.shim import RECORD, Fault
from mimo.guard import audit

_UNSEEN = ("-shm", "/COMMIT_EDITMSG")
"""Files that are written through a memory map, or by git through standard I/O."""

_STATES = "states"
_BEFORE, _AFTER = "before the answer", "after the answer"


class Losses:
    """Tries losses of power in commands."""

    def __init__(self, scratch: Scratch, commands: Sequence[Command], seed: int) -> None:
        """Prepares the trees, and records each command."""
        self._scratch = scratch
        self._seed = seed
        self._commands = {command.name: command for command in commands}
        self._records: dict[str, Record] = {}
        self._before: dict[str, Facts] = {}
        self._after: dict[str, Examination] = {}
        self._losses: dict[Point, Loss] = {}
        self.figures = Figures()
        self._examiner = Examiner(scratch, self.figures)
        prepared(scratch)
        warm(scratch)
        scratch.save("base")
        for command in commands:
            self._record(command)

    def _record(self, command: Command) -> None:
        scratch, name = self._scratch, command.name
        now = begun(scratch, command)
        self._before[name] = examined(scratch, command).facts
        self._run(command, now)
        # The second run is that of a project whose files the index knows.
        record = self._run(command, now)
        _explained(name, record.everything(), tree(scratch.tree))
        self._after[name] = examined(scratch, command)
        self._records[name] = record
        before = record.before()
        seen, contents = set(), set()
        for loss in record.losses(self._seed):
            self.figures.ended[_STATES] += 1
            acknowledged = loss.after >= record.answered
            key = (acknowledged, *digests(record.tree(loss), before))
            if key not in seen:
                seen.add(key)
                content = (acknowledged, key[2])
                point = Point(name, loss.way, len(seen), "", is_index=content in contents)
                contents.add(content)
                self.figures.points[point] = None
                self._losses[point] = loss

    def _run(self, command: Command, now: int) -> Record:
        """Runs a command on its tree, and returns what it did."""
        scratch = self._scratch
        assert scratch.shim is not None
        scratch.load(command.name)
        record = Record(scratch.tree, scratch.top / "stdout", command.until)
        scratch.shim.arm(Fault("recorded", RECORD, ()), 0, now)
        result = scratch.mind(*command.words_in(scratch), input=command.input, until=command.until)
        scratch.shim.disarm()
        if not command.acknowledged(result):
            raise SystemExit(f"mind {command.name} fails by itself: {result.errors}")
        record.read(scratch.shim.record.read_bytes())
        return record

    def run(self, points: Sequence[Point], limit: Limit) -> None:
        """Tries points until they or the time are used up, or Ctrl-C."""
        for point in points:
            if limit.is_reached():
                return
            for what in self._try(point):
                self.figures.failed[point] = None
                print(f"FAILED {self._named(point)}: {what}", flush=True)

    def _try(self, point: Point) -> list[str]:
        name, figures = point.command, self.figures
        scratch, record = self._scratch, self._records[name]
        loss, command = self._losses[point], self._commands[name]
        scratch.load(name)
        make(record.tree(loss), record.before(), scratch.tree)
        with _restarted():
            now = self._examiner.examined(command, scratch.contents(), point.at)
        figures.tried[point] = None
        acknowledged = loss.after >= record.answered
        figures.ended[_AFTER if acknowledged else _BEFORE] += 1
        before, after = self._before[name], self._after[name]
        # No text is lost if a new file can't be undone, so that entry of the trash is not flushed.
        # Records of calls are a log, which is not flushed, either.
        may_lack = ("undo of new ", "record of ")
        # A text that mind wrote may lose its approval: that restricts.
        errors = "could not be approved"
        return [*faults_of(command, acknowledged, before, after, now, errors, may_lack)]

    def _named(self, point: Point) -> str:
        """Returns what was lost, for a person who repeats it."""
        record, loss = self._records[point.command], self._losses[point]
        events = record.events
        changed = [
            f"{how} {place} ({events[place].kind} {events[place].name})"
            for place, how in loss.changed
        ]
        place = f"{point.command}, after {loss.after} of {len(events)} events"
        return f"{place}, the answer after {record.answered}: {loss.way}: {', '.join(changed)}"


@contextlib.contextmanager
def _restarted() -> Iterator[None]:
    """Lets the machine seem to have started again."""
    boot, audit.boot = audit.boot, cache(lambda: "another")
    try:
        yield
    finally:
        audit.boot = boot


def _explained(name: str, made: Mapping[str, object], on_disk: Mapping[str, object]) -> None:
    """Stops if the record does not explain what is on the disk."""
    for path in sorted({*made, *on_disk}):
        if made.get(path) != on_disk.get(path) and not path.endswith(_UNSEEN):
            raise SystemExit(f"mind {name}: the record does not explain {path}")


def report(figures: Figures) -> str:
    """Returns the figures as Markdown."""
    names = list(dict.fromkeys(point.command for point in figures.points))
    ended = figures.ended
    lines = [
        summary(figures, "different states"),
        f"There are {len(names)} commands, and the run took {figures.seconds / 60:.0f} minutes.",
        f"In {ended[_BEFORE]:,} states the power failed before the command answered,",
        f"in {ended[_AFTER]:,} after it.",
        *sharing(figures),
        "",
        table(figures, "fault", "loss of power", WAYS),
        "",
        table(figures, "command", "command", names),
    ]
    return "\n".join([*lines, ""])
