"""How it looks when a decision, a checkpoint or an insight was saved."""

from mimo.cli.render import Screen, accent, dim, good, render, strong
from mimo.cli.render.words import count, labels
from mimo.commands.save import SavedCheckpoint, SavedDecision, SavedInsight


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
