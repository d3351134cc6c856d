"""Keeping the index in step with the files.

The index is imported where it is asked: what completes a command line loads all this and never is.
"""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from mimo.disk import Stamp
from mimo.errors import MindError, StorageFailed
from mimo.frozen import frozen
from mimo.index.rows import Change
from mimo.memory.model import Problem
from mimo.mind import Mind
from mimo.store.walk import newest_folder

if TYPE_CHECKING:
    from mimo.index.index import Index

Answer = TypeVar("Answer")

_FINE_GRAIN_NS, _COARSE_GRAIN_NS, _SECOND_NS = 20_000_000, 2_000_000_000, 1_000_000_000
"""Within the grain of a file system's clock a second change leaves no trace in the stamp, so a
file that changed this shortly before it was looked at is read again. Kernels count in steps of up
to 10 ms; the coarsest file systems, which show by their whole seconds, in steps of 2 s."""


_WAIT_SECONDS = 1.0
"""How long a command waits for another process that is writing the index."""

_FEW = 200
"""So many changed files, or fewer, are indexed without asking whether another process does."""

_PAUSE_SECONDS = 0.05


@frozen
class Refreshed:
    """What a refresh found to do, in files."""

    added: int = 0
    changed: int = 0
    removed: int = 0


def refresh(mind: Mind) -> Refreshed:
    """Brings the index up to date with the files and returns what changed.

    A damaged index is rebuilt. If it can't be kept on disk at all, it is made in memory and
    `mind.notice` says so: search always answers. If another process is writing the index, what is
    committed stays the answer and `mind.notice` says how many files are missing.
    """
    from mimo.index.database import IndexDamaged
    from mimo.index.index import Index

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
    """Returns what an up-to-date index answers."""
    refresh(mind)
    return question(mind.index)


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
        from mimo.operations.autocommit import later

        later(mind)
    stamps = {path: mind.store.stamp(path) for path in paths}
    gone = [path for path, stamp in stamps.items() if stamp is None]
    there = {path: stamp for path, stamp in stamps.items() if stamp is not None}
    try:
        changes = _Changes(mind, gone, list(there), there)
        mind.index.apply(changes, now_ns=time.time_ns(), wait=_WAIT_SECONDS)
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
    mind.index.mend = lambda: _mend(mind)
    now_ns = time.time_ns()
    on_disk, known = mind.store.stamps(), mind.index.stamps()
    if mind.index.lacks_vectors:
        mind.note("vectors", "found by words where another process has yet to make the vectors")
    else:
        mind.note("vectors", None)
    gone = [path for path in known if path not in on_disk]
    stale = [path for path, stamp in on_disk.items() if _is_stale(stamp, known.get(path))]
    if (gone or stale) and not _written(mind, _Changes(mind, gone, stale, on_disk), now_ns):
        count = len(gone) + len(stale)
        files = "1 file is" if count == 1 else f"{count:,} files are"
        mind.note("pending", f"{files} not indexed yet: another process is writing the index")
        return Refreshed()
    mind.note("pending", None)
    if mind.watched:
        mind.watched.settle()
    added = sum(path not in known for path in stale)
    return Refreshed(added=added, changed=len(stale) - added, removed=len(gone))


def _mend(mind: Mind) -> None:
    _unsettle(mind)
    refresh(mind)


def _written(mind: Mind, changes: "_Changes", now_ns: int) -> bool:
    """Returns whether the changes were written; not if another process keeps us from it.

    Long work has one process at a time. Raises `IndexNotReady` if that process makes the first
    index, and has nothing committed after 10 s.
    """
    from mimo.index.database import WRITE_WAIT_SECONDS, IndexBusy, not_ready

    deadline = mind.timer.monotonic() + WRITE_WAIT_SECONDS
    try:
        if len(changes) <= _FEW:
            wait = 0.0 if mind.noted("pending") else _WAIT_SECONDS
            mind.index.apply(changes, now_ns=now_ns, wait=wait)
            return True
        while True:
            with mind.index.turn() as ours:
                if ours:
                    mind.index.apply(changes, now_ns=now_ns)
                    return True
            mind.index.keep()
            if mind.index.changed_at() is not None:
                return False
            if mind.timer.monotonic() > deadline:
                raise not_ready()
            mind.timer.sleep(_PAUSE_SECONDS)
    except IndexBusy:
        mind.index.keep()
        return False


def _is_stale(stamp: Stamp, known: tuple[Stamp, int] | None) -> bool:
    if known is None or stamp != known[0]:
        return True
    touched_ns = max(stamp.mtime_ns, stamp.ctime_ns)
    age_ns = known[1] - touched_ns
    if age_ns > _COARSE_GRAIN_NS:
        return False
    return age_ns <= (_FINE_GRAIN_NS if touched_ns % _SECOND_NS else _COARSE_GRAIN_NS)


class _Changes:
    """What differs between the files and the index; each iteration reads the files again."""

    def __init__(
        self, mind: Mind, gone: list[str], stale: list[str], stamps: dict[str, Stamp]
    ) -> None:
        self._mind, self._gone, self._stale, self._stamps = mind, gone, stale, stamps

    def __len__(self) -> int:
        return len(self._gone) + len(self._stale)

    def __iter__(self) -> Iterator[Change]:
        for path in self._gone:
            yield Change(path=path, stamp=None, records=(), problem=None)
        for done, path in enumerate(self._stale, 1):
            yield _change(self._mind, path, self._stamps[path])
            self._mind.advance("Indexing", done, len(self._stale))


def _change(mind: Mind, path: str, stamp: Stamp) -> Change:
    found = mind.store.read(path)
    if isinstance(found, Problem):
        return Change(path=path, stamp=stamp, records=(), problem=found)
    return Change(path=path, stamp=stamp, records=found, problem=None)
