"""The agents whose shells run the program."""

from __future__ import annotations

from collections.abc import Mapping

NAMED = "AI_AGENT"
"""A variable that holds the name of the agent whose shell runs the program."""

MARKS = {
    "CLAUDECODE": "claude-code",
    "CODEX_SANDBOX": "codex",
    "CODEX_THREAD_ID": "codex",
    "CODEX_CI": "codex",
    "CURSOR_AGENT": "cursor",
    "GEMINI_CLI": "gemini-cli",
    "OPENCODE": "opencode",
    "AUGMENT_AGENT": "augment",
    "CLINE_ACTIVE": "cline",
    "GOOSE_TERMINAL": "goose",
}
"""Variables that agents set for the programs they run, each with the agent's name."""


def agent_of(environ: Mapping[str, str]) -> str | None:
    """Returns the name of the agent whose shell runs this program, or None for a user's shell."""
    named = environ.get(NAMED, "")
    named = "".join(sign for sign in named if sign.isalnum() or sign in "_.@/-")[:64]
    return named or next((name for mark, name in MARKS.items() if environ.get(mark)), None)
