"""How making a project looks."""

from mimo.cli.render import Screen, accent, dim, good, render, strong
from mimo.cli.render.look import show_look
from mimo.commands.projects import Initialised


@render.register
def _(result: Initialised, screen: Screen) -> None:
    done = "has a memory now" if result.created else "had a memory already"
    screen.line(good("✓ "), strong(result.name), f" {done}  ", dim(result.path))
    for path in result.added:
        screen.line(dim(f"wrote {path}"), indent=2)
    if result.include:
        screen.blank()
        screen.line("found ", ", ".join(result.found), "; to search them as memories, put")
        screen.line(accent(result.include), indent=4)
        screen.line("into .mind/config.toml", indent=2)
    for notice in result.notices:
        screen.note(notice)
    screen.blank()
    if result.arrived:
        show_look(result.arrived, screen)
        screen.blank()
        screen.line("It came from somebody else: go through it with ", accent("`mind review`"))
        screen.line("or approve all of it with ", accent("`mind trust`"))
    screen.line("next: ", accent('mind add "what should be remembered"'))
