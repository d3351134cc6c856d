"""The printing of sessions."""

from mimo.api import (
    BELOW,
    Screen,
    accent,
    age,
    bad,
    count,
    dim,
    fitted,
    good,
    matching_words,
    minute,
    render,
    strong,
    warn,
)
from mimo.extensions.sessions.commands import (
    Forgotten,
    Indexed,
    SessionRow,
    SessionRows,
    Transcript,
    TurnRow,
)
from mimo.extensions.sessions.model import Role
from mimo.extensions.sessions.resuming import Resumption

_LEAST = 12
"""The fewest columns of a title."""


@render.register
def _(result: SessionRows, screen: Screen) -> None:
    rows = result.sessions
    widths = [max((len(text) for text in texts), default=0) for texts in _columns(rows)]
    for row in rows:
        id, client = row.id.ljust(widths[0]), row.client.ljust(widths[1])
        weak = (dim("  weak"),) if row.weak else ()
        facts = "  ".join(filter(None, (row.branch, row.project)))
        more = dim(f"  {facts}" if facts else "")
        when, title = dim(f"  {age(row.date, screen):>4}"), fitted(strong(row.title), _LEAST)
        screen.line(accent(id), when, fitted(dim(f"  {client}")), "  ", title, *weak, fitted(more))
        for place in row.best or ():
            query = result.query or ""
            answer = f"→ {place.answer}" if place.answer else ""
            lines = [place.text, answer]
            if answer and place.text.startswith(row.title):
                lines = [answer]
            for line in filter(None, (f"#{place.turn} {lines[0]}", *lines[1:])):
                screen.text(line, terms=matching_words(line, query), indent=BELOW)
    if rows:
        screen.line(dim(_summary(result)))


def _columns(rows: tuple[SessionRow, ...]) -> tuple[list[str], list[str]]:
    return [row.id for row in rows], [row.client for row in rows]


def _summary(result: SessionRows) -> str:
    """Returns the number of sessions: all of them, or how many of them an answer has."""
    number = len(result.sessions)
    weak = sum(row.weak is True for row in result.sessions)
    text = f"{count(number, 'session')}{f', {weak} weak' if weak else ''}"
    if result.query is None and number < result.total:
        text = f"{number:,} of {count(result.total, 'session')}"
    more = result.elsewhere if result.query is None else None
    return f"{text} of this project, {more:,} more with --all-projects" if more else text


@render.register
def _(result: Transcript, screen: Screen) -> None:
    row = result.session
    screen.line(accent(row.id), "  ", strong(row.title))
    facts = (row.client, row.project, row.branch)
    screen.line(dim("  ".join(filter(None, facts))), indent=BELOW)
    times = dict.fromkeys((minute(result.started), minute(row.date)))
    screen.line(dim(" to ".join(times)), indent=BELOW)
    if result.copied:
        source = result.parent or "another session"
        verb = "is that" if result.copied == 1 else "are those"
        turns = "first turn" if result.copied == 1 else f"first {result.copied:,} turns"
        screen.line(dim(f"the {turns} {verb} of "), accent(source), indent=BELOW)
    elif result.parent:
        screen.line(dim("a part of "), accent(result.parent), indent=BELOW)
    previous = ""
    for turn in result.turns:
        if turn.role != Role.TOOL or previous != Role.TOOL:
            screen.blank()
        previous = turn.role
        _write(turn, screen)
    if len(result.turns) < result.total and result.turns:
        start, end = result.turns[0].n, result.turns[-1].n
        screen.blank()
        screen.line(dim(f"turns {start:,} to {end:,} of {result.total:,}"))


def _write(turn: TurnRow, screen: Screen) -> None:
    number = dim(f"#{turn.n} ".ljust(BELOW))
    if turn.role == Role.TOOL:
        screen.line(number, fitted(dim(turn.content), _LEAST))
        if turn.error:
            screen.line(bad(turn.error), indent=BELOW)
        return
    when = dim(f"  {minute(turn.at)}" if turn.at else "")
    screen.line(number, strong("You" if turn.role == Role.USER else "Agent"), when)
    screen.text(turn.content, indent=BELOW)


@render.register
def _(result: Resumption, screen: Screen) -> None:
    screen.verbatim(result.line)


@render.register
def _(result: Indexed, screen: Screen) -> None:
    read = f"{count(result.turns, 'new turn')} in {count(result.sources, 'transcript')}"
    screen.line(good("read "), read, dim(f"; {count(result.sessions, 'session')} kept"))
    if result.unreadable:
        screen.line(warn(f"{count(result.unreadable, 'transcript')} can't be read"))
    if result.expired:
        limits = "too old, or the oldest of too many (sessions.keep_days, sessions.max_mb)"
        screen.line(warn(f"{count(result.expired, 'session')} removed: {limits}"))
    if result.removed:
        screen.line(warn(f"{count(result.removed, 'session')} removed: left out by the settings"))


@render.register
def _(result: Forgotten, screen: Screen) -> None:
    names = ", ".join(result.ids[:10]) + (" …" if result.ids[10:] else "")
    screen.line(good("forgot "), count(len(result.ids), "session"), dim(f"  {names}"))
