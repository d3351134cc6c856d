"""Stops a command at each lock that it takes, and runs other commands meanwhile.

    python -m bench.concurrent.stopped [--only COMMAND] [--lock PATH] [--all] [--write FILE]

Each of the writing commands that `make torture` tries runs once with a small library in C
(locks.c), which lists the locks that it takes. Then it runs once for each of them that no earlier
command took (with `--all`, for each of them), and is stopped by SIGSTOP there. Reading commands
must answer meanwhile; writing ones must answer, or end with an error that names a lock that is
held. The library adds up the time that these commands sleep or wait for a lock, which must stay
below the limit.
"""

from __future__ import annotations

import argparse
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.parts import NOTHING_TRIED, is_vain
from bench.preload import MISSING, built, loaded
from bench.stores import IN_MEMORY
from bench.torture.commands import COMMANDS, Command, prepared
from bench.torture.examination import problems_of, warm
from bench.torture.scratch import Result, Scratch
from mimo.data import disk
from scripts.marked import table, write_part

SOURCE = Path(__file__).with_name("locks.c")
WAIT_SECONDS = 1.0
"""The limit of all waits of a command, in place of that of `disk`."""

PAUSES_SECONDS = 0.9
"""The time by which pauses of up to 0.1 s, and sleeps of programs, may exceed the limit."""

SHARED_SECONDS = 10.2 + WAIT_SECONDS + PAUSES_SECONDS
"""The limit if a process is stopped while SQLite sets up the memory that processes share.

SQLite tries for 10 s then, whatever its time limit is; a command lets it do so once.
"""

SETTING_UP = "sets up: "
"""Before the kind of SQLite's locks for that."""

_FIRST = "fcntl, exclusive, byte 128"
_READS = re.compile("fcntl, shared, byte 12[3-7]")
"""SQLite's first lock, and those that it takes once the memory is ready."""

_STATE = struct.Struct("=7q1024s")
_WAITING = struct.Struct("=2q")
_WAITING_AT = struct.calcsize("=5q")
_LONGEST_SECONDS = 60

READING = (("list",), ("search", "tea"), ("show", "{fact}"))
WRITING = (
    ("add", "Milk is in the fridge"),
    ("edit", "{fact}", "--add-tag", "probed"),
    ("value", "put", "agent.probe", "k", "1"),
    ("save", "decision", "auth_strategy", "Use passkeys", "--because", "Safe"),
    ("rm", "{decision}"),
    ("sync",),
)


class Lock(NamedTuple):
    """A lock that a command takes."""

    number: int
    kind: str
    path: str
    """Relative to the scratch folder, without numbers."""


class Probe(NamedTuple):
    """A command that ran while another one was stopped."""

    words: Sequence[str]
    result: Result
    seconds: float
    waited: float
    """The seconds of these in which it slept, or waited for a lock."""


class Trial(NamedTuple):
    """Commands that ran while another one was stopped at a lock."""

    held: Sequence[Lock]
    """The locks that the stopped command had taken; the last one is where it was stopped."""
    processes: Collection[int]
    """The stopped command, and the process of it that was stopped."""
    probes: Sequence[Probe]


class Locks:
    """The shared state of the library."""

    def __init__(self, state: Path, record: Path, root: Path) -> None:
        """Maps the state file; nothing is counted yet."""
        with state.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _STATE.size)
        self._record, self._root = record, os.fsencode(root)

    def arm(self, at: int = 0) -> None:
        """Counts the locks of this process and those that it starts, and stops at a number."""
        self._record.write_bytes(b"")
        _STATE.pack_into(self._map, 0, os.getpgrp(), at, 0, 0, 0, 0, 0, self._root)

    def clear(self) -> None:
        """Counts nothing, and forgets which process was stopped."""
        _STATE.pack_into(self._map, 0, *[0] * 7, self._root)

    def measure(self) -> None:
        """Adds up the time that this process and those that it starts wait."""
        _WAITING.pack_into(self._map, _WAITING_AT, os.getpgrp(), 0)

    def waited(self) -> float:
        """Returns this time in seconds."""
        return float(_WAITING.unpack_from(self._map, _WAITING_AT)[1]) / 1e9

    def stopped(self) -> int:
        """Returns the process that was stopped, 0 for none."""
        return int(_STATE.unpack_from(self._map, 0)[3])

    def taken(self) -> list[Lock]:
        """Returns the locks that were taken."""
        locks, setting_up = [], set[str]()
        for number, line in enumerate(self._record.read_text("utf-8").splitlines(), 1):
            kind, _, path = line.rpartition(" ")
            path = self.short(path)
            if kind == _FIRST:
                setting_up.add(path)
            elif _READS.match(kind):
                setting_up.discard(path)
            kind = f"{SETTING_UP}{kind}" if path in setting_up else kind
            locks.append(Lock(number, kind, path))
        return locks

    def short(self, path: str) -> str:
        """Returns a path relative to the scratch folder, without numbers."""
        return re.sub(r"\d{2,}\w*", "N", path.removeprefix(f"{os.fsdecode(self._root)}/"))


