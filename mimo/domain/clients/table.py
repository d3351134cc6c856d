"""Every client that mind can be installed into."""

from typing import Any

from mimo.domain.clients.client import SERVER, Client, ClientName, File, Hooks, Scope
from mimo.domain.clients.edits import Format

PLUGIN = "mind@mimo"
"""Our plugin for Claude Code, as its settings name it."""

_PLAIN = {"command": "COMMAND", "args": "ARGUMENTS"}
_STDIO = {"type": "stdio", **_PLAIN}


def _grouped(command: str, *, matcher: str | None = None, **more: Any) -> dict[str, Any]:
    """Returns a group of one hook, as Claude Code has them."""
    group = {"hooks": [{"type": "command", "command": command, **more}]}
    return group if matcher is None else {"matcher": matcher, **group}


_ASIDE: dict[str, Any] = {"async": True}

CLAUDE_CODE_EVENTS = {
    "SessionStart": _grouped("mind hook claude-code", timeout=10),
    "UserPromptSubmit": _grouped("mind hook claude-code", timeout=5),
    "PreToolUse": _grouped(
        "mind hook claude-code", matcher="Write|Edit|MultiEdit|NotebookEdit", timeout=5
    ),
    "PostCompact": _grouped("mind hook claude-code", timeout=10),
    "Stop": _grouped("mind hook claude-code", **_ASIDE),
    "SessionEnd": _grouped("mind hook claude-code", timeout=5),
}
"""What runs at which moment; `hooks/hooks.json` of the plugin has the same."""

