"""The table of clients that mind can be installed into.

One entry in `CLIENTS` adds a client; its name, options and documentation follow from it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from mimo.errors import Invalid
from mimo.features.clients.edits import Edit, Entry, Hook, Needed
from mimo.frozen import field, frozen, replace

SERVER = "mind"
"""The name that the server has in every client."""

ARGUMENTS = ("mcp",)


class Scope(StrEnum):
    """The scope of an installation."""

    PROJECT = "project"
    USER = "user"


PROJECT, USER = Scope.PROJECT, Scope.USER

Places = tuple[str, ...]
"""The places that a file may have; the first existing one is used, else the first one."""


@frozen
class Hooks:
    """The hooks of a client: their files in both scopes, and the item of each event."""

    files: Mapping[Scope, Places]
    events: Mapping[str, Mapping[str, Any]]
    beside: Mapping[Scope, Places] = field(default_factory=dict)
    """Other files that take the same hooks, and are used if these alone have hooks already."""
    version: int | None = None
    """The file's `version`, for clients that require one."""
    absolute: bool = False
    """True if a user's hooks need an absolute path: desktop programs lack the PATH of a shell."""
    has_env: bool = False
    """True if an item may set environment variables, under `env`."""
    asking: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The items that wait for an answer at the end of a turn, for the setting `hook.capture`.

    They take the place of those of `events`. Without the setting, no turn waits for a hook.
    """

    def edits(
        self, *, program: str = SERVER, home: str | None = None, capture: bool = False
    ) -> tuple[Edit, ...]:
        """Returns the edits of the file, for hooks that run `program` with `home` as $MIND_HOME.

        `capture` is whether the user has turned on `hook.capture`.
        """
        env = {"env": {"MIND_HOME": home}} if home and self.has_env else {}
        needed = () if self.version is None else (Needed(path=("version",), value=self.version),)
        events = {**self.events, **self.asking} if capture else self.events
        alternatives = self.events if capture else self.asking
        instead = {
            event: {**_running(program, alternatives[event]), **env}
            for event in alternatives.keys() & self.asking.keys()
        }
        hooks = (
            Hook(
                path=("hooks", event),
                value={**_running(program, item), **env},
                instead=instead.get(event),
            )
            for event, item in events.items()
        )
        return (*needed, *hooks)


def line_of(client: str, program: str = SERVER) -> str:
    """Returns the command line of a hook; it is silent and succeeds if the program is missing.

    Project files are used by people without mind, too, and Copilot CLI refuses each edit after a
    hook that failed. Some clients ask again after every change of this line.
    """
    return f"{shlex.quote(program)} hook {client} 2>/dev/null || true"


def _running(program: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the item of a hook that runs this program in place of `mind`."""
    changed = dict(item)
    if "command" in item:
        changed["command"] = shlex.quote(program) + item["command"].removeprefix(SERVER)
    if "hooks" in item:
        changed["hooks"] = [_running(program, each) for each in item["hooks"]]
    return changed


