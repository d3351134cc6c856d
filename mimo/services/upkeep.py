"""Keeping the index in step with the files."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from mimo.domain.memory import Problem
from mimo.domain.stamp import Stamp
from mimo.errors import MindError, StorageFailed
from mimo.index.index import Change, Index
from mimo.mind import Mind

CLOCK_GRAIN_NS = 2_000_000_000
"""A file that changed this shortly before it was last looked at is read again: within the grain
of a file system's clock (2 s on the coarsest), a second change leaves no trace in the stamp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What a refresh found to do, in files."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    notice: str | None = None
    """Says so where the index could not be kept on disk."""

    @property
    def touched(self) -> int:
        """Returns how many files were read or forgotten."""
        return self.added + self.changed + self.removed


def refresh(mind: Mind) -> Refreshed:
    """Brings the index up to date with the files and returns what changed.

    Where the index can't be opened or written, it is made in memory instead, and the notice says
    so: search always answers.
    """
    try:
        return _bring_up_to_date(mind)
    except StorageFailed as error:
        mind.use_index(Index.in_memory(mind.embedder))
        found = _bring_up_to_date(mind)
        notice = f"the index could not be used ({error.message}); the files were searched directly"
        return Refreshed(added=found.added, notice=notice)


def rebuild(mind: Mind) -> Refreshed:
    """Forgets the index and makes it anew from the files."""
    mind.index.clear()
    return refresh(mind)


def note_change(mind: Mind, path: str) -> None:
    """Takes one file that mind itself has just written or removed into the index.

    The file is safe by then, so a failing index is no error: the next refresh catches up.
    """
    try:
        stamp = mind.store.stamp(path)
        mind.index.apply([_change(mind, path, stamp)], now_ns=time.time_ns())
    except MindError:
        return


def problems(mind: Mind) -> tuple[Problem, ...]:
    """Returns every file that could not be read as a memory, and why; the index is up to date."""
    return (*mind.store.walk().problems, *mind.index.problems())


def _bring_up_to_date(mind: Mind) -> Refreshed:
    now_ns = time.time_ns()
    on_disk, known = mind.store.stamps(), mind.index.stamps()
    gone = [path for path in known if path not in on_disk]
    stale = [path for path, stamp in on_disk.items() if _is_stale(stamp, known.get(path))]
    if gone or stale:
        mind.index.apply(_changes(mind, gone, stale, on_disk), now_ns=now_ns)
    added = sum(path not in known for path in stale)
    return Refreshed(added=added, changed=len(stale) - added, removed=len(gone))


def _is_stale(stamp: Stamp, known: tuple[Stamp, int] | None) -> bool:
    if known is None:
        return True
    seen, looked_at_ns = known
    return stamp != seen or max(stamp.mtime_ns, stamp.ctime_ns) >= looked_at_ns - CLOCK_GRAIN_NS


def _changes(
    mind: Mind, gone: list[str], stale: list[str], stamps: dict[str, Stamp]
) -> Iterator[Change]:
    for path in gone:
        yield Change(path=path, stamp=None, records=(), problem=None)
    for done, path in enumerate(stale, 1):
        yield _change(mind, path, stamps[path])
        if mind.progress:
            mind.progress("Indexing", done, len(stale))


def _change(mind: Mind, path: str, stamp: Stamp | None) -> Change:
    if stamp is None:
        return Change(path=path, stamp=None, records=(), problem=None)
    found = mind.store.read(path)
    if isinstance(found, Problem):
        return Change(path=path, stamp=stamp, records=(), problem=found)
    return Change(path=path, stamp=stamp, records=found, problem=None)
