"""The command line: words lead to a command; its result goes to stdout, messages to stderr."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from mimo import __version__, rendering
from mimo.cli.asked import COMPLETING
from mimo.cli.params import KEPT, SETTINGS, Command, Run, common_options, completions
from mimo.commands import NAMINGS, TOOLSETS, Registry, all_commands
from mimo.commands.spec import Effect, Param, Spec, Surface
from mimo.disk import working_directory
from mimo.errors import Invalid, MindError, StorageFailed, status_of
from mimo.operations.asking import agent_of
from mimo.rendering import complain, is_terminal

if TYPE_CHECKING:
    from mimo.commands.invoke import Caller
    from mimo.mind import Mind, Question

Open = Callable[[Path | None], "Mind"]
"""Opens the memory of a named project, or of the one around the working directory."""

SUMMARY = """Long-term memory for coding agents and the people who work with them

Memories are Markdown files under .mind/ in your project. You and your agents find them by meaning
and by words, offline.
"""

EDITED = "mind_edit"
"""The command that opens an editor if only an id is given."""

GUIDED = ("mind_review", "mind_trust")
"""The commands that ask the user item by item on a terminal."""


def open_mind(project: Path | None) -> "Mind":
    """Returns the memory that a command works on."""
    from mimo.mind import Mind

    return Mind.open(working_directory(), project=project)


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
        for line in completions(root, args):
            click.echo(line)
        return 0
    as_json = "--json" in (args[: args.index("--")] if "--" in args else args)
    try:
        rendering.prepare()
        status = 0
        try:
            with root.make_context("mind", args) as ctx:
                root.invoke(ctx)
        except click.exceptions.Exit as end:
            status = end.exit_code
        rendering.flush()
        return status
    except MindError as error:
        return rendering.report(error, as_json)
    except click.ClickException as error:
        return rendering.report(_usage(error), as_json)
    except KeyboardInterrupt as error:
        rendering.interrupted()
        return status_of(error)
    except BrokenPipeError:
        rendering.give_up_stdout()
        return 0
    except Exception as error:  # noqa: BLE001 - the last resort: no unexpected error is shown raw
        from mimo.commands.invoke import fault

        unexpected = fault()
        unexpected.__cause__ = error
        return rendering.report(unexpected, as_json)


def program(commands: Registry | None = None, open: Open = open_mind) -> "Words":
    """Returns the whole command line as a click group."""
    root = Words("", commands or all_commands(), partial(run_command, open), help=SUMMARY)
    version = click.version_option(
        __version__, message="mind %(version)s", help="Print the version"
    )
    return version(root)


def _usage(error: click.ClickException) -> Invalid:
    """Returns an error of click as one of ours."""
    ctx = getattr(error, "ctx", None)
    command = f"{ctx.command_path} --help" if ctx else "mind --help"
    message = error.format_message().strip().removesuffix(".")
    return Invalid(f"{message[:1].lower()}{message[1:]}", hint=f"see `{command}`")


def run_command(
    open_: Open, spec: Spec, arguments: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Runs one command and prints its result."""
    from mimo.commands.invoke import Caller, invoke

    named = options.get("project")
    mind = open_(Path(named) if named else None)
    _connect(mind, options)
    caller = Caller(
        surface=Surface.CLI,
        agent=agent_of(os.environ),
        allows_secrets=bool(options.get("allow_secret")),
    )
    try:
        if is_terminal(sys.stdin):
            result = _with_user(spec, mind, caller, arguments, options)
        else:
            result = invoke(spec, mind, caller, arguments)
        notice = None if getattr(result, "notice", None) else mind.notice
        for warning in (*mind.config.warnings, *([notice] if notice else [])):
            complain(f"note: {warning}")
    finally:
        mind.close()
    if result is None:
        complain("note: nothing changed")
        return
    from mimo.rendering.results import show

    show(result, options)
    writes = spec.effect is not Effect.READ and spec.needs_project
    if writes and named is None and not options.get("json"):
        _print_project(mind)
    if status := getattr(result, "exit_status", 0):
        raise click.exceptions.Exit(status)


def _connect(mind: "Mind", options: Mapping[str, Any]) -> None:
    """Lets a command print parts of its result and, on a terminal, show progress and ask."""
    from mimo.rendering.results import show_part

    mind.partial = partial(show_part, options=options)
    mind.answers = answers
    if is_terminal(sys.stderr) and not options.get("json"):
        mind.progress = rendering.progress
        if is_terminal(sys.stdin):
            mind.ask = ask


