"""The command line: words lead to a command; its result goes to stdout, messages to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mimo import rendering
from mimo.call import Call, Caller, Console, Surface
from mimo.call.spec import Effect, Param, Spec
from mimo.call.table import CommandTable, all_commands
from mimo.cli.asked import COMPLETING
from mimo.cli.options import Line
from mimo.data.disk import shared, working_directory
from mimo.errors import UNDECIDED, MindError, status_of
from mimo.operations.asking import agent_of
from mimo.rendering import ask_exactly, complain, is_terminal

if TYPE_CHECKING:
    from mimo.mind import Mind
    from mimo.rendering import Setting
    from mimo.surroundings import Question

Open = Callable[[Path | None], "Mind"]
"""Opens the memory of a named project, or of the one around the working directory."""

EDITED = "mind_edit"
"""The command that opens an editor if only an id is given."""

GUIDED = ("mind_review", "mind_trust")
"""The commands that work key by key on a terminal."""


def open_mind(project: Path | None) -> Mind:
    """Returns the memory that a command works on."""
    from mimo.mind import Mind

    return Mind.open(working_directory(), project=project)


def main(
    argv: Sequence[str] | None = None,
    *,
    commands: CommandTable | None = None,
    open: Open = open_mind,
) -> int:
    """Returns the exit status after running one command line."""
    args = list(sys.argv[1:] if argv is None else argv)
    registry = commands or all_commands()
    options = args[: args.index("--")] if "--" in args else args
    spec: Spec | None = None  # the command that runs, once it is known

    def report(error: MindError) -> int:
        coded = not {"-v", "--verbose"}.isdisjoint(options)
        status = rendering.report(error, as_wire="--json" in options, coded=coded)
        return UNDECIDED if status == 1 and spec and spec.finds else status

    try:
        rendering.prepare()
        if os.environ.get(COMPLETING):
            from mimo.cli.completing import completions

            rendering.write("".join(f"{line}\n" for line in completions(registry, args)))
            return 0
        status, line = 0, _read(registry, args)
        if isinstance(line, Line):
            arguments, spec = line.arguments(), line.spec
            status = run_command(open, registry, spec, arguments, line.options)
        else:
            line()
        rendering.flush()
        return status
    except MindError as error:
        return report(error)
    except KeyboardInterrupt as error:
        rendering.interrupted(*getattr(error, "__notes__", ()))
        return status_of(error)
    except BrokenPipeError:
        rendering.give_up_stdout()
        return 0
    except Exception as error:  # noqa: BLE001 - the last resort: no unexpected error is shown raw
        from mimo.operations.invoke import fault

        unexpected = fault(error)
        unexpected.__cause__ = error
        return report(unexpected)


def _read(registry: CommandTable, words: Sequence[str]) -> Line | Callable[[], None]:
    """Returns a line, or what else the words ask for. Raises `Invalid` for others."""
    from mimo.cli.program import Page, read

    line = read(registry, words)
    if isinstance(line, Page):
        return partial(rendering.write, f"{line.text}\n")
    if isinstance(line, Line):
        return line
    from mimo.cli import serving

    return partial(serving.run, line)


@shared()
def run_command(
    open_: Open,
    registry: CommandTable,
    spec: Spec,
    arguments: Mapping[str, Any],
    options: Mapping[str, Any],
) -> int:
    """Runs one command, prints its result, and returns the exit status."""
    from mimo.operations.invoke import invoke, notes_beside
    from mimo.rendering.results import drawn, setting_of

    project = options.get("project")
    mind = open_(Path(project) if project else None)
    setting = setting_of(mind, options, arguments)
    caller = Caller(
        surface=Surface.CLI,
        agent=agent_of(os.environ),
        allows_secrets=bool(options.get("allow_secret")),
    )
    call = Call(mind, caller, _console(options, setting))
    several = next((param.name for param in spec.params if param.arg.several), "")
    drawing = call.started(reads_only=True)
    try:
        result: object
        if isinstance(arguments.get(several), tuple):
            result = tuple(
                invoke(spec, call, {**arguments, several: each}) for each in arguments[several]
            )
        elif is_terminal(sys.stdin):
            result = _with_user(registry, spec, call, arguments, options)
        else:
            result = invoke(spec, call, arguments)
        for note in notes_beside(call, result):
            complain(f"note: {note}")
        if arguments.get("at") is None:  # One snapshot has all handles of the answer.
            setting = setting._replace(handle=partial(mind.handle, reader_of=drawing.reader_of))
        finish = None if result is None else drawn(result, options, setting)
    finally:
        drawing.release()
        mind.close()
    if finish is None:
        return 0
    finish()
    writes = spec.effect is not Effect.READ and spec.needs_project
    if project is None and not (options.get("json") or arguments.get("user")):
        if writes:
            _print_project(mind)
        elif mind.source and not spec.needs.person:
            complain(f"note: {mind.source}")
    return int(getattr(result, "exit_status", 0))


def _console(options: Mapping[str, Any], setting: Setting) -> Console:
    """Returns a console that prints partial results; a terminal also shows progress and asks."""
    from mimo.rendering.results import show_part

    is_interactive = is_terminal(sys.stderr) and not options.get("json")
    return Console(
        partial=partial(show_part, options=options, setting=setting),
        answers=_answers,
        progress=rendering.progress if is_interactive else None,
        show_line=lambda text: complain(f"note: {text}"),
        ask=Asking().ask if is_interactive and is_terminal(sys.stdin) else None,
    )


def _answers(call: Call, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the reply to a command line of another process, or None."""
    from mimo.cli.answering import reply

    return reply(call, request)


