"""How the notes for agents look."""

from mimo.cli.render import Screen, accent, dim, good, render
from mimo.cli.render.words import count
from mimo.commands.context import ContextShown, ContextWritten


@render.register
def _(result: ContextShown, screen: Screen) -> None:
    screen.markdown(result.text)
    screen.note(
        f"{count(result.notes, 'note')}, {result.characters:,} characters, "
        f"about {result.tokens:,} tokens"
    )


@render.register
def _(result: ContextWritten, screen: Screen) -> None:
    for one in result.files:
        told = "made" if one.created else "written" if one.changed else "up to date"
        screen.line(good("✓ "), accent(one.path), dim(f" {told}"))
    if result.notice:
        screen.note(result.notice)
