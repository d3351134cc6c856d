"""Threads that do the work of the browser, so that the screen never waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Generic, TypeVar

from mimo.api import MindError, fault, frozen

T = TypeVar("T")

Halted = Callable[[], bool]
"""Returns whether the result of the running work is no longer needed."""


@frozen
class Job(Generic[T]):
    """Work for a thread, and the function that gets its result or its error."""

    work: Callable[[Halted], T]
    done: Callable[[T | MindError], None]


class Lane:
    """A thread that works on one job at a time.

    With `latest`, a newer job replaces those that wait, and the result of the running one is
    dropped: answers to a query that has changed are never shown. Otherwise each job is done.
    """

    def __init__(self, name: str, *, latest: bool) -> None:
        """Starts the thread, which does not keep the program alive."""
        self._latest = latest
        self._waiting: deque[Job[object]] = deque()
        self._changed = Condition()
        self._works = False
        self._closed = False
        Thread(target=self._run, name=f"browse {name}", daemon=True).start()

    def put(self, job: Job[T]) -> None:
        """Adds a job."""
        with self._changed:
            if self._latest:
                self._waiting.clear()
            self._waiting.append(job)  # type: ignore[arg-type] # `done` gets the result of `work`
            self._changed.notify_all()

    def drop(self) -> None:
        """Drops the waiting jobs, and the result of the running one."""
        with self._changed:
            self._waiting.clear()
            self._waiting.append(Job(work=lambda _: None, done=lambda _: None))
            self._changed.notify_all()

    @property
    def is_busy(self) -> bool:
        """True if there is work."""
        with self._changed:
            return self._works or bool(self._waiting)

    def close(self, seconds: float) -> None:
        """Drops the waiting jobs and waits for the running one, which is asked to stop."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._works, seconds)

    def _halted(self) -> bool:
        return self._closed or (self._latest and bool(self._waiting))

    def _run(self) -> None:
        while True:
            with self._changed:
                self._works = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                job = self._waiting.popleft()
                self._works = True
            result = _result(job, self._halted)
            if not self._halted():
                job.done(result)


def _result(job: Job[object], halted: Halted) -> object | MindError:
    """Returns the result of a job, or its error."""
    try:
        return job.work(halted)
    except MindError as error:
        return error
    except Exception as error:  # noqa: BLE001 - it would end the thread, and with it the answers
        unexpected = fault(error)
        unexpected.__cause__ = error
        return unexpected
