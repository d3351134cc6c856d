"""The programs for clients that a command line starts: `mind mcp`, and `mind hook` for users."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mimo import rendering
from mimo.cli.answering import reply
from mimo.cli.program import Start
from mimo.data import disk
from mimo.errors import Invalid, StorageFailed
from mimo.rendering import is_terminal

_ABOUT = "note: clients start this MCP server; `mind install` adds it to one; Ctrl-C ends it"


def run(start: Start) -> None:
    """Runs a program until its input ends. Raises `MindError`."""
    if start.name == "hook":
        _answer(**start.values)
    else:
        _serve(start.project, **start.values)


def _answer(client: str | None) -> None:
    """Answers the hook of a client on standard input; the calls of clients take a shorter way."""
    if is_terminal(sys.stdin):
        raise Invalid(
            "`mind hook` reads the event of a client from standard input",
            hint="clients run it; see docs/hooks.md for how to try it by hand",
        )
    from mimo.features.hooks.command import main

    main([client] if client else [])


def _serve(
    project: str | None,
    toolsets: tuple[str, ...],
    tool_names: str | None,
    exposure: str | None,
    http: str | None,
    **over: Any,
) -> None:
    settings: dict[str, Any] = {
        "answers": reply,
        "project": Path(project) if project else None,
        "toolsets": tuple(word for names in toolsets for word in names.split(",") if word),
        "naming": tool_names,
    }
    if http is None:
        if names := [f"`--{key.replace('_', '-')}`" for key, value in over.items() if value]:
            raise Invalid(f"{', '.join(names)} need{'s' * (len(names) == 1)} `--http`")
        if sys.stdin is None:
            raise StorageFailed("standard input is closed", hint="connect a client through a pipe")
        if is_terminal(sys.stdin):
            rendering.complain(_ABOUT)
        from mimo.server import opening

        opening.main(exposure=exposure, **settings)
    elif over["token_file"] and (over["tokens"] or over["oidc"]):
        raise Invalid(
            "`--token-file` is for one user, `--tokens` and `--oidc` for a team", hint="use one"
        )
    elif not over["oidc"] and (over["oidc_audience"] or over["oidc_groups"]):
        raise Invalid("`--oidc-audience` and `--oidc-groups` need `--oidc`")
    elif exposure not in (None, "static"):
        raise Invalid("over HTTP every tool is listed", hint="leave `--exposure` out")
    else:
        from mimo.call.extensions import named

        oidc = {
            "issuer": over["oidc"],
            "audience": over["oidc_audience"],
            "claim": over["oidc_groups"],
        }
        serve = next(named("serve"), None)
        if serve is None:
            raise Invalid(
                "no extension of mind that is installed serves over HTTP",
                hint="leave `--http` out, or install mind with its extension `team`",
            )
        serve(
            at=http,
            token_file=_path(over["token_file"]),
            tokens_file=_path(over["tokens"]),
            allowed_hosts=over["allow_host"],
            commits=over["commit"],
            repositories=[disk.expanded(path) for path in over["repository"]],
            index_url=over["index_url"],
            metrics_open=over["metrics_open"],
            log_json=over["log_json"],
            oidc=oidc if oidc["issuer"] else None,
            announce=lambda line: rendering.write(f"{line}\n"),
            **settings,
        )


def _path(path: str | None) -> Path | None:
    return disk.expanded(path) if path else None
