"""Watching folders for changes, for processes that run longer than one command.

The system reports changes. Asking takes microseconds on Linux, and a millisecond or two elsewhere.
Some file systems, above all on networks, report nothing, so the answer "unchanged" is valid for
seconds only.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from _thread import allocate_lock
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.disk import STORE
from mimo.frozen import NamedTuple

if TYPE_CHECKING:
    import threading

    from mimo.store.inotify import Changes

_OWN = frozenset({(STORE, ".index"), (STORE, ".local")})
"""Folders in which mind itself writes all the time, each with the one above it."""
_TRUSTED_SECONDS = 5.0
"""Maximum time for which an unchanged answer is valid."""
_TRUSTED_LOCALLY_SECONDS = 300.0
"""The same on a local file system, where every change is reported."""
_LOCAL = frozenset("ext2 ext3 ext4 xfs btrfs f2fs zfs bcachefs tmpfs".split())
"""Types of file systems that report changes by any process of this machine, and have no others."""
_MOUNTS = "/proc/self/mountinfo"
_LIMITS = (errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""The errors if the system can't watch more folders."""
_AGAIN_SECONDS = 60.0
"""The time after which the system is asked again to watch them."""
_MOST_PATHS = 1_000
"""Maximum number of changed paths that are looked at one by one."""
_LONGEST_SLEEP_MS = 5_000
"""Time after which a watching thread checks whether it should stop."""


def changes(
    folders: Sequence[Path], *, stop: threading.Event, recursive: bool
) -> Iterator[frozenset[Path]]:
    """Yields sets of paths that changed below the folders within about a tenth of a second.

    Sleeps in between, yields an empty set if nothing has changed for some seconds, and ends soon
    after `stop` is set. Raises `OSError` if there are too many files to watch, and `RuntimeError`
    if the system can't watch files.
    """
    from watchfiles import watch

    def batches(*, skips_unreadable: bool) -> Iterator[frozenset[Path]]:
        for batch in watch(
            *folders,
            watch_filter=lambda _, path: _counts(path),
            debounce=100,
            step=50,
            rust_timeout=_LONGEST_SLEEP_MS,
            yield_on_timeout=True,
            stop_event=stop,
            recursive=recursive,
            ignore_permission_denied=skips_unreadable,
            raise_interrupt=False,
        ):
            yield frozenset(Path(path) for _, path in batch)

    try:
        yield from batches(skips_unreadable=False)
    except PermissionError:
        # Only if there is an unreadable folder: this ignores a reached limit of watches, too.
        yield from batches(skips_unreadable=True)


class Pending(NamedTuple):
    """Changes that were reported and are not handled yet."""

    paths: tuple[str, ...] | None
    """The changed paths; None if any file may have changed."""
    mark: int
    """The number of the last report."""


