"""The output of `mind init` and `config`."""

from shlex import quote

from mimo.features.review.trusting import show_look
from mimo.features.upkeep.commands import Initialised, Settings
from mimo.rendering import Screen, accent, dim, good, strong, warn
from mimo.rendering.results import render, shown


@render.register
def _(result: Initialised, screen: Screen) -> None:
    done = "has a memory now" if result.created else "had a memory already"
    screen.line(good("✓ "), strong(result.name), f" {done}  ", dim(result.path))
    for path in result.added:
        screen.line(dim(f"wrote {path}"), indent=2)
    if result.include:
        screen.blank()
        screen.line("found ", ", ".join(result.found), "; to search them as memories:")
        screen.line(accent(f"mind config include {quote(','.join(result.include))}"), indent=4)
    for notice in result.notices:
        screen.note(notice)
    screen.blank()
    if result.arrived:
        show_look(result.arrived, screen)
        screen.blank()
        either = ""
        if result.arrived.memories:
            screen.line("they came with the files: go through them with ", accent("`mind review`"))
            either = "or "
        screen.line(f"{either}approve all of them with ", accent("`mind trust`"))
    screen.line("next: ", accent('mind add "what should be remembered"'))


@render.register
def _(result: Settings, screen: Screen) -> None:
    for row in result.settings:
        value = shown(row.value) if row.value not in ("", []) else "-"
        screen.line(accent(row.key), " = ", value, dim(f"  ({row.origin})"))
        screen.line(dim(row.help), indent=4)
    if result.omitted:
        screen.line(
            f"{result.omitted} other settings have their default: ", accent("`mind config --all`")
        )
    for warning in result.warnings:
        screen.line(warn(warning))
