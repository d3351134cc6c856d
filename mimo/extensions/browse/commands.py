"""`mind browse`: the memories in a full-screen view of the terminal."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from mimo.api import (
    Arg,
    Call,
    Effect,
    Invalid,
    Out,
    Screen,
    Surface,
    command,
    count,
    dim,
    frozen,
    render,
)


@frozen
class Browsed:
    """The end of the browser."""

    changes: Annotated[int, Out("Number of changes made in it")]


def opened(
    call: Call,
    run: Callable[[Call, str, Mapping[str, Any]], object],
    arguments: Mapping[str, Any],
    *,
    colour: bool,
) -> Browsed:
    """Runs the browser on the terminal until the user quits; `run` runs a command.

    Raises `Invalid` if Textual is not installed, and `NoProject`.
    """
    call.mind.check()
    _ = call.mind.project
    try:
        import textual  # noqa: F401 - its absence is reported before the browser is loaded
    except ImportError as error:
        raise Invalid(
            "`mind browse` needs the package `textual`",
            hint="install it with `pip install textual`, or `pipx inject mimo textual`",
        ) from error
    from mimo.extensions.browse import app

    words = arguments.get("query") or ""
    return Browsed(changes=app.run(call, run, words, colour=colour))


@command(
    "mind_browse",
    cli="browse",
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    errors=(Invalid,),
    examples=("mind browse", "mind browse rate limit"),
    screen=opened,
)
def browse(
    call: Call,
    query: Annotated[str, Arg("First query", words=True)] = "",
) -> Browsed:
    """Browse the memories in a full-screen view

    Lists, searches as you type, previews, follows links, reviews, edits, deletes and undoes by
    single keys; `?` shows them. Needs the package `textual`: `pip install textual`.
    """
    raise Invalid(
        "`mind browse` needs a terminal",
        hint="`mind list`, `mind search WORDS` and `mind show ID` print to a pipe",
    )


@render.register
def _(result: Browsed, screen: Screen) -> None:
    if result.changes:
        changes = count(result.changes, "change")
        screen.line(dim(f"{changes} made; `mind undo --list` lists them"))