class Watch:
    """Notices changes below folders; may be used by several threads."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Takes the folders; watching begins with the first call of `changed`."""
        self._folders = tuple(folders)
        self._lock = allocate_lock()
        self._changes: Changes | _Reported | None = None
        self.is_closed = False
        """True if the folders are not watched any more."""
        self._reports = 0
        self._since = 0
        """The number of the first report of `_changes`."""
        self._paths: dict[str, int] = {}
        """The changed paths, each with the number of its last report."""
        self._lost: int | None = 0
        """The number of the last report that any file may have changed; None for none."""
        self._settled_at = 0.0
        self._valid_seconds = 0.0
        self._failed_at: float | None = None
        """The time at which watching last failed; None if it never did."""

    def changed(self) -> bool:
        """Returns whether a file may have changed since the last `settle`."""
        return self.pending().paths != ()

    def pending(self) -> Pending:
        """Returns the changes since the last `settle`."""
        with self._lock:
            self._reports += 1
            try:
                paths = filter(_counts, self._next())
                self._paths.update(dict.fromkeys(paths, self._reports))
            except (OSError, RuntimeError, StopIteration) as error:
                self._close()
                self._lost = self._reports
                if getattr(error, "errno", None) in _LIMITS:
                    self._fail(error)
            is_valid = time.monotonic() - self._settled_at < self._valid_seconds
            are_few = self._lost is None and len(self._paths) <= _MOST_PATHS
            return Pending(tuple(self._paths) if is_valid and are_few else None, self._reports)

    def settle(self, mark: int | None = None, *, compared: bool = True) -> None:
        """Marks the changes reported up to `mark` (default: all) as handled.

        If all files were `compared`, that is valid for minutes on a local file system. If threads
        report the changes, files in a new folder may be created before that is watched: then, after
        a change, it is valid for seconds.
        """
        with self._lock:
            mark = self._reports if mark is None else mark
            if compared:
                is_exact = self._changes is not None and self._changes.is_exact
                is_complete = is_exact and mark >= self._since
                is_complete = is_complete or (self._lost is None and not self._paths)
                lasts = is_complete and self._is_local
                self._valid_seconds = _TRUSTED_LOCALLY_SECONDS if lasts else _TRUSTED_SECONDS
                self._settled_at = time.monotonic()
                if self._lost is not None and self._lost <= mark:
                    self._lost = None
            self._paths = {path: last for path, last in self._paths.items() if last > mark}

    def unsettle(self) -> None:
        """Makes the next `changed` return True."""
        with self._lock:
            self._reports += 1
            self._lost = self._reports

    def close(self) -> None:
        """Stops watching; from now on, any file may have changed."""
        with self._lock:
            self.is_closed = True
            self._close()

    def _close(self) -> None:
        if self._changes:
            self._changes.close()
            self._changes = None

    def _fail(self, error: BaseException) -> None:
        """Notes that the system can't watch more folders; logs the first time."""
        if self._failed_at is None:
            import logging

            message = "changes can't be watched (%s); comparing the files with each request"
            logging.getLogger("mind.watch").warning(message, error)
        self._failed_at = time.monotonic()

    @cached_property
    def _is_local(self) -> bool:
        """True if all folders are on local file systems; False if that is not clear."""
        types = {}
        with suppress(OSError), open(_MOUNTS, encoding="utf-8") as mounts:  # noqa: PTH123
            for line in mounts:
                before, _, after = line.partition(" - ")
                types[before.split(" ")[2]] = after.split(" ", 1)[0]
        with suppress(OSError):
            devices = [folder.stat().st_dev for folder in self._folders]
            names = [f"{os.major(device)}:{os.minor(device)}" for device in devices]
            return all(types.get(name) in _LOCAL for name in names)
        return False

    def _next(self) -> Iterable[str]:
        """Returns the paths that changed since the last call."""
        if self.is_closed:
            raise OSError("the folders are not watched any more")
        if self._changes is None:
            self._since = self._reports
            since = self._failed_at
            if since is not None and time.monotonic() - since < _AGAIN_SECONDS:
                raise OSError("the folders are not watched again yet")
        if self._changes is None and sys.platform == "linux":
            with suppress(ImportError, AttributeError):
                from mimo.store.inotify import Changes

                self._changes = Changes(self._folders, _counts)
        if self._changes is None:
            self._changes = _Reported(self._folders)
        return self._changes.read()


class _Reported:
    """The changes below folders, as threads of watchfiles collect them."""

    is_exact = False
    """True if nothing is missed once it was read for the first time."""

    def __init__(self, folders: Sequence[Path]) -> None:
        from watchfiles import watch

        self._watch = watch(
            *folders,
            # With a filter, it would wait again after changes that the filter drops.
            watch_filter=None,
            debounce=1,
            step=1,
            rust_timeout=1,
            yield_on_timeout=True,
            raise_interrupt=False,
        )

    def read(self) -> Iterable[str]:
        """Returns the paths that changed since the last call, some milliseconds ago or earlier."""
        return [path for _, path in next(self._watch)]

    def close(self) -> None:
        """Stops watching."""
        self._watch.close()


def _counts(path: str) -> bool:
    """Returns whether a path is outside of mind's own folders."""
    # A `Path` would intern the parts, and Python 3.12 never frees those of a temporary name.
    return _OWN.isdisjoint(pairwise(path.split("/")))
