"""Starting and ending the daemon, and being it."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from mimo import disk
from mimo.errors import DaemonNotRunning, MindError, StorageFailed
from mimo.features import daemon, ingest, values
from mimo.features import daemon as logs
from mimo.features.context import files
from mimo.features.daemon import Running
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.operations import refresh
from mimo.store import projects, walk

if TYPE_CHECKING:
    from subprocess import Popen


# What the daemon does: it waits for changes, and keeps what hangs on them fresh.


log = logging.getLogger("mind.daemon")

_SECOND_LOOK = 1.0
"""Seconds after a change until the files are looked at once more."""

_END = frozenset[Path]()
"""What wakes the loop to end it; no change is empty."""


@frozen
class Watched:
    """A project that the daemon looks after."""

    mind: Mind
    deep: tuple[Path, ...]
    """Folders that are watched with all below them: its memories."""
    flat: tuple[Path, ...]
    """Folders of which only the entries are: that something happens there shows activity."""


class Loop:
    """Looks after every registered project until it is told to end."""

    def __init__(self, mind: Mind) -> None:
        """Nothing is watched before `run`."""
        self._mind = mind
        self._started = mind.now()
        self._events: SimpleQueue[frozenset[Path]] = SimpleQueue()
        self._ended = threading.Event()
        self._blind = threading.Event()
        """Set while nothing tells of changes: before the watch begins, and where it failed."""
        self._blind.set()
        self._projects: dict[Path, Watched] = {}
        self._unsettled: set[Path] = set()
        """The roots of the projects with changes so fresh that more may have come unnoticed."""
        self._active: dict[Path, datetime] = {}
        """When each project was last worked on, of those with a session that goes on."""

    def end(self) -> None:
        """Lets `run` come to its end; may be called by a signal or another thread."""
        self._ended.set()
        self._events.put(_END)

    def run(self) -> None:
        """Watches and mends until the end; whatever goes wrong with a project is only logged."""
        log.info("started")
        self.look_around()
        pause = float(self._mind.config["daemon.check_seconds"])
        while not self._ended.is_set():
            try:
                changed = self._events.get(timeout=_SECOND_LOOK if self._unsettled else pause)
            except Empty:
                self._look_again() if self._unsettled else self.check()
                continue
            if changed:
                self.take(changed)
        self._blind.set()
        for root in tuple(self._active):
            self._end_session(root)
        for one in self._projects.values():
            one.mind.close()
        log.info("ended")

    def look_around(self) -> None:
        """Finds the registered projects anew, and watches those that are there."""
        found = {}
        for known in projects.registered(self._mind.home).projects:
            other = self._mind.at(known)
            if other is not None:
                found[known.path] = self._projects.get(known.path) or _watched(other)
        if found.keys() == self._projects.keys() and not self.is_blind():
            return
        for root in self._projects.keys() - found.keys():
            log.info("no longer watching %s", root)
            self._projects[root].mind.close()
            self._active.pop(root, None)
        new = found.keys() - self._projects.keys()
        self._projects = found
        for root in sorted(new):
            log.info("watching %s", root)
            self._refresh(root)
        self._watch_anew()
        self._tell()

    def take(self, changed: frozenset[Path]) -> None:
        """Mends what hangs on the paths that changed."""
        if any(path.parent == self._mind.home for path in changed):
            self.look_around()
        for root, one in tuple(self._projects.items()):
            if not any(_is_below(path, (root,)) for path in changed):
                continue
            if not (root / ".mind").is_dir():
                self.look_around()
                continue
            self._active[root] = self._mind.now()
            if any(_is_below(path, one.deep) for path in changed):
                self._refresh(root)
                self._unsettled.add(root)

    def _look_again(self) -> None:
        """Looks once more: a file may come into a new folder before that is watched."""
        for root in self._unsettled & self._projects.keys():
            self._refresh(root)
        self._unsettled.clear()

    def check(self) -> None:
        """Does what no change of a file tells: sessions end, projects go, watching fails."""
        blind = self.is_blind()
        self.look_around()
        limit = timedelta(minutes=self._mind.config["daemon.inactivity_minutes"])
        for root, last in tuple(self._active.items()):
            if self._mind.now() - last >= limit:
                self._end_session(root)
        for root in self._projects:
            self._expire(root)
            self._ingest(root)
        if blind:
            for root in self._projects:
                self._refresh(root)

    @property
    def active(self) -> frozenset[Path]:
        """The roots of the projects with a session that goes on."""
        return frozenset(self._active)

    def is_blind(self) -> bool:
        """Returns whether nothing tells of changes at present."""
        return self._blind.is_set()

    def _refresh(self, root: Path) -> None:
        try:
            done = refresh.refresh(self._projects[root].mind)
        except MindError as error:
            log.warning("%s: %s", root, error.message)
        except OSError as error:
            log.warning("%s: %s", root, error)
        else:
            if done != refresh.Refreshed():
                log.info("%s: %s files taken in", root, done.added + done.changed + done.removed)

    def _ingest(self, root: Path) -> None:
        """Ingests again what changed since it was ingested."""
        try:
            report = ingest.refresh(self._projects[root].mind)
        except (MindError, OSError) as error:
            log.warning("%s: changed files were not ingested again: %s", root, error)
            return
        for one in report.files if report else ():
            if one.refusal is None and not one.is_known:
                log.info("%s: %s was ingested again", root, one.path)

    def _expire(self, root: Path) -> None:
        try:
            if gone := values.expire(self._projects[root].mind):
                log.info("%s: %s values have expired", root, gone)
        except (MindError, OSError) as error:
            log.warning("%s: %s", root, error)

    def _end_session(self, root: Path) -> None:
        del self._active[root]
        log.info("%s: a session has ended", root)
        self._write_context(root)

    def _write_context(self, root: Path) -> None:
        try:
            done = files.write_untracked(self._projects[root].mind)
        except (MindError, OSError) as error:
            log.warning("%s: the notes for agents were not written: %s", root, error)
            return
        for name, one in done.items():
            if isinstance(one, MindError):
                log.warning("%s: no notes written to %s: %s", root, name, one.message)
            elif one.changed:
                log.info("%s: notes written to %s", root, name)

    def _tell(self) -> None:
        try:
            daemon.tell(self._mind.home, started=self._started, watching=sorted(self._projects))
        except MindError as error:
            log.warning("%s", error.message)

    def _watch_anew(self) -> None:
        """Lets one thread watch whole folders, and one the entries of others."""
        self._blind.set()
        self._blind = threading.Event()
        self._unsettled.update(self._projects)
        every = self._projects.values()
        deep = [folder for one in every for folder in one.deep]
        flat = [self._mind.home, *(folder for one in every for folder in one.flat)]
        for folders, recursive in ((deep, True), (flat, False)):
            if folders:
                threading.Thread(
                    target=self._wait, args=(folders, recursive, self._blind), daemon=True
                ).start()

    def _wait(self, folders: Sequence[Path], recursive: bool, stop: threading.Event) -> None:
        """Hands on what changes, in a thread of its own; `check` looks where that fails."""
        try:
            for changed in walk.changes(folders, stop=stop, recursive=recursive):
                if stop.is_set():
                    return
                self._events.put(changed)
        except (OSError, RuntimeError) as error:
            log.warning("changes can't be watched (%s); looking at the files instead", error)
        stop.set()


def _watched(mind: Mind) -> Watched:
    root = mind.project.root
    deep = [folder for folder in mind.store.folders() if folder.is_dir()] or [mind.folder]
    flat = [root, root / ".git"]
    return Watched(
        mind=mind, deep=tuple(deep), flat=tuple(folder for folder in flat if folder.is_dir())
    )


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)


_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.05
_LOG_BYTES = 1_000_000
_LOG_FILES = 3


def start(mind: Mind) -> tuple[Running, bool]:
    """Starts a daemon that outlives this process; returns it, and whether it ran already.

    Raises `StorageFailed` with the end of its log where it ended at once.
    """
    if found := daemon.running(mind.home):
        return found, True
    process = _detached(mind)
    if _until(lambda: _is_up(mind) or process.poll() is not None):
        if found := daemon.running(mind.home):
            process.returncode = 0  # It outlives us: nobody waits for it, and that is no leak.
            return found, False
        last = "; ".join(logs.newest(mind, 3)) or f"exit status {process.returncode}"
        raise StorageFailed(f"the daemon ended at once: {last}", hint="see `mind daemon logs`")
    process.kill()
    raise StorageFailed("the daemon did not come up", hint="see `mind daemon logs`")


def stop(mind: Mind) -> Running:
    """Ends the daemon and returns what it was.

    Raises `DaemonNotRunning`, and `StorageFailed` where it doesn't end.
    """
    found = daemon.running(mind.home)
    if found is None:
        raise DaemonNotRunning("the daemon is not running", hint="`mind daemon start` starts it")
    try:
        os.kill(found.pid, signal.SIGTERM)
    except ProcessLookupError:
        return found
    except PermissionError as error:
        raise StorageFailed(f"process {found.pid} belongs to another user") from error
    if not _until(lambda: daemon.running(mind.home) is None):
        raise StorageFailed(
            f"process {found.pid} does not end", hint=f"end it with `kill -9 {found.pid}`"
        )
    return found


def run(mind: Mind) -> None:
    """Is the daemon, until a signal ends it. Raises `StorageFailed` where there is one already."""
    found = daemon.running(mind.home)
    if found:
        raise StorageFailed(
            f"a daemon runs already, as process {found.pid}", hint="`mind daemon stop` ends it"
        )
    with daemon.held(mind.home), _logging(mind):
        # Without a project of its own it sees each one come and go.
        loop = Loop(Mind(home=mind.home, project=None, clock=mind.clock, environ=mind.environ))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: loop.end())
        loop.run()


def _detached(mind: Mind) -> "Popen[bytes]":
    import subprocess

    path = daemon.log_file(mind.home)
    disk.make_folder(path.parent)
    environ = {**mind.environ, "MIND_HOME": str(mind.home)}
    with open(path, "ab", opener=disk.opener) as log:
        return subprocess.Popen(
            [sys.executable, "-m", "mimo", "daemon", "run"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            # Not the project: a working directory can't be removed or unmounted on some systems.
            cwd=mind.home,
            env=environ,
        )


@contextmanager
def _logging(mind: Mind) -> Iterator[None]:
    from mimo.guard.logs import PrivateFile, Redacting

    path = daemon.log_file(mind.home)
    disk.make_folder(path.parent)
    handler = PrivateFile(path, maxBytes=_LOG_BYTES, backupCount=_LOG_FILES, encoding="utf-8")
    handler.setFormatter(Redacting("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("mind.daemon")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        handler.close()


def _is_up(mind: Mind) -> bool:
    """Returns whether a daemon runs and has told what it watches."""
    found = daemon.running(mind.home)
    return found is not None and found.started is not None


def _until(holds: Callable[[], bool]) -> bool:
    """Returns whether something came to hold before patience ended."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(_PAUSE_SECONDS)
    return holds()
