"""How it looks when it is noted how a decision turned out."""

from mimo.cli.render import Screen, accent, bad, dim, good, render, strong
from mimo.cli.render.words import labels
from mimo.commands.evolve import Evolved


@render.register
def _(result: Evolved, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    screen.line(good("✓ "), strong(result.title), *labels(outcome=result.outcome))
    if result.outcome is None:
        screen.line("open again: nothing is known yet of how it turned out", indent=2)
    if result.warning:
        screen.line(bad(result.warning), indent=2)
    if result.confidence != result.confidence_before:
        moved = f"confidence {result.confidence_before:g} → {result.confidence:g}"
        screen.line(dim(moved), indent=2)
    screen.line(accent(result.id), indent=2)
    screen.line(dim(result.file), indent=2)
