"""Reading what clients wrote into the store: what is new, masked, once, and under its project.

A growing file is read from where it ended; one that was rewritten, from its start. Nothing is
written there, and no absence of a file removes what was kept of it.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mimo.api import (
    Invalid,
    MindError,
    NamedTuple,
    clean,
    disk,
    frozen,
    locate,
    one_line,
    replace,
    secrets_in,
    without,
)
from mimo.extensions.sessions import store
from mimo.extensions.sessions.model import Facts, Part, Progress, Reader, Role, Source, Turn
from mimo.extensions.sessions.readers.lines import LASTING
from mimo.extensions.sessions.readers.parts import ends_of, was_cut
from mimo.extensions.sessions.store import SourceState, Store

if TYPE_CHECKING:
    from mimo.api import Connection, Finding

QUIET = timedelta(seconds=5)
"""The time after its last change from which a session is read, not to cut a turn in two."""

_EDGE = 4_096
"""The bytes at both ends of what was read that tell a file that grew from one that is new."""

_WORKTREES = ("/.claude/worktrees/", "/.worktrees/", "/.cursor/worktrees/")
"""Places of the worktrees that clients make; a removed one no longer names its repository."""

_STORAGE = (
    *(".claude", ".codex", ".gemini", ".copilot", ".cursor", ".cline"),
    *(".local/share/opencode", ".mind"),
)
"""Folders of clients in the user's home: sessions that work there are of programs."""

_EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
"""No session is older; earlier times are mistakes."""


@frozen
class Selection:
    """The sessions that the user's settings ask for."""

    clients: frozenset[str]
    excluded: tuple[str, ...] = ()
    """Folders whose sessions are left out."""
    keep: timedelta = timedelta(days=730)
    most_bytes: int = 1_000_000_000
    permits: Callable[[str], bool] = lambda project: True
    """Returns whether a project permits that its sessions are kept."""
    removes: Callable[[str], bool] = lambda project: False
    """Returns whether the user approved that a project keeps none, so that kept ones go, too."""
    problem: str = ""
    """The mistake in a setting; until it is corrected, nothing is read or removed."""

    def admits(self, folder: str) -> bool:
        """Returns whether sessions in a folder are kept."""
        return not any(_is_in(folder, excluded) for excluded in self.excluded)


class Read(NamedTuple):
    """The result of a run."""

    sources: int = 0
    """The number of sources that had something new."""
    turns: int = 0
    unreadable: int = 0
    expired: int = 0
    """The number of sessions that were removed: too old, or the oldest of too many."""
    removed: int = 0
    """The number of those that the settings or their project no longer want."""


class _Pending(NamedTuple):
    """A source that is new or changed."""

    reader: Reader
    source: Source
    state: SourceState | None


