"""Reading what clients wrote into the store: what is new, masked, once, and under its project.

A growing file is read from where it ended; one that was rewritten, from its start. Nothing is
written there, and no absence of a file removes what was kept of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.api import (
    NamedTuple,
    clean,
    disk,
    frozen,
    locate,
    one_line,
    redacted,
    replace,
)
from mimo.extensions.sessions import store
from mimo.extensions.sessions.model import (
    Facts,
    Part,
    Progress,
    Reader,
    Role,
    Source,
    Turn,
    Unavailable,
)
from mimo.extensions.sessions.store import Known, Store

if TYPE_CHECKING:
    from mimo.api import Connection

QUIET = timedelta(seconds=5)
"""The time after its last change from which a session is read, not to cut a turn in two."""

_EDGE = 4_096
"""The bytes at both ends of what was read that tell a file that grew from one that is new."""

_WORKTREES = ("/.claude/worktrees/", "/.worktrees/", "/.cursor/worktrees/")
"""Places of the worktrees that clients make; a removed one no longer says what it belonged to."""


@frozen
class Wanted:
    """The sessions that the user's settings ask for."""

    clients: frozenset[str]
    excluded: tuple[str, ...] = ()
    """Folders whose sessions are left out."""

    def admits(self, folder: str) -> bool:
        """Returns whether sessions in a folder are kept."""
        return not any(
            folder == other or folder.startswith(f"{other.rstrip('/')}/") for other in self.excluded
        )


class Read(NamedTuple):
    """The result of a run."""

    sources: int = 0
    """The number of sources that had something new."""
    turns: int = 0
    records: int = 0
    unknown: int = 0
    unreadable: int = 0


class Reading:
    """One run over the clients' files."""

    def __init__(
        self,
        store: Store,
        readers: Sequence[Reader],
        wanted: Wanted,
        environment: Mapping[str, str],
        home: Path,
        now: datetime,
    ) -> None:
        """Takes the user's home folder, in which the clients write; nothing is read yet."""
        self._store, self._readers, self._wanted = store, readers, wanted
        self._environment, self._home, self._now = environment, home, now
        self._projects: dict[str, str] = {}

    def run(self, advance: Callable[[int, int], object] = lambda done, total: None) -> Read:
        """Reads all that is new, and returns how much that was.

        `advance` gets the number of sources done and of all, and may raise to stop. Raises
        `StorageFailed`.
        """
        total = Read()
        pending = [(reader, *item) for reader in self._readers for item in self._pending(reader)]
        for done, (reader, source, known) in enumerate(pending):
            advance(done, len(pending))
            total = Read(*map(sum, zip(total, self._take(reader, source, known), strict=True)))
        advance(len(pending), len(pending))
        return total

    def behind(self) -> int:
        """Returns the number of sources that have something new; none is opened."""
        return sum(1 for reader in self._readers for _ in self._pending(reader))

    def _pending(self, reader: Reader) -> Iterator[tuple[Source, Known | None]]:
        """Yields the sources that are new or changed, and what is known of them."""
        with self._store.reading() as sql:
            known = store.known_sources(sql, reader.client) if sql else {}
        if reader.client not in self._wanted.clients:
            return
        seen = set()
        latest = self._now - QUIET
        with suppress(OSError, sqlite3.Error):
            for source in reader.sources(self._environment, self._home):
                place = str(source.path), source.key
                seen.add(place)
                before = known.get(place)
                state = source.size, source.mtime_ns, source.inode
                if before and (*before.source[2:],) == state and not before.missing_since:
                    continue
                if source.mtime_ns <= latest.timestamp() * 1e9:
                    yield source, before
        self._note_missing(known, seen)

    def _note_missing(
        self, known: Mapping[tuple[str, str], Known], seen: set[tuple[str, str]]
    ) -> None:
        """Notes which sources are gone; their sessions stay."""
        gone = [item for place, item in known.items() if place not in seen]
        if new := [item for item in gone if item.missing_since is None]:
            with self._store.writing() as sql:
                for item in new:
                    store.note_source(sql, item._replace(missing_since=self._now))

    def _take(self, reader: Reader, source: Source, known: Known | None) -> Read:
        """Reads one source into the store."""
        since = _since(source, known)
        total, problem, native_id = Read(sources=1), "", known.native_id if known else ""
        progress = since
        records, unknown = (known.records, known.unknown) if known and since.offset else (0, 0)
        try:
            for part in reader.read(source, since):
                progress, native_id = part.progress, part.facts.native_id
                total = total._replace(
                    turns=total.turns + self._keep(part),
                    records=total.records + part.records,
                    unknown=total.unknown + part.unknown,
                )
        except (OSError, sqlite3.Error, Unavailable, MemoryError) as error:
            problem = str(error) or type(error).__name__
            total = total._replace(unreadable=1)
        noted = Known(
            source,
            reader.client,
            native_id,
            progress,
            _digests(source.path, progress.offset),
            records + total.records,
            unknown + total.unknown,
            one_line(problem),
            None,
        )
        with self._store.writing() as sql:
            store.note_source(sql, noted)
        return total

    def _keep(self, part: Part) -> int:
        """Stores a part of a session that is wanted, and returns the number of its new turns."""
        facts = part.facts
        project = self._project_of(facts)
        if not facts.native_id or not self._is_wanted(facts, project):
            return 0
        placed = [
            replace(turn, files=tuple(_relative(path, facts, project) for path in turn.files))
            for turn in part.turns
        ]
        facts, turns = _masked(facts, placed)
        with self._store.writing() as sql:
            if store.is_forgotten(sql, facts.client, facts.native_id):
                return 0
            own = _without_copies(sql, facts, turns, is_first=part.replaces)
            if own or store.has(sql, facts):
                copies = len(turns) - len(own)
                store.put(sql, facts, project, own, replaces=part.replaces, copies=copies)
            return len(own)

    def _is_wanted(self, facts: Facts, project: str) -> bool:
        folder = project or facts.cwd
        return self._wanted.admits(facts.cwd) and self._wanted.admits(folder)

    def _project_of(self, facts: Facts) -> str:
        """Returns the root of the project of a session: the main one of worktrees."""
        folder = facts.repository or facts.cwd
        if folder not in self._projects:
            self._projects[folder] = project_of(folder)
        return self._projects[folder]


