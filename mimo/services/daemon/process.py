"""Starting and ending the daemon, and being it."""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mimo import disk, permissions
from mimo.errors import DaemonNotRunning, StorageFailed
from mimo.mind import Mind
from mimo.services.daemon import logs
from mimo.services.daemon.loop import Loop
from mimo.store import daemon
from mimo.store.daemon import Running

if TYPE_CHECKING:
    from subprocess import Popen

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
    permissions.make_folder(path.parent)
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
    permissions.make_folder(path.parent)
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
