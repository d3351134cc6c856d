"""The index over the kept sessions, class C: words and vectors by the engine of memories.

An exchange, a turn of the user with what the agent did and answered, is one entry of it, and a
session a file. So a session is found by its best exchange, and a long one has no advantage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from functools import cached_property, partial
from pathlib import Path
from textwrap import wrap

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
    Vectors,
    embedding,
    projects,
)
from mimo.api import (
    Kind as MemoryKind,
)
from mimo.extensions.sessions import store
from mimo.extensions.sessions.model import Kind, Role
from mimo.extensions.sessions.readers.parts import ends_of
from mimo.extensions.sessions.store import KeptTurn, Session, Store

VISIBLE, HIDDEN = MemoryKind.FACT, MemoryKind.CONTEXT
"""The type of the exchanges of sessions with a person, and of those that searches hide."""

_ASKED, _ANSWERED, _BEYOND, _DONE = 2_000, 300, 900, 400
"""Characters of an entry, at most: of the user's words, of the beginning and of the rest of the
agent's last answer, and of its calls."""

_UNREAD = "> "
"""The beginning of the lines of an entry that words find, and no vector: most bytes are of them."""

_LINE = 250
"""Characters of such a line, so that each stretch of text that gets a vector begins with one."""

_STATE = "SELECT count(*), coalesce(sum({}), 0) FROM {}"
"""The number of sessions and the sum of their revisions, of which each is the highest when made."""

AT_ONCE = 50
"""The number of sessions that a search indexes itself, at most."""

_FEW = 400
"""The number of texts up to which a search makes missing vectors of the encoder itself."""