class Reading:
    """One run over the clients' files."""

    def __init__(
        self,
        store: Store,
        readers: Sequence[Reader],
        selection: Selection,
        environment: Mapping[str, str],
        home: Path,
        now: datetime,
    ) -> None:
        """Takes the user's home folder, in which the clients write; nothing is read yet."""
        self._store, self._readers, self._selection = store, readers, selection
        self._environment, self._home, self._now = environment, home, now
        self._projects: dict[str, str] = {}
        self._present: set[tuple[str, str]] = set()

    def run(
        self,
        advance: Callable[[int, int], object] = lambda done, total: None,
        wait: Callable[[], object] | None = None,
    ) -> Read:
        """Reads all that is new, and returns how much that was.

        The known and then the oldest are first, so that a session has its turns, and not a later
        fork of it. `advance` gets the number of sources done and of all, and may raise to stop, as
        may `wait`, which is called while another process reads. Raises `StorageFailed`, without
        `wait` also for such a process, and `Invalid` for settings with a mistake.
        """
        if self._selection.problem:
            raise Invalid(self._selection.problem, hint="correct it: nothing is read until then")
        with self._store.exclusive(wait):
            total = Read(removed=self._remove_unselected())
            pending = [item for reader in self._readers for item in self._look(reader, notes=True)]
            pending.sort(
                key=lambda item: (item.state is None, item.source.mtime_ns, item.source.path)
            )
            for done, item in enumerate(pending):
                advance(done, len(pending))
                total = _sum(total, self._take(item))
            advance(len(pending), len(pending))
            return _sum(total, Read(expired=self._remove_outdated()))

    def behind(self) -> int:
        """Returns the number of sources that have something new; none is opened."""
        return sum(len(self._look(reader)) for reader in self._readers)

    def _look(self, reader: Reader, *, notes: bool = False) -> list[_Pending]:
        """Returns the sources that are new or changed, by their states alone.

        With `notes`, the missing ones are noted, and those with a problem are tried again unless it
        is one of an unchanged content.
        """
        if reader.client not in self._selection.clients:
            return []
        with self._store.reading() as sql:
            states = store.source_states(sql, reader.client)
            ids = {item.native_id for item in states.values()}
            forgotten = store.forgotten(sql, reader.client, ids)
        present: dict[tuple[str, str], Source] = {}
        try:
            for source in reader.sources(self._environment, self._home):
                present[store.place_of(source)] = source
        except (OSError, sqlite3.Error):
            notes = False
        self._present |= present.keys()
        if notes and present:  # Without any, a folder or a disk is missing.
            self._note_missing([item for place, item in states.items() if place not in present])
        pending = []
        for place, source in present.items():
            item = states.get(place)
            is_same = item and (*item.source[2:],) == (*source[2:],) and not item.missing_since
            is_passing = item and item.problem and not item.problem.startswith(LASTING)
            if is_same and item and not (is_passing and notes) and item.omitted is None:
                continue
            if item and (item.native_id in forgotten or self._is_omitted(item)):
                continue
            if self._is_readable(source):
                pending.append(_Pending(reader, source, item))
        return pending

    def _is_omitted(self, item: SourceState) -> bool:
        """Returns whether a session is still not wanted because of its folder."""
        return item.omitted is not None and not self._accepts(item.omitted)

    def _is_readable(self, source: Source) -> bool:
        """Returns whether a source is quiet, and not too old to be kept."""
        age = self._now.timestamp() - source.mtime_ns / 1e9
        is_quiet = abs(age) >= QUIET.total_seconds()  # A clock elsewhere may be ahead.
        return is_quiet and age < self._selection.keep.total_seconds()

    def _note_missing(self, missing: Sequence[SourceState]) -> None:
        """Notes since when sources are missing; their sessions stay."""
        if new := [item for item in missing if item.missing_since is None]:
            with self._store.writing() as sql:
                for item in new:
                    store.note_source(sql, item._replace(missing_since=self._now))

    def _remove_unselected(self) -> int:
        """Removes the sessions of clients, folders and projects that are no longer wanted."""
        with self._store.reading() as sql:
            sessions = store.sessions(sql)
        removed = [
            session
            for session in sessions
            if session.client not in self._selection.clients
            or not self._admits(session.cwd, session.project)
            or self._selection.removes(session.project)
        ]
        return self._remove(removed, rereads=True)

    def _remove_outdated(self) -> int:
        """Removes the sessions that are too old, and the oldest if all together are too large."""
        since, count = self._now - self._selection.keep, 0
        while True:
            with self._store.reading() as sql:
                removed = store.outdated(sql, since, self._selection.most_bytes)
            if not removed:
                return count
            count += self._remove(removed, rereads=False)

    def _remove(self, removed: Sequence[store.Session], *, rereads: bool) -> int:
        if not removed:
            return 0
        with self._store.writing() as sql:
            return store.forget(sql, removed, marks=False, rereads=rereads)

    def _take(self, item: _Pending) -> Read:
        """Reads one source into the store."""
        intake = _Intake(item)
        parts = intake.parts()
        part = next(parts, None)
        while part is not None and intake.is_open:
            following = next(parts, None)
            self._keep(part, intake, ends=following is None)
            part = following
        if not intake.is_complete:
            with self._store.writing() as sql:
                store.note_source(sql, intake.source_state(is_done=True))
        return intake.read

    def _keep(self, part: Part, intake: _Intake, *, ends: bool) -> None:
        """Stores a part of a session that is wanted, in one transaction."""
        facts = part.facts
        intake.advance(part)
        if not facts.native_id:
            return
        project = self._project_of(facts.repository or facts.cwd)
        for folder in (facts.cwd, project):
            if not self._accepts(folder):
                intake.leave(folder)
                return
        project, facts, turns = self._prepared(project, part)
        with self._store.writing() as sql:
            forgotten = store.forgotten(
                sql, facts.client, [facts.native_id, *(turn.native_id for turn in turns)]
            )
            if facts.native_id in forgotten or not self._is_best(sql, facts, part, intake):
                intake.leave()
                return
            turns = [turn for turn in turns if turn.native_id not in forgotten]
            turns, facts, copies = _without_copies(sql, facts, turns, at_start=part.replaces)
            intake.put(sql, facts, turns, copies, replaces=part.replaces)
            if ends:
                intake.finish(sql, facts, project, self._now)
            store.note_source(sql, intake.source_state(is_done=ends))

    def _is_best(self, sql: Connection, facts: Facts, part: Part, intake: _Intake) -> bool:
        """Returns whether a session is read from this source, and not from a larger copy.

        A source that is missing has moved here.
        """
        if not part.replaces or intake.source.key:
            return True
        sources = store.other_sources(sql, facts, intake.source)
        for state in sources:
            if store.place_of(state.source) not in self._present:
                store.remove_source(sql, state.source)
            elif state.source.size > intake.source.size and not state.problem:
                return False
        return True

    def _prepared(self, project: str, part: Part) -> tuple[str, Facts, list[Turn]]:
        """Returns what is stored of a part: masked, and then cut."""
        latest = self._now + timedelta(days=1)
        roots = {part.facts.cwd, part.facts.repository, project} - {""}
        roots_by_length = sorted((root.rstrip("/") for root in roots), key=len, reverse=True)
        turns = [
            _changed(
                turn,
                at=turn.at if turn.at and _EARLIEST <= turn.at <= latest else None,
                native_id=_stored(turn.native_id)[:200],
                files=tuple(_relative(path, roots_by_length) for path in turn.files),
            )
            for turn in part.turns
        ]
        return _masked(project, part.facts, turns)

    def _accepts(self, cwd: str) -> bool:
        """Returns whether the settings and the project admit the sessions in a folder."""
        project = self._project_of(cwd)
        return self._admits(cwd, project) and self._selection.permits(project)

    def _admits(self, cwd: str, project: str) -> bool:
        """Returns whether the settings admit the sessions in a folder of a project."""
        is_admitted = self._selection.admits(cwd) and self._selection.admits(project)
        return is_admitted and not self._is_of_program(cwd)

    def _is_of_program(self, cwd: str) -> bool:
        """Returns whether a folder is a client's own, or a temporary one."""
        home, temporary = str(self._home), tempfile.gettempdir()
        of_client = any(_is_in(_main(cwd), f"{home}/{name}") for name in _STORAGE)
        return of_client or (_is_in(cwd, temporary) and not _is_in(home, temporary))

    def _project_of(self, folder: str) -> str:
        """Returns the root of the project of a session: the main one of worktrees."""
        if folder not in self._projects:
            self._projects[folder] = project_of(folder)
        return self._projects[folder]


