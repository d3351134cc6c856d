"""The command line: words -> a command, its answer on stdout, anything else on stderr."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mimo.cli import output
from mimo.cli.params import SETTINGS, command_of, common_options
from mimo.commands import all_commands
from mimo.commands.arguments import nearest
from mimo.commands.invoke import Caller, fault, invoke
from mimo.commands.registry import Registry
from mimo.commands.spec import Spec, Surface
from mimo.errors import Invalid, MindError

if TYPE_CHECKING:
    from mimo.mind import Mind

Open = Callable[[Path | None], "Mind"]
"""Opens the memory of a named project, or of the one around the working directory."""

INTERRUPTED = 130
"""The exit status after Ctrl-C: 128 + SIGINT, as shells count."""

COMPLETING = "_MIND_COMPLETE"
"""Set by the scripts in completions/: the arguments are then what is typed so far."""

EDITED = "mind_edit"
"""The command that opens an editor where nothing but an id is said."""


def open_mind(project: Path | None) -> "Mind":
    """Returns the memory that a command works on."""
    from mimo.mind import Mind

    return Mind.open(Path.cwd(), project=project)


class Words(click.Group):
    """Commands by the words that lead to them, each loaded when it is named."""

    def __init__(self, path: str, commands: Registry, open: Open, **attrs: Any) -> None:
        """Serve the commands below `path`, which is empty for the program itself."""
        super().__init__(
            name=path or "mind",
            params=[*common_options()],
            context_settings=SETTINGS | {"allow_interspersed_args": False},
            no_args_is_help=False,
            invoke_without_command=True,
            **attrs,
        )
        self.path = path
        self.registry = commands
        self._open = open

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that is named; `mind` alone shows its help."""
        if ctx._protected_args or ctx.args:  # noqa: SLF001 - click keeps a group's words here
            return super().invoke(ctx)
        if self.path:
            known = ", ".join(self.list_commands(ctx))
            raise Invalid(f"`mind {self.path}` needs a command", hint=f"commands are {known}")
        click.echo(ctx.get_help())
        return None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the words that may follow."""
        return [*self.registry.below(self.path), *([] if self.path else ["mcp"])]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command or the group of that name, or None."""
        path = f"{self.path} {cmd_name}".strip()
        if path in self.registry.table:
            return self._leaf(path)
        if self.registry.below(path):
            return Words(path, self.registry, self._open, help=self.registry.groups.get(path, ""))
        if path == "mcp":
            from mimo.cli.serve import mcp_command

            return mcp_command()
        return None

    def _leaf(self, path: str) -> click.Command:
        def run(spec: Spec, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
            _run(self._open, spec, arguments, options)

        return command_of(self.registry.at(path), run, self.registry.below(path))

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
            return f"{word} {sub}", self._leaf(f"{path} {sub}"), remaining
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
        program = f"mind {self.path}".strip()
        near = nearest(word, known)
        listed = f"commands are {', '.join(known)}" if self.path else f"see `{program} --help`"
        return Invalid(
            f"`{word}` is not a command of `{program}`",
            hint=f"did you mean `{program} {near[0]}`?" if near else listed,
        )

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
        return {title: words for title, words in sections.items() if words} | {"Agents": ["mcp"]}


def _first_word(rest: Sequence[str]) -> int | None:
    """Returns the place of the first word that is no option of every command's, nor follows one."""
    place = 0
    while place < len(rest) and rest[place].startswith("-"):
        if rest[place] not in ("--json", "--no-color", "--no-pager", "--project"):
            return None
        place += 2 if rest[place] == "--project" else 1
    return place if place < len(rest) else None


def _run(open_: Open, spec: Spec, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Run one command and print its answer."""
    named = options.get("project")
    mind = open_(Path(named) if named else None)
    if sys.stderr.isatty() and not options.get("json"):
        mind.progress = output.progress
    result = _result(spec, mind, arguments)
    if result is not None:
        output.show(result, options)


def _result(spec: Spec, mind: "Mind", arguments: Mapping[str, Any]) -> object | None:
    """Returns a command's result; None where a person left the editor without a change."""

    def run(given: Mapping[str, Any]) -> object:
        return invoke(spec, mind, Caller(surface=Surface.CLI), given)

    if spec.name != EDITED or set(arguments) != {"id"} or not sys.stdin.isatty():
        return run(arguments)
    from mimo.cli.editor import edit

    result = edit(mind, arguments, run)
    if result is None:
        output.complain("note: nothing changed")
    return result


def program(commands: Registry | None = None, open: Open = open_mind) -> Words:
    """Returns the whole command line as a click group."""
    from mimo import __version__

    root = Words("", commands or all_commands(), open, help=SUMMARY)
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
    as_json = "--json" in (args[: args.index("--")] if "--" in args else args)
    try:
        status = _run_words(program(commands, open), args)
        output.flush()
        return status
    except MindError as error:
        return output.report(error, as_json)
    except click.ClickException as error:
        return output.report(_usage(error), as_json)
    except KeyboardInterrupt:
        output.complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        output.give_up_stdout()
        return 0
    except Exception as error:  # noqa: BLE001 - the last resort: nothing unforeseen is shown raw
        unforeseen = fault()
        unforeseen.__cause__ = error
        return output.report(unforeseen, as_json)


def _run_words(root: Words, args: list[str]) -> int:
    """Returns the exit status of what click makes of the words: a command, help or completions."""
    if os.environ.get(COMPLETING):
        from mimo.cli.complete import tell

        tell(root, args)
        return 0
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