def project_of(folder: str) -> str:
    """Returns the repository of a folder, or the folder itself outside of any.

    Of a removed worktree, it is the repository beside which the client made it.
    """
    if not folder:
        return ""
    for mark in _WORKTREES:
        folder = folder.partition(mark)[0]
    path = Path(folder)
    with suppress(OSError, ValueError, RuntimeError):
        if path.is_dir():
            place = locate(path)
            if place.common and place.common.name == ".git":
                return str(place.common.parent)
            return str(place.root)
    return folder


def _since(source: Source, known: Known | None) -> Progress:
    """Returns where to go on in a source: its start, unless it only grew."""
    if known is None or not known.progress.offset or source.key:
        return Progress()
    is_same = known.source.inode == source.inode and source.size >= known.progress.offset
    if is_same and _digests(source.path, known.progress.offset) == known.digests:
        return known.progress
    return Progress()


def _digests(path: Path, offset: int) -> bytes:
    """Returns the digests of the beginning of a file, and of the bytes before an offset."""
    if not offset:
        return b""
    with suppress(OSError), path.open("rb") as file:
        first = file.read(min(_EDGE, offset))
        file.seek(max(offset - _EDGE, 0))
        return disk.sha256(first)[:8] + disk.sha256(file.read(min(_EDGE, offset)))[:8]
    return b""


def _masked(facts: Facts, turns: Sequence[Turn]) -> tuple[Facts, list[Turn]]:
    """Returns both without secrets, and without control characters.

    All texts are searched at once, before any of them is cut.
    """
    texts = [clean(text) for turn in turns for text in (turn.text, turn.error, *turn.files)]
    names = [one_line(text) for text in (facts.cwd, facts.branch, facts.title)]
    safe = iter(redacted([*names, *texts], allowing=False).value)
    cwd, branch, title = next(safe), next(safe), next(safe)
    masked = [
        replace(
            turn, text=next(safe), error=next(safe), files=tuple(next(safe) for _ in turn.files)
        )
        for turn in turns
    ]
    return replace(facts, cwd=cwd, branch=branch, title=title), masked


def _relative(path: str, facts: Facts, project: str) -> str:
    """Returns the path of an edited file relative to the project, also one in a worktree."""
    for root in sorted({facts.cwd, facts.repository, project} - {""}, key=len, reverse=True):
        if path.startswith(f"{root.rstrip('/')}/"):
            return path[len(root.rstrip("/")) + 1 :]
    return path


def _without_copies(
    sql: Connection, facts: Facts, turns: Sequence[Turn], *, is_first: bool
) -> list[Turn]:
    """Returns the turns that no other session of the client has, as one that was forked has.

    Clients that keep the ids of records in a fork tell a copy by these, others by the equal texts
    at the start of both sessions, one of the agent's among them.
    """
    own = [turn for turn in turns if not store.is_elsewhere(sql, facts, turn.native_id)]
    if len(own) == len(turns) and is_first:
        own = own[_common(sql, facts, turns) :]
    return own


def _common(sql: Connection, facts: Facts, turns: Sequence[Turn]) -> int:
    """Returns the number of turns with which another session of the client begins, too."""
    if not turns:
        return 0
    digests = [(turn.role, store.digest_of(turn.text)) for turn in turns]
    most = 0
    for beginning in store.beginnings(sql, facts, digests[0][1], len(turns)):
        equal = takewhile(lambda pair: pair[0] == pair[1], zip(digests, beginning, strict=False))
        shared = [role for (role, _), _ in equal]
        if Role.AGENT in shared:
            most = max(most, len(shared))
    return most
