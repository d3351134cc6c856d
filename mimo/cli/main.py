"""The command line: words -> a command, its answer on stdout, anything else on stderr."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mimo.cli.words import Words
from mimo.commands import all_commands
from mimo.commands.registry import Registry
from mimo.commands.spec import Effect, Param, Spec, Surface
from mimo.domain.agents import agent_of
from mimo.errors import Invalid, MindError, status_of

if TYPE_CHECKING:
    from mimo.commands.invoke import Caller
    from mimo.mind import Mind
    from mimo.surroundings import Question

Open = Callable[[Path | None], "Mind"]
"""Opens the memory of a named project, or of the one around the working directory."""

COMPLETING = "_MIND_COMPLETE"
"""Set by the scripts in completions/: the arguments are then what is typed so far."""

EDITED = "mind_edit"
"""The command that opens an editor where nothing but an id is said."""

GUIDED = ("mind_review", "mind_trust")
"""The commands that go through what there is with a person, where one sits before them."""


def open_mind(project: Path | None) -> "Mind":
    """Returns the memory that a command works on."""
    from mimo.mind import Mind
    from mimo.surroundings import working_directory

    return Mind.open(working_directory(), project=project)


def _run(open_: Open, spec: Spec, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Run one command and print its answer."""
    from mimo.cli import output
    from mimo.commands.invoke import Caller

    named = options.get("project")
    mind = open_(Path(named) if named else None)
    _attend(mind, options)
    try:
        caller = Caller(
            surface=Surface.CLI,
            agent=agent_of(os.environ),
            allows_secrets=bool(options.get("allow_secret")),
        )
        if spec.name in GUIDED and not options.get("json") and _is_watched():
            result = _guided(spec, mind, arguments, options, caller)
            if result is None:
                return
        else:
            result = _result(spec, mind, arguments, caller)
        told = None if getattr(result, "notice", None) else mind.notice
        for warning in (*mind.config.warnings, *([told] if told else [])):
            output.complain(f"note: {warning}")
    finally:
        mind.close()
    if result is None:
        output.complain("note: nothing changed")
    else:
        output.show(result, options)
        writes = spec.effect is not Effect.READ and spec.needs_project
        if writes and named is None and not options.get("json"):
            _name_project(mind)
        if status := getattr(result, "exit_status", 0):
            raise click.exceptions.Exit(status)


def _name_project(mind: "Mind") -> None:
    """Print which project was written to, if that may surprise.

    It does if it was found above the repository that the user is in, or named by the environment.
    """
    from mimo.cli import output
    from mimo.surroundings import working_directory

    folder = working_directory()
    top = folder and next((p for p in (folder, *folder.parents) if (p / ".git").exists()), None)
    root = mind.project.root
    above = folder is not None and folder.is_relative_to(root)
    if root not in (folder, top) and (above or os.environ.get("MIND_PROJECT")):
        output.complain(f"note: in the project `{root}`")


def _attend(mind: "Mind", options: Mapping[str, Any]) -> None:
    """Lets a command tell how far it is, ask, and show parts, as far as a person is there."""
    from mimo.cli import output

    mind.partial = lambda part: output.show_part(part, options)
    if output.is_terminal(sys.stderr) and not options.get("json"):
        mind.progress = output.progress
        if output.is_terminal(sys.stdin):
            mind.ask = _ask


def _ask(question: "Question", seconds: float) -> str | None:
    from mimo.cli.asking import ask

    return ask(question, seconds)


def _result(
    spec: Spec, mind: "Mind", arguments: Mapping[str, Any], caller: "Caller"
) -> object | None:
    """Returns a command's result; None where a person left the editor without a change."""
    from mimo.commands.invoke import invoke

    def run(given: Mapping[str, Any]) -> object:
        return invoke(spec, mind, caller, given)

    from mimo.cli.output import is_terminal

    if not is_terminal(sys.stdin):
        return run(arguments)
    if spec.name == EDITED and set(arguments) == {"id"}:
        from mimo.cli.editor import edit

        return edit(mind, arguments, run)
    if sys.stdout.isatty() and (left_out := _texts_left_out(spec, arguments)):
        from mimo.cli.editor import compose

        return compose(left_out, arguments, run)
    return run(arguments)


