"""The functions that the core asks for while sessions are on, see `mimo.operations.earlier`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack

from mimo.api import Call, ClientMemory, Filter, Mind, QuotedSession, replace
from mimo.extensions.sessions import commands, drafts, finding, store, tool, turning_on
from mimo.extensions.sessions.describing import described as described
from mimo.extensions.sessions.indexing import sessions_of
from mimo.extensions.sessions.memories import AgentMemories

_BATCH = 20
"""The number of transcripts after which those that were read become searchable."""


def matching(
    call: Call, query: str, limit: int, conditions: Filter, *, all_projects: bool
) -> list[QuotedSession]:
    """Returns the sessions that surely match, as they were last indexed."""
    asked = replace(
        commands.conditions(call, all_projects=all_projects),
        since=conditions.since,
        until=conditions.until,
    )
    rows = commands.answers(sessions_of(call.mind), query, asked, limit)
    return [
        QuotedSession(
            session=each.session,
            title=each.title,
            client=each.client,
            date=each.date,
            project=each.project,
            content=each.content or "",
        )
        for each in map(tool.quoted, rows)
    ]


def memories(
    mind: Mind, query: str, limit: int, conditions: Filter, texts: Collection[str]
) -> Sequence[ClientMemory]:
    """Returns memories of clients that surely match and are not among `texts`."""
    return mind.resource(AgentMemories).matching(query, limit, conditions, texts)


def with_prefix(mind: Mind, start: str, limit: int) -> list[tuple[str, str]]:
    """Returns the ids that begin with a text, those of this project first, and titles."""
    with sessions_of(mind).store.reading() as sql:
        listed = finding.with_prefix(sql, start, turning_on.project(mind), limit)
    return [(session.id, session.title) for session in listed]


def number(mind: Mind) -> int:
    """Returns the number of kept sessions."""
    with sessions_of(mind).store.reading() as sql:
        return store.session_count(sql)


def update(mind: Mind, turn: Callable[[], AbstractContextManager[None]]) -> None:
    """Reads new transcripts and indexes them, each step in a context that `turn` returns."""
    sessions = sessions_of(mind)
    with ExitStack() as steps:

        def advance(done: int, total: int) -> None:
            if done == total or done % _BATCH == 0:
                sessions.update()
            steps.close()  # The step ends here, and the next one waits for its turn.
            steps.enter_context(turn())

        read = turning_on.reading(mind).run(advance)
        if read.removed or read.expired:
            sessions.forget()
        sessions.update()
    sessions.make_meanings(lambda *_: None, turn)  # No user sees its progress.


def proposals(mind: Mind, session: str) -> Sequence[str]:
    """Returns the proposals from a session, by its client's id, as far as it was read."""
    return drafts.proposals_for(mind, session)
