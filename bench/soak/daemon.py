"""Bursts of changed files for the real daemon.

Memories of several projects are written, renamed and removed, and files beside them. A burst is a
few changes in one project; the next one there follows when the daemon has indexed it. The rows of
the index are read without a command of mind, which would index the files itself. Before each part,
another project is made and deleted. At the end, each index must have the files on disk, SIGTERM
must end the daemon, and no temporary file may be left.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bench.soak.process import cost, ended, until
from bench.soak.runs import PARTS, Part, fill, growth, heads, part, row
from bench.stores import MIND, note, project
from mimo.index.schema import SCHEMA
from mimo.project.projects import known_owner

PROJECTS = 4
"""The daemon waits 50 to 100 ms for further changes, of all projects at once."""
FILES = 300
"""Memories of a project at a time."""
WORDS = 1_000
"""Different words that the changes bring: people draw from a vocabulary, too."""
MOST = 8
"""The most changes of a burst; a burst has half as many on average."""
WAIT_SECONDS = 10.0
"""The time in which a burst must be indexed.

If a daemon can't watch files, it compares them once a minute, which is too late.
"""
END_SECONDS = 30.0
"""The time in which SIGTERM must end the daemon; after it, SIGKILL does."""
CALM_SECONDS = 2.0
"""Time after a change of the watched projects, in which the daemon checks for missed changes."""

_PAUSE_SECONDS = 0.004

HEADS = heads("bursts", "changes", "commits")

Stamp = tuple[int, int, str]
"""The size, time of change and inode of a file."""


class Project:
    """A project with at most one burst that is not indexed yet."""

    def __init__(self, root: Path, seed: int) -> None:
        """Takes the root of a project whose index exists."""
        self.root = root
        self._draw = random.Random(seed)
        self._index: sqlite3.Connection | None = None
        self._pending: dict[Path, Stamp | None] = {}
        self._since = 0.0
        self._changes = 0

    @property
    def index(self) -> Path:
        """Returns the file of the index."""
        owner = known_owner(self.root.parent / "home") or ""
        return SCHEMA.path(self.root / ".mind" / ".index", owner)

    def open(self) -> None:
        """Opens the index for reading only."""
        file = self.index
        self._index = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, isolation_level=None)

    def close(self) -> None:
        """Closes the index, so that the daemon is the last to do so."""
        if self._index:
            self._index.close()

    def burst(self) -> int:
        """Changes files, so that the index differs from them; returns the number of changes."""
        count = self._draw.randint(1, MOST)
        changed: set[Path] = set()
        for _ in range(count):
            changed |= self._change(self._draw.random())
        while all(self._row(path) == _stamp(path) for path in changed):
            changed |= self._change(1.0)
            count += 1
        self._expect(changed)
        return count

    def write(self, text: str) -> None:
        """Writes one memory, the same one each time."""
        path = self.root / ".mind" / "facts" / "fact_filling.md"
        path.write_text(f"---\nid: fact_filling\ntype: fact\n---\n{text}\n", encoding="utf-8")
        self._expect({path})

    def latency(self) -> float | None:
        """Returns the seconds from the end of the last burst until now if it is indexed, or None.

        Raises `SystemExit` if it is not indexed in time.
        """
        seconds = time.perf_counter() - self._since
        self._pending = {
            path: expected
            for path, expected in self._pending.items()
            if self._row(path) != expected
        }
        if not self._pending:
            return seconds
        if seconds > WAIT_SECONDS:
            path = next(iter(self._pending))
            raise SystemExit(f"{self.root.name}: `{path.name}` was not indexed in time")
        return None

    def wait(self) -> None:
        """Waits until the last burst is indexed. Raises `SystemExit` if that takes too long."""
        while self.latency() is None:
            time.sleep(_PAUSE_SECONDS)

    def commits(self) -> int:
        """Returns the number of changes of the index so far."""
        (revision,) = self._execute("SELECT revision FROM totals").fetchone()
        return int(revision)

    def differences(self) -> list[str]:
        """Returns the names of files whose row in the index is not that of the file on disk."""
        on_disk = set((self.root / ".mind" / "facts").iterdir())
        query = "SELECT path FROM files WHERE path LIKE '.mind/facts/%'"
        indexed = {self.root / path for (path,) in self._execute(query)}
        different = (path for path in on_disk | indexed if self._row(path) != _stamp(path))
        return sorted(path.name for path in different)

    def _change(self, kind: float) -> set[Path]:
        """Changes one file, which is returned if it is a memory."""
        self._changes += 1
        name = self._draw.randrange(FILES)
        path = self.root / ".mind" / "facts" / f"fact_note_{name}.md"
        text = f"{note(name)}Written {self._changes % WORDS}.\n"
        if kind < 0.1:
            (self.root / "notes.txt").write_text(text, encoding="utf-8")
            return set()
        if kind < 0.25:
            if not path.exists():
                return set()
            path.unlink()
        elif kind < 0.4:
            new = path.with_suffix(".new")
            new.write_text(text, encoding="utf-8")
            new.replace(path)
        else:
            path.write_text(text, encoding="utf-8")
        return {path}

    def _expect(self, changed: set[Path]) -> None:
        self._since = time.perf_counter()
        self._pending = {path: _stamp(path) for path in changed}

    def _row(self, path: Path) -> Stamp | None:
        query = "SELECT size, mtime_ns, inode FROM files WHERE path = ?"
        stamp: Stamp | None = self._execute(query, str(path.relative_to(self.root))).fetchone()
        return stamp

    def _execute(self, query: str, *values: str) -> sqlite3.Cursor:
        assert self._index
        return self._index.execute(query, values)


def _stamp(path: Path) -> Stamp | None:
    with suppress(FileNotFoundError):
        status = path.stat()
        return status.st_size, status.st_mtime_ns, str(status.st_ino)
    return None


def watched(home: Path) -> list[str]:
    """Returns the projects that the daemon watches; none before it has started."""
    try:
        watching: list[str] = json.loads((home / "daemon.json").read_text())["watching"]
    except (OSError, ValueError):
        return []
    return watching


class Soak:
    """A run, and its figures so far."""

    def __init__(self, folder: Path, projects: int = PROJECTS) -> None:
        """Takes an empty folder, and the number of projects."""
        self._folder = folder
        self._environ = os.environ | {"MIND_HOME": str(folder / "home")}
        self._projects = [
            Project(project(folder / f"shop{number}", self._environ, FILES), number)
            for number in range(projects)
        ]
        self.vectors = math.inf
        """The bytes of all vectors when those of earlier texts were first removed."""
        self.parts: list[Part] = []
        self.failures: list[str] = []

    def run(self, bursts: int, minutes: float, *, fills: bool = True) -> None:
        """Runs the daemon while files change, or until the minutes are over."""
        deadline = time.monotonic() + 60 * minutes
        with (self._folder / "stderr").open("wb") as errors:
            words = [*MIND, "daemon", "run"]
            daemon = subprocess.Popen(words, env=self._environ, cwd=self._folder, stderr=errors)
        try:
            self._start()
            if fills:
                self.vectors = sum(map(_filled, self._projects))
            print(HEADS, flush=True)
            while len(self.parts) < PARTS and self._part(bursts // PARTS, daemon.pid, deadline):
                print(row(len(self.parts), self.parts[-1]), flush=True)
            for each in self._projects:
                each.wait()
                if different := each.differences():
                    self.failures.append(f"not as in the index of {each.root.name}: {different}")
        except SystemExit as error:
            self.failures.append(str(error))
        finally:
            for each in self._projects:
                each.close()
            self.failures += ended(daemon, self._folder, END_SECONDS)

    def faults(self) -> list[str]:
        """Returns what failed, and what grew by more than the tolerance."""
        return [*self.failures, *growth(self.parts, self.vectors)]

    def _start(self) -> None:
        roots = [each.root for each in self._projects]
        self._await_watched(roots)
        time.sleep(CALM_SECONDS)
        for each in self._projects:
            until(lambda: each.index.exists(), 90, "the daemon indexes each project")  # noqa: B023, PLW0108
            each.open()
            until(lambda: not each.differences(), 90, "the first index")  # noqa: B023

    def _await_watched(self, roots: Sequence[Path]) -> None:
        expected = sorted(map(str, roots))
        until(lambda: watched(self._folder / "home") == expected, 90, f"watching {expected}")

    def _part(self, bursts: int, pid: int, deadline: float) -> bool:
        """Adds the figures of a part; False if the time is up."""
        roots = [each.root for each in self._projects]
        other = project(self._folder / "other", self._environ, 1)
        self._await_watched([*roots, other])
        shutil.rmtree(other)
        self._await_watched(roots)
        time.sleep(CALM_SECONDS)
        took: list[float] = []
        changes, begun = 0, 0
        before = cost(pid)
        commits = sum(each.commits() for each in self._projects)
        waiting: set[Project] = set()
        while len(took) < bursts:
            for each in self._projects:
                if each in waiting and (latency := each.latency()) is not None:
                    took.append(latency)
                    waiting.remove(each)
                if each not in waiting and begun < bursts:
                    changes += each.burst()
                    begun += 1
                    waiting.add(each)
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE_SECONDS)
        commits = sum(each.commits() for each in self._projects) - commits
        if commits < bursts:
            self.failures.append(f"{commits:,} commits to the index for {bursts:,} bursts")
        self.parts.append(part(took, before, pid, self._folder, changes, commits))
        return True


def _filled(project: Project) -> int:
    """Returns the bytes of the vectors of a project when earlier ones were first removed."""

    def index(text: str) -> None:
        project.write(text)
        project.wait()

    vectors = fill(project.root, index)
    project.write("The lamps are lit.")
    project.wait()
    return vectors
