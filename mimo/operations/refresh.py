"""Keeping the index in step with the files.

The index is imported by the functions that use it: completing a command line loads this module,
but never calls them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from mimo.call import Call
from mimo.data import disk, files
from mimo.data.disk import WAIT_SECONDS, Stamp
from mimo.errors import IndexNotReady, MindError, StorageFailed
from mimo.frozen import frozen
from mimo.index.rows import Change
from mimo.memory.model import Place, Problem, Record
from mimo.project import walk

if TYPE_CHECKING:
    from mimo.index.index import Reader
    from mimo.project.watch import Pending

_WAIT_SECONDS = 1.0
"""The time for which a command waits for another process that is writing the index."""

_FEW = 200
"""Up to this number, changed files are indexed without checking whether another process does so."""

_MANY = 500
"""From this number of files, comparing the digest of their stamps pays."""

_AT_ONCE = 2_000
"""The number of files that are compared at a time; there may be a million."""

_MAX_RECORDS = 50
"""The number of memories of an answer that are compared with their files."""

_LARGE = 1_000_000
"""The size of a file in bytes from which reading it takes longer than the answer."""

_PAUSE_SECONDS = 0.05

_TRIES = 5
"""A file that changes as often while it is indexed is indexed by a process that changes it."""

Stamps = Mapping[str, Stamp] | walk.Files
"""The stamps of files by path."""


@frozen
class Refreshed:
    """The number of files that a refresh indexed."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    is_whole: bool = True
    """False if another process is writing the index, which lacks changes."""


def refresh(call: Call) -> Refreshed:
    """Updates the index from the files and returns the changes.

    A damaged index is rebuilt. If the index can't be kept on disk, it is built in memory, with a
    notice in `call.notice`: search always answers. While another process is writing the index,
    answers come from its last commit, and the notice states the number of missing files.
    """
    from mimo.data.cache import CacheDamaged

    pending = call.mind.watched.pending() if call.mind.watched else None
    try:
        if call.index.is_refreshed:
            return Refreshed()
        call.index.end()
        try:
            done = _update(call, pending)
        except CacheDamaged:
            done = _update(call, pending)
    except StorageFailed as error:
        _use_memory(call, error.message)
        done = _update(call, pending)
    _note_memory(call)
    with suppress(StorageFailed):  # The next refresh tries again.
        call.index.resolve_ids(_WAIT_SECONDS)
    return done


def refresh_changed(call: Call, paths: Sequence[str]) -> Refreshed | None:
    """Updates the index from files in which a change was reported, without reading the others.

    Returns None if that is not enough, and then all must be compared.
    """
    on_disk = call.mind.store.stamps_of(paths)
    if on_disk is None or not call.index.is_compared:
        return None
    now_ns = time.time_ns()
    indexed = call.index.stamps(on_disk.keys())
    present = {path: stamp for path, stamp in on_disk.items() if stamp}
    missing = [path for path in on_disk if path not in present]
    folders = [path for path in missing if path not in indexed]
    if any(map(call.index.has_below, folders)):
        return None
    missing = [path for path in missing if path in indexed]
    return _applied(call, _Changes(call, missing, _stale(present, indexed)), indexed, now_ns)


def up_to_date(call: Call) -> Reader:
    """Returns the index after a refresh.

    All files are compared, also to show one memory: any other may supersede it, compete with it or
    have its id, and an edit in place changes nothing but the file itself.
    """
    refresh(call)
    return call.index


def reread(call: Call, records: Iterable[Record]) -> bool:
    """Indexes the files again that differ from the memories of an answer.

    Returns whether it has done so: the answer must then be made once more. Of many memories, the
    first are compared.
    """
    compared: dict[str, bool] = {}
    for record in islice(records, _MAX_RECORDS):
        place = record.place
        if place.path not in compared:
            compared[place.path] = _differs(call, place)
    if not any(compared.values()):
        return False
    with suppress(StorageFailed):  # The answer is that of the index.
        changed = [path for path, differs in compared.items() if differs]
        _apply(call, _changes_of(call, changed), time.time_ns(), _WAIT_SECONDS)
        return True
    return False


def _differs(call: Call, place: Place) -> bool:
    """Returns whether a file does not have the bytes from which a memory was read.

    The stamp of each file was compared by the refresh before; a large file counts as compared.
    """
    if call.mind.is_past or place.path == walk.COMMITS:
        return False
    try:
        path = f"{call.mind.project.root}/{place.path}"
        data, status = disk.look(path, limit=_LARGE, follow=True)
    except OSError:
        return True
    return status.st_size <= _LARGE and files.digest(data) != place.digest


def refresh_roughly(call: Call) -> None:
    """Refreshes the index if files were added or removed; misses changes within files.

    For thousands of files this takes a tenth of the time of `refresh`.
    """
    if not call.index.is_refreshed:
        call.index.end()
    changed = call.index.changed_at()
    newest = walk.newest_folder(call.mind.project.root)
    # A change in the future was made before the clock was set back.
    if call.mind.watched or changed is None or not newest <= changed.timestamp() <= time.time():
        refresh(call)