class Project:
    """A project, in which commands are stopped."""

    def __init__(self, folder: Path) -> None:
        """Makes the project. The library must be loaded."""
        disk.WAIT_SECONDS = WAIT_SECONDS
        self.scratch = Scratch(folder)
        state, record = Path(os.environ["LOCKS_STATE"]), Path(os.environ["LOCKS_RECORD"])
        self.locks = Locks(state, record, self.scratch.tree)
        prepared(self.scratch)
        warm(self.scratch)
        self.scratch.save("base")
        self._probes: dict[str, list[Sequence[str]]] = {}

    def prepare(self, command: Command) -> None:
        """Makes the state before a command."""
        self.scratch.load("base")
        command.before(self.scratch)
        self.scratch.save(command.name)
        # Some commands restore the memory that others name.
        missing = {f"{{{name}}}" for name, id in self.scratch.ids.items() if not self._has(id)}
        probes = (*READING, *WRITING)
        self._probes[command.name] = [words for words in probes if not missing & {*words}]

    def _has(self, id: str) -> bool:
        return self.scratch.mind("show", id).status == 0

    def taken(self, command: Command) -> list[Lock]:
        """Returns the locks that a command takes."""
        # The first run finds files that no other run does, and takes other locks.
        for _ in range(2):
            self.scratch.load(command.name)
            run = partial(self._run, command.words_in(self.scratch), 0)
            self.scratch.fork(run, command.input, command.until)
        return self.locks.taken()

    def _run(self, words: Sequence[str], at: int) -> int:
        from mimo.cli.main import main

        self.locks.arm(at)
        return main(list(words))

    def probed(self, command: Command, lock: Lock) -> Trial | None:
        """Stops a command at a lock, and runs others meanwhile; None if it ended before."""
        self.scratch.load(command.name)
        self.locks.clear()  # Otherwise the process of the last trial passes for one that stopped.
        holder = os.fork()
        if not holder:
            null = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(null, number)
            os.setsid()
            self.scratch.enter()
            with suppress(BaseException):
                self._run(command.words_in(self.scratch), lock.number)
            os._exit(0)
        deadline = time.monotonic() + _LONGEST_SECONDS
        while not self.locks.stopped() and time.monotonic() < deadline:
            if os.waitpid(holder, os.WNOHANG)[0]:
                return None
            time.sleep(0.005)
        try:
            processes, held = {holder, self.locks.stopped()}, self.locks.taken()
            probes = [self._probe(words) for words in self._probes[command.name]]
            return Trial(held, processes, probes)
        finally:
            os.killpg(holder, signal.SIGKILL)
            os.waitpid(holder, 0)

    def _probe(self, words: Sequence[str]) -> Probe:
        ids = {f"{{{name}}}": id for name, id in self.scratch.ids.items()}
        words = [ids.get(word, word) for word in words]
        start = time.monotonic()
        result = self.scratch.fork(lambda: self._measured(words))
        return Probe(words, result, time.monotonic() - start, self.locks.waited())

    def _measured(self, words: Sequence[str]) -> int:
        from mimo.cli.main import main

        self.locks.measure()
        return main(list(words))


def limit(lock: Lock) -> float:
    """Returns the seconds that a command may wait beside a process that is stopped at a lock."""
    return SHARED_SECONDS if lock.kind.startswith(SETTING_UP) else WAIT_SECONDS + PAUSES_SECONDS


def faults(trial: Trial, short: Callable[[str], str]) -> Iterator[str]:
    """Yields what is wrong with commands that ran while a process held locks."""
    longest = limit(trial.held[-1])
    for probe in trial.probes:
        name, error = " ".join(probe.words[:2]), probe.result.errors.strip()
        reads = probe.words[0] in {words[0] for words in READING}
        if probe.waited > longest or probe.result.status < 0:
            yield (
                f"{name} waited {probe.waited:.2f} s, and took {probe.seconds:.1f} s"
                f" (status {probe.result.status})"
            )
        if reads and probe.result.status:
            yield f"{name} failed: {error}"
        elif probe.result.status and not _explains(error, trial, short):
            yield f"{name} does not name the lock or process {trial.processes}: {error}"


def _explains(error: str, trial: Trial, short: Callable[[str], str]) -> bool:
    """Returns whether an error names a lock that is held and, if it can, the process that holds it.

    A process stopped right after it took a lock has not written its number into the file yet.
    SQLite and git don't tell who holds their locks.
    """
    held = {re.sub("-(shm|wal)$", "", lock.path): lock for lock in trial.held}
    for pattern in (
        r"`(?P<path>[^`]+)` is held by (another process|process (?P<process>\d+))",
        r"'(?P<path>[^']+\.lock)': File exists",
        r"has been writing the index `(?P<path>[^`]+)`",
    ):
        if named := re.search(pattern, error):
            lock, process = held.get(short(named["path"])), named.groupdict().get("process")
            if lock is None:
                return False
            if process is None:
                return not lock.kind.startswith("flock") or lock == trial.held[-1]
            return int(process) in trial.processes
    return False


