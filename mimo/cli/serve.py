"""`mind mcp` and `mind hook`: what clients start. They are no commands of the registry."""

import sys
from pathlib import Path
from typing import Any

import click

from mimo.cli.params import KEPT, SETTINGS, common_options
from mimo.commands import NAMINGS, TOOLSETS
from mimo.errors import Invalid, StorageFailed

SUMMARY = "Serve the memory to an agent over MCP, on standard input and output"

HELP = f"""{SUMMARY}

Without --toolsets it lists every documented tool; `core` is a small set to start with, `all` adds
the everyday commands. Tools that are not listed can be called all the same.
"""


HOOK_SUMMARY = "Answer a client's hook with notes and known edges"

HOOK_HELP = f"""{HOOK_SUMMARY}

Reads one JSON object on standard input, as Claude Code, Codex, Gemini CLI, Cursor and VS Code send
it, and prints one, or nothing. CLIENT says whose it is where the JSON does not. It always ends with
status 0; what went wrong is told in $MIND_HOME/logs/hook.log.
"""


def _serve(
    toolsets: tuple[str, ...], tool_names: str | None, exposure: str | None, **_: Any
) -> None:
    if sys.stdin is None:
        raise StorageFailed("standard input is closed", hint="a client speaks to it through a pipe")
    from mimo.server.app import main

    named = click.get_current_context().meta.get(KEPT, {}).get("project")
    chosen = tuple(word for given in toolsets for word in given.split(",") if word)
    main(
        project=Path(named) if named else None,
        toolsets=chosen,
        naming=tool_names,
        exposure=exposure,
    )


def hook_command() -> click.Command:
    """Returns the click command of `mind hook` for a person; clients are answered before click."""
    return click.Command(
        "hook",
        callback=_hook,
        help=HOOK_HELP,
        short_help=HOOK_SUMMARY,
        context_settings=SETTINGS,
        params=[click.Argument(["client"], required=False)],
    )


def _hook(client: str | None) -> None:
    if sys.stdin is not None and sys.stdin.isatty():
        raise Invalid(
            "`mind hook` reads what a client tells on standard input",
            hint="clients run it; see docs/hooks.md for how to try it by hand",
        )
    from mimo.features.hooks.command import main

    main([client] if client else [])


def mcp_command() -> click.Command:
    """Returns the click command."""
    return click.Command(
        "mcp",
        callback=_serve,
        help=HELP,
        short_help=SUMMARY,
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
                help="How names such as save/decision are spelled (default underscore)",
            ),
            click.Option(
                ["--exposure"],
                type=click.Choice(("auto", "static", "dynamic")),
                help="Whether the list is narrowed to what a prompt asks for (default auto)",
            ),
            *(option for option in common_options() if option.name == "project"),
        ],
    )
