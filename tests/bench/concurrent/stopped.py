"""Stops a command at each lock that it takes, and runs other commands meanwhile.

    python -m tests.bench.concurrent.stopped [--only COMMAND] [--lock PATH] [--all]

Each of the writing commands that `make torture` tries runs once with a small library in C
(locks.c), which lists the locks that it takes. Then it runs once for each of them, and is stopped
by SIGSTOP there. Reading and writing commands must end in time meanwhile: with an answer, or with
an error that names the lock. Without `--all`, each lock is tried with the first command that takes
it only.
"""

import argparse
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mimo import disk
from tests.bench.stores import IN_MEMORY
from tests.bench.torture.commands import COMMANDS, Command, prepared
from tests.bench.torture.examination import problems_of, warm
from tests.bench.torture.scratch import Result, Scratch

SOURCE = Path(__file__).with_name("locks.c")
WAIT_SECONDS = 1.0
"""The limit of all waits of a command, in place of that of `disk`."""

WORK_SECONDS = 5.0
"""More than a command works on a busy machine; less than waits that the limit does not cover."""

_STATE = struct.Struct("=5q1024s")
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
        _STATE.pack_into(self._map, 0, os.getpgrp(), at, 0, 0, 0, self._root)

    def refuse(self, error: int) -> None:
        """Lets flock fail with an error everywhere; if it is negative, it locks nothing."""
        _STATE.pack_into(self._map, 0, 0, 0, 0, 0, error, self._root)

    def stopped(self) -> int:
        """Returns the process that was stopped, 0 for none."""
        return int(_STATE.unpack_from(self._map, 0)[3])

    def taken(self) -> list[Lock]:
        """Returns the locks that were taken."""
        locks = []
        for number, line in enumerate(self._record.read_text("utf-8").splitlines(), 1):
            kind, _, path = line.rpartition(" ")
            path = path.removeprefix(f"{os.fsdecode(self._root)}/")
            locks.append(Lock(number, kind, re.sub(r"\d{2,}\w*", "N", path)))
        return locks


def built(folder: Path) -> Path | None:
    """Compiles the library and returns its path, None if this system can't."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = folder / "locks.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(words, check=False, capture_output=True)
    return library if done.returncode == 0 else None


def environment(library: Path, folder: Path) -> dict[str, str]:
    """Returns the environment of a process with the library loaded."""
    state, record = folder / "state", folder / "record"
    state.write_bytes(b"\0" * _STATE.size)
    record.touch()
    loaded = {"LD_PRELOAD": str(library), "LOCKS_STATE": str(state), "LOCKS_RECORD": str(record)}
    return {**os.environ, **loaded, "MIND_BACKGROUND": "off"}


class Trial:
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

    def prepare(self, command: Command) -> None:
        """Makes the state before a command."""
        self.scratch.load("base")
        command.before(self.scratch)
        self.scratch.save(command.name)

    def taken(self, command: Command) -> list[Lock]:
        """Returns the locks that a command takes."""
        self.scratch.load(command.name)
        words = command.words_in(self.scratch)
        self.scratch.fork(lambda: self._run(words, 0), command.input, command.until)
        return self.locks.taken()

    def _run(self, words: Sequence[str], at: int) -> int:
        from mimo.cli.main import main

        self.locks.arm(at)
        return main(list(words))

    def probed(
        self, command: Command, lock: Lock, probes: Sequence[Sequence[str]]
    ) -> tuple[int, list[Probe]]:
        """Stops a command at a lock, and returns its process and the probes meanwhile."""
        self.scratch.load(command.name)
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
                return 0, []
            time.sleep(0.005)
        try:
            done = [self._probe(words) for words in probes]
        finally:
            os.killpg(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
        return self.locks.stopped(), done

    def _probe(self, words: Sequence[str]) -> Probe:
        ids = {f"{{{name}}}": id for name, id in self.scratch.ids.items()}
        words = [ids.get(word, word) for word in words]
        start = time.monotonic()
        result = self.scratch.mind(*words)
        return Probe(words, result, time.monotonic() - start)


def faults(lock: Lock, holder: int, probes: Sequence[Probe]) -> Iterator[str]:
    """Yields what is wrong with commands that ran while a process held a lock."""
    for probe in probes:
        name, error = " ".join(probe.words[:2]), probe.result.errors.strip()
        reads = probe.words[0] in {words[0] for words in READING}
        if probe.seconds > WAIT_SECONDS + WORK_SECONDS or probe.result.status < 0:
            yield f"{name} took {probe.seconds:.1f} s (status {probe.result.status})"
        if reads and probe.result.status:
            yield f"{name} failed: {error}"
        elif probe.result.status and not _explains(error, holder):
            yield f"{name} does not name the lock or process {holder}: {error}"


def _explains(error: str, holder: int) -> bool:
    """Returns whether an error names a lock and, if it can, the process that holds it.

    A process may be stopped between taking a lock and writing its number into it.
    """
    held = re.search(r"` is held by (another process|process (\d+))", error)
    if held:
        return held[2] in (None, str(holder))
    return "/.git/index.lock': File exists" in error or "has been writing" in error


def _work(options: argparse.Namespace) -> int:
    trial = Trial(Path(options.folder))
    commands = [each for each in COMMANDS if not options.only or each.name in options.only]
    tried: set[tuple[str, str]] = set()
    count = failed = 0
    for command in commands:
        trial.prepare(command)
        for lock in trial.taken(command):
            key = (lock.kind, lock.path)
            if key in tried or not lock.path.endswith(tuple(options.lock or ("",))):
                continue
            tried.add(key)
            holder, probes = trial.probed(command, lock, (*READING, *WRITING))
            trial.scratch.mind("list")
            wrong = [*faults(lock, holder, probes), *problems_of(_entered(trial.scratch))]
            count, failed = count + bool(probes), failed + bool(wrong)
            blocked = sum(probe.result.status != 0 for probe in probes)
            longest = max((probe.seconds for probe in probes), default=0)
            state = f"{blocked} of {len(probes)} failed, longest {longest:.1f} s"
            print(f"{command.name}: {lock.number} {lock.kind} {lock.path}: {state}", flush=True)
            for line in wrong:
                print(f"    {line}", flush=True)
        if options.all:
            tried.clear()
    print(f"{count} locks, {failed} with faults")
    return 1 if failed else 0


def _entered(scratch: Scratch) -> Scratch:
    scratch.enter()
    return scratch


def main() -> int:
    """Returns 1 if a command did not end in time, or with an unclear error."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", help="a command to try (can be repeated)")
    parser.add_argument("--lock", action="append", help="the end of a lock's path to try only")
    parser.add_argument("--all", action="store_true", help="try each lock with each command")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        return _work(options)
    with tempfile.TemporaryDirectory(prefix="mind-stopped-", dir=IN_MEMORY) as name:
        library = built(Path(name))
        if library is None:
            print("skipped: this needs Linux and a C compiler (`cc`)")
            return 0
        words = [sys.executable, "-m", "tests.bench.concurrent.stopped", *sys.argv[1:]]
        command = [*words, "--folder", f"{name}/work"]
        Path(name, "work").mkdir()
        return subprocess.run(command, check=False, env=environment(library, Path(name))).returncode


if __name__ == "__main__":
    sys.exit(main())
