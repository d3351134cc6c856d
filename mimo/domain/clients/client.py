"""What there is to know of a client: its files, its entry, its hooks.

A place is written with the names of `places` in braces. Of several places of one file the first
that exists is used, else the first.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from mimo.domain.clients.edits import Edit, Entry, Format, Hook, Needed
from mimo.frozen import frozen

SERVER = "mind"
"""The name that the server has in every client."""

ARGUMENTS = ("mcp", "--toolsets", "core")


class Scope(StrEnum):
    """Whom an installation is for."""

    PROJECT = "project"
    USER = "user"


class ClientName(StrEnum):
    """The clients, by the names that people type."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CODEX = "codex"
    GEMINI = "gemini"
    CURSOR = "cursor"
    VSCODE = "vscode"
    COPILOT = "copilot"
    OPENCODE = "opencode"
    ZED = "zed"
    WINDSURF = "windsurf"
    GOOSE = "goose"
    CLINE = "cline"


@frozen
class File:
    """A file of a client."""

    places: tuple[str, ...]
    format: Format = Format.JSON


@frozen
class Hooks:
    """The hooks of a client: where they stand, and which item goes into the list of each event."""

    files: Mapping[Scope, File]
    events: Mapping[str, Mapping[str, Any]]
    version: int | None = None
    """What the file's `version` must be, for clients that want one."""
    has_env: bool = False
    """Whether an item may set environment variables, under `env`."""

    def edits(self, *, home: str | None = None) -> tuple[Edit, ...]:
        """Returns what goes into the file; `home` is the $MIND_HOME to run hooks with."""
        env = {"env": {"MIND_HOME": home}} if home and self.has_env else {}
        needed = () if self.version is None else (Needed(path=("version",), value=self.version),)
        hooks = (
            Hook(path=("hooks", event), value={**item, **env})
            for event, item in self.events.items()
        )
        return (*needed, *hooks)


@frozen
class Client:
    """A program that speaks MCP."""

    name: ClientName
    title: str
    section: str
    """The key that holds a client's servers."""
    files: Mapping[Scope, File]
    entry: Mapping[str, Any]
    """The server's entry, with `COMMAND`, `ARGUMENTS` or `LINE` where the command line goes."""
    traces: tuple[str, ...]
    """Where it leaves something on a machine that has it."""
    program: str | None = None
    """Its own program, for clients of the terminal."""
    only: Mapping[Scope, Mapping[str, Any]] | None = None
    """Keys that an entry has in one scope alone."""
    hooks: Hooks | None = None
    absolute: bool = False
    """Whether a user's entry names the whole path: a desktop's programs have no shell's PATH."""
    fixed: bool = False
    """Whether the entry names the project, since the client never works in one."""
    adds_itself: bool = False
    """Whether its own program must change the user's file, which it rewrites all the time."""
    env: str = "env"
    """The key of an entry that holds its environment variables."""
    after: str = ""
    """What a person does then, in a few words."""

    def server(
        self, scope: Scope, command: str, *, project: str | None, home: str | None = None
    ) -> Entry:
        """Returns the entry that starts our server, with `home` as its $MIND_HOME."""
        named = ("--project", project) if self.fixed and project else ()
        arguments = [*ARGUMENTS, *named]
        words = {"COMMAND": command, "ARGUMENTS": arguments, "LINE": [command, *arguments]}
        more = (self.only or {}).get(scope, {})
        value = {
            key: words.get(one, one) if isinstance(one, str) else one
            for key, one in {**self.entry, **more}.items()
        }
        if home:
            value[self.env] = {"MIND_HOME": home}
        return Entry(path=(self.section, SERVER), value=value)


def places(home: str, environ: Mapping[str, str], platform: str) -> dict[str, str]:
    """Returns what the names in a place stand for, but for `{project}`."""
    xdg = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    roaming = environ.get("APPDATA") or f"{home}/AppData/Roaming"
    config = {"darwin": f"{home}/Library/Application Support", "win32": roaming}.get(platform, xdg)
    windows = platform == "win32"
    claude = environ.get("CLAUDE_CONFIG_DIR")
    return {
        "home": home,
        "xdg": xdg,
        "config": config,
        "code": f"{config}/Code/User",
        "claude": claude or f"{home}/.claude",
        "claude_json": f"{claude or home}/.claude.json",
        "codex": environ.get("CODEX_HOME") or f"{home}/.codex",
        "copilot": environ.get("COPILOT_HOME") or f"{home}/.copilot",
        "cline": environ.get("CLINE_DIR") or f"{home}/.cline",
        "zed": {"darwin": f"{home}/.config/zed", "win32": f"{roaming}/Zed"}.get(
            platform, f"{xdg}/zed"
        ),
        "goose": f"{roaming}/Block/goose/config" if windows else f"{xdg}/goose",
    }
