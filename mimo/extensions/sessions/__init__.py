"""Sessions: what was said in earlier sessions with coding agents, kept and found again."""

from __future__ import annotations

from mimo.api import Extension

_COMMANDS = "mimo.extensions.sessions.commands"
_PROPOSING = "mimo.extensions.sessions.proposing"

EXTENSION = Extension(
    commands={
        "Find": {
            "sessions": _COMMANDS,
            "sessions search": _COMMANDS,
            "sessions show": _COMMANDS,
        },
        "Admin": {
            "sessions index": _COMMANDS,
            "sessions forget": _COMMANDS,
        },
        "Write": {
            "sessions propose": _PROPOSING,
            "sessions accept": _PROPOSING,
            "sessions reject": _PROPOSING,
        },
    },
    drafts=f"{_PROPOSING}:items",
    synonyms={"transcripts": ("sessions",), "history": ("sessions", "log")},
)
