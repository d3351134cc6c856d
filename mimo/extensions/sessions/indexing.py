"""The index over the kept sessions, class C: words and vectors by the engine of memories.

An exchange, a turn of the user with what the agent did and answered, is one entry of it, and a
session a file. So a session is found by its best exchange, and a long one has no advantage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from mimo.api import (
    Change,
    Filter,
    Found,
    Index,
    Memory,
    Mind,
    Place,
    Record,
    Request,
    Stamp,
    projects,
)
from mimo.api import (
    Kind as MemoryKind,
)
from mimo.extensions.sessions import store
from mimo.extensions.sessions.model import Kind, Role
from mimo.extensions.sessions.readers.parts import ends_of
from mimo.extensions.sessions.store import KeptTurn, Session, Store

if TYPE_CHECKING:
    pass

VISIBLE = "visible"
"""The tag of sessions that searches show by default: a person spoke there."""

_SAID, _ANSWERED, _DONE = 4_000, 1_500, 1_000
"""Characters of the user's words, of the agent's and of its calls in an entry, at most."""


class Sessions:
    """The kept sessions of a user, with their index."""

    def __init__(self, mind: Mind) -> None:
        """Takes an opened memory of the user, whose models and home are used."""
        self._mind = mind
        self.store = Store(mind.home)
        self._index: Index | None = None

    def close(self) -> None:
        """Closes all files."""
        self.store.close()
        if self._index:
            self._index.close()

    @property
    def index(self) -> Index:
        """The index as it is on the disk. Raises `StorageFailed`."""
        if self._index is None:
            mind, folder = self._mind, self._mind.home / "cache" / store.FOLDER
            owner = projects.index_owner(mind.home, mind.randomness)
            index = Index.open(folder, mind.embedder, owner)
            index.encoder = lambda: mind.encoder
            index.repair = self.update
            self._index = index
        return self._index

    def update(self, advance: Callable[[int, int], object] = lambda done, total: None) -> int:
        """Brings the index up to the store, and returns the number of sessions that changed."""
        identity = self.index.begin()
        indexed = {path: stamp.size for path, (stamp, _) in self.index.stamps().items()}
        with self.store.reading() as sql:
            kept = {item.id: item for item in store.sessions(sql)} if sql else {}
        stale = [item for item in kept.values() if indexed.get(item.id) != item.revision]
        gone = [path for path in indexed if path not in kept]

        def changes() -> Iterator[Change]:
            for path in gone:
                yield Change(path=path, stamp=None)
            for done, session in enumerate(stale):
                advance(done, len(stale))
                with self.store.reading() as sql:
                    turns = store.turns(sql, session.key) if sql else []
                yield _change(session, turns)

        if stale or gone:
            self.index.apply(changes(), now_ns=time.time_ns())
        self.index.note_all_compared(identity)
        return len(stale) + len(gone)

    def search(self, text: str, filter: Filter, limit: int) -> Found:
        """Returns the exchanges that best match, best first."""
        return self.index.search(
            Request(text=text, filter=filter, limit=limit, now=self._mind.now())
        )

    def make_meanings(self, advance: Callable[[int, int], object]) -> int:
        """Makes the encoder's missing vectors; returns the number of exchanges that got some."""
        return self.index.make_meanings(advance)


def sessions_of(mind: Mind) -> Sessions:
    """Returns the kept sessions, opened once for a memory."""
    return mind.resource(Sessions)


def tag_of(kind: str, value: str) -> str:
    """Returns the tag of the entries of a client or a project."""
    return f"{kind}-{store.digest_of(value).hex()[:12]}"


def exchanges(turns: Sequence[KeptTurn]) -> Iterator[list[KeptTurn]]:
    """Yields each turn of the user with those that follow it."""
    group: list[KeptTurn] = []
    for item in turns:
        if item.turn.role is Role.USER and group:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _change(session: Session, turns: Sequence[KeptTurn]) -> Change:
    tags = [tag_of("client", session.client), tag_of("project", session.project)]
    if session.kind is Kind.MAIN:
        tags.append(VISIBLE)
    place = Place(path=session.id, line=1, digest="0" * 64)
    records = [
        Record(
            memory=Memory(
                id=f"{session.id}#{group[0].n}",
                type=MemoryKind.FACT,
                content=_content(group),
                created=next((t.at for _, t in group if t.at), session.started),
                tags=tuple(tags),
            ),
            place=place,
            parent=session.id,
            position=position,
        )
        for position, group in enumerate(exchanges(turns))
    ]
    stamp = Stamp(size=session.revision, mtime_ns=0, ctime_ns=0, inode=0)
    return Change(path=session.id, stamp=stamp, records=tuple(records))


def _content(group: Sequence[KeptTurn]) -> str:
    """Returns the text of an exchange: what was asked, answered, done, and what failed."""
    turns = [turn for _, turn in group]
    said = "\n".join(turn.text for turn in turns if turn.role is Role.USER)
    answers = [turn.text for turn in turns if turn.role is Role.AGENT]
    done = [turn.text for turn in turns if turn.role is Role.TOOL]
    failed = [turn.error for turn in turns if turn.error and turn.error != "failed"]
    parts = (
        ends_of(said, _SAID),
        ends_of("\n".join(answers[-1:]), _ANSWERED),
        ends_of("\n".join(dict.fromkeys([*done, *failed])), _DONE),
    )
    return "\n\n".join(filter(None, parts)) or "…"