CLIENTS: tuple[Client, ...] = (
    Client(
        name=ClientName.CLAUDE_CODE,
        title="Claude Code",
        section="mcpServers",
        files={
            Scope.PROJECT: File(places=("{project}/.mcp.json",)),
            Scope.USER: File(places=("{claude_json}",)),
        },
        entry=_STDIO,
        adds_itself=True,
        hooks=Hooks(
            files={
                Scope.PROJECT: File(places=("{project}/.claude/settings.json",)),
                Scope.USER: File(places=("{claude}/settings.json",)),
            },
            events=CLAUDE_CODE_EVENTS,
        ),
        program="claude",
        traces=("{claude}", "{claude_json}"),
        after="start a new session and approve the server when it asks",
    ),
    Client(
        name=ClientName.CLAUDE_DESKTOP,
        title="Claude Desktop",
        section="mcpServers",
        files={Scope.USER: File(places=("{config}/Claude/claude_desktop_config.json",))},
        entry=_PLAIN,
        absolute=True,
        fixed=True,
        traces=("{config}/Claude",),
        after="quit Claude Desktop and start it again",
    ),
    Client(
        name=ClientName.CODEX,
        title="Codex",
        section="mcp_servers",
        files={
            Scope.PROJECT: File(places=("{project}/.codex/config.toml",), format=Format.TOML),
            Scope.USER: File(places=("{codex}/config.toml",), format=Format.TOML),
        },
        entry=_PLAIN,
        hooks=Hooks(
            files={
                Scope.PROJECT: File(places=("{project}/.codex/hooks.json",)),
                Scope.USER: File(places=("{codex}/hooks.json",)),
            },
            events={
                "SessionStart": _grouped(
                    "mind hook codex", matcher="startup|resume|clear|compact", timeout=10
                ),
                "UserPromptSubmit": _grouped("mind hook codex", timeout=5),
                "PreToolUse": _grouped(
                    "mind hook codex", matcher="apply_patch|Edit|Write", timeout=5
                ),
                "PostCompact": _grouped("mind hook codex", timeout=10),
                "Stop": _grouped("mind hook codex", timeout=10),
            },
        ),
        program="codex",
        traces=("{codex}",),
        after="trust the project and review the hooks with /hooks in Codex",
    ),
    Client(
        name=ClientName.GEMINI,
        title="Gemini CLI",
        section="mcpServers",
        files={
            Scope.PROJECT: File(places=("{project}/.gemini/settings.json",)),
            Scope.USER: File(places=("{home}/.gemini/settings.json",)),
        },
        entry=_PLAIN,
        hooks=Hooks(
            files={
                Scope.PROJECT: File(places=("{project}/.gemini/settings.json",)),
                Scope.USER: File(places=("{home}/.gemini/settings.json",)),
            },
            events={
                "SessionStart": _grouped("mind hook gemini", name="mind", timeout=10_000),
                "BeforeAgent": _grouped("mind hook gemini", name="mind", timeout=5_000),
                "BeforeTool": _grouped(
                    "mind hook gemini", matcher="write_file|replace", name="mind", timeout=5_000
                ),
                "AfterAgent": _grouped("mind hook gemini", name="mind", timeout=10_000),
                "PreCompress": _grouped("mind hook gemini", name="mind", timeout=10_000),
                "SessionEnd": _grouped("mind hook gemini", name="mind", timeout=10_000),
            },
        ),
        program="gemini",
        traces=("{home}/.gemini",),
        after="start a new session",
    ),
    Client(
        name=ClientName.CURSOR,
        title="Cursor",
        section="mcpServers",
        files={
            Scope.PROJECT: File(places=("{project}/.cursor/mcp.json",)),
            Scope.USER: File(places=("{home}/.cursor/mcp.json",)),
        },
        entry=_STDIO,
        hooks=Hooks(
            files={
                Scope.PROJECT: File(places=("{project}/.cursor/hooks.json",)),
                Scope.USER: File(places=("{home}/.cursor/hooks.json",)),
            },
            events={
                "sessionStart": {"command": "mind hook cursor"},
                "beforeSubmitPrompt": {"command": "mind hook cursor"},
            },
            version=1,
        ),
        absolute=True,
        traces=("{home}/.cursor",),
        after="switch the server on under Settings, MCP",
    ),
    Client(
        name=ClientName.VSCODE,
        title="VS Code",
        section="servers",
        files={
            Scope.PROJECT: File(places=("{project}/.vscode/mcp.json",)),
            Scope.USER: File(places=("{code}/mcp.json",)),
        },
        entry=_STDIO,
        hooks=Hooks(
            files={
                Scope.PROJECT: File(places=("{project}/.github/hooks/mind.json",)),
                Scope.USER: File(places=("{home}/.copilot/hooks/mind.json",)),
            },
            events={
                "SessionStart": {
                    "type": "command",
                    "command": "mind hook vscode",
                    "timeout": 10,
                },
                "UserPromptSubmit": {
                    "type": "command",
                    "command": "mind hook vscode",
                    "timeout": 5,
                },
            },
            has_env=True,
        ),
        absolute=True,
        traces=("{code}",),
        after="start the server when VS Code offers it above its entry",
    ),
    Client(
        name=ClientName.COPILOT,
        title="Copilot CLI",
        section="mcpServers",
        files={
            Scope.PROJECT: File(places=("{project}/.mcp.json", "{project}/.github/mcp.json")),
            Scope.USER: File(places=("{copilot}/mcp-config.json",)),
        },
        entry=_STDIO,
        only={Scope.USER: {"tools": ["*"]}},
        program="copilot",
        traces=("{copilot}",),
        after="start a new session",
    ),
    Client(
        name=ClientName.OPENCODE,
        title="OpenCode",
        section="mcp",
        files={
            Scope.PROJECT: File(
                places=(
                    "{project}/opencode.json",
                    "{project}/opencode.jsonc",
                    "{project}/.opencode/opencode.json",
                    "{project}/.opencode/opencode.jsonc",
                )
            ),
            Scope.USER: File(
                places=("{xdg}/opencode/opencode.json", "{xdg}/opencode/opencode.jsonc")
            ),
        },
        entry={"type": "local", "command": "LINE", "enabled": True},
        env="environment",
        program="opencode",
        traces=("{xdg}/opencode",),
        after="start a new session",
    ),
    Client(
        name=ClientName.ZED,
        title="Zed",
        section="context_servers",
        files={
            Scope.PROJECT: File(places=("{project}/.zed/settings.json",)),
            Scope.USER: File(places=("{zed}/settings.json",)),
        },
        entry={"source": "custom", **_PLAIN, "env": {}},
        absolute=True,
        traces=("{zed}",),
        after="look for a green dot under Settings, AI, MCP",
    ),
    Client(
        name=ClientName.WINDSURF,
        title="Windsurf",
        section="mcpServers",
        files={Scope.USER: File(places=("{home}/.codeium/windsurf/mcp_config.json",))},
        entry=_PLAIN,
        absolute=True,
        traces=("{home}/.codeium/windsurf",),
        after="refresh the servers in its MCP panel",
    ),
    Client(
        name=ClientName.GOOSE,
        title="Goose",
        section="extensions",
        files={Scope.USER: File(places=("{goose}/config.yaml",), format=Format.YAML)},
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
        traces=("{goose}",),
        after="start a new session",
    ),
    Client(
        name=ClientName.CLINE,
        title="Cline",
        section="mcpServers",
        files={
            Scope.USER: File(
                places=(
                    "{code}/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                    "{cline}/data/settings/cline_mcp_settings.json",
                )
            )
        },
        entry={**_PLAIN, "disabled": False},
        absolute=True,
        program="cline",
        traces=("{code}/globalStorage/saoudrizwan.claude-dev", "{cline}"),
        after="switch the server on in its MCP panel",
    ),
)


def client(name: ClientName) -> Client:
    """Returns the client of that name."""
    return next(one for one in CLIENTS if one.name is name)
