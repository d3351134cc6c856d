"""Answers to the command lines of other processes, by a server that has the memory open.

The same declarations parse the words, and the same `invoke` runs the command, with the agent that
the other process named. The reply has what the command would have printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mimo import rendering
from mimo.call.spec import Effect
from mimo.call.table import all_commands
from mimo.cli.asked import PATHS
from mimo.cli.options import Line
from mimo.cli.program import read
from mimo.errors import Cancelled, Internal, MindError
from mimo.operations.invoke import invoke, notes_beside
from mimo.rendering import Screen
from mimo.rendering.results import drawn, setting_of

if TYPE_CHECKING:
    from mimo.call import Call

_OPTIONS = {"json", "no_color", "no_pager", "verbose", "long"}


def reply(call: Call, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns what to print for the words of a request and the exit status, or None.

    Nothing happened if the words do not name a command in `PATHS`. For a prompt, it is the ids of
    the pitfalls that it runs into.
    """
    if request["ask"] == "near":
        from mimo.features.pitfalls.sources import approved_ids

        return {"edges": approved_ids(call, request["prompt"])}
    words = request["argv"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    try:
        line = read(all_commands(), words)
    except MindError:
        return None
    return _answer(call, request, line) if isinstance(line, Line) and _is_whole(line) else None


def _is_whole(line: Line) -> bool:
    """Returns whether a line reads this project alone, and no file or input of its process."""
    spec = line.spec
    if spec.path not in PATHS:  # Its arguments may be on standard input.
        return False
    arguments = line.arguments()
    return (
        spec.effect is Effect.READ
        and not any(param.arg.stdin or param.arg.file for param in spec.params)
        and arguments.get("at") is None
        and arguments.get("scope") != "all"
        and arguments.get("group") is None
        and not set(line.options) - _OPTIONS
    )


def _answer(call: Call, request: Mapping[str, Any], line: Line) -> dict[str, Any]:
    options = line.options
    screen: Screen = Screen()
    if size := request["size"]:
        from mimo.rendering.terminal import TerminalScreen

        colour = bool(request["colour"]) and not options.get("no_color")
        screen = TerminalScreen(colour=colour, width=size[0], height=size[1])
    with rendering.captured() as output:
        try:
            result = invoke(line.spec, call, line.arguments())
            for note in notes_beside(call, result):
                rendering.complain(f"note: {note}")
            shown = {**options, "no_pager": True}
            drawn(result, shown, setting_of(call.mind, options), screen)()
            status = int(getattr(result, "exit_status", 0))
        except (Internal, Cancelled):
            raise
        except MindError as error:
            coded = "verbose" in options
            status = rendering.report(error, as_wire="json" in options, coded=coded)
    pages = bool(size) and not {"json", "no_pager"} & set(options)
    return {"status": status, "notes": output.errors, "text": output.text, "pages": pages}
