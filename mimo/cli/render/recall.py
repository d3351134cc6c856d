"""How a summary of the memory looks."""

from mimo.cli.render import Screen, accent, dim, render
from mimo.commands.recall import Recollection
from mimo.domain.ids import MEMORY_URI

_MARKED = ("FAILED", "Superseded")
"""What a reader must not miss."""


@render.register
def _(result: Recollection, screen: Screen) -> None:
    opening, *lines = result.summary.splitlines()
    if not result.source_refs:
        screen.text(result.summary)
        return
    screen.line(dim(opening))
    ids = [uri.removeprefix(MEMORY_URI) for uri in result.source_refs]
    for line, id in zip(lines, [*ids, *[""] * len(lines)], strict=False):
        screen.blank()
        screen.text(line, terms=_MARKED)
        if id:
            screen.line(accent(id), indent=3)
    screen.blank()
    if result.confidence is not None:
        screen.line(dim(f"1. is what was meant with {result.confidence:.0%} confidence"))
    screen.line(dim("`mind show ID` shows one whole"))
