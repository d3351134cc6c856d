"""What an agent knows already: the block of notes in the files that its client reads."""

from contextlib import suppress
from pathlib import Path

from mimo.domain.context import block
from mimo.domain.hooks.event import Dialect
from mimo.errors import MindError
from mimo.store import files

_FILES = {
    Dialect.CLAUDE: ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"),
    Dialect.CODEX: ("AGENTS.override.md", "AGENTS.md"),
    Dialect.GEMINI: ("GEMINI.md",),
    Dialect.CURSOR: ("AGENTS.md",),
    Dialect.VSCODE: ("AGENTS.md", ".github/copilot-instructions.md"),
    Dialect.COPILOT: ("AGENTS.md", ".github/copilot-instructions.md"),
}
_MOST_BYTES = 256 * 1024


def lines(root: Path, dialect: Dialect) -> frozenset[str]:
    """Returns the lines of the blocks that the client has put before its agent."""
    found: set[str] = set()
    for name in _FILES[dialect]:
        with suppress(OSError, MindError):
            data, _ = files.look(files.safe_path(root, name), limit=_MOST_BYTES)
            if b"MIND:CONTEXT" in data and (there := block.find(data)):
                found.update(there.body.split("\n"))
    return frozenset(found)
