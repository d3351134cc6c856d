"""Reading memories for their meaning, which makes the vectors of the encoder, and other quiet work.

A search makes a few, and `mind index` makes all. A server and the daemon make them in a thread,
while no call runs; if they are the user's own, they then read transcripts of earlier sessions. No
process is started.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Condition, Thread

from mimo.call import Call
from mimo.data.locks import hold, holding
from mimo.errors import Cancelled, Invalid
from mimo.index.embedding import FAILURES
from mimo.mind import Mind
from mimo.operations.sharing import shared_index, url_of

log = logging.getLogger("mind.encoding")

OFF = "MIND_BACKGROUND"
"""The variable that is `off` if servers make no vectors between calls."""

QUIET_SECONDS = 0.5
"""The time without calls after which a server's thread begins."""

NOTABLE = 40
"""Texts without a vector from which that is stated; of fewer, a search reads most."""

SESSIONS_SECONDS = 60.0
"""The least time between two looks for new transcripts: that of the asking agent always grows."""

_REST = 9
"""The time of rest after some work on battery or a busy machine, as a multiple of that work's."""

_BATTERIES = Path("/sys/class/power_supply")

_PAUSE_SECONDS = 0.2
_WAIT_SECONDS = 2.0
"""The time in which a server's thread finishes the texts that it reads."""


def encode(call: Call, threads: int = 1) -> int:
    """Makes all missing vectors, by some threads, and returns how many memories got some.

    The threads of servers leave the work to this process. Returns 0 if another process like this
    one is doing it.
    """
    call.release()
    descriptor = hold(_lock_file(call.mind), wait=_WAIT_SECONDS)
    if descriptor is None:
        call.note("encoder", "another process is reading the memories for their meaning")
        return 0
    try:
        _fetch(call)
        return call.mind.index.make_meanings(
            lambda done, total: call.advance("Reading for meaning", done, total), threads=threads
        )
    except KeyboardInterrupt as error:
        error.add_note("what was read is kept")
        raise
    finally:
        os.close(descriptor)


def note_missing(call: Call, added: int) -> None:
    """Adds the notice that memories have no vector yet, if a call has added many."""
    if added < NOTABLE:
        return
    with suppress(*FAILURES):
        from mimo.index.search import unread
        from mimo.operations import refresh

        index = refresh.up_to_date(call)
        if missing := index.count_missing_meanings():
            call.note("encoder", unread(missing, index.totals().memories))


def _lock_file(mind: Mind) -> Path:
    """Returns the lock of those who make vectors: `mind index`, or a thread for some texts."""
    return mind.index_folder / "encoding"


def _fetch(call: Call) -> None:
    """Gets vectors that others have made from the shared index, if there is one."""
    if url_of(call.mind):
        with suppress(Invalid):  # No extension has one, as `mind doctor` reports.
            shared_index(call).fetch_vectors(call)


def is_strained(batteries: Path = _BATTERIES) -> bool:
    """Returns True on battery (as Linux states it), or if threads wait for a processor."""
    with suppress(OSError, AttributeError):  # Windows has no average, a machine no battery.
        if os.getloadavg()[0] > (os.cpu_count() or 1):
            return True
        # The battery of a mouse has the scope `Device`.
        scopes = [path for path in batteries.glob("*/scope") if "Device" in path.read_text("ascii")]
        of_devices = {path.parent for path in scopes}
        states = [path for path in batteries.glob("*/status") if path.parent not in of_devices]
        return any("Discharging" in path.read_text("ascii") for path in states)
    return False


class Encoding:
    """A thread of a server that makes missing vectors while no call runs.

    It works for at most half of the time, and on battery or on a busy machine for a tenth of it. A
    lower priority would slow the calls: a thread that the system does not run may hold the lock of
    the interpreter.
    """

    def __init__(self, minds: Callable[[], Iterable[Mind]]) -> None:
        """Takes what returns the memories to work on. The thread starts after the first call."""
        self._minds = minds
        self.sessions: Callable[[], Mind | None] = lambda: None
        """Returns a memory with whose settings transcripts are read; not in a team's server."""
        self._read_at: float | None = None
        """The time at which transcripts were last read."""
        self._state = Condition()
        self._calls = 0
        self._quiet_at = 0.0
        """The time from which the thread may work."""
        self._is_due = False
        """True if a call ended since the thread last looked for missing vectors."""
        self._is_closed = False
        self._thread: Thread | None = None

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Runs the block as a call: the thread waits, and looks for missing vectors afterwards."""
        with self._state:
            self._calls += 1
        try:
            yield
        finally:
            with self._state:
                self._calls -= 1
                self._is_due = True
                self._quiet_at = time.monotonic() + QUIET_SECONDS
                is_off = self._is_closed or os.environ.get(OFF) == "off"
                if self._thread is None and not is_off:
                    self._thread = Thread(target=self._run, name="encoding", daemon=True)
                    self._thread.start()
                self._state.notify_all()

    def close(self) -> None:
        """Ends the thread, which finishes the texts that it reads."""
        with self._state:
            self._is_closed = True
            self._state.notify_all()
            thread, self._thread = self._thread, None
        if thread:
            thread.join(_WAIT_SECONDS)

    def _run(self) -> None:
        with suppress(Cancelled):
            while True:
                self._wait(is_due=True)
                self._work()

    def _work(self) -> None:
        try:
            for mind in self._minds():
                turn = partial(self._turn, _lock_file(mind))
                with turn():
                    _fetch(Call(mind))
                mind.index.make_meanings(lambda *_: None, turn)  # No user sees its progress.
            self._read_sessions()
        except Cancelled:
            raise
        except FAILURES as error:  # The next call tries again.
            log.info("vectors were not made: %s", getattr(error, "message", error))

    def _read_sessions(self) -> None:
        """Reads new transcripts, unless that was done a short time ago."""
        mind, now = self.sessions(), time.monotonic()
        if mind is None or (self._read_at and now - self._read_at < SESSIONS_SECONDS):
            return
        from mimo.operations import earlier

        if sessions := earlier.sessions_of(mind):
            self._read_at = now
            sessions.update(mind, partial(self._turn, mind.home / "cache" / "reading"))

    @contextmanager
    def _turn(self, lock: Path) -> Iterator[None]:
        """Runs the block while no call runs and no process makes vectors of the same memory."""
        while True:
            self._wait()
            with holding(lock) as is_ours:
                if is_ours:
                    began = time.monotonic()
                    yield
                    now = time.monotonic()
                    rest = _REST if is_strained() else 1
                    self._quiet_at = max(self._quiet_at, now + rest * (now - began))
                    return
            with self._state:
                self._state.wait(_PAUSE_SECONDS)

    def _wait(self, *, is_due: bool = False) -> None:
        """Waits until no call runs and none has just ended. Raises `Cancelled` at the end.

        With `is_due`, it also waits for a call since the last time.
        """
        with self._state:
            while not self._is_closed:
                left = self._quiet_at - time.monotonic()
                if not self._calls and left <= 0 and (self._is_due or not is_due):
                    self._is_due = self._is_due and not is_due
                    return
                self._state.wait(left if left > 0 else None)
            raise Cancelled("the server ends")
