"""The proposals of a project that wait for the user, and what the user decided on earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from mimo.api import Call, Hint, Memory, Mind, NotFound, codec, handle_of, replace, saving
from mimo.api import Command as Typed
from mimo.extensions.sessions import finding, store, turning_on
from mimo.extensions.sessions.indexing import sessions_of
from mimo.extensions.sessions.proposals import History, Proposal, proposed, shifts_of
from mimo.extensions.sessions.store import Session, digest_of

if TYPE_CHECKING:
    from mimo.api import Connection

LIMIT = 20
"""The number of proposals that wait at a time: the best ones."""

_SESSIONS, _ELSEWHERE = 300, 100
"""The latest sessions that are searched for proposals: of a project, of all others."""

ACCEPTED, REJECTED, NEVER = "accepted", "rejected", "never"
"""The verdicts on a proposal.

A rejected sentence comes again if it is repeated later. The id of the memory follows `ACCEPTED`:
once that is undone or removed, the sentence waits again.
"""


class Drafts:
    """The proposals of projects, found once for each state of the store."""

    def __init__(self, mind: Mind) -> None:
        """Takes an opened memory of the user; nothing is read yet."""
        self._store = sessions_of(mind).store
        self._cache: dict[str, tuple[tuple[int, ...], list[Proposal]]] = {}

    def close(self) -> None:
        """Does nothing: the store is closed by its owner."""

    def of(self, project: str, native_id: str = "") -> list[Proposal]:
        """Returns the proposals of a project, or of one session, best first.

        Those that the user rejected are left out, and accepted ones name their memory.

        Raises `StorageFailed`.
        """
        with self._store.reading() as sql:
            state = _state(sql)
            cached = self._cache.get(native_id or project)
            if cached is None or cached[0] != state:
                where, value = ("native_id =", native_id) if native_id else ("project =", project)
                verdicts, shifts = store.verdicts(sql), shifts_of(_counts(sql))
                elsewhere = [] if native_id else _histories(sql, "project !=", project, _ELSEWHERE)
                proposals = proposed(_histories(sql, where, value), shifts, elsewhere)
                left = [item for item in proposals if not _is_rejected(item, verdicts)]
                left = [replace(item, memory=_saved_as(item, verdicts)) for item in left]
                cached = state, left
                self._cache[native_id or project] = cached
            return cached[1]

    def decide(self, proposals: Iterable[Proposal], verdict: str, at: datetime) -> None:
        """Notes the user's verdict on proposals, for all places of their sentences."""
        with self._store.writing() as sql:
            sql.executemany(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?)",
                [
                    (digest_of(mention.text), item.family, verdict, store.number_of(at))
                    for item in proposals
                    for mention in item.mentions
                ],
            )


def drafts_of(mind: Mind) -> Drafts:
    """Returns the proposals of a memory's user, opened once."""
    return mind.resource(Drafts)


def waiting(call: Call, limit: int = LIMIT, session: Session | None = None) -> list[Proposal]:
    """Returns the best proposals for this project, without those that a memory states already.

    With `session`, only those of that session. Raises `StorageFailed`.
    """
    proposals = _undecided(call)
    if session is not None:
        id = session.id
        proposals = [p for p in proposals if id in {mention.session for mention in p.mentions}]
    new: list[Proposal] = []
    for proposal in proposals:
        if len(new) == limit:
            break
        if not call.index.much_like(codec.normal(memory_of(proposal))):
            new.append(proposal)
    return new


def _undecided(call: Call) -> list[Proposal]:
    """Returns the proposals for the project of a call that wait, best first."""
    indexes = [each.index for each in (call.on(call.origin), call.user() or call)]
    return [
        item
        for item in drafts_of(call.origin).of(turning_on.project(call.origin))
        if not (item.memory and any(index.get(item.memory) for index in indexes))
    ]


def memory_of(proposal: Proposal, text: str = "") -> Memory:
    """Returns the memory that a proposal becomes, in the user's own words if `text` has some."""
    return saving.draft(proposal.type, text or proposal.text, source=proposal.source)


def named(call: Call, ids: Sequence[str]) -> list[Proposal]:
    """Returns the proposals with these ids. Raises `NotFound`."""
    by_name = {
        name: proposal
        for proposal in _undecided(call)
        for name in (proposal.id, handle_of(proposal.id))
    }
    if missing := [id for id in ids if id not in by_name]:
        raise NotFound(
            f"there is no proposal `{missing[0]}`",
            hint=Hint(Typed("sessions propose"), " lists them"),
        )
    return list({by_name[id].id: by_name[id] for id in ids}.values())


def proposals_for(mind: Mind, native_id: str) -> list[str]:
    """Returns what one session proposes, each with its place, by the client's id of it.

    Raises `StorageFailed`.
    """
    proposals = drafts_of(mind).of("", native_id) if native_id else []
    waiting = [item for item in proposals if not item.memory]
    return [f"{item.text} ({item.source})" for item in waiting[:LIMIT]]


def _histories(
    sql: Connection, condition: str, value: str, limit: int = _SESSIONS
) -> list[History]:
    """Returns the latest sessions with the user that meet a condition, in order of time."""
    where = f"{condition} ? AND {finding.SHOWN}"
    latest = store.sessions(sql, where=where, values=(value,), limit=limit)
    return [History(item.id, store.turns(sql, item.key)) for item in latest[::-1]]


def _state(sql: Connection) -> tuple[int, ...]:
    """Returns the values that change with the kept sessions and the verdicts."""
    query = (
        "SELECT (SELECT count(*) FROM sessions), (SELECT coalesce(max(revision), 0) FROM sessions),"
        " count(*), coalesce(max(at), 0) FROM verdicts"
    )
    return tuple(sql.execute(query).fetchone())


def _counts(sql: Connection) -> list[tuple[str, str, int]]:
    query = "SELECT cue, verdict, count(*) FROM verdicts GROUP BY cue, verdict"
    return list(sql.execute(query))


def _saved_as(proposal: Proposal, verdicts: dict[bytes, tuple[str, int]]) -> str:
    """Returns the id of the memory that a proposal was accepted as; empty if it was not."""
    texts = (verdicts.get(digest_of(mention.text), ("", 0))[0] for mention in proposal.mentions)
    return next((v.partition(" ")[2] for v in texts if v.startswith(ACCEPTED)), "")


def _is_rejected(proposal: Proposal, verdicts: dict[bytes, tuple[str, int]]) -> bool:
    """Returns whether the user rejected a proposal, and did not repeat it later."""
    earlier = [v for m in proposal.mentions if (v := verdicts.get(digest_of(m.text)))]
    if any(verdict == NEVER for verdict, _ in earlier):
        return True
    latest = store.number_of(proposal.latest) if proposal.latest else 0
    return any(verdict == REJECTED and latest <= at for verdict, at in earlier)
