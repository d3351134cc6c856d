"""Answers to the command lines of other processes, by a server that has the memory open.

The same declarations parse the words, and the same `invoke` runs the command, with the agent that
the other process named. The reply has what the command would have printed.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from mimo.cli.asked import PATHS
from mimo.cli.params import Run, completions
from mimo.commands.invoke import Caller, invoke
from mimo.commands.spec import Effect, Spec, Surface, to_json
from mimo.errors import Cancelled, Internal, MindError
from mimo.guard.privacy import redact_error
from mimo.operations.asking import agent_of
from mimo.rendering import as_json, lines_of, safe
from mimo.rendering.results import Recorded, show_on

if TYPE_CHECKING:
    from mimo.mind import Mind

_REVISION, _SCOPE = "at", "scope"


class _Unanswered(Exception):
    """The other process must run this command line."""


def reply(
    mind: "Mind", request: Mapping[str, Any], program: Callable[[Run], click.Group]
) -> dict[str, Any] | None:
    """Returns what to print for the words of a request and the exit status, or None.

    `program` makes the command line from the function that runs a command. Nothing happened if the
    words are not those of a command in `PATHS`.
    """
    words, kind = request["argv"], request["ask"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    if any(map(_prints, words)):
        return None
    if kind == "completion":
        named = ["--project", str(mind.project.root), *words]
        lines = completions(program(_refuse), named)
        return {"status": 0, "notes": [], "text": "".join(f"{line}\n" for line in lines)}
    if kind != "command":
        return None
    answers: list[dict[str, Any]] = []
    root = program(partial(_run, mind, request, answers))
    root.callback = _check_command
    try:
        with root.make_context("mind", list(words)) as ctx:
            root.invoke(ctx)
    except (_Unanswered, MindError, click.ClickException, click.exceptions.Exit):
        return None
    return answers[0] if answers else None


def _prints(word: str) -> bool:
    """Returns whether click itself may print something for an option: standard output is not ours.

    Short options can be joined, as in `-jh`.
    """
    is_short = word.startswith("-") and not word.startswith("--")
    return word in ("--help", "--version") or (is_short and "h" in word)


def _check_command(**_: object) -> None:
    """Raises `_Unanswered` without a command, for which the program prints its help."""
    if click.get_current_context().invoked_subcommand is None:
        raise _Unanswered


def _refuse(*_: object) -> None:
    raise _Unanswered


def _run(
    mind: "Mind",
    request: Mapping[str, Any],
    answers: list[dict[str, Any]],
    spec: Spec,
    arguments: Mapping[str, Any],
    options: Mapping[str, Any],
) -> None:
    """Runs one command and adds its answer. Raises `_Unanswered` if it is not answered."""
    is_other = arguments.get(_REVISION) is not None or arguments.get(_SCOPE) == "all"
    if spec.path not in PATHS or spec.effect is not Effect.READ or is_other or _has_input(spec):
        raise _Unanswered
    if set(options) - {"json", "no_color", "no_pager"}:
        raise _Unanswered
    caller = Caller(surface=Surface.CLI, agent=agent_of(mind.environ))
    try:
        result = invoke(spec, mind, caller, arguments)
    except (Internal, Cancelled):
        raise _Unanswered from None
    except MindError as error:
        answers.append(_failed(error, wide=bool(request["wide"]), json="json" in options))
        return
    notice = None if getattr(result, "notice", None) else mind.notice
    warnings = (*mind.config.warnings, *([notice] if notice else []))
    notes = [safe(f"note: {warning}") for warning in warnings]
    answer = {"status": getattr(result, "exit_status", 0), "notes": notes, "text": ""}
    if "json" in options:
        data = as_json(to_json(result), indent=2, wide=bool(request["wide"]))
        answers.append({**answer, "text": f"{data}\n"})
        return
    screen = Recorded()
    show_on(screen, result)
    notes += screen.notes
    if request["screen"]:
        answers.append({**answer, "calls": screen.calls, "options": dict(options)})
    else:
        answers.append({**answer, "text": screen.plain})


def _has_input(spec: Spec) -> bool:
    """Returns whether a command may read a file or standard input, which are of a process."""
    return any(param.arg.stdin or param.arg.file for param in spec.params)


def _failed(error: MindError, *, wide: bool, json: bool) -> dict[str, Any]:
    """Returns the answer of a command that failed, as `rendering.report` prints it."""
    if json:
        redact_error(error)
        notes = [as_json(error.wire(), wide=wide)]
    else:
        notes = [safe(line) for line in lines_of(error)]
    return {"status": error.exit_status, "notes": notes, "text": ""}
