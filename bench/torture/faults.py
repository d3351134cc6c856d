"""Faults at single calls: which there are, which are tried, and what came of them."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from bench.parts import Limit
from bench.torture.commands import Command, begun, prepared
from bench.torture.examination import Examination, Examiner, Facts, examined, faults_of, warm
from bench.torture.figures import Figures, Point, never_made, sharing, summary, table
from bench.torture.scratch import Result, Scratch
from bench.torture.shim import FAULTS, KINDS, Fault


class Torture:
    """Tries the points of commands."""

    def __init__(self, scratch: Scratch, commands: Sequence[Command]) -> None:
        """Prepares the trees, and counts the calls of each command."""
        self._scratch = scratch
        self._before: dict[str, Facts] = {}
        self._after: dict[str, Examination] = {}
        self._now: dict[str, int] = {}
        self._commands = {command.name: command for command in commands}
        self.figures = Figures()
        self._examiner = Examiner(scratch, self.figures)
        prepared(scratch)
        warm(scratch)
        scratch.save("base")
        for command in commands:
            self._count(command)

    def _count(self, command: Command) -> None:
        scratch = self._scratch
        assert scratch.shim is not None
        self._now[command.name] = begun(scratch, command)
        self._before[command.name] = examined(scratch, command).facts
        # What one run changes is new to the index in the next: the second is like all others.
        self._run(command)
        result = self._run(command)
        _, kinds = scratch.shim.disarm()
        if not command.acknowledged(result):
            raise SystemExit(f"mind {command.name} fails by itself: {result.errors}")
        self._after[command.name] = examined(scratch, command)
        for at, number in enumerate(kinds, 1):
            kind, is_index = KINDS[number & 127], number > 127
            suited = (fault.name for fault in FAULTS if kind in fault.kinds)
            points = (Point(command.name, fault, at, kind, is_index) for fault in suited)
            self.figures.points.update(dict.fromkeys(points))

    def _run(self, command: Command, fault: Fault | None = None, at: int = 0) -> Result:
        """Runs a command on its tree, with the shim armed."""
        scratch = self._scratch
        assert scratch.shim is not None
        scratch.load(command.name)
        scratch.shim.arm(fault, at, self._now[command.name])
        return scratch.mind(*command.words_in(scratch), input=command.input, until=command.until)

    def run(self, points: Sequence[Point], limit: Limit) -> None:
        """Tries points until they or the time are used up, or Ctrl-C."""
        for point in points:
            if limit.is_reached():
                return
            for what in self._try(point):
                self.figures.failed[point] = None
                place = f"{point.command}: {point.fault} at call {point.at} ({point.kind})"
                print(f"FAILED {place}: {what}", flush=True)

    def _try(self, point: Point) -> list[str]:
        scratch, figures, command = self._scratch, self.figures, self._commands[point.command]
        assert scratch.shim is not None
        fault = next(fault for fault in FAULTS if fault.name == point.fault)
        result = self._run(command, fault, point.at)
        acted, _ = scratch.shim.disarm()
        if not acted:
            figures.absent[point] = None
            return []
        figures.tried[point] = None
        way = "were killed" if result.status < 0 else "failed with an error"
        did = command.acknowledged(result)
        figures.ended["did their work" if did else way] += 1
        problems = []
        if "inside mind" in result.errors or "Traceback" in result.errors or result.status == 70:
            problems.append(f"internal error: {result.errors.strip()[-300:]}")
        if result.status == -signal.SIGALRM:
            problems.append("it hangs")
        elif result.status < 0 and not fault.kills:
            problems.append(f"it was ended by signal {-result.status}")
        if result.status > 0 and "error:" not in result.errors:
            problems.append(f"exit status {result.status} without an error")
        now = self._examiner.examined(command, scratch.contents(result.pid), point.at)
        before, after = self._before[command.name], self._after[command.name]
        output = f"{result.errors}{result.output}"
        output = output if result.status >= 0 else ""
        # Of other calls, mind goes on if it can't write the record.
        may_lack = ("record of another call",)
        return [*problems, *faults_of(command, did, before, after, now, output, may_lack)]


def report(figures: Figures) -> str:
    """Returns the figures as Markdown."""
    names = list(dict.fromkeys(point.command for point in figures.points))
    count = len(never_made(figures))
    ended = ", ".join(f"{number:,} {way}" for way, number in sorted(figures.ended.items()))
    lines = [
        summary(figures, "points"),
        *([f"Points left out, as no run made their call again: {count:,}."] if count else []),
        f"There are {len(names)} commands, and the run took {figures.seconds / 60:.0f} minutes.",
        f"Of the runs, {ended or 'none was made'}.",
        *sharing(figures),
        "",
        table(figures, "fault", "fault", [fault.name for fault in FAULTS]),
        "",
        table(figures, "command", "command", names),
    ]
    return "\n".join([*lines, ""])