def _print_project(mind: Mind) -> None:
    """Prints the project that was written to, if the user may have expected another.

    It is printed if it is above the repository of the working directory, or was named by the
    environment.
    """
    if not mind.has_project:
        return
    folder = working_directory()
    top = folder and next((p for p in (folder, *folder.parents) if (p / ".git").exists()), None)
    root = mind.project.root
    above = folder is not None and folder.is_relative_to(root)
    if root not in (folder, top) and (above or os.environ.get("MIND_PROJECT")):
        complain(f"note: in the project `{root}`")


# A user at a terminal: editors, guided commands, questions.


def _with_user(
    registry: CommandTable,
    spec: Spec,
    call: Call,
    arguments: Mapping[str, Any],
    options: Mapping[str, Any],
) -> object | None:
    """Returns the result of a command typed on a terminal.

    Returns None if the user changed nothing, or a guided command has shown everything itself.
    """
    shows = is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"
    if not (spec.screen or spec.name in GUIDED) or options.get("json") or not shows:
        result = _edited(spec, call, arguments)
        if result is None:
            complain("note: nothing changed")
        return result
    from mimo.operations.invoke import invoke

    if spec.screen:

        def run(view: Call, path: str, arguments: Mapping[str, Any]) -> object | None:
            return _edited(registry.at(path), view, arguments)

        colour = not (options.get("no_color") or os.environ.get("NO_COLOR"))
        return spec.screen(call, run, arguments, colour=colour)
    from mimo.cli import guided

    def run_at(path: str, arguments: Mapping[str, Any]) -> object | None:
        if path == spec.path:
            return invoke(spec, call, arguments)
        return _edited(registry.at(path), call, arguments)

    if spec.name == "mind_trust":
        return guided.trust(call, run_at, arguments, options)
    guided.review(call, run_at, arguments, options)
    return None


def _edited(spec: Spec, call: Call, arguments: Mapping[str, Any]) -> object | None:
    """Returns the result of a command, whose missing texts come from the user's editor.

    Returns None if the user left the editor without a change.
    """
    from mimo.operations.invoke import invoke

    run = partial(invoke, spec, call)
    if spec.name == EDITED and set(arguments) == {"id"}:
        from mimo.cli.editor import edit

        return edit(call, arguments, run)
    if is_terminal(sys.stdout) and (missing := _missing_texts(spec, arguments)):
        from mimo.cli.editor import compose

        return compose(missing, arguments, run)
    return run(arguments)


def _missing_texts(spec: Spec, arguments: Mapping[str, Any]) -> list[Param]:
    """Returns the required texts that were not given, if the long one is among them."""
    missing = [param for param in spec.params if param.required and param.name not in arguments]
    missing.sort(key=lambda param: not param.arg.stdin)
    are_texts = all(param.shape.kind == "string" for param in missing)
    return missing if missing and missing[0].arg.stdin and are_texts else []


class Asking:
    """The questions of a command on the terminal, each printed once."""

    question: Question | None = None

    def ask(self, question: Question, seconds: float) -> str | None:
        """Returns the choice that the user typed, or None if there was none within the time.

        The end of the input is not an answer: it stops the command as Ctrl-C does. Raises
        `Invalid` if the question can't be shown exactly: the user would agree to something else.
        """
        from select import select
        from time import monotonic

        if self.question != question:
            text = f"{question.text} [{'/'.join(question.choices)}]"
            text += f" (Enter: {question.default})" if question.default else ""
            ask_exactly(text)
            self.question = question
        end = monotonic() + seconds
        while select([sys.stdin], [], [], max(0, end - monotonic()))[0]:
            typed = sys.stdin.readline()
            if not typed:
                raise KeyboardInterrupt
            text = typed.strip() or question.default
            answer = text.lower()
            exact = [choice for choice in question.choices if choice == text]
            near = exact or [c for c in question.choices if answer and c.lower().startswith(answer)]
            if len(near) == 1:
                self.question = None
                return near[0]
            complain(f"answer with one of {', '.join(question.choices)}")
        return None