def _work(options: argparse.Namespace) -> int:
    project = Project(Path(options.folder))
    commands = [each for each in COMMANDS if not options.only or each.name in options.only]
    seen: set[tuple[str, str]] = set()
    trials: list[Trial] = []
    tried: set[tuple[str, str]] = set()
    failed = 0
    end = time.monotonic() + 60 * options.minutes
    # Those at which each command waits for 10 s come last.
    for command, late in [(command, late) for late in (False, True) for command in commands]:
        if not late:
            project.prepare(command)
        for lock in project.taken(command):
            key = (lock.kind, lock.path)
            if (
                late != lock.kind.startswith(SETTING_UP)
                or key in seen
                or not lock.path.endswith(tuple(options.lock or ("",)))
            ):
                continue
            seen.add(key)
            if key in tried or time.monotonic() > end:
                continue
            trial = project.probed(command, lock)
            project.scratch.mind("list")
            wrong = [*problems_of(_entered(project.scratch))]
            if trial is not None:
                trials.append(trial)
                wrong += faults(trial, project.locks.short)
                tried.add(trial.held[-1][1:])  # Numbers can differ between runs.
            failed += bool(wrong)
            print(f"{command.name}: {_state(trial)}", flush=True)
            for line in wrong:
                print(f"    {line}", flush=True)
        if options.all:
            seen.clear()
    print(f"{len(trials)} locks, {failed} with faults")
    if options.write:
        write_part(options.write, "stopped", report(trials, tried, len(seen | tried), failed))
    return NOTHING_TRIED if is_vain(len(trials), len(seen | tried)) else min(failed, 1)


def _state(trial: Trial | None) -> str:
    if trial is None:
        return "it took fewer locks than before"
    lock = trial.held[-1]
    blocked = sum(probe.result.status != 0 for probe in trial.probes)
    waited = max(probe.waited for probe in trial.probes)
    place = f"{lock.number} {lock.kind} {lock.path}"
    return f"{place}: {blocked} of {len(trial.probes)} failed, the longest wait {waited:.2f} s"


def report(
    trials: Sequence[Trial], tried: Collection[tuple[str, str]], locks: int, failed: int
) -> str:
    """Returns the figures as Markdown."""
    by_kind: dict[str, list[Trial]] = {}
    for trial in trials:
        by_kind.setdefault(_group(trial.held[-1]), []).append(trial)
    lines = [
        f"{len(tried)} of {locks} locks tried in {len(trials)} trials, **{failed} with faults**.",
        f"The limit of all waits of a command was {WAIT_SECONDS:g} s.",
        "",
    ]
    cells = []
    for kind, some in sorted(by_kind.items()):
        probes = [probe for trial in some for probe in trial.probes]
        errors = sum(probe.result.status != 0 for probe in probes)
        waited = max(probe.waited for probe in probes)
        cells.append((kind, len(some), len(probes), errors, f"{waited:.2f} s"))
    titles = ("stopped at", "locks", "commands meanwhile", "ended with an error", "longest wait")
    return "\n".join([*lines, table(titles, cells)])


def _group(lock: Lock) -> str:
    if lock.kind.startswith(SETTING_UP):
        return "SQLite, sets up `-shm`"
    if lock.kind.startswith("fcntl"):
        return "SQLite, other locks"
    return "git's lock files" if lock.kind == "file" else "mind's lock files"


def _entered(scratch: Scratch) -> Scratch:
    scratch.enter()
    return scratch


def main() -> int:
    """Returns 1 if a command did not end in time, or with an unclear error; 2 if none was tried."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", help="a command to try (can be repeated)")
    parser.add_argument("--lock", action="append", help="the end of a lock's path to try only")
    parser.add_argument("--all", action="store_true", help="try each lock with each command")
    parser.add_argument("--minutes", type=float, default=60, help="start no trial after these")
    parser.add_argument("--write", type=Path, help="file to write the figures into")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        return _work(options)
    with tempfile.TemporaryDirectory(prefix="mind-stopped-", dir=IN_MEMORY) as name:
        library = built(SOURCE, Path(name))
        if library is None:
            print(MISSING, file=sys.stderr)
            return NOTHING_TRIED
        words = [sys.executable, "-m", "bench.concurrent.stopped", *sys.argv[1:]]
        command = [*words, "--folder", f"{name}/work"]
        Path(name, "work").mkdir()
        environ = os.environ | loaded(library, "LOCKS", Path(name), _STATE.size)
        environ["MIND_BACKGROUND"] = "off"
        return subprocess.run(command, check=False, env=environ).returncode


if __name__ == "__main__":
    sys.exit(main())
