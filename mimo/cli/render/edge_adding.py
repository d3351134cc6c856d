"""How new edges look."""

from mimo.cli.render import Screen, accent, dim, good, render, strong
from mimo.cli.render.edges import marked, row
from mimo.cli.render.words import count
from mimo.commands.edge_adding import EdgeDetails, StarterAdded


@render.register
def _(result: EdgeDetails, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    screen.line(good("✓ "), strong(result.title), "  ", marked(result.severity))
    screen.line(accent(result.id), indent=2)
    screen.line(dim(result.file), indent=2)


@render.register
def _(result: StarterAdded, screen: Screen) -> None:
    for edge in result.added:
        row(edge, screen)
    known = f"; {result.known:,} there already" if result.known else ""
    screen.line(good("✓ "), f"{count(len(result.added), 'edge')} added{known}")
