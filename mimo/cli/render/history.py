"""How the history of the memory looks."""

from mimo.cli.render import Screen, accent, dim, good, render, strong
from mimo.cli.render.words import day
from mimo.commands.history import Blame, CommitRow, Log, Restored

_MARKS = {"added": "+", "changed": "~", "removed": "-"}
_WIDTH = 16


@render.register
def _(result: Log, screen: Screen) -> None:
    if not result.commits:
        screen.line("nothing was committed yet")
        screen.note("`mind sync` commits the memory")
    for row in result.commits:
        agents = f" with {row.commit.agents}" if row.commit.agents else ""
        who = dim(f"  {day(row.commit.date)}  {row.commit.author}{agents}")
        screen.line(accent(row.commit.commit), who)
        screen.line(strong(row.commit.subject), indent=2)
        for one in row.files:
            screen.line(dim(f"{_MARKS[one.change]} {one.file}"), indent=4)


@render.register
def _(result: Blame, screen: Screen) -> None:
    screen.line(strong(result.title), dim(f"  {result.file}"))
    facts = [("made by", result.by), ("session", result.session)]
    screen.pairs([(name, value) for name, value in facts if value], indent=2)
    last = ""
    for one in result.lines:
        about = _about(one.commit) if one.commit.commit != last else ""
        last = one.commit.commit
        screen.line(dim(f"{about:<42}"), dim(f"{one.line:>4} "), one.text)


@render.register
def _(result: Restored, screen: Screen) -> None:
    then = f"as it was on {day(result.commit.date)} ({result.commit.commit})"
    screen.line(good("✓ "), strong(result.title), dim(f"  {then}"))
    screen.line(accent(result.id), indent=2)
    screen.line(dim(result.file), indent=2)
    if result.undo:
        screen.note("the text before is in the trash; `mind undo` brings it back")


def _about(commit: CommitRow) -> str:
    who = commit.agents or commit.author
    short = who if len(who) <= _WIDTH else f"{who[: _WIDTH - 1]}…"
    return f"{commit.commit} {day(commit.date)} {short}"
