"""Whether anything changed below some folders since it was last settled: for long-lived processes.

The system notes changes as they happen (inotify, FSEvents); asking costs a millisecond or two and
nothing runs in between. Some file systems, network ones above all, tell nothing, so silence is
taken for peace for a short time only.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_OWN = frozenset({".index", ".local"})
"""Folders of `.mind/` in which mind itself works all the time."""

_TRUSTED_SECONDS = 5.0

_LONGEST_SLEEP_MS = 5_000
"""A thread that waits for changes looks up so often whether it shall stop."""


def changes(
    folders: Sequence[Path], *, stop: threading.Event, recursive: bool
) -> Iterator[frozenset[Path]]:
    """Yields the paths that changed below the folders, gathered over a tenth of a second or so.

    Sleeps in between and ends soon after `stop` is set. Raises `OSError` where the system can't
    watch so much, and `RuntimeError` where it can't watch at all.
    """
    from watchfiles import watch

    for found in watch(
        *folders,
        watch_filter=lambda _, path: _counts(path),
        debounce=100,
        step=50,
        rust_timeout=_LONGEST_SLEEP_MS,
        stop_event=stop,
        recursive=recursive,
        ignore_permission_denied=True,
        raise_interrupt=False,
    ):
        yield frozenset(Path(path) for _, path in found)


class Watch:
    """Notes changes below folders; may be used by several threads."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Take the folders; watching begins with the first question."""
        self._folders = tuple(folders)
        self._lock = threading.Lock()
        self._changes: Iterator[Any] | None = None
        self._dirty = True
        self._settled_at = 0.0

    def changed(self) -> bool:
        """Returns whether something may have changed since it was last settled."""
        with self._lock:
            try:
                told = self._next()
                self._dirty = any(_counts(path) for _, path in told) or self._dirty
            except (OSError, RuntimeError, StopIteration):
                self._changes, self._dirty = None, True
            return self._dirty or time.monotonic() - self._settled_at >= _TRUSTED_SECONDS

    def settle(self) -> None:
        """Takes note that whatever was told of has been looked at."""
        self._dirty, self._settled_at = False, time.monotonic()

    def unsettle(self) -> None:
        """Lets the next question be answered with yes."""
        self._dirty = True

    def close(self) -> None:
        """Stops watching."""
        with self._lock, suppress(AttributeError):
            self._changes.close()  # type: ignore[union-attr]
            self._changes = None

    def _next(self) -> Any:
        from watchfiles import watch

        if self._changes is None:
            self._changes = watch(
                *self._folders,
                # Told of nothing but our own writes, it would wait once more for another change.
                watch_filter=None,
                debounce=1,
                step=1,
                rust_timeout=1,
                yield_on_timeout=True,
                raise_interrupt=False,
            )
        return next(self._changes)


def _counts(path: str) -> bool:
    """Returns whether a change there is of memory, and not what we keep for ourselves."""
    return _OWN.isdisjoint(Path(path).parts)
