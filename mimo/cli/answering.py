"""Answers to the command lines of other processes, by a server that has the memory open.

The same declarations parse the words, and the same `invoke` runs the command, with the agent that
the other process named. The reply has what the command would have printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mimo.cli.asked import PATHS
from mimo.cli.completing import completions
from mimo.cli.options import Line
from mimo.cli.program import read
from mimo.commands import all_commands
from mimo.commands.invoke import invoke, notes_beside
from mimo.commands.spec import Effect, Spec, to_json
from mimo.errors import Cancelled, Internal, MindError
from mimo.guard.privacy import redact_error
from mimo.rendering import as_json, lines_of, safe
from mimo.rendering.results import Recorded, setting_of, show_on

if TYPE_CHECKING:
    from mimo.call import Call

_REVISION, _SCOPE = "at", "scope"


def reply(call: Call, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns what to print for the words of a request and the exit status, or None.

    Nothing happened if the words do not name a command in `PATHS`.
    """
    words, kind = request["argv"], request["ask"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    if kind == "completion":
        path = request.get("path")
        named = ["--project", str(call.mind.project.root), *words]
        lines = completions(all_commands(), named, path if isinstance(path, str) else "")
        return {"status": 0, "notes": [], "text": "".join(f"{line}\n" for line in lines)}
    try:
        line = read(all_commands(), words) if kind == "command" else None
        if isinstance(line, Line) and line.spec.path in PATHS and not _has_input(line.spec):
            return _answer(call, request, line)
    except MindError:
        pass
    return None


def _answer(call: Call, request: Mapping[str, Any], line: Line) -> dict[str, Any] | None:
    """Returns the answer to a line, or None if the other process must run it."""
    arguments, options = line.arguments(), line.options
    is_other = arguments.get(_REVISION) is not None or arguments.get(_SCOPE) == "all"
    if line.spec.effect is not Effect.READ or is_other:
        return None
    if set(options) - {"json", "no_color", "no_pager", "verbose", "long"}:
        return None
    try:
        result = invoke(line.spec, call, arguments)
    except (Internal, Cancelled):
        raise
    except MindError as error:
        return _failed(error, wide=bool(request["wide"]), options=options)
    notes = [safe(f"note: {note}") for note in notes_beside(call, result)]
    answer = {"status": getattr(result, "exit_status", 0), "notes": notes, "text": ""}
    if "json" in options:
        data = as_json(to_json(result), indent=2, wide=bool(request["wide"]))
        return {**answer, "text": f"{data}\n"}
    screen = Recorded(setting_of(call.mind, options))
    show_on(screen, result)
    notes += screen.notes
    if request["screen"]:
        return {**answer, "calls": screen.calls, "options": dict(options)}
    return {**answer, "text": screen.plain}


def _has_input(spec: Spec) -> bool:
    """Returns whether a command may read a file or standard input, which are of a process."""
    return any(param.arg.stdin or param.arg.file for param in spec.params)


def _failed(error: MindError, *, wide: bool, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the answer of a command that failed, as `rendering.report` prints it."""
    if "json" in options:
        redact_error(error)
        notes = [as_json(error.wire(), wide=wide)]
    else:
        notes = [safe(line) for line in lines_of(error, coded="verbose" in options)]
    return {"status": error.exit_status, "notes": notes, "text": ""}
