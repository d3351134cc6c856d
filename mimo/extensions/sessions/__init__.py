"""Sessions: the words of earlier sessions with coding agents, kept and found again."""

from __future__ import annotations

from mimo.api import Extension

_HERE = "mimo.extensions.sessions"
_COMMANDS = f"{_HERE}.commands"

EXTENSION = Extension(
    commands={
        "Find": {
            "sessions": _COMMANDS,
            "sessions search": _COMMANDS,
            "sessions show": _COMMANDS,
            "sessions resume": f"{_HERE}.resuming",
        },
        "Admin": {
            "sessions index": _COMMANDS,
            "sessions forget": _COMMANDS,
        },
    },
    tools=(f"{_HERE}.tool",),
    sessions=f"{_HERE}.joints",
    synonyms={"transcripts": ("sessions",), "history": ("sessions", "log")},
)