def _is_watched() -> bool:
    """Returns whether a person sits before it and can press keys."""
    from mimo.cli.output import is_terminal

    dumb = os.environ.get("TERM") == "dumb"
    return is_terminal(sys.stdin) and is_terminal(sys.stdout) and not dumb


def _guided(
    spec: Spec,
    mind: "Mind",
    arguments: Mapping[str, Any],
    options: Mapping[str, Any],
    caller: "Caller",
) -> object | None:
    """Returns what comes of a command that asks a person; None where all of it was shown."""
    from mimo.cli import guided
    from mimo.commands.invoke import invoke

    commands = all_commands()

    def call(path: str, given: Mapping[str, Any]) -> object | None:
        wanted = commands.at(path)
        if path == spec.path:
            return invoke(spec, mind, caller, given)
        return _result(wanted, mind, given, caller)

    if spec.name == "mind_trust":
        return guided.trust(mind, call, arguments, options)
    guided.review(call, arguments, options)
    return None


def _texts_left_out(spec: Spec, arguments: Mapping[str, Any]) -> list[Param]:
    """Returns the texts that the command needs and nobody gave, if the long one is among them."""
    missing = [
        param
        for param in spec.params
        if param.required and param.shape.kind == "string" and param.name not in arguments
    ]
    missing.sort(key=lambda param: not param.arg.stdin)
    others = [param for param in spec.params if param.required and param.name not in arguments]
    return missing if missing and missing[0].arg.stdin and len(others) == len(missing) else []


def program(commands: Registry | None = None, open: Open = open_mind) -> Words:
    """Returns the whole command line as a click group."""
    from mimo import __version__

    def run(spec: Spec, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        _run(open, spec, arguments, options)

    root = Words("", commands or all_commands(), run, help=SUMMARY)
    version = click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=lambda ctx, _, asked: _tell_version(ctx, __version__) if asked else None,
        help="Print the version",
    )
    root.params.append(version)
    return root


SUMMARY = """Long-term memory for coding agents and the people who work with them

Memories are Markdown files under .mind/ in your project: found by meaning and by words, on this
machine alone, by you and by your agents.
"""


def _tell_version(ctx: click.Context, version: str) -> None:
    click.echo(f"mind {version}")
    ctx.exit()


def main(
    argv: Sequence[str] | None = None,
    *,
    commands: Registry | None = None,
    open: Open = open_mind,
) -> int:
    """Returns the exit status after running one command line."""
    args = list(sys.argv[1:] if argv is None else argv)
    root = program(commands, open)
    if os.environ.get(COMPLETING):
        from mimo.cli.complete import tell

        tell(root, args)
        return 0
    from mimo.cli import output

    as_json = "--json" in (args[: args.index("--")] if "--" in args else args)
    try:
        output.prepare()
        status = _run_words(root, args)
        output.flush()
        return status
    except MindError as error:
        return output.report(error, as_json)
    except click.ClickException as error:
        return output.report(_usage(error), as_json)
    except KeyboardInterrupt as error:
        output.interrupted()
        return status_of(error)
    except BrokenPipeError:
        output.give_up_stdout()
        return 0
    except Exception as error:  # noqa: BLE001 - the last resort: nothing unforeseen is shown raw
        from mimo.commands.invoke import fault

        unforeseen = fault()
        unforeseen.__cause__ = error
        return output.report(unforeseen, as_json)


def _run_words(root: Words, args: list[str]) -> int:
    """Returns the exit status of what click makes of the words: a command or help."""
    try:
        with root.make_context("mind", args) as ctx:
            root.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0


def _usage(error: click.ClickException) -> Invalid:
    """Returns click's complaint in our form."""
    ctx = getattr(error, "ctx", None)
    asked = f"{ctx.command_path} --help" if ctx else "mind --help"
    message = error.format_message().strip().removesuffix(".")
    return Invalid(f"{message[:1].lower()}{message[1:]}", hint=f"see `{asked}`")
