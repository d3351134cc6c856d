"""How long a run may go on, and what stops it: every wait of a run is one of these."""

import threading
from collections.abc import Callable
from typing import TypeVar

from mimo.surroundings import Timer

T = TypeVar("T")

SLICE = 0.05
"""Seconds after which anything that waits looks whether it shall stop."""


class Stopped(Exception):
    """Somebody wants the run to stop; the text says why."""


class Expired(Exception):
    """The time of the whole run is over."""


class TimedOut(Exception):
    """The time of one action is over."""


class Pace:
    """The time that one run takes."""

    def __init__(
        self, timer: Timer, *, spent_ms: int, limit_ms: int, stopped: Callable[[], str | None]
    ) -> None:
        """Start counting from what earlier processes have spent; no change of state starts anew."""
        self._timer = timer
        self._begun = timer.monotonic() - spent_ms / 1000
        self._limit_ms = limit_ms
        self._stopped = stopped

    @property
    def at(self) -> int:
        """Returns the milliseconds that the run has taken."""
        return int((self._timer.monotonic() - self._begun) * 1000)

    def check(self) -> None:
        """Raises `Stopped` or `Expired` where the run can't go on."""
        if (reason := self._stopped()) is not None:
            raise Stopped(reason)
        if self.at >= self._limit_ms:
            raise Expired

    def pause(self, seconds: float) -> None:
        """Waits. Raises as `check` does, as soon as it is so."""
        until = self._timer.monotonic() + seconds
        self.check()
        while (left := until - self._timer.monotonic()) > 0:
            self._timer.sleep(min(left, SLICE))
            self.check()

    def deadline(self, milliseconds: int | None) -> Callable[[], bool]:
        """Returns what tells whether so many milliseconds from now are over."""
        if milliseconds is None:
            return lambda: False
        until = self._timer.monotonic() + milliseconds / 1000
        return lambda: self._timer.monotonic() >= until

    def within(
        self, milliseconds: int | None, work: Callable[[], T], stop: Callable[[], None]
    ) -> T:
        """Returns what `work` does in a thread of its own.

        Raises what it raises, `TimedOut` after so many milliseconds, and as `check` does; `stop`
        is called then, and what can't be stopped is left to itself.
        """
        done = threading.Event()
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
                errors.append(error)
            finally:
                done.set()

        over = self.deadline(milliseconds)
        threading.Thread(target=run, name="mind-action", daemon=True).start()
        try:
            while not done.wait(SLICE):
                self.check()
                _refuse_late(over)
        except BaseException:
            stop()
            raise
        if errors:
            raise errors[0]
        return results[0]


def _refuse_late(over: Callable[[], bool]) -> None:
    if over():
        raise TimedOut
