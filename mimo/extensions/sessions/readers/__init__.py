"""The readers of the clients' transcripts, one module for each client."""

from __future__ import annotations

import re
from importlib import import_module

from mimo.api import NamedTuple
from mimo.extensions.sessions.model import Reader
from mimo.extensions.sessions.readers.lines import plain_id


class Client(NamedTuple):
    """A client whose sessions are read."""

    reader: str
    """The class of its reader, as `module:class`."""
    prefix: str
    """The beginning of our ids of its sessions."""
    command: str
    """The command that continues the session with the id `{}`, in its folder."""
    ids: str = ".*"
    """A pattern of the ids of the sessions that it can continue."""


CLIENTS = {
    "claude-code": Client("claude_code:ClaudeCode", "cc", "claude --resume {}", r"(?!agent-).*"),
    "codex": Client("codex:Codex", "cx", "codex resume {}"),
    "gemini": Client("gemini:Gemini", "gm", "gemini --resume {}"),
    "opencode": Client("opencode:OpenCode", "oc", "opencode -s {}"),
    "copilot": Client("copilot:Copilot", "cp", "copilot --resume={}"),
    "cline": Client("cline:Cline", "cl", "cline --id {}", r".*\D.*"),
    "cursor": Client("cursor:Cursor", "cu", "cursor-agent --resume={}", r"[0-9a-f-]{36}"),
}
"""The clients by their names in `mind install`, which the setting `sessions.clients` has, too."""


def reader_of(client: str) -> Reader:
    """Returns the reader of a client's sessions."""
    module, _, name = CLIENTS[client].reader.partition(":")
    reader: Reader = getattr(import_module(f"{__name__}.{module}"), name)()
    return reader


def resuming(client: str, native_id: str) -> tuple[str, ...]:
    """Returns the command that continues a session in its folder; empty if there is none."""
    entry, id = CLIENTS.get(client), plain_id(native_id)
    if entry is None or not id or not re.fullmatch(entry.ids, id):
        return ()
    return tuple(word.format(id) for word in entry.command.split())
