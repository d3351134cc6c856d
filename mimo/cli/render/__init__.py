"""How answers look to people: one renderer for each type of result.

The renderers for the results of `mimo/commands/<topic>.py` stand in `mimo/cli/render/<topic>.py`,
which is imported when such a result is shown:

    @render.register
    def _(result: SearchResult, screen: Screen) -> None: ...

A result without a renderer is shown by its fields.
"""

from collections.abc import Mapping
from functools import singledispatch
from typing import TextIO

from mimo.cli.render.screen import (
    Part,
    PlainScreen,
    Screen,
    Styled,
    accent,
    bad,
    dim,
    good,
    strong,
    warn,
)

__all__ = [
    "Part",
    "PlainScreen",
    "Screen",
    "Styled",
    "accent",
    "bad",
    "dim",
    "good",
    "render",
    "screen_for",
    "show_on",
    "strong",
    "warn",
]


@singledispatch
def render(result: object, screen: Screen) -> None:
    """Write a result on the screen; by its fields where no renderer knows its type."""
    from mimo.cli.render.plainly import by_fields

    by_fields(result, screen)


def show_on(screen: Screen, result: object) -> None:
    """Write a result with the renderer of its type, loading the module that holds it."""
    from importlib import import_module
    from importlib.util import find_spec

    topic = type(result).__module__.rpartition(".")[2]
    name = f"{__name__}.{topic}"
    if find_spec(name):
        import_module(name)
    render(result, screen)


def screen_for(stream: TextIO, environ: Mapping[str, str], *, colour: bool) -> Screen:
    """Returns a screen with colour for a terminal, and a plain one for anything else."""
    if not stream.isatty() or environ.get("TERM") == "dumb":
        return PlainScreen()
    from mimo.cli.render.terminal import TerminalScreen

    return TerminalScreen(colour=colour and not environ.get("NO_COLOR"))
