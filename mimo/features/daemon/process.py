"""The daemon's process: started, stopped, and run as a loop that keeps projects fresh."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from mimo import installation
from mimo.call import Answers, Call
from mimo.config import Config
from mimo.data import disk
from mimo.errors import Command, DaemonNotRunning, Hint, MindError, StorageFailed
from mimo.features import daemon, ingest, values
from mimo.features.context import files
from mimo.features.daemon import Running
from mimo.guard.audit import Ending
from mimo.guard.policy import Operation, Request
from mimo.mind import Mind
from mimo.operations import disclosure, refresh
from mimo.operations.encoding import Encoding
from mimo.operations.listening import Listener, Memory
from mimo.project import commit, projects, watch

if TYPE_CHECKING:
    from subprocess import Popen


log = logging.getLogger("mind.daemon")

_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.05
_LOG_BYTES = 1_000_000
_LOG_FILES = 3

_SETTLE_SECONDS = 1.0
"""Seconds after a change until the files are checked once more."""

_STAY_OPEN = 32
"""The number of projects up to which all stay open: each takes several open files and 0.4 MB."""

_NO_CHANGE = frozenset[Path]()
"""Wakes the loop, so that it ends."""


class Loop:
    """Keeps every registered project fresh until `end` is called."""

    def __init__(self, mind: Mind, answers: Answers | None = None) -> None:
        """Nothing is watched before `run`."""
        self._mind, self._answers = mind, answers
        self._started = mind.now()
        self._events: SimpleQueue[frozenset[Path]] = SimpleQueue()
        self._ended = threading.Event()
        self._blind = threading.Event()
        """Set while changes are not reported: before watching begins, and after it failed."""
        self._blind.set()
        self._projects: dict[Path, Mind] = {}
        self._user: Mind | None = None
        """The user's memory for all projects, if there is one."""
        self._watched: list[Path] = []
        """The folders that are watched recursively."""
        self._unsettled: dict[Path, float] = {}
        """The times at which changed projects are checked once more.

        Another change may have been missed, such as a file in a new folder before that is watched.
        """
        self.active: dict[Path, datetime] = {}
        """The time of the last activity in each project with an open session."""
        self._refused: dict[Path, tuple[Config, dict[str, ingest.Attempt]]] = {}
        """The files of each project that can't be ingested again, and the settings of that time."""
        self._asked: dict[Path, tuple[Listener, Memory]] = {}
        """The sockets of the projects; each opens a memory of its own if it is asked."""
        self._unread: set[Path] = set()
        """The projects that may have memories without the encoder's vectors."""
        self._encoding = Encoding(self._unread_minds)
        self._encoding.sessions = lambda: self._mind

    def end(self) -> None:
        """Ends `run`; may be called by a signal handler or another thread."""
        self._ended.set()
        self._events.put(_NO_CHANGE)

    def run(self) -> None:
        """Watches and refreshes until the end; errors in a project are only logged."""
        log.info("started")
        self.update_projects()
        checked_at = time.monotonic()
        while not self._ended.is_set():
            check_at = checked_at + self._mind.config["daemon.check_seconds"]
            due = min([check_at, *self._unsettled.values()])
            with suppress(Empty):
                self.take(self._events.get(timeout=max(0.0, due - time.monotonic())))
            self._settle()
            if time.monotonic() >= check_at:
                self.check()
                checked_at = time.monotonic()
        self._blind.set()
        for root in tuple(self.active):
            self._end_session(root)
        self._encoding.close()
        self._mind.close()  # And with it the memories of the projects and of the user.
        for root in tuple(self._asked):
            self._stop_listening(root)
        log.info("ended")

    def update_projects(self) -> None:
        """Reads the list of registered projects, and watches those that exist.

        Those whose settings have changed are opened again.
        """
        if self._mind.is_outdated:
            closed, self._mind = self._mind, self._mind.reopened()
            closed.close()
        current = {}
        for project in projects.registered(self._mind.home).projects:
            if (mind := self._mind.at(project)) is not None:
                current[project.path] = mind
        previous, self._projects = self._projects, current
        self._user = self._mind.user()
        # A memory that was opened again has read its settings again.
        new = {
            root
            for root, mind in current.items()
            if root not in previous or previous[root].config is not mind.config
        }
        removed = previous.keys() - current.keys()
        if not (new or removed or self.is_blind()) and self._deep() == self._watched:
            return
        for root in removed:
            log.info("no longer watching %s", root)
            previous[root].close()
            self._stop_listening(root)
            self.active.pop(root, None)
            self._refused.pop(root, None)
        self._restart_watching()
        home, watching = self._mind.home, sorted(self._projects)
        with _logged(home):  # Before the first index, which may take minutes.
            daemon.write_state(home, started=self._started, watching=watching)
        self._refresh_user()
        for root in sorted(new):
            log.info("watching %s", root)
            self._unread.add(root)
            self._refresh(root)
            self._listen(root)

    def _listen(self, root: Path) -> None:
        """Lets commands and hooks in a project ask the daemon."""
        if self._answers and root not in self._asked:
            memory = Memory(self._projects[root].reopened)
            listener = Listener(self._mind.home, memory, self._answers)
            self._asked[root] = (listener, memory)
            listener.start()

    def _stop_listening(self, root: Path) -> None:
        if root in self._asked:
            listener, memory = self._asked.pop(root)
            listener.close()
            memory.close()

    def take(self, changed: frozenset[Path]) -> None:
        """Refreshes the projects with changed paths."""
        if any(path.parent == self._mind.home for path in changed):
            self.update_projects()
        if self._user and any(_is_below(path, (self._user.folder,)) for path in changed):
            self._refresh_user()
        for root in tuple(self._projects):
            if not any(_is_below(path, (root,)) for path in changed):
                continue
            if not self._has(root):
                continue
            self.active[root] = self._mind.now()
            folders = _memory_folders(self._projects[root])
            paths = [f"{path}" for path in changed if _is_below(path, folders)]
            if paths and not self._refresh(root, paths):
                self._unsettled[root] = time.monotonic() + _SETTLE_SECONDS

    def _settle(self) -> None:
        now = time.monotonic()
        roots = [root for root, due in self._unsettled.items() if due <= now]
        for root in roots:
            del self._unsettled[root]
        for root in roots:  # A missing folder makes a new list of projects, and new times.
            if self._has(root):
                self._refresh(root)

    def _has(self, root: Path) -> bool:
        """Returns whether a project is watched, unless it was removed, and with its settings."""
        if root in self._projects and self._projects[root].is_outdated:
            self.update_projects()
        return root in self._projects

    def check(self) -> None:
        """Does the work that no change starts: sessions end, projects disappear, watching fails."""
        blind = self.is_blind()
        with self._encoding.pausing():  # Afterwards, new transcripts are read.
            self.update_projects()
        limit = timedelta(minutes=self._mind.config["daemon.inactivity_minutes"])
        for root, active_at in tuple(self.active.items()):
            if self._mind.now() - active_at >= limit:
                self._end_session(root)
        for root, mind in self._projects.items():
            if not commit.under_way(root):  # Changed files would stop `git rebase --continue`.
                self._update(root, mind)
            if blind:
                self._refresh(root)
        if blind:
            self._refresh_user()

    def _update(self, root: Path, mind: Mind) -> None:
        """Removes expired values, and ingests changed files again."""
        with _logged(root):
            if count := values.expire(Call(mind)):
                log.info("%s: %s values have expired", root, count)
        with _logged(root, "changed files were not ingested again: "):
            report = ingest.update_changed(Call(mind), self._refused_in(root))
            for file in report.files if report else ():
                if file.refusal:
                    message = "%s: %s was not ingested again: %s"
                    log.warning(message, root, file.path, file.refusal)
                elif not file.is_known:
                    log.info("%s: %s was ingested again", root, file.path)

    def _refused_in(self, root: Path) -> dict[str, ingest.Attempt]:
        """Returns the files that can't be ingested again, with the current settings."""
        config = self._projects[root].config
        if root not in self._refused or self._refused[root][0] is not config:
            self._refused[root] = (config, {})
        return self._refused[root][1]

    def is_blind(self) -> bool:
        """Returns whether changes are not reported at present."""
        return self._blind.is_set()

    def _refresh(self, root: Path, paths: Sequence[str] = ()) -> bool:
        """Refreshes a project; returns whether comparing the changed `paths` was enough."""
        is_enough = False
        with _logged(root), self._encoding.pausing():
            mind = self._projects[root]
            changed = refresh.refresh_changed(Call(mind), paths) if paths else None
            done = refresh.refresh(Call(mind)) if changed is None else changed
            if count := done.added + done.changed + done.removed:
                log.info("%s: %s files indexed", root, count)
                self._unread.add(root)
            if not done.is_whole:
                self._unsettled[root] = time.monotonic() + _SETTLE_SECONDS
            is_enough = changed is not None
        if len(self._projects) > _STAY_OPEN:
            self._projects[root].close()  # Its next use opens it again.
        return is_enough

    def _unread_minds(self) -> Iterator[Mind]:
        """Yields the projects that may lack vectors, each opened for the thread that makes them."""
        while self._unread:
            mind = self._projects.get(self._unread.pop())
            if mind is not None:
                with closing(mind.reopened()) as opened:
                    yield opened

    def _refresh_user(self) -> None:
        """Refreshes the user's memory for all projects; commands do so too, but not hooks."""
        if self._user:
            with _logged(self._user.project.root):
                refresh.refresh(Call(self._user))

    def _end_session(self, root: Path) -> None:
        """Ends the session in a project, which writes the notes for agents."""
        del self.active[root]
        log.info("%s: a session has ended", root)
        with _logged(root, "the notes for agents were not written: "):
            mind = self._projects[root]
            mind.check_format()
            tool, writes = "mind_context_write", Operation.WRITE
            request = Request(tool=tool, operation=writes, agent=ingest.DAEMON, at=mind.now())
            mind.guard.authorise(request)
            written = files.write_untracked(Call(mind))
            if written:
                mind.guard.record(request, Ending())
            for name, result in written.items():
                if isinstance(result, MindError):
                    log.warning("%s: no notes written to %s: %s", root, name, result.message)
                elif result.changed:
                    log.info("%s: notes written to %s", root, name)
            if written and (reason := disclosure.left_out(Call(mind))):
                log.info("%s: %s", root, reason)

    def _restart_watching(self) -> None:
        """Starts a thread that watches folders recursively, and one for the entries of others."""
        self._blind.set()
        self._blind = threading.Event()
        self._unsettled = dict.fromkeys(self._projects, time.monotonic() + _SETTLE_SECONDS)
        self._watched = deep = self._deep()
        # Changes of their entries show activity.
        flat = [folder for root in self._projects for folder in (root, root / ".git")]
        flat = [self._mind.home, *(folder for folder in flat if folder.is_dir())]
        for folders, recursive in ((deep, True), (flat, False)):
            if folders:
                threading.Thread(
                    target=self._wait, args=(folders, recursive, self._blind), daemon=True
                ).start()

    def _deep(self) -> list[Path]:
        """Returns the folders that are watched recursively."""
        minds = (*self._projects.values(), *((self._user,) if self._user else ()))
        return [folder for mind in minds for folder in _memory_folders(mind)]

    def _wait(self, folders: Sequence[Path], recursive: bool, stop: threading.Event) -> None:
        """Reports changes, in a thread of its own; if that fails, `check` begins again."""
        try:
            for changed in watch.changes(folders, stop=stop, recursive=recursive):
                if stop.is_set():
                    return
                if changed:
                    self._events.put(changed)
        except FileNotFoundError:  # A folder was removed since they were listed.
            pass
        except (OSError, RuntimeError) as error:
            log.warning("changes are not watched: %s", error)
        stop.set()


