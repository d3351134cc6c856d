"""The clients that can be run without an account, and how each is given the model of this machine.

A client's own settings, other than mind's, are written before mind is installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from clients.model import Call


@dataclass(frozen=True)
class Place:
    """The folders of a run."""

    home: Path
    project: Path
    address: str
    """The address of the model."""


@dataclass(frozen=True)
class Recipe:
    """A client, and the way to run it once without a terminal."""

    client: str
    """The name that mind gives it."""
    package: str
    """Its package in the registry of npm."""
    program: str
    words: tuple[str, ...]
    """The words of its command line; the prompt follows."""
    scopes: tuple[str, ...] = ("project", "user")
    """The scopes to install mind in, one run each."""
    files: Callable[[Place], Mapping[Path, str]] = lambda _: {}
    environ: Callable[[Place], Mapping[str, str]] = lambda _: {}
    before: Callable[[Place], tuple[str, ...]] = lambda _: ()
    """Words of its command line that set it up."""
    search: Call | None = None
    """The call that lists the tools of servers, if the client lists them only on demand."""
    serve: tuple[str, ...] = ()
    """Words that start its server, for a client that ends before the agent could answer again."""
    daemon: str = ""
    """The JSON file with the `pid` of a daemon that it leaves behind."""
    rewrites: tuple[str, ...] = ()
    """Names of files and folders in the home that the client itself changes all the time."""
    edit: Callable[[Path, str], Call] = lambda path, text: Call(
        "write", {"filePath": str(path), "content": text}
    )
    """A call that writes a file."""
    try_command: Callable[[str], Call] = lambda command: Call(
        "bash", {"command": command, "description": "Try it"}
    )
    """A call that runs a command."""
    resume: tuple[str, ...] = ("--resume", "{id}")
    """Words after the program's name that continue a session."""
    then: tuple[str, ...] = ()
    """Words before the prompt that do so."""
    fork: tuple[str, ...] = ()
    """Words beside these that continue a copy of it."""
    archive: tuple[str, ...] = ()
    """Words of its command line that put a session away."""
    first: tuple[str, ...] = ()
    """The words that only a new session may have."""
    starts_files: bool = False
    """True if a session that is continued in another minute has another file."""


def _codex_files(place: Place) -> Mapping[Path, str]:
    text = f"""\
model = "gpt-5.5"
model_provider = "mock"

[model_providers.mock]
name = "mock"  # of this machine
base_url = "{place.address}/v1"
env_key = "MOCK_KEY"
wire_api = "responses"

[projects."{place.project}"]
trust_level = "trusted"
"""
    return {place.home / ".codex/config.toml": text}


def _opencode_files(place: Place) -> Mapping[Path, str]:
    options = {"baseURL": f"{place.address}/v1", "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"mock": {}}}
    schema = "https://opencode.ai/config.json"
    settings = {
        "$schema": schema,
        "provider": {"mock": provider},
        "model": "mock/mock",
        "autoupdate": False,
    }
    return {place.project / "opencode.json": json.dumps(settings, indent=2) + "\n"}


def _gemini_files(place: Place) -> Mapping[Path, str]:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    return {place.home / ".gemini/settings.json": json.dumps(settings, indent=2) + "\n"}


def _patch(path: Path, text: str) -> Call:
    lines = "".join(f"+{line}\n" for line in text.splitlines())
    patch = f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"
    return Call("apply_patch", {"raw": patch})


RECIPES = (
    Recipe(
        "claude-code",
        "@anthropic-ai/claude-code",
        "claude",
        ("--permission-mode", "acceptEdits", "--allowedTools", "mcp__mind__*,Bash", "-p"),
        files=lambda place: {
            place.home / ".claude.json": '{"hasCompletedOnboarding": true}\n',
            place.home / ".claude/settings.json": '{\n  "cleanupPeriodDays": 20 \n}\n',
        },
        environ=lambda place: {
            "ANTHROPIC_BASE_URL": place.address,
            "ANTHROPIC_API_KEY": "none",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        search=Call("ToolSearch", {"query": "mind", "max_results": 30}),
        rewrites=(".claude.json", "backups"),
        edit=lambda path, text: Call("Write", {"file_path": str(path), "content": text}),
        try_command=lambda command: Call("Bash", {"command": command, "description": "Try it"}),
        fork=("--fork-session",),
    ),
    Recipe(
        "codex",
        "@openai/codex",
        "codex",
        ("exec", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"),
        files=_codex_files,
        environ=lambda _: {"MOCK_KEY": "none"},
        search=Call("tool_search", {"query": "mind memory", "limit": 30}),
        edit=_patch,
        try_command=lambda command: Call("exec_command", {"cmd": command}),
        resume=(),
        then=("resume", "{id}"),
        archive=("archive", "{id}"),
    ),
    Recipe(
        "gemini",
        "@google/gemini-cli",
        "gemini",
        ("--yolo", "-m", "gemini-2.5-pro", "-p"),
        files=_gemini_files,
        environ=lambda place: {
            "GOOGLE_GEMINI_BASE_URL": place.address,
            "GEMINI_API_KEY": "none",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        edit=lambda path, text: Call("write_file", {"file_path": str(path), "content": text}),
        try_command=lambda command: Call("run_shell_command", {"command": command}),
        starts_files=True,
    ),
    Recipe(
        "opencode",
        "opencode-ai",
        "opencode",
        ("run", "--auto", "-m", "mock/mock", "--attach", "http://127.0.0.1:{port}"),
        serve=("serve", "--hostname", "127.0.0.1", "--port", "{port}"),
        files=_opencode_files,
        environ=lambda _: {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
        resume=(),
        then=("-s", "{id}"),
        fork=("--fork",),
    ),
    Recipe(
        "copilot",
        "@github/copilot",
        "copilot",
        ("--allow-all-tools", "--trust-folder", "-p"),
        environ=lambda place: {
            "COPILOT_PROVIDER_BASE_URL": f"{place.address}/v1",
            "COPILOT_MODEL": "mock",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        },
        edit=lambda path, text: Call("create", {"path": str(path), "file_text": text}),
        resume=("--resume={id}",),
        first=("--trust-folder",),
    ),
    Recipe(
        "cline",
        "cline",
        "cline",
        ("--json", "-P", "openai-compatible", "-m", "mock"),
        scopes=("user",),
        daemon=".cline/data/locks/hub/production.json",
        before=lambda place: (
            *("auth", "-p", "openai-compatible", "-k", "none", "-m", "mock"),
            *("-b", f"{place.address}/v1"),
        ),
        edit=lambda path, text: Call("editor", {"path": str(path), "new_text": text}),
        try_command=lambda command: Call("run_commands", {"commands": [command]}),
        resume=(),  # It continues sessions in a terminal alone.
    ),
)