class _Intake:
    """One source that is being read into the store."""

    def __init__(self, item: _Pending) -> None:
        self.reader, self.source, state = item
        self.since = _since(self.source, state)
        previous = state if self.since.offset else None
        self.native_id = state.native_id if state else ""
        self.read = Read(sources=1)
        self.is_open, self.is_complete = True, False
        self._progress = self.since
        self._records = (previous.records, previous.unknown) if previous else (0, 0)
        self._problem = ""
        self._omitted: str | None = None
        self._key: int | None = None
        self._number = self._copies = 0
        self._previous: dict[int, tuple[bytes, str]] = {}
        self._is_changed = False

    def parts(self) -> Iterator[Part]:
        """Yields the parts of the source; a problem ends it. Raises the errors of mind itself."""
        try:
            yield from self.reader.read(self.source, self.since)
        except MindError:
            raise
        except Exception as error:  # noqa: BLE001 - one transcript must not stop the others
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            (text,) = without_secrets([_stored(reason)])
            self._problem = one_line(text)[:200]
            self.read = self.read._replace(unreadable=1)

    def advance(self, part: Part) -> None:
        """Notes how far the source was read."""
        (state,) = without_secrets([_stored(part.progress.state)])  # It may have a title.
        self._progress = part.progress._replace(state=state)
        self.native_id = _stored(part.facts.native_id)
        records, unknown = self._records
        self._records = records + part.records, unknown + part.unknown

    def leave(self, folder: str | None = None) -> None:
        """Ends the reading of a session that is not kept from here, perhaps because of a folder."""
        self._omitted, self._progress, self.is_open = folder, Progress(), False

    def put(
        self, sql: Connection, facts: Facts, turns: Sequence[Turn], copies: int, *, replaces: bool
    ) -> None:
        """Writes the turns of a part; a session without any is not made."""
        if self._key is None:
            self._key = store.key_of(sql, facts, make=bool(turns))
            if self._key is not None and replaces:
                self._previous = store.numbers(sql, self._key)
            elif self._key is not None:
                self._number, self._copies = store.end_of(sql, self._key)
        self._copies += copies
        if self._key is not None:
            number = self._number
            self._number, is_changed = store.put(sql, self._key, turns, number, self._previous)
            self._is_changed |= is_changed
        self.read = self.read._replace(turns=self.read.turns + len(turns))

    def finish(self, sql: Connection, facts: Facts, project: str, now: datetime) -> None:
        """Removes turns that a rewritten source no longer has, and sums the session up.

        One that is only shorter was cut off: what was read of it stays. A file of the future is of
        `now`: it would be the latest of all forever.
        """
        if self._key is not None:
            if self._is_changed and not self._problem:
                store.remove_turns(sql, self._key, self._number + 1)
            at = min(self.source.mtime_ns // 1_000_000, store.number_of(now))
            store.sum_up(sql, self._key, facts, project, at=at, copies=self._copies)
            if self._is_changed:
                store.note_change(sql, self._key)
        self.is_complete = True

    def source_state(self, *, is_done: bool) -> SourceState:
        """Returns what is known of the source.

        Unless it `is_done`, its size is not noted, so it is read on. A session that is replaced is
        read again from its start, so that what follows keeps its place.
        """
        can_continue = is_done and not self._problem
        progress = self._progress if can_continue or not self._previous else Progress()
        records, unknown = self._records
        return SourceState(
            source=self.source if is_done else self.source._replace(size=-1),
            client=self.reader.client,
            native_id=self.native_id,
            progress=progress,
            digests=_digests(self.source.path, progress.offset),
            records=records,
            unknown=unknown,
            problem=self._problem,
            omitted=self._omitted,
        )


def _sum(total: Read, more: Read) -> Read:
    return Read(*map(sum, zip(total, more, strict=True)))


def _is_in(folder: str, parent: str) -> bool:
    """Returns whether a folder is another one or within it."""
    top = parent.rstrip("/")
    return bool(parent) and (folder == top or folder.startswith(f"{top}/"))


def _main(folder: str) -> str:
    """Returns the repository beside which a client made a worktree; any other folder as it is."""
    for mark in _WORKTREES:
        folder = folder.partition(mark)[0]
    return folder


def project_of(folder: str) -> str:
    """Returns the repository of a folder, or the folder itself outside of any.

    Of a removed worktree, it is the repository beside which the client made it.
    """
    if not folder:
        return ""
    folder = _main(folder)
    path = Path(folder)
    try:
        place = locate(path) if store.is_folder(folder) else None
    except (OSError, ValueError, RuntimeError):
        return folder
    if place is None:
        return folder
    common = place.common
    return str(common.parent if common and common.name == ".git" else place.root)


def _since(source: Source, state: SourceState | None) -> Progress:
    """Returns where to go on in a source: its start, unless it only grew."""
    if state is None or not state.progress.offset or source.key:
        return Progress()
    is_same = state.source.inode == source.inode and source.size >= state.progress.offset
    if is_same and _digests(source.path, state.progress.offset) == state.digests:
        return state.progress
    return Progress()


def _digests(path: Path, offset: int) -> bytes:
    """Returns the digests of the beginning of a file, and of the bytes before an offset."""
    if not offset:
        return b""
    try:
        with path.open("rb") as file:
            head = file.read(min(_EDGE, offset))
            file.seek(max(offset - _EDGE, 0))
            return disk.sha256(head)[:8] + disk.sha256(file.read(min(_EDGE, offset)))[:8]
    except OSError:
        return b""


# What is stored.


def _stored(text: str) -> str:
    """Returns a text without control characters, and without halves of characters."""
    text = clean(text)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _masked(project: str, facts: Facts, turns: Sequence[Turn]) -> tuple[str, Facts, list[Turn]]:
    """Returns all texts of a part without secrets; what is long is cut only then."""
    whole = [_changed(turn, text=_stored(turn.text)) for turn in turns]
    for place in range(1, len(whole)):
        turn, following = whole[place - 1 : place + 1]
        if turn.role is following.role:
            left, right = _without_split([turn.text, following.text])
            whole[place - 1] = _changed(turn, text=left)
            whole[place] = _changed(following, text=right)
    texts = [
        *(one_line(text) for text in (project, facts.cwd, facts.branch, facts.title)),
        *(text for turn in whole for text in (turn.text, turn.error, *turn.files)),
    ]
    safe = iter(without_secrets([_stored(text) for text in texts]))
    project, cwd, branch, title = (next(safe) for _ in range(4))
    masked = [
        _changed(
            turn, text=next(safe), error=next(safe), files=tuple(next(safe) for _ in turn.files)
        )
        for turn in whole
    ]
    facts = replace(
        facts,
        native_id=_stored(facts.native_id),
        parent=_stored(facts.parent),
        cwd=cwd,
        branch=branch,
        title=title,
    )
    cut = [
        _changed(turn, text=ends_of(turn.text, is_cut=was_cut(original.text)))
        for turn, original in zip(masked, turns, strict=True)
    ]
    return project, facts, cut


def _changed(turn: Turn, **values: Any) -> Turn:
    """Returns a turn with other values; the same one if they are equal, as most are."""
    changes = {name: value for name, value in values.items() if getattr(turn, name) != value}
    return replace(turn, **changes) if changes else turn


def without_secrets(texts: Sequence[str]) -> list[str]:
    """Returns texts with marks in place of their secrets, also of those that look like examples.

    All are searched at once first, which is fast.
    """
    parted = [_PARAGRAPHS.sub(_unsplit, text) if "\n\n" in text else text for text in texts]
    if not _secrets("\0\n".join(parted)):
        return parted
    return [without(text, _secrets(text)) for text in parted]


def _secrets(text: str) -> Sequence[Finding]:
    return secrets_in(text, cut=True, allowing=False, examples=True)


_PIECE = r"[\w+/=-]{4,200}"
_BREAK = r"[ \t]*\n\n[ \t]*"
_PARAGRAPHS = re.compile(rf"(?<![\w+/=-]){_PIECE}(?:{_BREAK}{_PIECE})+")
"""Blocks of text of a client, which may have parts of one token at their ends."""
_END, _START = re.compile(rf"(?<![\w+/=-]){_PIECE}\Z"), re.compile(_PIECE)

_BLOCKS = 8
"""The number of blocks over which a token may be split."""


def _unsplit(match: re.Match[str]) -> str:
    """Returns blocks without the tokens that are split between them."""
    pieces = re.split(f"({_BREAK})", match[0])
    blocks = pieces[::2]
    for place in range(len(blocks) - 1):
        blocks[place : place + _BLOCKS] = _without_split(blocks[place : place + _BLOCKS])
    pieces[::2] = blocks
    return "".join(pieces)


def _without_split(texts: Sequence[str]) -> list[str]:
    """Returns texts without a token that begins at the end of the first, and goes on after it."""
    first, *others = texts
    end, starts = _END.search(first[-201:]), [_START.match(other) for other in others]
    words = [start[0] for start in takewhile(bool, starts) if start]
    joined = (end[0] if end else "") + "".join(words)
    if not (end and words and any(map(str.isdigit, joined))):
        return [*texts]
    size = len(end[0])
    for hit in _secrets(joined):
        if hit.start < size < hit.end:
            mark = without(end[0], [hit._replace(start=0, end=size)])
            masked, left = [first[: len(first) - size + hit.start] + mark], hit.end - size
            for other, piece in zip(others, words, strict=False):
                masked.append(other[min(left, len(piece)) :])
                left = max(left - len(piece), 0)
            return [*masked, *others[len(words) :]]
    return [*texts]


def _relative(path: str, roots: Sequence[str]) -> str:
    """Returns the path of an edited file relative to its project, also one in a worktree."""
    for root in roots:
        if path.startswith(f"{root}/"):
            return path[len(root) + 1 :]
    return path


# Copies.


def _without_copies(
    sql: Connection, facts: Facts, turns: Sequence[Turn], *, at_start: bool
) -> tuple[list[Turn], Facts, int]:
    """Returns the turns that no other session of the client has, as one that was forked has.

    The facts name that session then, and the number is that of the copies. Only an equal text is a
    copy: of a record with an equal id where clients keep these in a fork, otherwise at the start of
    both sessions, with a text of the agent.
    """
    by_record = store.owners(sql, facts, {turn.native_id for turn in turns} - {""})
    owners = [by_record.get((turn.native_id, store.digest_of(turn.text))) for turn in turns]
    new = [turn for turn, owner in zip(turns, owners, strict=True) if owner is None]
    parents = [*filter(None, owners)]
    if not parents and at_start:  # The original may be a fork, too.
        while (common := _common(sql, facts, new))[1]:
            parents.append(common[0])
            new = new[common[1] :]
    if parents and not facts.parent:
        facts = replace(facts, parent=parents[-1])
    return new, facts, len(turns) - len(new)


def _common(sql: Connection, facts: Facts, turns: Sequence[Turn]) -> tuple[str, int]:
    """Returns another session of the client that begins as this one, and how many turns it has."""
    place = next((n for n, turn in enumerate(turns, 1) if turn.role is Role.AGENT), None)
    best = "", 0
    if place is None:
        return best
    answer = store.digest_of(turns[place - 1].text)
    for native_id, beginning in store.beginnings(sql, facts, place, answer, len(turns)):
        digests = ((turn.role, store.digest_of(turn.text)) for turn in turns)
        pairs = zip(digests, beginning, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if shared >= place and shared > best[1]:
            best = native_id, shared
    return best