@frozen
class Client:
    """A program that speaks MCP."""

    name: str
    """The name that users type."""
    title: str
    files: Mapping[Scope, Places]
    entry: Mapping[str, Any]
    """The server's entry; `COMMAND`, `ARGUMENTS` and `LINE` stand for the command line."""
    traces: tuple[str, ...]
    """Paths that exist on a machine with the client."""
    section: str = "mcpServers"
    """The key of the client's servers."""
    remote: Mapping[str, Any] | None = None
    """The entry of a server with an address; `URL` stands for it. None if it takes no token."""
    token: tuple[str, Any] = ("headers", {"Authorization": "Bearer ${MIND_TOKEN}"})
    """The key of the entry that names the variable with the token, and its value."""
    program: str | None = None
    """The client's own program, for clients of the terminal."""
    only: Mapping[Scope, Mapping[str, Any]] | None = None
    """Keys that the entry has in one scope only."""
    hooks: tuple[Hooks, ...] = ()
    plugin: Mapping[Scope, Places] | None = None
    """The places of a plugin that runs the hooks; its text is in a file beside this module."""
    skills: Mapping[Scope, Places] = field(default_factory=dict)
    """The places of the skill, `skill.md` beside this module."""
    absolute: bool = False
    """True if a user's entry has an absolute path: desktop programs lack the PATH of a shell."""
    fixed: bool = False
    """True if the entry names the project, because the client is not started in one."""
    adds_itself: bool = False
    """True if the client's program must change the user's file, which it often rewrites."""
    workspace: Mapping[str, Any] | None = field(default_factory=dict)
    """Keys by which a user's entry names the open folder, if the client starts servers elsewhere.

    None if it also has no variable for that folder.
    """
    env: str = "env"
    """The key of the environment variables in an entry."""
    after: str = "start a new session"
    """The next step for the user, in a few words."""

    @property
    def can_ask(self) -> bool:
        """Returns whether its hooks may ask the agent at the end of a turn."""
        events = {event for hooks in self.hooks for event in (*hooks.events, *hooks.asking)}
        return bool(events & {"Stop", "stop", "AfterAgent"}) or self.plugin is not None

    def distant(self, scope: Scope, url: str, *, has_token: bool) -> Entry:
        """Returns the entry of a team's server. Raises `Invalid` if the client takes none."""
        if self.remote is None:
            raise Invalid(
                f"{self.title} can't take the token of a server from a variable",
                hint="add its entry by hand: see docs/http.md",
            )
        parts = {**self.remote, **(self.only or {}).get(scope, {})}
        value = {key: url if part == "URL" else part for key, part in parts.items()}
        return Entry(path=(self.section, SERVER), value={**value, **dict([self.token] * has_token)})

    def server(
        self, scope: Scope, command: str, *, project: str | None, home: str | None = None
    ) -> Entry:
        """Returns the entry that starts the server, with `home` as its $MIND_HOME."""
        named = ("--project", project) if self.fixed and project else ()
        arguments = [*ARGUMENTS, *named]
        words = {"COMMAND": command, "ARGUMENTS": arguments, "LINE": [command, *arguments]}
        place = (self.workspace or {}) if scope is USER else {}
        parts = {**self.entry, **(self.only or {}).get(scope, {}), **place}
        value: dict[str, Any] = {
            key: words.get(part, part) if isinstance(part, str) else part
            for key, part in parts.items()
        }
        if home:
            value[self.env] = {**value.get(self.env, {}), "MIND_HOME": home}
        return Entry(path=(self.section, SERVER), value=value)


def places(home: str, environ: Mapping[str, str], platform: str) -> dict[str, str]:
    """Returns the values of the names in a place, except `{project}`."""
    xdg = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    on_mac = platform == "darwin"
    config = f"{home}/Library/Application Support" if on_mac else xdg
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
        "zed": f"{home}/.config/zed" if on_mac else f"{xdg}/zed",
    }


PLUGIN = "mind@mimo"
"""The name of mind's plugin in the settings of Claude Code."""

_PLAIN = {"command": "COMMAND", "args": "ARGUMENTS"}
_STDIO = {"type": "stdio", **_PLAIN}
_HTTP = {"type": "http", "url": "URL"}
_OF_EDITORS = ("headers", {"Authorization": "Bearer ${env:MIND_TOKEN}"})


def _groups(
    client: str, timeouts: Mapping[str, int | None], matchers: Mapping[str, str], **more: str
) -> dict[str, Any]:
    """Returns a group of one hook for each event, in the format of Claude Code.

    An event without a timeout does not wait for its hook.
    """
    groups = {}
    for event, timeout in timeouts.items():
        limit = {"async": True} if timeout is None else {"timeout": timeout}
        hook = {"type": "command", "command": line_of(client), **more, **limit}
        matcher = {"matcher": matchers[event]} if event in matchers else {}
        groups[event] = {**matcher, "hooks": [hook]}
    return groups


CLAUDE_CODE_EVENTS = _groups(
    "claude-code",
    {
        "SessionStart": 10,
        "UserPromptSubmit": 5,
        "PreToolUse": 5,
        "PostCompact": 10,
        "Stop": None,
        "SessionEnd": 5,
    },
    {"PreToolUse": "Write|Edit|MultiEdit|NotebookEdit"},
)
"""The hooks of each event; `hooks/hooks.json` of the plugin has the same."""

_CLAUDE_CODE_ASKING = _groups("claude-code", {"Stop": 5}, {})

_CODEX_EVENTS = _groups(
    "codex",
    {"SessionStart": 10, "UserPromptSubmit": 5, "PreToolUse": 5, "PostCompact": 10, "Stop": 10},
    {"SessionStart": "startup|resume|clear|compact", "PreToolUse": "apply_patch|Edit|Write"},
)
_CODEX_FILES = {PROJECT: ("{project}/.codex/config.toml",), USER: ("{codex}/config.toml",)}
_GEMINI_EVENTS = _groups(
    "gemini",
    {
        "SessionStart": 10_000,
        "BeforeAgent": 5_000,
        "BeforeTool": 5_000,
        "AfterAgent": 10_000,
        "PreCompress": 10_000,
        "SessionEnd": 10_000,
    },
    # It sends `PreCompress` with the reason `auto` before each request to the model.
    {"BeforeTool": "write_file|replace", "PreCompress": "manual"},
    name="mind",
)
_GEMINI_FILES = {
    PROJECT: ("{project}/.gemini/settings.json",),
    USER: ("{home}/.gemini/settings.json",),
}


