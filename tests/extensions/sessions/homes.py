"""Homes of a user with one invented story in the transcripts of each client."""

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mimo.extensions.sessions.model import (
    Facts,
    Part,
    Progress,
    Reader,
    Role,
    Source,
    Turn,
    Unavailable,
)
from mimo.extensions.sessions.readers import lines
from tests.claude_sessions import text_of
from tests.kit import put

FIXTURES = Path(__file__).with_name("fixtures")

ASKED = "Let's use keyset pagination for orders, because OFFSET took 4 s on page 900."
CORRECTED = "No, don't call it offset anywhere. Rename it to key."
ANSWERED = "Done: orders are paged by key now, and the test is green."
RENAMED = "Renamed."
COMMAND = "uv run pytest -q tests/test_pages.py"
OUTPUT, ERROR = "E   NameError: name 'key' is not defined\n1 failed in 0.10s", "1 failed in 0.10s"
CWD = "/home/mina/shop"
FILE = f"{CWD}/orders/pages.py"
TITLE = "Orders by key"

UNSAID = (
    "Use tabs.",
    "mind-context",
    "Send uploads in parts",
    "task-notification",
    "This session is being continued",
    "Another language model",
    "turn_aborted",
    "environment_context",
    "session_context",
    "user_info",
    "local-command-stdout",
    "ide_opened_file",
    "functionResponse",
)
"""Texts that clients write with the role of the user."""


@pytest.fixture
def without_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    """All libraries of zstd are missing, wherever the tests run."""

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(lines, "import_module", missing)


def home_of(client: str, folder: Path) -> Path:
    """Writes the files of a client into a home: databases from SQL, names with their dots."""
    for path in sorted((FIXTURES / client).glob("dot-*/**/*")):
        if path.is_file():
            names = path.relative_to(FIXTURES / client).parts
            target = folder.joinpath(*(re.sub("^dot-", ".", name) for name in names))
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".sql":
                with closing(sqlite3.connect(target.with_suffix(""))) as sql:
                    sql.executescript(path.read_text("utf-8"))
            else:
                shutil.copyfile(path, target)
    return folder


class Read(NamedTuple):
    """The content of a source, its parts put together as the store does it."""

    facts: Facts
    turns: tuple[Turn, ...]
    progress: Progress
    records: int = 0
    unknown: int = 0

    @property
    def prompts(self) -> list[str]:
        """The words of the user."""
        return [turn.text for turn in self.turns if turn.role is Role.USER]

    @property
    def answers(self) -> list[str]:
        """The words of the agent."""
        return [turn.text for turn in self.turns if turn.role is Role.AGENT]

    @property
    def errors(self) -> list[str]:
        """The last lines of its failed calls."""
        return [turn.error for turn in self.turns if turn.error]

    @property
    def calls(self) -> list[tuple[str, str]]:
        """The calls of tools, each with the error that it ended with."""
        return [(turn.text, turn.error) for turn in self.turns if turn.role is Role.TOOL]

    @property
    def files(self) -> list[str]:
        """The edited files."""
        return [file for turn in self.turns for file in turn.files]


def read(reader: Reader, source: Source, before: Read | None = None) -> Read:
    """Returns what a source holds, with what was read of it `before`."""
    total = before
    for part in reader.read(source, before.progress if before else Progress()):
        total = joined(total, part)
    assert total is not None
    return total


def joined(total: Read | None, part: Part) -> Read:
    """Returns what was read of a source with a further part."""
    facts = part.facts
    if total:
        names = Facts.__annotations__
        merged: Mapping[str, Any] = {
            name: getattr(facts, name) or getattr(total.facts, name) for name in names
        } | {"cwd": total.facts.cwd or facts.cwd}
        facts = Facts(**merged)
    if total is None or part.replaces:
        return Read(facts, tuple(part.turns), part.progress, part.records, part.unknown)
    turns = (*total.turns, *part.turns)
    records, unknown = total.records + part.records, total.unknown + part.unknown
    return Read(facts, turns, part.progress, records, unknown)


def sessions(reader: Reader, home: Path) -> Iterator[tuple[Source, Read]]:
    """Yields the sources in a home with what they hold, but those that need a library."""
    for source in reader.sources({}, home):
        with suppress(Unavailable):
            yield source, read(reader, source)


def by_id(reader: Reader, home: Path) -> dict[str, Read]:
    """Returns the sessions in a home by the client's ids, each with all that its sources hold."""
    by_id: dict[str, Read] = {}
    for source in reader.sources({}, home):
        with suppress(Unavailable):
            for part in reader.read(source, Progress()):
                id = part.facts.native_id
                by_id[id] = joined(by_id.get(id), part)
    return by_id


def source(path: Path) -> Source:
    """Returns the source that a file is."""
    state = lines.source_of(path)
    assert state is not None
    return state


def write_json(path: Path, value: Any) -> Path:
    """Writes a file of JSON."""
    return put(path, json.dumps(value))


def write_lines(path: Path, *records: Any) -> Path:
    """Writes a file of JSON lines."""
    return put(path, text_of(records))
