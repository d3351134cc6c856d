"""The command line as click reads it: help, errors, and all lines that are not plain."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import click

from mimo import __version__, disk, rendering
from mimo.cli.external import found
from mimo.cli.params import KEPT, SETTINGS, Command, Program, clicked, printing
from mimo.cli.plain import COMMON, PROGRAMS, SUMMARIES, Run, led
from mimo.commands import CommandTable, all_commands
from mimo.commands.arguments import nearest
from mimo.errors import Invalid, StorageFailed
from mimo.rendering import is_terminal
from mimo.text.clean import one_line

_BOUNDS = {"--since": "--from", "--after": "--from", "--until": "--to", "--before": "--to"}
"""Options of git that limit the time, and ours."""

SUMMARY = """Long-term memory for coding agents and the people who work with them

Memories are Markdown files under .mind/ in your project. You and your agents find them by meaning
and by words, offline.
"""


def run(commands: CommandTable, command: Run, words: Sequence[str]) -> int:
    """Returns the exit status after `command` has run what the words name.

    Raises `Invalid` if they are not a command line.
    """
    try:
        root = program(commands, command)
        with root.make_context("mind", list(words)) as ctx:
            return root.invoke(ctx) or 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        raise usage(error) from error


def program(commands: CommandTable | None = None, command: Run = lambda *_: 0) -> Words:
    """Returns the whole command line as a click group; `command` runs a command."""
    root = Words("", commands or all_commands(), command, help=SUMMARY)
    version = click.Option(
        ["--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=printing(lambda _: f"mind {__version__}"),
        help="Print the version",
    )
    root.params.append(version)
    return root


def usage(error: click.ClickException) -> Invalid:
    """Returns an error of click as one of ours."""
    ctx = getattr(error, "ctx", None)
    program = ctx.command_path if ctx else "mind"
    text = error.format_message().strip().removesuffix(".")
    message, hint = f"{text[:1].lower()}{text[1:]}", f"see `{program} --help`"
    if isinstance(error, click.NoSuchOption):
        message = f"`{error.option_name}` is not an option of `{program}`"
        options = [option for option in error.possibilities or () if option != "--help"]
        bound = _BOUNDS.get(error.option_name, "")
        accepted = {name for param in (ctx.command.params if ctx else ()) for name in param.opts}
        near = [bound] if bound in accepted else nearest(error.option_name, options)
        if near:
            hint = f"did you mean `{near[0]}`? {hint}"
        elif ctx and any(isinstance(param, click.Argument) for param in ctx.command.params):
            hint += "; put `--` before a text that begins with a dash"
    elif isinstance(error, click.BadOptionUsage):
        takes = "takes no value" if "not take a value" in text else "needs a value"
        message = f"`{error.option_name}` {takes}"
    elif extra := re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", text, re.DOTALL):
        message = f"`{program}` does not take `{extra[1]}`"
        hint = f"put a text of several words in quotes; {hint}"
    return Invalid(message, hint=hint)


# The words of a command line.


class Words(Program, click.Group):
    """Commands by the words that lead to them, each loaded when it is named."""

    def __init__(self, path: str, commands: CommandTable, run: Run, **attrs: Any) -> None:
        """Serves the commands below `path`, which is empty for the program itself."""
        super().__init__(
            name=path or "mind",
            params=[clicked(option, hidden=bool(path)) for option in COMMON],
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
        """Shows the program's help without a command; a group without one is an error."""
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is not None:
            return
        if self.path:
            words = ", ".join(self.registry.listed(self.path))
            raise Invalid(f"`mind {self.path}` needs a command", hint=f"commands are {words}")
        rendering.write(f"{ctx.get_help()}\n")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the words that may follow, without those that are hidden from users."""
        return [*self.registry.listed(self.path), *([] if self.path else PROGRAMS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command or the group of that name, or None."""
        path = f"{self.path} {cmd_name}".strip()
        if path in self.registry.table:
            return self.leaf(path)
        if self.registry.below(path):
            return Words(path, self.registry, self._run, help=self.registry.groups.get(path, ""))
        return PROGRAM_COMMANDS[path]() if path in PROGRAM_COMMANDS else None

    def leaf(self, path: str) -> click.Command:
        """Returns the command at a path of the table."""
        return Command(self.registry.at(path), self._run, self.registry.listed(path))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command, its name and its arguments.

        A word may be a command and also lead to sub-commands: `search` and `search by-topic`.
        """
        path, rest = led(self.registry, self.path, args)
        if path in self.registry.table:
            return path.removeprefix(f"{self.path} "), self.leaf(path), rest
        command = self.get_command(ctx, args[0])
        if command is None and not ctx.resilient_parsing:
            raise self.unknown(ctx, args[0])
        return (args[0] if command else None), command, rest

    def check_path(self, ctx: click.Context, words: Sequence[str]) -> None:
        """Raises `Invalid` for words after those of a command."""
        path, rest = "", list(words)
        while rest and path not in self.registry.table and path not in PROGRAM_COMMANDS:
            path, rest = led(self.registry, path, rest)
        if rest:
            raise Words(path, self.registry, self._run).unknown(ctx, rest[0])

    def unknown(self, ctx: click.Context, word: str) -> Invalid:
        """Returns the error for a word that is not a command or a sub-command."""
        if word.startswith("-"):
            return Invalid(f"`{word}` is not an option of `mind`", hint="see `mind help --all`")
        words = self.list_commands(ctx)
        program = f"mind {self.path}".strip()
        meant = self.registry.meant(self.path, word)
        others = [] if self.path else found(self.registry)
        near = nearest(word, [*words, *others])[:1]
        meant = meant or [f"{self.path} {word}".strip() for word in near]
        lines = " or ".join(f"`mind {line}`" for line in meant)
        listed = f"commands are {', '.join(words)}" if self.path else "see `mind help --all`"
        return Invalid(
            f"`{word}` is not a command of `{program}`",
            hint=f"did you mean {lines}?" if meant else listed,
        )

    # The help: of the program, its first page or all; of a group, its commands.

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the options before a command; `--all` is one of them beside `--help`."""
        start = list(takewhile(lambda word: word.startswith("-"), args))
        if not self.path and not set(start).isdisjoint(SETTINGS["help_option_names"]):
            ctx.meta[WHOLE] = not WHOLE_NAMES.isdisjoint(start)
            args = [word for word in start if word not in WHOLE_NAMES] + args[len(start) :]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands under their headings; with all commands, the options too."""
        is_first = not self.path and self.registry.first and not ctx.meta.get(WHOLE)
        if is_first:
            self._write(ctx, formatter, self.registry.first)
        else:
            click.Command.format_options(self, ctx, formatter)
            self._write(ctx, formatter, self._sections())
            if not self.path and (others := found(self.registry)):
                with formatter.section("Other programs on PATH"):  # paths are not wrapped
                    width = max(map(len, others))
                    for word, path in others.items():
                        formatter.write(one_line(f"  {word:<{width}}  {path}") + "\n")
        if not self.path:
            rest = ", `mind help --all` all commands" if is_first else ""
            formatter.write_paragraph()
            formatter.write_text(f"`mind help COMMAND` explains a command{rest}.")

    def _write(
        self,
        ctx: click.Context,
        formatter: click.HelpFormatter,
        sections: Mapping[str, Sequence[str]],
    ) -> None:
        """Writes commands under their headings, in columns of the same width."""
        named = {
            title: [(self._names(word), self._summary(ctx, word)) for word in words]
            for title, words in sections.items()
        }
        width = max(len(name) for rows in named.values() for name, _ in rows)
        for title, rows in named.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])

    def _names(self, word: str) -> str:
        """Returns a command with the other words for it."""
        others = (
            [] if self.path else [a for a, name in self.registry.aliases.items() if name == word]
        )
        return ", ".join([word, *others])

    def _summary(self, ctx: click.Context, word: str) -> str:
        path = f"{self.path} {word}".strip()
        if path in self.registry.table:
            return self.registry.summary(path)
        command = self.get_command(ctx, word)
        return command.get_short_help_str(80) if command else ""

    def _sections(self) -> dict[str, list[str]]:
        if self.path:
            return {"Commands": list(self.registry.listed(self.path))}
        sections: dict[str, list[str]] = {}
        left = set(self.registry.listed(""))
        for title, table in self.registry.sections.items():
            words = list(dict.fromkeys(path.split()[0] for path in table))
            sections[title] = [word for word in words if word in left]
            left.difference_update(words)
        for title, word in (("Start", "help"), ("Agents", "hook"), ("Agents", "mcp")):
            sections.setdefault(title, []).append(word)
        return {title: words for title, words in sections.items() if words}


# `mind help`, `mind hook` and `mind mcp`, which are not in the table of commands.

WHOLE = "mimo.whole"
"""The key of click's contexts for whether the help lists all commands."""

