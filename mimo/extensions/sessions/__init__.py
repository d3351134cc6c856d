"""Sessions: the words of earlier sessions with coding agents, kept and found again."""

from __future__ import annotations

from mimo.api import Extension

_HERE = "mimo.extensions.sessions"
_COMMANDS = f"{_HERE}.commands"
_PROPOSING = f"{_HERE}.proposing"

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
        "Remember": {
            "sessions propose": _PROPOSING,
            "sessions accept": _PROPOSING,
            "sessions reject": _PROPOSING,
        },
    },
    tools=(f"{_HERE}.tool",),
    sessions=f"{_HERE}.joints",
    drafts=f"{_PROPOSING}:items",
    synonyms={"transcripts": ("sessions",)},
)