def rebuild(call: Call) -> Refreshed:
    """Discards the index, unless another process is building it, and builds it from the files."""
    call.index.end()
    with call.mind.index.turn() as ours:
        if ours:
            call.mind.index.discard()
    done = _scan(call)
    call.mind.index.prune()
    return done


def note_change(call: Call, *paths: str) -> None:
    """Indexes files that mind itself has just written or removed.

    A failing index is not an error: the files are safe, and the next refresh indexes them.
    """
    commit_soon(call)
    try:
        _apply(call, _changes_of(call, paths), time.time_ns(), _WAIT_SECONDS)
    except MindError:
        return


def commit_soon(call: Call) -> None:
    """Schedules a commit of files that mind has just written, if the user turned that on."""
    if call.mind.config["autocommit"] and not call.mind.is_users:
        from mimo.operations.syncing import commit_later

        commit_later(call)


def problems(call: Call) -> tuple[Problem, ...]:
    """Returns the files that could not be read as memories at the last refresh.

    Their reasons may quote them: `disclosure.of_problems` has those that an agent may read.
    """
    return (*call.mind.store.problems(), *call.index.problems())


def _scan(call: Call) -> Refreshed:
    """Refreshes the index and compares all files, even if no change was reported."""
    if call.mind.watched:
        call.mind.watched.unsettle()
    return refresh(call)


def _note_memory(call: Call) -> None:
    """Notes that the index is in memory, where it stays for some minutes."""
    if reason := call.mind.index.in_memory_because:
        notice = f"the index could not be used ({reason}); the files were read instead"
        if call.noted("index") != notice:
            call.mind.use_index(call.mind.index, notice=notice)


def _use_memory(call: Call, reason: str) -> None:
    """Makes the index in memory, where it is empty."""
    from mimo.index.index import Index

    try:
        index = call.mind.index
    except StorageFailed:
        index = Index.in_memory(call.mind.embedder)
        call.mind.use_index(index, notice=None)
    index.leave_disk(reason)
    call.index.end()


def _update(call: Call, pending: Pending | None = None) -> Refreshed:
    # Later calls use it, too, which the caller of this one can't cancel.
    call.mind.index.repair = lambda: _scan(Call(call.mind, call.caller))
    if pending and pending.paths == () and call.index.is_compared:
        return Refreshed()
    if pending and pending.paths and call.mind.watched:
        done = refresh_changed(call, pending.paths)
        if done is not None:
            if done.is_whole:
                call.index.note_refreshed()
                call.mind.watched.settle(pending.mark, compared=False)
            return done
    identity, revision = call.index.begin(), call.index.totals().revision
    now_ns = time.time_ns()
    on_disk = call.mind.store.walk().files
    digest = on_disk.digest if len(on_disk) >= _MANY else b""
    is_same = bool(digest) and call.index.has_all(digest)
    missing, stale, indexed = ([], {}, ()) if is_same else _differences(call, on_disk)
    done = _applied(call, _Changes(call, missing, stale), indexed, now_ns)
    if done.is_whole:
        # What was just written may change again with the same stamp, so it is read once more.
        if digest and not is_same and all(stamp.is_settled(now_ns) for _, stamp in stale.items()):
            # The index has this revision unless others wrote, too, or this wrote several parts.
            call.mind.index.note_digest(identity, digest, revision + bool(missing or stale))
        call.mind.index.note_all_compared(identity)
        call.index.note_refreshed()
        if call.mind.watched:
            call.mind.watched.settle(pending.mark if pending else None)
    return done


def _applied(call: Call, changes: _Changes, indexed: Collection[str], now_ns: int) -> Refreshed:
    """Writes changes to the index; if another process is writing, a notice states their number."""
    if len(changes) and not _write(call, changes, now_ns):
        count = len(changes)
        files = "1 file is" if count == 1 else f"{count:,} files are"
        call.note("pending", f"{files} not indexed yet: another process is writing the index")
        return Refreshed(is_whole=False)
    call.note("pending", None)
    added = sum(path not in indexed for path in changes.stale)
    return Refreshed(added=added, changed=len(changes.stale) - added, removed=len(changes.missing))


def _write(call: Call, changes: _Changes, now_ns: int) -> bool:
    """Writes changes to the index and returns True; False if another process is writing.

    One process at a time does long work. Raises `IndexNotReady` if that process makes the first
    index and has committed nothing after 10 s.
    """
    from mimo.data.cache import CacheBusy

    deadline = call.mind.timer.monotonic() + WAIT_SECONDS
    try:
        if len(changes) <= _FEW:
            wait = 0.0 if call.noted("pending") else _WAIT_SECONDS
            _apply(call, changes, now_ns, wait)
            return True
        while True:
            with call.mind.index.turn() as ours:
                if ours:
                    _apply(call, changes, now_ns, WAIT_SECONDS)
                    return True
            call.index.end()  # The other process may have committed.
            if call.index.changed_at() is not None:
                return False
            if call.mind.timer.monotonic() > deadline:
                raise _not_ready()
            call.mind.timer.sleep(_PAUSE_SECONDS)
    except CacheBusy:
        if call.index.changed_at() is None:
            raise _not_ready() from None
        return False


