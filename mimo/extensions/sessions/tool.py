"""`mind_sessions`: earlier sessions for agents over MCP."""

from datetime import datetime
from typing import Annotated, Unpack

from mimo.api import (
    Arg,
    Call,
    Denied,
    Effect,
    Invalid,
    NotFound,
    Omitted,
    Out,
    StorageFailed,
    Surface,
    Weak,
    command,
    frozen,
    replace,
)
from mimo.extensions.sessions.commands import (
    ExchangeRow,
    Narrowing,
    SessionRow,
    TurnRow,
    conditions,
    latest,
    matching,
    transcript,
)
from mimo.extensions.sessions.model import Role

_SESSIONS, _BACK, _ONWARD = 5, 2, 7
"""The sessions of an answer, and the turns before and after one: calls follow the user's words."""


@frozen
class EarlierSession:
    """An earlier session, or the place in it that matches best."""

    session: Annotated[str, Out("Reference, with the number of the turn that matches")]
    title: Annotated[Omitted[str], Out("Its title, unless the text begins with it")]
    client: str
    date: Annotated[datetime, Out("When it ended")]
    project: Annotated[Omitted[str], Out("Its folder, unless all are of this project")] = None
    branch: Omitted[str] = None
    relevance: Annotated[Omitted[float], Out("Probability of an answer, 0 to 1")] = None
    weak: Weak = None
    content: Annotated[Omitted[str], Out("Words of the user and of the agent there")] = None


@frozen
class Earlier:
    """Earlier sessions, or turns of one."""

    sessions: Annotated[Omitted[tuple[EarlierSession, ...]], Out("Sessions, best first")] = None
    session: Annotated[Omitted[EarlierSession], Out("The session of `turns`")] = None
    turns: Annotated[Omitted[tuple[TurnRow, ...]], Out("Turns of one session")] = None
    total: Annotated[Omitted[int], Out("Number of its turns")] = None
    notice: Omitted[str] = None


@command(
    "mind_sessions",
    effect=Effect.READ,
    toolset="search",
    needs_project=False,
    surfaces=Surface.MCP,
    setting="sessions.enabled",
    has_budget=True,
    errors=(Invalid, Denied, NotFound, StorageFailed),
    description="""\
The words of earlier sessions with coding agents on this machine. Use before you guess at \
earlier work, and for "last time" or "as we did"; for decisions and facts, search memories first. \
`query` finds sessions, without it the latest; `session` shows turns.""",
    title="Search earlier sessions",
)
def sessions(
    call: Call,
    query: Annotated[
        str | None, Arg("Question, then other words and names of files", agents="")
    ] = None,
    *,
    session: Annotated[
        str | None, Arg("Reference of a session", agents="Such as `session:cc-1ccba294#12`")
    ] = None,
    turn: Annotated[
        int | None, Arg("The turn to show, with those around it", agents="", ge=1)
    ] = None,
    **filters: Unpack[Narrowing],
) -> Earlier:
    """Search earlier sessions, or show turns of one"""
    if session:
        around = turn or (None if "#" in session else 1)
        part = transcript(call, session, around, _BACK, _ONWARD)
        return Earlier(
            session=quoted(part.session),
            turns=tuple(
                each if each.role == Role.USER else replace(each, at=None, files=None)
                for each in part.turns
            ),
            total=part.total,
            notice=part.notice,
        )
    asked = conditions(call, **filters)
    rows = (
        matching(call, query, asked, _SESSIONS)
        if query and query.strip()
        else latest(call, asked, _SESSIONS)
    )
    return Earlier(sessions=tuple(map(quoted, rows.sessions)), notice=rows.notice)


def quoted(row: SessionRow) -> EarlierSession:
    """Returns a session for an agent, with the words of its places."""
    best = row.best or ()
    has_title = any(place.text.startswith(row.title) for place in best)
    return EarlierSession(
        session=f"session:{row.id}" + (f"#{best[0].turn}" if best else ""),
        title=None if has_title else row.title,
        client=row.client,
        date=row.date,
        project=row.project,
        branch=row.branch,
        relevance=row.relevance,
        weak=row.weak,
        content="\n".join(map(_quoted, best)) or None,
    )


def _quoted(place: ExchangeRow) -> str:
    answer = f"\nagent: {place.answer}" if place.answer else ""
    return f"user: {place.text}{answer}"