WHOLE_NAMES = frozenset(PROGRAMS["help"][0].names)


def _program(
    name: str, run: Callable[..., None], help: str, *arguments: click.Parameter
) -> click.Command:
    """Returns the command of a program, which has these arguments and its options."""
    return Program(
        name,
        callback=run,
        help=help,
        short_help=SUMMARIES[name],
        context_settings=SETTINGS,
        params=[*arguments, *map(clicked, PROGRAMS[name])],
    )


HELP_HELP = f"""{SUMMARIES["help"]}

Without COMMAND it lists the commands to start with, with --all every command, and the programs
mind-NAME on PATH, which `mind NAME` runs.
"""


def help_command() -> click.Command:
    """Returns `mind help`."""

    def explain(words: tuple[str, ...], all: bool | None) -> None:
        context = click.get_current_context().find_root()
        root = context.command
        if isinstance(root, Words):
            root.check_path(context, words)
        ask = [*words, "--help", *(["--all"] if all and not words else [])]
        with root.make_context("mind", ask) as ctx:
            root.invoke(ctx)

    words = click.Argument(["words"], nargs=-1, metavar="[COMMAND...]")
    return _program("help", explain, HELP_HELP, words)


HOOK_HELP = f"""{SUMMARIES["hook"]}

Reads one JSON object from standard input, as sent by Claude Code, Codex, Gemini CLI, Cursor,
VS Code, Copilot CLI and OpenCode, and prints one or none. CLIENT names the client if the JSON does
not. The exit status is always 0; failures are recorded in $MIND_HOME/logs/hook.log.
"""