def answers(mind: "Mind", request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the reply to a command line of another process, or None."""
    from mimo.cli.answering import reply

    return reply(mind, request, partial(Words, "", all_commands()))


def _print_project(mind: "Mind") -> None:
    """Prints the project that was written to, if the user may have expected another.

    It is printed if it is above the repository of the working directory, or was named by the
    environment.
    """
    folder = working_directory()
    top = folder and next((p for p in (folder, *folder.parents) if (p / ".git").exists()), None)
    root = mind.project.root
    above = folder is not None and folder.is_relative_to(root)
    if root not in (folder, top) and (above or os.environ.get("MIND_PROJECT")):
        complain(f"note: in the project `{root}`")


# A user at a terminal: editors, guided commands, questions.


def _with_user(
    spec: Spec,
    mind: "Mind",
    caller: "Caller",
    arguments: Mapping[str, Any],
    options: Mapping[str, Any],
) -> object | None:
    """Returns the result of a command typed on a terminal, or None if the user changed nothing.

    Ends the program if a guided command has shown everything itself.
    """
    shows = is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"
    if spec.name not in GUIDED or options.get("json") or not shows:
        return _edited(spec, mind, caller, arguments)
    from mimo.cli import guided
    from mimo.commands.invoke import invoke

    def call(path: str, given: Mapping[str, Any]) -> object | None:
        if path == spec.path:
            return invoke(spec, mind, caller, given)
        return _edited(all_commands().at(path), mind, caller, given)

    result = None
    if spec.name == "mind_trust":
        result = guided.trust(mind, call, arguments, options)
    else:
        guided.review(call, arguments, options)
    if result is None:
        raise click.exceptions.Exit
    return result


def _edited(
    spec: Spec, mind: "Mind", caller: "Caller", arguments: Mapping[str, Any]
) -> object | None:
    """Returns the result of a command, whose missing texts come from the user's editor.

    Returns None if the user left the editor without a change.
    """
    from mimo.commands.invoke import invoke

    run = partial(invoke, spec, mind, caller)
    if spec.name == EDITED and set(arguments) == {"id"}:
        from mimo.cli.editor import edit

        return edit(mind, arguments, run)
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


_asked: "list[Question]" = []
"""The question on the terminal, so that it is printed once."""


def ask(question: "Question", seconds: float) -> str | None:
    """Returns the choice that the user typed, or None if there was none within the time.

    The end of the input is not an answer: it stops the command as Ctrl-C does.
    """
    from select import select

    if _asked != [question]:
        _asked[:] = [question]
        complain(f"{question.text} [{'/'.join(question.choices)}]")
    if not select([sys.stdin], [], [], seconds)[0]:
        return None
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    answer = line.strip().lower()
    exact = [choice for choice in question.choices if choice == line.strip()]
    near = exact or [c for c in question.choices if answer and c.lower().startswith(answer)]
    if len(near) != 1:
        complain(f"answer with one of {', '.join(question.choices)}")
        return None
    _asked.clear()
    return near[0]


# The words of a command line.


class Words(click.Group):
    """Commands by the words that lead to them, each loaded when it is named."""

    def __init__(self, path: str, commands: Registry, run: Run, **attrs: Any) -> None:
        """Serve the commands below `path`, which is empty for the program itself."""
        super().__init__(
            name=path or "mind",
            params=[*common_options()],
            context_settings=SETTINGS | {"allow_interspersed_args": False},
            no_args_is_help=False,
            invoke_without_command=True,
            callback=self._show_help_without_command,
            **attrs,
        )
        self.path = path
        self.registry = commands
        self._run = run

    def _show_help_without_command(self, **_options: object) -> None:
        """Shows the program's help if there is no command; a group without one is an error."""
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is not None:
            return
        if self.path:
            words = ", ".join(self.list_commands(ctx))
            raise Invalid(f"`mind {self.path}` needs a command", hint=f"commands are {words}")
        click.echo(ctx.get_help())

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the words that may follow."""
        return [*self.registry.below(self.path), *([] if self.path else FOR_CLIENTS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command or the group of that name, or None."""
        path = f"{self.path} {cmd_name}".strip()
        if path in self.registry.table:
            return self.leaf(path)
        if self.registry.below(path):
            return Words(path, self.registry, self._run, help=self.registry.groups.get(path, ""))
        return FOR_CLIENTS[path]() if path in FOR_CLIENTS else None

    def leaf(self, path: str) -> click.Command:
        """Returns the command at a path of the table."""
        return Command(self.registry.at(path), self._run, self.registry.below(path))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command, its name and its arguments.

        A word may be a command and also lead to sub-commands: `search` and `search by-topic`.
        """
        word, rest = args[0], args[1:]
        path = f"{self.path} {word}".strip()
        place = _first_word(rest)
        if path in self.registry.table and place is not None and self._leads(path, rest, place):
            sub = rest[place]
            remaining = rest[:place] + rest[place + 1 :]
            return f"{word} {sub}", self.leaf(f"{path} {sub}"), remaining
        command = self.get_command(ctx, word)
        if command is None and not ctx.resilient_parsing:
            raise self._unknown(ctx, word)
        return (word if command else None), command, rest

    def _leads(self, path: str, rest: Sequence[str], place: int) -> bool:
        """Returns whether the word at `place` is a sub-command of `path`."""
        full = f"{path} {rest[place]}"
        alone = place + 1 == len(rest) or rest[place + 1].startswith("-")
        return full in self.registry.table and (full not in self.registry.lone or alone)

    def _unknown(self, ctx: click.Context, word: str) -> Invalid:
        from mimo.commands.arguments import nearest

        if word.startswith("-"):
            return Invalid(f"`{word}` is not an option of `mind`", hint="see `mind --help`")
        words = self.list_commands(ctx)
        program = f"mind {self.path}".strip()
        near = nearest(word, words)
        listed = f"commands are {', '.join(words)}" if self.path else f"see `{program} --help`"
        return Invalid(
            f"`{word}` is not a command of `{program}`",
            hint=f"did you mean `{program} {near[0]}`?" if near else listed,
        )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns the words that may follow, without loading their commands, or the options."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        words = self.list_commands(ctx)
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under the headings of their sections."""
        for title, words in self._sections().items():
            rows = []
            for word in words:
                path = f"{self.path} {word}".strip()
                if path in self.registry.table:
                    rows.append((word, self.registry.summary(path)))
                elif command := self.get_command(ctx, word):
                    rows.append((word, command.get_short_help_str(80)))
            with formatter.section(title):
                formatter.write_dl(rows)

    def _sections(self) -> dict[str, list[str]]:
        if self.path:
            return {"Commands": list(self.registry.below(self.path))}
        sections: dict[str, list[str]] = {}
        seen: set[str] = set()
        for title, table in self.registry.sections.items():
            words = list(dict.fromkeys(path.split()[0] for path in table))
            sections[title] = [word for word in words if word not in seen]
            seen.update(words)
        sections.setdefault("Agents", []).extend(FOR_CLIENTS)
        return {title: words for title, words in sections.items() if words}


def _first_word(rest: Sequence[str]) -> int | None:
    """Returns the place of the first word after the common options; None if there is none."""
    place = 0
    while place < len(rest) and rest[place].startswith("-"):
        if rest[place] not in ("--json", "--no-color", "--no-pager", "--project"):
            return None
        place += 2 if rest[place] == "--project" else 1
    return place if place < len(rest) else None


# `mind hook` and `mind mcp`: programs for clients, which are not in the table of commands.


HOOK_SUMMARY = "Answer a client's hook with notes and known edges"

HOOK_HELP = f"""{HOOK_SUMMARY}

Reads one JSON object from standard input, as sent by Claude Code, Codex, Gemini CLI, Cursor and
VS Code, and prints one or none. CLIENT names the client if the JSON does not. The exit status is
always 0; failures are recorded in $MIND_HOME/logs/hook.log.
"""

MCP_SUMMARY = "Serve the memory to an agent over MCP, on standard input and output"

MCP_HELP = f"""{MCP_SUMMARY}

By default every documented tool is listed. With --toolsets, `core` lists a small set to start with
and `all` adds the everyday commands. Tools that are not listed can still be called.
"""


def hook_command() -> click.Command:
    """Returns `mind hook` for users; the calls of clients do not come through click."""

    def answer(client: str | None) -> None:
        if is_terminal(sys.stdin):
            raise Invalid(
                "`mind hook` reads the event of a client from standard input",
                hint="clients run it; see docs/hooks.md for how to try it by hand",
            )
        from mimo.features.hooks.command import main

        main([client] if client else [])

    return click.Command(
        "hook",
        callback=answer,
        help=HOOK_HELP,
        short_help=HOOK_SUMMARY,
        context_settings=SETTINGS,
        params=[click.Argument(["client"], required=False)],
    )


def mcp_command() -> click.Command:
    """Returns `mind mcp`."""

    def serve(toolsets: tuple[str, ...], tool_names: str | None, exposure: str | None) -> None:
        if sys.stdin is None:
            raise StorageFailed("standard input is closed", hint="connect a client through a pipe")
        from mimo.server.app import main

        named = click.get_current_context().meta.get(KEPT, {}).get("project")
        main(
            answers=answers,
            project=Path(named) if named else None,
            toolsets=tuple(word for names in toolsets for word in names.split(",") if word),
            naming=tool_names,
            exposure=exposure,
        )

    return click.Command(
        "mcp",
        callback=serve,
        help=MCP_HELP,
        short_help=MCP_SUMMARY,
        context_settings=SETTINGS,
        params=[
            click.Option(
                ["--toolsets"],
                multiple=True,
                metavar="NAMES",
                help=f"Groups of tools to list, by commas: {', '.join(TOOLSETS)}, core, all",
            ),
            click.Option(
                ["--tool-names"],
                type=click.Choice(NAMINGS),
                help="Spelling of names such as save/decision (default underscore)",
            ),
            click.Option(
                ["--exposure"],
                type=click.Choice(("auto", "static", "dynamic")),
                help="Whether the list is narrowed to the needs of a prompt (default auto)",
            ),
            *(option for option in common_options() if option.name == "project"),
        ],
    )


FOR_CLIENTS = {"hook": hook_command, "mcp": mcp_command}