@contextmanager
def _logged(root: Path, failure: str = "") -> Iterator[None]:
    """Logs an error, so that one project does not end the daemon."""
    try:
        yield
    except (MindError, OSError) as error:
        log.warning("%s: %s%s", root, failure, error)


def _memory_folders(mind: Mind) -> list[Path]:
    """Returns the folders with memories of a project, which are watched recursively."""
    folders = mind.store.folders()
    # One that can't be looked up now counts as missing.
    return [each for each in folders if os.path.isdir(each)] or [mind.folder]  # noqa: PTH112


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)


def start(mind: Mind) -> tuple[Running, bool]:
    """Starts a daemon in the background; returns it, and whether it was running already.

    Raises `StorageFailed` with the end of its log if it stops at once.
    """
    if current := daemon.running(mind.home):
        return current, True
    process = _detached(mind)

    def has_started() -> bool:
        current = daemon.running(mind.home)
        return current is not None and current.started is not None

    if _until(lambda: has_started() or process.poll() is not None):
        if current := daemon.running(mind.home):
            process.returncode = 0  # It continues after us: no wait, and no warning about a leak.
            return current, False
        reason = "; ".join(daemon.newest(Call(mind), 3)) or f"exit status {process.returncode}"
        raise StorageFailed(
            f"the daemon stopped at once: {reason}", hint=Hint("see ", Command("daemon logs"))
        )
    process.kill()
    raise StorageFailed(
        "the daemon did not start in time", hint=Hint("see ", Command("daemon logs"))
    )