def _not_ready() -> IndexNotReady:
    return IndexNotReady(
        "another process is still building the index", hint="try again in a few seconds"
    )


def _apply(call: Call, changes: _Changes, now_ns: int, wait: float) -> None:
    """Writes changes to the index, and those again that other processes have overtaken.

    Raises errors as `Index.apply` does.
    """
    call.index.end()
    for _ in range(_TRIES):
        late = call.mind.index.apply(changes, now_ns=now_ns, wait=wait, overtaken=changes.overtaken)
        if not late:
            return
        now_ns, changes = time.time_ns(), _changes_of(call, late)


def _changes_of(call: Call, paths: Iterable[str]) -> _Changes:
    """Returns the changes of files that are written or missing now."""
    missing, written = [], {}
    for path in paths:
        stamp = call.mind.store.stamp(path)
        if stamp is None:
            missing.append(path)
        else:
            written[path] = stamp
    return _Changes(call, missing, written)


def _differences(call: Call, on_disk: walk.Files) -> tuple[list[str], Stamps, Collection[str]]:
    """Returns the missing paths, the stale stamps, and the paths of these that are indexed.

    Some files are compared at a time.
    """
    total = call.index.file_count()
    if not total:
        return [], on_disk, ()
    stale, changed, matched, items = walk.Files(), set[str](), 0, on_disk.items()
    while part := dict(islice(items, _AT_ONCE)):
        indexed = call.index.stamps(part)
        matched += len(indexed)
        different = _stale(part, indexed)
        changed |= different.keys() & indexed.keys()
        for path, stamp in different.items():
            stale.add(path, stamp)
    if matched == total:
        return [], stale, changed
    present = set(on_disk)
    return [path for path in call.index.paths() if path not in present], stale, changed


def _stale(
    on_disk: Mapping[str, Stamp], indexed: Mapping[str, tuple[Stamp, int]]
) -> dict[str, Stamp]:
    """Returns the stamps of the files that are new or may have changed since they were indexed."""
    stale: dict[str, Stamp] = {}
    for path, stamp in on_disk.items():
        entry = indexed.get(path)
        if entry and stamp == entry[0] and stamp.is_settled(entry[1]):
            continue
        stale[path] = stamp
    return stale


class _Changes:
    """The differences between the files and the index; each iteration reads the files again."""

    def __init__(self, call: Call, missing: list[str], stale: Stamps) -> None:
        self._call, self.missing, self.stale = call, missing, stale

    def __len__(self) -> int:
        return len(self.missing) + len(self.stale)

    def overtaken(self, changes: Sequence[Change]) -> frozenset[str]:
        """Returns the paths of the files that have other stamps now than in these changes."""
        late, store = set(), self._call.mind.store
        for change in changes:
            now = store.stamp(change.path)
            if now == change.stamp or change.path == walk.COMMITS:
                continue
            path = f"{store.root}/{change.path}"
            # A file that was missing may not be a memory by the settings.
            if change.stamp or change.path in (store.stamps_of([path]) or ()):
                late.add(change.path)
        return frozenset(late)

    def __iter__(self) -> Iterator[Change]:
        for path in self.missing:
            yield Change(path=path, stamp=None)
        pushed = cache(lambda: _pushed_texts(self._call))
        for done, (path, stamp) in enumerate(self.stale.items(), 1):
            records = self._call.mind.store.read(path)
            if self._call.mind.is_users and not isinstance(records, Problem):
                _approve_user_texts(self._call, records, pushed)
            if isinstance(records, Problem):
                yield Change(path=path, stamp=stamp, problem=records)
            else:
                yield Change(path=path, stamp=stamp, records=records)
            self._call.advance("Indexing", done, len(self.stale))


def _pushed_texts(call: Call) -> frozenset[str]:
    """Returns the texts of the user's memory that another author has pushed to its remote.

    Raises `Invalid` if git can't be asked.
    """
    location = call.mind.trust.location
    if location.common is None or location.inside != ".":
        return frozenset()
    from mimo.project.vouching import Vouching

    return Vouching(location, (), ()).by_others()


def _approve_user_texts(
    call: Call, records: Sequence[Record], pushed: Callable[[], frozenset[str]]
) -> None:
    """Approves the texts in the user's memory for all projects that no agent has signed.

    Mind signs what agents add, and `pushed` returns what another author pushed. The rest is the
    user's own, also if it was edited by hand.
    """
    places = [record.place for record in records if record.memory.by is None]
    with suppress(MindError):
        is_new = places and not call.mind.trust.trusted(*(place.approval for place in places))
        theirs = pushed() if is_new else frozenset[str]()
        paths = {each.approval: each.path for each in places if each.approval not in theirs}
        call.mind.trust.approve(paths, reviewed=paths, paths=paths)
