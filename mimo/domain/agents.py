"""Which coding agent runs a program in its shell, by the environment that it sets."""

import re
from collections.abc import Mapping

NAMED = "AI_AGENT"
"""A variable that holds the agent's name."""

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
    """Returns the name of the agent in whose shell a program runs, or None for a person's."""
    named = re.sub(r"[^\w.@/-]", "", environ.get(NAMED, ""))[:64]
    return named or next((name for mark, name in MARKS.items() if environ.get(mark)), None)
