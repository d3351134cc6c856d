"""Sessions: what was said in earlier sessions with coding agents, kept and found again."""

from __future__ import annotations

from mimo.api import Extension

_COMMANDS = "mimo.extensions.sessions.commands"

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
    },
    synonyms={"transcripts": ("sessions",), "history": ("sessions", "log")},
)