def stop(mind: Mind) -> Running:
    """Stops the daemon and returns its last state.

    Raises `DaemonNotRunning`, and `StorageFailed` if it does not stop.
    """
    current = daemon.running(mind.home)
    if current is None:
        raise DaemonNotRunning(
            "the daemon is not running", hint=Hint(Command("daemon start"), " starts it")
        )
    try:
        os.kill(current.pid, signal.SIGTERM)
    except ProcessLookupError:
        return current
    except PermissionError as error:
        raise StorageFailed(f"process {current.pid} belongs to another user") from error
    if not _until(lambda: daemon.running(mind.home) is None):
        raise StorageFailed(
            f"process {current.pid} does not stop", hint=f"stop it with `kill -9 {current.pid}`"
        )
    return current


def run(call: Call) -> None:
    """Runs the daemon until a signal stops it. Raises `StorageFailed` if another one runs."""
    mind = call.mind
    if current := daemon.running(mind.home):
        raise StorageFailed(
            f"a daemon is already running as process {current.pid}",
            hint=Hint(Command("daemon stop"), " stops it"),
        )
    if call.console.ask and call.console.show_line:  # On a terminal.
        about = "the daemon runs until Ctrl-C; `mind daemon start` starts it in the background"
        call.console.show_line(about)
    installation.keep()
    with daemon.held(mind.home), _logging(mind):
        # Without a project of its own: projects may be registered and removed while it runs.
        everywhere = Mind(home=mind.home, project=None, clock=mind.clock, environ=mind.environ)
        loop = Loop(everywhere, call.console.answers)
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
    logs = logging.getLogger("mind")
    logs.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        logs.removeHandler(handler)
        handler.close()


def _until(holds: Callable[[], bool]) -> bool:
    """Returns whether a condition came true within `_PATIENCE_SECONDS`."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(_PAUSE_SECONDS)
    return holds()
