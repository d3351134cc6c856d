"""Keeping the index in step with the files.

The index is imported where it is asked: what completes a command line loads all this and never is.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from mimo.domain.memory import Problem
from mimo.domain.stamp import Stamp
from mimo.errors import MindError, StorageFailed
from mimo.frozen import frozen
from mimo.index.change import Change
from mimo.mind import Mind
from mimo.store.walk import newest_folder

if TYPE_CHECKING:
    from mimo.index.index import Index

Answer = TypeVar("Answer")

_FINE_GRAIN_NS, _COARSE_GRAIN_NS, _SECOND_NS = 20_000_000, 2_000_000_000, 1_000_000_000
"""Within the grain of a file system's clock a second change leaves no trace in the stamp, so a
file that changed this shortly before it was looked at is read again. Kernels count in steps of up
to 10 ms; the coarsest file systems, which show by their whole seconds, in steps of 2 s."""


@frozen
class Refreshed:
    """What a refresh found to do, in files."""

    added: int = 0
    changed: int = 0
    removed: int = 0


def refresh(mind: Mind) -> Refreshed:
    """Brings the index up to date with the files and returns what changed.

    An index that turns out to be damaged is made anew. Where it can't be kept on disk at all, it
    is made in memory and `mind.notice` says so: search always answers.
    """
    from mimo.index.index import Index, IndexDamaged

    if mind.watched and not mind.watched.changed():
        return Refreshed()
    try:
        try:
            return _bring_up_to_date(mind)
        except IndexDamaged:
            return _bring_up_to_date(mind)
    except StorageFailed as error:
        notice = f"the index could not be used ({error.message}); the files were read instead"
        mind.use_index(Index.in_memory(mind.embedder), notice=notice)
        return _bring_up_to_date(mind)


def ask(mind: Mind, question: "Callable[[Index], Answer]") -> Answer:
    """Returns what an up-to-date index answers; one that is found damaged meanwhile is mended."""
    from mimo.index.index import IndexDamaged

    refresh(mind)
    try:
        return question(mind.index)
    except IndexDamaged:
        _unsettle(mind)
        refresh(mind)
    try:
        return question(mind.index)
    except IndexDamaged as error:
        # An index that was just rebuilt is not damaged again: the fault is in the question.
        if isinstance(error.__cause__, sqlite3.Error | OSError | None):
            raise
        raise error.__cause__ from None


def glance(mind: Mind, question: "Callable[[Index], Answer]") -> Answer:
    """Returns what an index answers that has seen files come and go, but not each one's change.

    Where there are thousands of files that is a tenth of the price of `ask`.
    """
    seen = mind.index.changed_at()
    if mind.watched or seen is None or newest_folder(mind.project.root) > seen.timestamp():
        return ask(mind, question)
    return question(mind.index)


def rebuild(mind: Mind) -> Refreshed:
    """Forgets the index and makes it anew from the files."""
    mind.index.clear()
    _unsettle(mind)
    return refresh(mind)


def note_change(mind: Mind, *paths: str) -> None:
    """Takes files that mind itself has just written or removed into the index.

    They are safe by then, so a failing index is no error: the next refresh catches up.
    """
    if mind.config["autocommit"]:
        from mimo.services.autocommit import later

        later(mind)
    stamps = {path: mind.store.stamp(path) for path in paths}
    gone = [path for path, stamp in stamps.items() if stamp is None]
    there = {path: stamp for path, stamp in stamps.items() if stamp is not None}
    try:
        mind.index.apply(_changes(mind, gone, list(there), there), now_ns=time.time_ns())
    except MindError:
        return


def problems(mind: Mind) -> tuple[Problem, ...]:
    """Returns every file that could not be read as a memory at the last refresh, and why."""
    return (*mind.store.problems(), *mind.index.problems())


def _unsettle(mind: Mind) -> None:
    """Lets the next refresh look at the files, whatever the system told."""
    if mind.watched:
        mind.watched.unsettle()


def _bring_up_to_date(mind: Mind) -> Refreshed:
    now_ns = time.time_ns()
    on_disk, known = mind.store.stamps(), mind.index.stamps()
    gone = [path for path in known if path not in on_disk]
    stale = [path for path, stamp in on_disk.items() if _is_stale(stamp, known.get(path))]
    if gone or stale:
        mind.index.apply(_changes(mind, gone, stale, on_disk), now_ns=now_ns)
    if mind.watched:
        mind.watched.settle()
    added = sum(path not in known for path in stale)
    return Refreshed(added=added, changed=len(stale) - added, removed=len(gone))


def _is_stale(stamp: Stamp, known: tuple[Stamp, int] | None) -> bool:
    if known is None or stamp != known[0]:
        return True
    touched_ns = max(stamp.mtime_ns, stamp.ctime_ns)
    age_ns = known[1] - touched_ns
    if age_ns > _COARSE_GRAIN_NS:
        return False
    return age_ns <= (_FINE_GRAIN_NS if touched_ns % _SECOND_NS else _COARSE_GRAIN_NS)


def _changes(
    mind: Mind, gone: list[str], stale: list[str], stamps: dict[str, Stamp]
) -> Iterator[Change]:
    for path in gone:
        yield Change(path=path, stamp=None, records=(), problem=None)
    for done, path in enumerate(stale, 1):
        yield _change(mind, path, stamps[path])
        if mind.progress:
            mind.progress("Indexing", done, len(stale))


def _change(mind: Mind, path: str, stamp: Stamp) -> Change:
    found = mind.store.read(path)
    if isinstance(found, Problem):
        return Change(path=path, stamp=stamp, records=(), problem=found)
    return Change(path=path, stamp=stamp, records=found, problem=None)
