"""Watching folders for changes, for processes that run longer than one command.

The system reports changes to threads of watchfiles. Some file systems, above all on networks,
report nothing, so the answer "unchanged" is valid for seconds only.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.data.disk import STORE
from mimo.frozen import NamedTuple

if TYPE_CHECKING:
    import threading

_OWN_FOLDERS = frozenset({(STORE, ".index"), (STORE, ".local")})
"""Folders in which mind itself writes all the time, each with the one above it."""
_TRUSTED_SECONDS = 5.0
"""Maximum time for which an unchanged answer is valid."""
_TRUSTED_LOCALLY_SECONDS = 300.0
"""The same on a local file system, where every change is reported."""
_LOCAL = frozenset("ext2 ext3 ext4 xfs btrfs f2fs zfs bcachefs tmpfs".split())
"""Types of file systems that report changes by any process of this machine, and have no others."""
_MOUNTS = "/proc/self/mountinfo"
_RETRY_SECONDS = 60.0
"""The time after which a watch that failed is tried again."""
_MOST_PATHS = 1_000
"""Maximum number of changed paths that are compared one by one."""
_REPORT_SECONDS = 0.02
"""Maximum time to wait for reports, which take two milliseconds unless all processors are busy."""
_GROUP_MS = 50
"""Time without another change after which a batch of changes ends."""
_LONGEST_SLEEP_MS = 5_000
"""Time after which an empty batch is yielded."""
_POLL_MS = 3_000
"""Time between two comparisons of the files if the system can't watch them."""
_warned = set[str]()


def changes(
    folders: Sequence[Path], *, stop: threading.Event, recursive: bool
) -> Iterator[frozenset[Path]]:
    """Yields sets of paths that changed below the folders within about a tenth of a second.

    Sleeps in between, yields an empty set if nothing has changed for some seconds, and ends soon
    after `stop` is set. If the system can't watch the folders, such as if its limit of watches is
    reached, their files are compared every few seconds instead. Raises `OSError` if a folder is
    missing.
    """
    from watchfiles import watch

    def batches(
        *, skips_unreadable: bool = False, polls: bool = False
    ) -> Iterator[frozenset[Path]]:
        for batch in watch(
            *folders,
            watch_filter=lambda _, path: _counts(path),
            debounce=2 * _GROUP_MS,
            step=_GROUP_MS,
            rust_timeout=_LONGEST_SLEEP_MS,
            yield_on_timeout=True,
            stop_event=stop,
            recursive=recursive,
            ignore_permission_denied=skips_unreadable,
            force_polling=polls or None,
            poll_delay_ms=_POLL_MS,
        ):
            yield frozenset(Path(path) for _, path in batch)

    try:
        yield from batches()
    except PermissionError:
        # Only if there is an unreadable folder: this ignores a reached limit of watches, too.
        yield from batches(skips_unreadable=True)
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as error:
        _warn(error, "comparing the files every few seconds")
        yield from batches(skips_unreadable=True, polls=True)


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
        self._reports: _Reports | None = None
        self.is_closed = False
        """True if the folders are not watched any more."""
        self._mark = 0
        """The number of times that reports were read."""
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
            self._mark += 1
            if not self._collect():
                self._lost = self._mark
            is_valid = time.monotonic() - self._settled_at < self._valid_seconds
            are_few = self._lost is None and len(self._paths) <= _MOST_PATHS
            return Pending(tuple(self._paths) if is_valid and are_few else None, self._mark)

    def settle(self, mark: int | None = None, *, compared: bool = True) -> None:
        """Marks the changes reported up to `mark` (default: all) as handled.

        If all files were `compared` and no change was reported, that is valid for minutes on a
        local file system. After a change it is valid for seconds, because the system drops reports
        if there are too many at once.
        """
        with self._lock:
            mark = self._mark if mark is None else mark
            if compared:
                lasts = self._lost is None and not self._paths and self._is_local
                self._valid_seconds = _TRUSTED_LOCALLY_SECONDS if lasts else _TRUSTED_SECONDS
                self._settled_at = time.monotonic()
                if self._lost is not None and self._lost <= mark:
                    self._lost = None
            self._paths = {path: number for path, number in self._paths.items() if number > mark}

    def unsettle(self) -> None:
        """Makes the next `changed` return True."""
        with self._lock:
            self._mark += 1
            self._lost = self._mark

    def close(self) -> None:
        """Stops watching; from now on, any file may have changed."""
        with self._lock:
            self.is_closed = True
            self._stop()

    def _stop(self) -> None:
        if self._reports:
            self._reports.close()
            self._reports = None

    def _collect(self) -> bool:
        """Notes the reported paths; returns False if other files may have changed as well."""
        since = self._failed_at
        if self.is_closed or (since is not None and time.monotonic() - since < _RETRY_SECONDS):
            return False
        try:
            if self._reports is None:
                self._reports = _Reports(self._folders)
                return False
            paths, are_all = self._reports.read()
        except (OSError, RuntimeError, StopIteration) as error:
            self._stop()
            if not isinstance(error, FileNotFoundError):
                _warn(error, "comparing the files with each request")
                self._failed_at = time.monotonic()
            return False
        self._paths.update(dict.fromkeys(filter(_counts, paths), self._mark))
        if not paths.isdisjoint(map(os.fspath, self._folders)):
            # The system watches a removed folder no more, even if it comes back.
            self._stop()
            return False
        return are_all

    @cached_property
    def _is_local(self) -> bool:
        """True if all folders are on local file systems; False if that is not clear."""
        types = {}
        with suppress(OSError), open(_MOUNTS, encoding="utf-8") as mounts:  # noqa: PTH123
            for line in mounts:
                head, _, after = line.partition(" - ")
                types[head.split(" ")[2]] = after.split(" ", 1)[0]
        with suppress(OSError):
            devices = [folder.stat().st_dev for folder in self._folders]
            names = [f"{os.major(device)}:{os.minor(device)}" for device in devices]
            return all(types.get(name) in _LOCAL for name in names)
        return False


