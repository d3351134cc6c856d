"""How the evolution of a topic, what is relevant and what is recent look."""

from mimo.cli.render import Screen, accent, dim, good, render, strong, warn
from mimo.cli.render.load import show
from mimo.cli.render.words import count, day, labels, row_labels
from mimo.commands.browse import Evolution, InContext, Recent


@render.register
def _(result: Evolution, screen: Screen) -> None:
    """A timeline: the newest on top, what it replaced below."""
    if not result.results:
        screen.line(f"no memory on “{result.topic}”")
        screen.note(result.notice or "`mind search recent` shows what there is")
        return
    if result.notice:
        screen.note(result.notice)
    if len(result.current) > 1:
        screen.line(
            warn(f"{len(result.current)} decisions on this topic compete; save one that settles it")
        )
        screen.blank()
    last = len(result.results) - 1
    for number, row in enumerate(result.results):
        mark = good("●") if row.id in result.current else dim("○")
        bar = " " if number == last else "│"
        screen.line(mark, " ", dim(day(row.created_at)), "  ", strong(row.title), *row_labels(row))
        for line in (row.warning, _because(row.reasoning)):
            if line:
                screen.line(dim(f"{bar}  "), line)
        screen.line(dim(f"{bar}  "), accent(row.id), dim(_replaced(result, row.id)))
        if number != last:
            screen.line(dim(bar))


def _replaced(result: Evolution, id: str) -> str:
    older = [link.target for link in result.links if link.source == id]
    return f"  supersedes {', '.join(older)}" if older else ""


def _because(reasoning: str | None) -> str | None:
    return f"because {reasoning.strip().splitlines()[0]}" if reasoning else None


@render.register
def _(result: InContext, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    if not result.results:
        screen.line(f"nothing found for “{result.query}”")
        screen.note("`mind search` finds by words as well; other words may help")
        return
    for found in result.results:
        screen.line(dim(f"{found.score:.2f}"))
        show(found.memory, screen)
        screen.blank()
    if result.related:
        screen.line(strong("Linked with these"))
    for other in result.related:
        marks = labels(outcome=other.outcome, superseded_by=other.superseded_by, trust=other.trust)
        screen.line(accent(other.id), "  ", other.title, *marks, indent=2)
    screen.line(dim(count(result.total, "result")))


@render.register
def _(result: Recent, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    if not result.results:
        screen.line("no memories")
        screen.note("`mind save` and `mind add` make some")
        return
    for row in result.results:
        show(row, screen)
        screen.blank()
    shown = len(result.results)
    screen.line(dim(f"{shown:,} of {count(result.total, 'memory', 'memories')}, newest first"))