class _Model:
    """A model that reads the user's words and the beginning of answers alone."""

    def __init__(self, model: embedding.Embedder) -> None:
        """Takes the model that reads them."""
        self._model = model
        self.encode = model.encode

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._model.model

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the vector of each text, empty for one that is not read."""
        read = iter(self._model.encode_many([t for t in texts if not t.startswith(_UNREAD)]))
        return [b"" if text.startswith(_UNREAD) else next(read) for text in texts]


class Sessions:
    """The kept sessions of a user, with their index."""

    def __init__(self, mind: Mind) -> None:
        """Takes an opened memory of the user, whose models and home are used."""
        self._mind = mind
        self.store = Store(mind.home)
        self._index: Index | None = None
        self.unindexed = 0
        """The number of sessions that the last update left to a later one."""

    def close(self) -> None:
        """Closes all files."""
        self.store.close()
        if self._index:
            self._index.close()

    @property
    def index(self) -> Index:
        """The index as it is on the disk. Raises `StorageFailed`."""
        if self._index is None:
            self._index = self._opened()
            self._index.encoder = self._ready_encoder
            self._index.repair = partial(self.update, limit=AT_ONCE)
        return self._index

    def _opened(self) -> Index:
        embedder = self._mind.embedder
        model = _Model(embedder) if embedder else None
        return Index.open(self._folder, model, self._owner)

    @property
    def _folder(self) -> Path:
        """The folder of the index."""
        return self._mind.home / "cache" / store.FOLDER

    @cached_property
    def _owner(self) -> str:
        return projects.index_owner(self._mind.home, self._mind.randomness)

    def _ready_encoder(self) -> _Model | None:
        """Returns the encoder if its vectors were made once, or are few.

        A search does not wait until most of them are made: `make_meanings` makes them.
        """
        encoder = self._encoder()
        if encoder is None or self.index.totals().units <= _FEW:
            return encoder
        with closing(Vectors(self._folder, encoder.model, "encoder", owner=self._owner)) as vectors:
            return encoder if vectors.state().complete else None

    def _encoder(self) -> _Model | None:
        """Returns the encoder, unless it is on another machine, which gets no session."""
        encoder = self._mind.encoder
        return None if encoder is None or embedding.is_elsewhere(encoder) else _Model(encoder)

    def update(
        self,
        advance: Callable[[int, int], object] = lambda done, total: None,
        limit: int | None = None,
    ) -> int:
        """Brings the index up to the store, and returns the number of sessions that changed.

        With a `limit`, only that many are indexed, the latest first; `unindexed` counts the others.
        """
        identity = self.index.begin()
        with self.store.reading() as sql:
            state = sql.execute(_STATE.format("revision", "sessions")).fetchone()
        with self.index.reading() as sql:
            if sql.execute(_STATE.format("size", "files")).fetchone() == state:
                self.unindexed = 0
                self.index.note_all_compared(identity)
                return 0
        indexed = {path: stamp.size for path, (stamp, _) in self.index.stamps().items()}
        with self.store.reading() as sql:
            sessions = {item.id: item for item in store.sessions(sql)}
        all_stale = [item for item in sessions.values() if indexed.get(item.id) != item.revision]
        stale = all_stale[:limit]
        self.unindexed = len(all_stale) - len(stale)
        missing = [path for path in indexed if path not in sessions]

        def changes() -> Iterator[Change]:
            for path in missing:
                yield Change(path=path, stamp=None)
            for done, session in enumerate(stale):
                advance(done, len(stale))
                with self.store.reading() as sql:
                    turns = store.turns(sql, session.key)
                yield _change(session, turns)
            advance(len(stale), len(stale))

        if stale or missing:
            self.index.apply(changes(), now_ns=time.time_ns())
        self.index.note_all_compared(identity)
        return len(stale) + len(missing)

    def forget(self) -> None:
        """Removes what the index has of sessions that are no longer kept, also from its files."""
        self.update()
        self.index.purge()

    def search(self, text: str, filter: Filter, limit: int) -> Found:
        """Returns the best exchange of each of the sessions that best match, best first."""
        now = self._mind.now()
        return self.index.search(Request(text, filter, limit, now, folded=True))

    def make_meanings(
        self,
        advance: Callable[[int, int], object],
        turn: Callable[[], AbstractContextManager[None]] | None = None,
    ) -> int:
        """Makes the encoder's missing vectors; returns the number of exchanges that got some.

        It has an index of its own, since others may search meanwhile; see `Index.make_meanings`.
        """
        with closing(self._opened()) as index:
            index.encoder = self._encoder
            number = index.make_meanings(advance, turn)
        if self._index and vars(self._index).get("meanings", True) is None:
            del self._index.meanings  # The next search asks for the encoder again.
        return number


def sessions_of(mind: Mind) -> Sessions:
    """Returns the kept sessions, opened once for a memory."""
    return mind.resource(Sessions)


def tag_of(value: str) -> str:
    """Returns the tag of the exchanges of a client or a project, whose words no query has."""
    return store.digest_of(value).hex()


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
    place = Place(path=session.id, line=1, digest="0" * 64, private=True)
    records = [
        Record(
            memory=Memory(
                id=f"{session.id}#{group[0].n}",
                type=VISIBLE if session.kind is Kind.MAIN else HIDDEN,
                title=session.title if position == 0 else None,
                content=_content(group),
                created=next((t.at for _, t in group if t.at), session.started),
                tags=(tag_of(session.client), tag_of(session.project)),
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
    words = "\n".join(turn.text for turn in turns if turn.role is Role.USER)
    answer = next((turn.text for turn in reversed(turns) if turn.role is Role.AGENT), "")
    calls = [turn.text for turn in turns if turn.role is Role.TOOL]
    errors = [turn.error for turn in turns if turn.error and turn.error != "failed"]
    done = "\n".join(dict.fromkeys([*errors, *calls]))
    unread = f"{ends_of(answer[_ANSWERED:], _BEYOND)}\n{done[:_DONE]}".splitlines()
    lines = (part for line in unread for part in wrap(line, _LINE))
    parts = (
        ends_of(words, _ASKED),
        answer[:_ANSWERED],
        "\n".join(f"{_UNREAD}{line}" for line in lines),
    )
    return "\n\n".join(filter(None, parts)) or "…"