class _Reports:
    """The changes below folders, as the threads of watchfiles report them."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Begins to watch the folders. Raises `OSError` or `RuntimeError` if that fails."""
        from shutil import rmtree
        from tempfile import gettempdir, mkdtemp
        from weakref import finalize

        from watchfiles import watch

        self._probes = mkdtemp(prefix="mind-", dir=os.path.realpath(gettempdir()))
        self._remove_probes = finalize(self, rmtree, self._probes, ignore_errors=True)
        self._count = 0
        self._changes = watch(
            *folders,
            self._probes,
            # With a filter, it would wait again after changes that the filter drops.
            watch_filter=None,
            debounce=1,
            step=1,
            rust_timeout=1,
            yield_on_timeout=True,
            # It would be the default on WSL; here, old answers are not valid for long.
            force_polling=False,
        )
        next(self._changes)

    def read(self) -> tuple[Set[str], bool]:
        """Returns the paths that changed since the last call, and whether these are all.

        Reports arrive in the order of the changes. So all have arrived when that of a probe has, a
        file that is made for this call.
        """
        self._count += 1
        deadline, probe = time.monotonic() + _REPORT_SECONDS, f"{self._probes}/{self._count}"
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(probe)  # noqa: PTH108 - as it was made
        paths = set[str]()
        while probe not in paths and time.monotonic() < deadline:
            paths.update(path for _, path in next(self._changes))
        are_all = probe in paths
        return {path for path in paths if not path.startswith(self._probes)}, are_all

    def close(self) -> None:
        """Stops watching."""
        self._changes.close()
        self._remove_probes()


def _warn(error: BaseException, instead: str) -> None:
    """Logs, once in a process, that changes can't be watched."""
    if instead not in _warned:
        import logging

        _warned.add(instead)
        logging.getLogger("mind.watch").warning("changes can't be watched (%s); %s", error, instead)


def _counts(path: str) -> bool:
    """Returns whether a path is outside of mind's own folders."""
    # A `Path` would intern the parts, and Python 3.12 never frees those of a temporary name.
    return _OWN_FOLDERS.isdisjoint(pairwise(path.split("/")))