MCP_HELP = f"""{SUMMARIES["mcp"]}

By default every toolset but `extra` and `legacy` is listed. `core` is a small set to start with,
and `all` adds `extra`, the everyday commands. Tools that are not listed can still be called.

With --http it serves many clients and all your projects from one process, until Ctrl-C. Clients
send the token of the token file, or of MIND_HTTP_TOKEN, and name the project: see docs/http.md.
With --tokens it serves a team: see docs/team-server.md.
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

    return _program("hook", answer, HOOK_HELP, click.Argument(["client"], required=False))


def mcp_command() -> click.Command:
    """Returns `mind mcp`."""

    def serve(
        toolsets: tuple[str, ...],
        tool_names: str | None,
        exposure: str | None,
        http: str | None,
        **over: Any,
    ) -> None:
        from mimo.cli.answering import reply

        named = click.get_current_context().meta.get(KEPT, {}).get("project")
        settings: dict[str, Any] = {
            "answers": reply,
            "project": Path(named) if named else None,
            "toolsets": tuple(word for names in toolsets for word in names.split(",") if word),
            "naming": tool_names,
        }
        if http is None:
            if given := [key for key, value in over.items() if value]:
                options = ", ".join(f"`--{key.replace('_', '-')}`" for key in given)
                raise Invalid(f"{options} need{'s' * (len(given) == 1)} `--http`")
            if sys.stdin is None:
                raise StorageFailed(
                    "standard input is closed", hint="connect a client through a pipe"
                )
            from mimo.server import stdio

            stdio.main(exposure=exposure, **settings)
        elif over["token_file"] and over["tokens"]:
            raise Invalid("`--token-file` is for one user, `--tokens` for a team", hint="use one")
        elif exposure not in (None, "static"):
            raise Invalid("over HTTP every tool is listed", hint="leave `--exposure` out")
        else:
            from mimo.server import http as over_http

            over_http.main(
                at=http,
                token_file=_path(over["token_file"]),
                tokens_file=_path(over["tokens"]),
                allowed_hosts=over["allow_host"],
                commits=over["commit"],
                repositories=[disk.expanded(path) for path in over["repository"]],
                index_url=over["index_url"],
                metrics_open=over["metrics_open"],
                announce=lambda line: rendering.write(f"{line}\n"),
                **settings,
            )

    return _program("mcp", serve, MCP_HELP)


def _path(given: str | None) -> Path | None:
    return disk.expanded(given) if given else None


PROGRAM_COMMANDS = {"help": help_command, "hook": hook_command, "mcp": mcp_command}
