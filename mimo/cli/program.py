"""The command line as click reads it: help, errors, and all lines that are not plain."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from mimo import __version__
from mimo.cli.params import KEPT, SETTINGS, Command, clicked, common_options
from mimo.cli.plain import FOR_CLIENTS, Run, led
from mimo.commands import Registry, all_commands
from mimo.errors import Invalid, StorageFailed
from mimo.rendering import is_terminal

SUMMARY = """Long-term memory for coding agents and the people who work with them

Memories are Markdown files under .mind/ in your project. You and your agents find them by meaning
and by words, offline.
"""


def run(commands: Registry, command: Run, words: Sequence[str]) -> int:
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


def program(commands: Registry | None = None, command: Run = lambda *_: 0) -> Words:
    """Returns the whole command line as a click group; `command` runs a command."""
    root = Words("", commands or all_commands(), command, help=SUMMARY)
    version = click.version_option(
        __version__, message="mind %(version)s", help="Print the version"
    )
    return version(root)


def usage(error: click.ClickException) -> Invalid:
    """Returns an error of click as one of ours."""
    ctx = getattr(error, "ctx", None)
    command = f"{ctx.command_path} --help" if ctx else "mind --help"
    message = error.format_message().strip().removesuffix(".")
    return Invalid(f"{message[:1].lower()}{message[1:]}", hint=f"see `{command}`")


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
        """Shows the program's help without a command; a group without one is an error."""
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
        return CLIENT_COMMANDS[path]() if path in CLIENT_COMMANDS else None

    def leaf(self, path: str) -> click.Command:
        """Returns the command at a path of the table."""
        return Command(self.registry.at(path), self._run, self.registry.below(path))

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
            raise self._unknown(ctx, args[0])
        return (args[0] if command else None), command, rest

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
        from mimo.cli.answering import reply
        from mimo.server.app import main

        named = click.get_current_context().meta.get(KEPT, {}).get("project")
        main(
            answers=reply,
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
        params=list(map(clicked, FOR_CLIENTS["mcp"])),
    )


CLIENT_COMMANDS = {"hook": hook_command, "mcp": mcp_command}
