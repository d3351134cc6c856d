"""How it looks when it is noted how a decision turned out."""

from mimo.features.decisions.commands import Evolved, SavedCheckpoint, SavedDecision, SavedInsight
from mimo.rendering.results import count, labels, render
from mimo.rendering.screen import Screen, accent, bad, dim, good, strong

# How it looks when a decision, a checkpoint or an insight was saved.


@render.register
def _(result: SavedDecision, screen: Screen) -> None:
    _saved(result, screen)
    for old in result.supersedes:
        screen.line("supersedes ", accent(old), indent=2)


@render.register
def _(result: SavedCheckpoint, screen: Screen) -> None:
    _saved(result, screen)
    if result.open_files:
        screen.line(dim(f"{count(len(result.open_files), 'open file')} noted"), indent=2)


@render.register
def _(result: SavedInsight, screen: Screen) -> None:
    _saved(result, screen)


def _saved(result: SavedDecision | SavedCheckpoint | SavedInsight, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    before = "  stored before" if getattr(result, "already", None) else ""
    screen.line(good("✓ "), strong(result.title), before, *labels(private=result.private))
    screen.line(accent(result.id), indent=2)
    screen.line(dim(result.file), indent=2)


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
