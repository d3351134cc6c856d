"""How settings look."""

from mimo.cli.render import Screen, accent, dim, render, warn
from mimo.cli.render.plainly import shown
from mimo.commands.settings import Settings


@render.register
def _(result: Settings, screen: Screen) -> None:
    for row in result.settings:
        value = shown(row.value) if row.value not in ("", []) else "-"
        screen.line(accent(row.key), " = ", value, dim(f"  ({row.origin})"))
        screen.line(dim(row.help), indent=4)
    for warning in result.warnings:
        screen.line(warn(warning))
