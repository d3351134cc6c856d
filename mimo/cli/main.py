"""The command line: words -> a command, its answer on stdout, anything else on stderr."""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from mimo.cli.params import SETTINGS, Run, command_of, common_options
from mimo.commands import Registry, all_commands
from mimo.commands.spec import Effect, Param, Spec, Surface
from mimo.errors import Invalid, MindError, status_of
from mimo.rendering import complain
from mimo.surroundings import Question

if TYPE_CHECKING:
    from mimo.commands.invoke import Caller
    from mimo.mind import Mind


# Which coding agent runs a program in its shell, by the environment that it sets.


NAMED = "AI_AGENT"
"""A variable that holds the agent's name."""

MARKS = {
    "CLAUDECODE": "claude-code",
    "CODEX_SANDBOX": "codex",
    "CODEX_THREAD_ID": "codex",
    "CODEX_CI": "codex",
    "CURSOR_AGENT": "cursor",
    "GEMINI_CLI": "gemini-cli",
    "OPENCODE": "opencode",
    "AUGMENT_AGENT": "augment",
    "CLINE_ACTIVE": "cline",
    "GOOSE_TERMINAL": "goose",
}
"""Variables that agents set for the programs they run, each with the agent's name."""


def agent_of(environ: Mapping[str, str]) -> str | None:
    """Returns the name of the agent in whose shell a program runs, or None for a person's."""
    named = re.sub(r"[^\w.@/-]", "", environ.get(NAMED, ""))[:64]
    return named or next((name for mark, name in MARKS.items() if environ.get(mark)), None)


# Questions that a command puts to the person at the terminal.


_put: list[Question] = []
"""The question that stands on the terminal, so that it is printed once."""


def ask(question: Question, seconds: float) -> str | None:
    """Returns the choice that was typed, or None where none was made within so many seconds.

    Whoever ends the input has no answer, and stops the command as Ctrl-C does.
    """
    from select import select

    if _put != [question]:
        _put[:] = [question]
        complain(f"{question.text} [{'/'.join(question.choices)}]")
    if not select([sys.stdin], [], [], seconds)[0]:
        return None
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    chosen = _fitting(line.strip(), question.choices)
    if chosen is None:
        complain(f"answer with one of {', '.join(question.choices)}")
        return None
    _put.clear()
    return chosen


def _fitting(answer: str, choices: tuple[str, ...]) -> str | None:
    """Returns the one choice that begins as the answer does, or None."""
    exact = [choice for choice in choices if choice == answer]
    near = exact or [c for c in choices if answer and c.lower().startswith(answer.lower())]
    return near[0] if len(near) == 1 else None


# The words of a command line, and the commands that they lead to.


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
        """Shows the program's help if no command was named; a group's lack of one is an error."""
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is not None:
            return
        if self.path:
            known = ", ".join(self.list_commands(ctx))
            raise Invalid(f"`mind {self.path}` needs a command", hint=f"commands are {known}")
        click.echo(ctx.get_help())

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the words that may follow."""
        return [*self.registry.below(self.path), *([] if self.path else ["hook", "mcp"])]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command or the group of that name, or None."""
        path = f"{self.path} {cmd_name}".strip()
        if path in self.registry.table:
            return self.leaf(path)
        if self.registry.below(path):
            return Words(path, self.registry, self._run, help=self.registry.groups.get(path, ""))
        if path in ("hook", "mcp"):
            from mimo.cli import serve

            return serve.hook_command() if path == "hook" else serve.mcp_command()
        return None

    def leaf(self, path: str) -> click.Command:
        """Returns the command at a path of the table."""
        return command_of(self.registry.at(path), self._run, self.registry.below(path))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command, its name and its arguments.

        A word may be a command and lead to sub-commands at once: `search` and `search by-topic`.
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
        if word.startswith("-"):
            return Invalid(f"`{word}` is not an option of `mind`", hint="see `mind --help`")
        known = self.list_commands(ctx)
        from mimo.commands.arguments import nearest

        program = f"mind {self.path}".strip()
        near = nearest(word, known)
        listed = f"commands are {', '.join(known)}" if self.path else f"see `{program} --help`"
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
                command = self.get_command(ctx, word)
                rows.append((word, command.get_short_help_str(80) if command else ""))
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
        sections.setdefault("Agents", []).extend(("hook", "mcp"))
        return {title: words for title, words in sections.items() if words}


def _first_word(rest: Sequence[str]) -> int | None:
    """Returns the place of the first word that is no option of every command's, nor follows one."""
    place = 0
    while place < len(rest) and rest[place].startswith("-"):
        if rest[place] not in ("--json", "--no-color", "--no-pager", "--project"):
            return None
        place += 2 if rest[place] == "--project" else 1
    return place if place < len(rest) else None


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
    from mimo import rendering
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
            rendering.complain(f"note: {warning}")
    finally:
        mind.close()
    if result is None:
        rendering.complain("note: nothing changed")
    else:
        from mimo.rendering.results import show

        show(result, options)
        writes = spec.effect is not Effect.READ and spec.needs_project
        if writes and named is None and not options.get("json"):
            _name_project(mind)
        if status := getattr(result, "exit_status", 0):
            raise click.exceptions.Exit(status)


def _name_project(mind: "Mind") -> None:
    """Print which project was written to, if that may surprise.

    It does if it was found above the repository that the user is in, or named by the environment.
    """
    from mimo import rendering
    from mimo.surroundings import working_directory

    folder = working_directory()
    top = folder and next((p for p in (folder, *folder.parents) if (p / ".git").exists()), None)
    root = mind.project.root
    above = folder is not None and folder.is_relative_to(root)
    if root not in (folder, top) and (above or os.environ.get("MIND_PROJECT")):
        rendering.complain(f"note: in the project `{root}`")


def _attend(mind: "Mind", options: Mapping[str, Any]) -> None:
    """Lets a command tell how far it is, ask, and show parts, as far as a person is there."""
    from mimo import rendering
    from mimo.rendering.results import show_part

    mind.partial = lambda part: show_part(part, options)
    if rendering.is_terminal(sys.stderr) and not options.get("json"):
        mind.progress = rendering.progress
        if rendering.is_terminal(sys.stdin):
            mind.ask = _ask


def _ask(question: "Question", seconds: float) -> str | None:

    return ask(question, seconds)


def _result(
    spec: Spec, mind: "Mind", arguments: Mapping[str, Any], caller: "Caller"
) -> object | None:
    """Returns a command's result; None where a person left the editor without a change."""
    from mimo.commands.invoke import invoke

    def run(given: Mapping[str, Any]) -> object:
        return invoke(spec, mind, caller, given)

    from mimo.rendering import is_terminal

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
    from mimo.rendering import is_terminal

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
    from mimo import rendering

    as_json = "--json" in (args[: args.index("--")] if "--" in args else args)
    try:
        rendering.prepare()
        status = _run_words(root, args)
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
    except Exception as error:  # noqa: BLE001 - the last resort: nothing unforeseen is shown raw
        from mimo.commands.invoke import fault

        unforeseen = fault()
        unforeseen.__cause__ = error
        return rendering.report(unforeseen, as_json)


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
