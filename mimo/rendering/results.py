"""How results are printed for people: one renderer for each type of result.

A renderer writes to a `Screen`: the same calls make plain text in a pipe and colour on a terminal.
The renderers of a feature are in its `render.py`, which is imported when a result of one of its
commands is shown, or next to the commands themselves:

    @render.register
    def _(result: SearchResults, screen: Screen) -> None: ...

A result without a renderer is printed by its fields.
"""

import os
import sys
from collections.abc import Mapping
from functools import singledispatch
from typing import Any, TextIO

from mimo import rendering
from mimo.rendering.screen import (
    PlainScreen,
    Screen,
    dim,
)

# Any result by its fields: names and values, and tables for lists of records.


def by_fields(result: object, screen: Screen) -> None:
    """Write the fields that hold one value, then those that hold many."""
    from mimo.commands.schema import to_json

    data = to_json(result)
    if not isinstance(data, dict):
        screen.line(shown(data))
        return
    screen.pairs([(label(name), shown(value)) for name, value in data.items() if _is_single(value)])
    for name, value in data.items():
        if not _is_single(value):
            _many(label(name), value, screen)


def _many(name: str, value: Any, screen: Screen) -> None:
    screen.blank()
    if not value:
        screen.line(dim(f"no {name}"))
        return
    screen.heading(name)
    if isinstance(value, dict):
        screen.pairs([(label(key), shown(item)) for key, item in value.items()], indent=2)
    elif all(isinstance(item, dict) for item in value):
        columns = list(dict.fromkeys(key for item in value for key in item))
        rows = [[shown(item.get(column)) for column in columns] for item in value]
        screen.table([label(column) for column in columns], rows)
    else:
        for item in value:
            screen.line(shown(item), indent=2)


def _is_single(value: Any) -> bool:
    """Returns whether a value fits behind its name: no object, and no list of objects."""
    if isinstance(value, list):
        return bool(value) and not any(isinstance(item, dict | list) for item in value)
    return not isinstance(value, dict)


def label(name: str) -> str:
    """Returns a field's name in words."""
    return name.replace("_", " ")


def shown(value: Any) -> str:
    """Returns a value as a person would write it."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
        case list():
            return ", ".join(map(shown, value))
        case dict():
            return ", ".join(f"{label(key)} {shown(item)}" for key, item in value.items())
        case _:
            return str(value)


@singledispatch
def render(result: object, screen: Screen) -> None:
    """Write a result on the screen; by its fields where no renderer knows its type."""
    by_fields(result, screen)


def show_on(screen: Screen, result: object) -> None:
    """Write a result with the renderer of its type, loading the module that holds it."""
    from importlib import import_module
    from importlib.util import find_spec

    feature = type(result).__module__.rpartition(".")[0]
    is_known = render.dispatch(type(result)) is not render.dispatch(object)
    if not is_known and find_spec(f"{feature}.render"):
        import_module(f"{feature}.render")
    render(result, screen)


def screen_for(stream: TextIO, environ: Mapping[str, str], *, colour: bool) -> Screen:
    """Returns a screen with colour for a terminal, and a plain one for anything else."""
    if not stream.isatty() or environ.get("TERM") == "dumb":
        return PlainScreen()
    from mimo.rendering.terminal import TerminalScreen

    return TerminalScreen(colour=colour and not environ.get("NO_COLOR"))


def show(result: object, options: Mapping[str, Any]) -> None:
    """Print an answer: as JSON where that was asked for, for people otherwise."""
    if options.get("json"):
        from mimo.commands.schema import to_json

        rendering.write(rendering.as_json(to_json(result), indent=2) + "\n")
        return
    _show(result, options, pager=not options.get("no_pager"))


def show_part(part: object, options: Mapping[str, Any]) -> None:
    """Print a part of an answer that has no end: as one line of JSON, or as people read it.

    Secrets are masked here: a part does not pass `invoke`. Ends the program if the reader is gone.
    """
    from mimo.guard.privacy import redacted

    part = redacted(part).value
    try:
        if options.get("json"):
            from mimo.commands.schema import to_json

            rendering.write(rendering.as_json(to_json(part)) + "\n")
        else:
            _show(part, options, pager=False)
    except BrokenPipeError:
        rendering.give_up_stdout()
        raise SystemExit(0) from None


def _show(result: object, options: Mapping[str, Any], *, pager: bool) -> None:
    screen = screen_for(sys.stdout, os.environ, colour=not options.get("no_color"))
    show_on(screen, result)
    screen.finish(pager=pager)