def _event(client: str, timeout: int) -> dict[str, Any]:
    """Returns a hook in the format of GitHub."""
    return {"type": "command", "command": line_of(client), "timeout": timeout}


_GITHUB_HOOKS = Hooks(
    files={
        PROJECT: ("{project}/.github/hooks/mind.json",),
        USER: ("{copilot}/hooks/mind.json",),
    },
    events={"SessionStart": _event("vscode", 10), "UserPromptSubmit": _event("vscode", 5)},
    asking={"Stop": _event("vscode", 5)},
    version=1,
    absolute=True,
    has_env=True,
)
"""The hooks that VS Code and Copilot CLI share, in files that both of them read."""

_SKILL = "skills/mind-memory/SKILL.md"
_AGENT_SKILLS = {
    PROJECT: (f"{{project}}/.agents/{_SKILL}",),
    USER: (f"{{home}}/.agents/{_SKILL}",),
}
"""The places that all clients with skills read, except Claude Code."""

CLIENTS: tuple[Client, ...] = (
    Client(
        name="claude-code",
        title="Claude Code",
        remote=_HTTP,
        files={PROJECT: ("{project}/.mcp.json",), USER: ("{claude_json}",)},
        entry=_STDIO,
        adds_itself=True,
        hooks=(
            Hooks(
                files={
                    PROJECT: ("{project}/.claude/settings.json",),
                    USER: ("{claude}/settings.json",),
                },
                events=CLAUDE_CODE_EVENTS,
                asking=_CLAUDE_CODE_ASKING,
            ),
        ),
        skills={
            PROJECT: (f"{{project}}/.claude/{_SKILL}",),
            USER: (f"{{claude}}/{_SKILL}",),
        },
        program="claude",
        traces=("{claude}", "{claude_json}"),
        after="start a new session and approve the server when it asks",
    ),
    Client(
        name="claude-desktop",
        title="Claude Desktop",
        files={USER: ("{config}/Claude/claude_desktop_config.json",)},
        entry=_PLAIN,
        absolute=True,
        fixed=True,
        traces=("{config}/Claude",),
        after="quit Claude Desktop and start it again",
    ),
    Client(
        name="codex",
        title="Codex",
        section="mcp_servers",
        remote={"url": "URL"},
        token=("bearer_token_env_var", "MIND_TOKEN"),
        files=_CODEX_FILES,
        entry=_PLAIN,
        hooks=(
            Hooks(
                files={PROJECT: ("{project}/.codex/hooks.json",), USER: ("{codex}/hooks.json",)},
                events=_CODEX_EVENTS,
                beside=_CODEX_FILES,  # it warns of hooks in both
            ),
        ),
        skills=_AGENT_SKILLS,
        program="codex",
        traces=("{codex}",),
        after="trust the project and review the hooks with /hooks in Codex",
    ),
    Client(
        name="gemini",
        title="Gemini CLI",
        remote={"httpUrl": "URL"},
        files=_GEMINI_FILES,
        entry=_PLAIN,
        hooks=(Hooks(files=_GEMINI_FILES, events=_GEMINI_EVENTS),),
        skills=_AGENT_SKILLS,
        program="gemini",
        traces=("{home}/.gemini",),
    ),
    Client(
        name="cursor",
        title="Cursor",
        remote={"url": "URL"},
        token=_OF_EDITORS,
        files={PROJECT: ("{project}/.cursor/mcp.json",), USER: ("{home}/.cursor/mcp.json",)},
        entry=_STDIO,
        hooks=(
            Hooks(
                files={
                    PROJECT: ("{project}/.cursor/hooks.json",),
                    USER: ("{home}/.cursor/hooks.json",),
                },
                events={
                    "sessionStart": {"command": line_of("cursor")},
                    "beforeSubmitPrompt": {"command": line_of("cursor")},
                },
                asking={"stop": {"command": line_of("cursor")}},
                version=1,
                absolute=True,
            ),
        ),
        skills=_AGENT_SKILLS,
        absolute=True,
        workspace={"env": {"CLAUDE_PROJECT_DIR": "${workspaceFolder}"}},  # it takes no `cwd`
        traces=("{home}/.cursor",),
        after="switch the server on under Settings, MCP",
    ),
    Client(
        name="vscode",
        title="VS Code",
        section="servers",
        remote=_HTTP,
        token=_OF_EDITORS,
        files={PROJECT: ("{project}/.vscode/mcp.json",), USER: ("{code}/mcp.json",)},
        entry=_STDIO,
        hooks=(
            replace(
                _GITHUB_HOOKS,
                files={**_GITHUB_HOOKS.files, USER: ("{home}/.copilot/hooks/mind.json",)},
            ),
        ),
        skills=_AGENT_SKILLS,
        absolute=True,
        workspace={"cwd": "${workspaceFolder}"},
        traces=("{code}",),
        after="start the server when VS Code offers it above its entry",
    ),
    Client(
        name="copilot",
        title="Copilot CLI",
        remote=_HTTP,
        files={
            PROJECT: ("{project}/.mcp.json", "{project}/.github/mcp.json"),
            USER: ("{copilot}/mcp-config.json",),
        },
        entry=_STDIO,
        only={USER: {"tools": ["*"]}},
        hooks=(
            _GITHUB_HOOKS,
            # VS Code does not read this file: it would run the hook before each of its tools.
            Hooks(
                files={
                    PROJECT: ("{project}/.github/copilot/settings.json",),
                    USER: ("{copilot}/settings.json",),
                },
                events={"PreToolUse": {"matcher": "Write|Edit", **_event("copilot", 5)}},
                has_env=True,
            ),
        ),
        skills=_AGENT_SKILLS,
        program="copilot",
        traces=("{copilot}",),
    ),
    Client(
        name="opencode",
        title="OpenCode",
        section="mcp",
        remote={"type": "remote", "url": "URL", "enabled": True},
        token=("headers", {"Authorization": "Bearer {env:MIND_TOKEN}"}),
        files={
            PROJECT: (
                "{project}/opencode.json",
                "{project}/opencode.jsonc",
                "{project}/.opencode/opencode.json",
                "{project}/.opencode/opencode.jsonc",
            ),
            USER: ("{xdg}/opencode/opencode.json", "{xdg}/opencode/opencode.jsonc"),
        },
        entry={"type": "local", "command": "LINE", "enabled": True},
        env="environment",
        plugin={
            PROJECT: ("{project}/.opencode/plugin/mind.js",),
            USER: ("{xdg}/opencode/plugin/mind.js",),
        },
        skills=_AGENT_SKILLS,
        program="opencode",
        traces=("{xdg}/opencode",),
    ),
    Client(
        name="zed",
        title="Zed",
        section="context_servers",
        files={PROJECT: ("{project}/.zed/settings.json",), USER: ("{zed}/settings.json",)},
        entry={"source": "custom", **_PLAIN, "env": {}},
        absolute=True,
        workspace=None,
        traces=("{zed}",),
        after="look for a green dot under Settings, AI, MCP",
    ),
    Client(
        name="windsurf",
        title="Windsurf",
        remote={"serverUrl": "URL"},
        token=_OF_EDITORS,
        files={USER: ("{home}/.codeium/windsurf/mcp_config.json",)},
        entry=_PLAIN,
        absolute=True,
        workspace=None,
        traces=("{home}/.codeium/windsurf",),
        after="refresh the servers in its MCP panel",
    ),
    Client(
        name="goose",
        title="Goose",
        section="extensions",
        files={USER: ("{xdg}/goose/config.yaml",)},
        entry={
            "name": SERVER,
            "description": "Long-term memory of the project",
            "type": "stdio",
            "cmd": "COMMAND",
            "args": "ARGUMENTS",
            "envs": {},
            "enabled": True,
            "timeout": 300,
        },
        env="envs",
        program="goose",
        traces=("{xdg}/goose",),
    ),
    Client(
        name="cline",
        title="Cline",
        files={
            USER: (
                "{code}/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                "{cline}/data/settings/cline_mcp_settings.json",
            )
        },
        # Its limit of three seconds for a start is too short for a busy machine.
        entry={**_PLAIN, "disabled": False, "timeout": 60},
        absolute=True,
        workspace=None,
        program="cline",
        traces=("{code}/globalStorage/saoudrizwan.claude-dev", "{cline}"),
        after="switch the server on in its MCP panel",
    ),
)


class ClientName(StrEnum):
    """The names of all clients."""

    # The members follow from the table, so that a client is added in one place.
    vars().update({entry.title: entry.name for entry in CLIENTS})


def client(name: str) -> Client:
    """Returns the client of that name."""
    return next(entry for entry in CLIENTS if entry.name == name)
