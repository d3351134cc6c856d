"""The readers of the clients' transcripts, one module for each client."""

from __future__ import annotations

from importlib import import_module

from mimo.extensions.sessions.model import Reader

_CLASSES = {
    "claude-code": "claude_code:ClaudeCode",
    "codex": "codex:Codex",
    "gemini": "gemini:Gemini",
    "opencode": "opencode:OpenCode",
    "copilot": "copilot:Copilot",
    "cline": "cline:Cline",
    "cursor": "cursor:Cursor",
}
"""The readers by client, as `module:class`."""

CLIENTS = tuple(_CLASSES)


def reader_of(client: str) -> Reader:
    """Returns the reader of a client's sessions."""
    module, _, name = _CLASSES[client].partition(":")
    reader: Reader = getattr(import_module(f"{__name__}.{module}"), name)()
    return reader
